//! Results of sequence detection.

use floras_sim::figure::Panel;
use floras_sim::number::{count, grouped};
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};

/// Terms of the table.
const WORDS: [(&str, &str); 6] = [
    ("pilot", "a known symbol at the start of a round, from which the base station estimates every channel"),
    ("energy", "the energy of the payload, the rest of the round, on a sequence"),
    ("area", "the area under the curve of detections over false alarms: 0.5 is a guess, and 1 is certainty"),
    ("false alarm", "an unused sequence that is classified as used"),
    ("whole set found", "the sequences with the highest scores are exactly those in use"),
    ("knows the fading", "knows its distribution, such as Rayleigh, but not the channels themselves"),
];

/// Results of sequence detection.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SequenceAttack {
    /// Number of simulated rounds.
    pub rounds: u32,
    /// Number `N` of sequences.
    pub sequences: usize,
    /// Number `K` of sequences in use.
    pub in_use: usize,
    /// Results of each detector under the experiment's own settings.
    pub detectors: Vec<DetectorResult>,
    /// The receiver operating characteristics, and the rate of exact recovery over SNR, `d`, `C` and `γ`.
    pub panels: Vec<Panel>,
}

/// Results of one detector.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DetectorResult {
    /// What the detector uses: the pilot (`pilot`), the energy of the payload (`energy`), or `both`.
    pub detector: String,
    /// Whether it knows the distribution of the fading.
    pub knows_fading: bool,
    /// Area under the receiver operating characteristic.
    pub area: f64,
    /// Detection rate at a false-alarm rate of 1%.
    pub detections: f64,
    /// The detection rate in theory; `None` without a closed form.
    pub detections_in_theory: Option<f64>,
    /// Share of rounds in which the `K` highest scores are exactly the sequences in use.
    pub exact_set: f64,
}

impl SequenceAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "The scheme's privacy depends on a base station that does not know which sequences are in use: the unused \
                           ones make the noise. A detector gives every sequence a score, from the pilot, from the energy of the \
                           payload, or from both.";
        let finding = format!(
            "{} of {} are in use. Over {}:",
            grouped(self.in_use as u64),
            count(self.sequences as u64, "sequence"),
            count(self.rounds.into(), "round")
        );
        let heading = [
            "detector",
            "knows the fading",
            "area",
            "found at 1 % false alarms",
            "in theory",
            "whole set found",
        ];
        Section {
            title: "Which sequences are in use?",
            parts: vec![
                Part::Explanation(explanation.to_owned()),
                Part::Finding(finding),
                Part::Table { heading: heading.to_vec(), rows: rows(&self.detectors) },
                Part::glossary(&WORDS),
                Part::Plots(&self.panels),
            ],
        }
    }
}

/// One row if knowledge of the fading distribution makes no difference.
fn rows(detectors: &[DetectorResult]) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for result in detectors {
        let same = |other: &&DetectorResult| {
            **other == DetectorResult { knows_fading: !result.knows_fading, ..result.clone() }
        };
        let twin = detectors.iter().find(same);
        let knows = match (twin, result.knows_fading) {
            (Some(_), true) => continue,
            (Some(_), false) => "no difference",
            (None, true) => "yes",
            (None, false) => "no",
        };
        rows.push(vec![
            Cell::text(result.detector.as_str()),
            Cell::text(knows),
            Cell::Number(result.area, 4),
            Cell::Share(result.detections, ""),
            result.detections_in_theory.map_or_else(|| Cell::text("–"), |share| Cell::Share(share, "")),
            Cell::Share(result.exact_set, ""),
        ]);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detectors_without_gain_have_one_row() {
        let result = |detector: &str, knows_fading, area| DetectorResult {
            detector: detector.to_owned(),
            knows_fading,
            area,
            detections: 0.5,
            detections_in_theory: None,
            exact_set: 0.25,
        };
        let all = [result("pilot", false, 0.9), result("pilot", true, 0.9), result("both", false, 0.8)];
        let rows = rows(&[&all[..], &[result("both", true, 0.85)]].concat());
        let said: Vec<&Cell> = rows.iter().map(|row| &row[1]).collect();
        assert_eq!(said, ["no difference", "no", "yes"].map(Cell::text).iter().collect::<Vec<_>>());
    }
}
