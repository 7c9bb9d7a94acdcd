//! Which sequences are in use?

use floras_audit::{DetectorResult, SequenceAttack};
use floras_sim::figure::{Curve, Panel};

use crate::html::number::{count, grouped, share};
use crate::html::{Cell, Html, figure};

/// Curves that are never further apart than this share of the axis look like one.
const APART: f64 = 0.015;

/// Words of the table.
const WORDS: [(&str, &str); 6] = [
    ("pilot", "a known symbol at the start of a round, by which the base station learns every channel"),
    ("energy", "how strong the rest of the round, the payload, is on a sequence"),
    ("area", "the area under the curve of detections over false alarms: 0.5 is a guess, and 1 is certainty"),
    ("false alarm", "a sequence that nobody uses, and that is taken for one in use"),
    ("whole set found", "the sequences with the highest scores are exactly those in use"),
    ("to know the fading", "to know its distribution, such as Rayleigh, but not the channels themselves"),
];

/// Tells what detectors reach.
pub(super) fn tell(html: &mut Html, attack: &SequenceAttack) {
    html.paragraph(&format!(
        "The scheme's privacy hangs on a base station that does not know which {} of its {} are in use: those that nobody uses \
         make the noise. A detector gives every sequence a score, from the pilot, from the energy of the payload, or from both. \
         Over {}:",
        grouped(attack.in_use as u64),
        count(attack.sequences as u64, "sequence"),
        count(attack.rounds.into(), "round")
    ));
    let heading =
        ["detector", "knows the fading", "area", "found at 1 % false alarms", "in theory", "whole set found"];
    html.table(&heading, &rows(&attack.detectors));
    html.around("details", "", |details| {
        details.element("summary", "", "Words used in this table");
        super::definitions(details, WORDS);
    });
    html.around("div", "plots", |plots| {
        attack.panels.iter().for_each(|panel| figure(plots, panel, &caption(panel)));
    });
}

/// One row where it makes no difference whether the distribution of the fading is known.
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
            Cell::number(format!("{:.4}", result.area)),
            Cell::number(share(result.detections)),
            Cell::number(result.detections_in_theory.map_or_else(|| "–".to_owned(), share)),
            Cell::number(share(result.exact_set)),
        ]);
    }
    rows
}

/// Names the curves that lie on one another.
fn caption(panel: &Panel) -> String {
    let (low, high) = panel.y.range.unwrap_or((0.0, 1.0));
    let apart = APART * (high - low).abs();
    let mut groups: Vec<Vec<&Curve>> = Vec::new();
    for curve in &panel.curves {
        let like = |group: &&mut Vec<&Curve>| group.iter().all(|other| look_alike(curve, other, apart));
        match groups.iter_mut().find(like) {
            Some(group) => group.push(curve),
            None => groups.push(vec![curve]),
        }
    }
    let names = |group: &Vec<&Curve>| {
        let names: Vec<String> = group.iter().map(|curve| format!("“{}”", curve.name)).collect();
        names.join(", ")
    };
    let alike: Vec<String> = groups.iter().filter(|group| group.len() > 1).map(names).collect();
    match alike.len() {
        0 => "Point at it for values.".to_owned(),
        _ => format!("These lie on one another: {}. Point at it for values.", alike.join("; and ")),
    }
}

/// Whether two curves are nowhere further apart than an eye can tell.
fn look_alike(one: &Curve, other: &Curve, apart: f64) -> bool {
    let pairs = one.y.iter().zip(&other.y).filter_map(|(one, other)| Some((one.as_ref()?, other.as_ref()?)));
    let (mut all, mut any) = (one.x == other.x, false);
    for (one, other) in pairs {
        (all, any) = (all && (one - other).abs() <= apart, true);
    }
    all && any
}

#[cfg(test)]
mod tests {
    use floras_sim::figure::{Axis, Style};

    use super::*;

    fn curve(name: &str, y: [f64; 2]) -> Curve {
        let y = y.map(Some).to_vec();
        Curve { name: name.to_owned(), colour: 0, style: Style::Solid, x: vec![0.0, 1.0], y, band: None }
    }

    #[test]
    fn curves_that_cannot_be_told_apart_are_named() {
        let axis = || Axis { label: String::new(), logarithmic: false, range: Some((0.0, 1.0)) };
        let curves =
            vec![curve("pilot", [0.5, 0.9]), curve("energy", [0.5, 0.6]), curve("both", [0.51, 0.9])];
        let mut panel = Panel { name: String::new(), title: String::new(), x: axis(), y: axis(), curves };
        assert_eq!(caption(&panel), "These lie on one another: “pilot”, “both”. Point at it for values.");
        panel.curves.pop();
        assert_eq!(caption(&panel), "Point at it for values.");
    }

    #[test]
    fn detectors_that_gain_nothing_by_the_law_have_one_row() {
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
