//! The section `[privacy]`: what limits a client's influence, and how much may be given away.

use floras_core::{Clipping, View};
use floras_phy::UplinkError;
use floras_phy::precode::{self, Normalisation};
use floras_privacy::{MAX_EPSILON, Margins};
use toml::Table;

use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

const KEYS: [&str; 8] =
    ["clip", "normalise", "delta", "pilot_noise", "channel_growth", "foreign_pilots", "budget", "view"];

/// The section `[privacy]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacySettings {
    /// `C`; absent means that updates go out as they are.
    pub clip: Option<f64>,
    /// How updates are brought to norm `C`.
    pub normalise: Clipping,
    /// `δ` of the privacy statements.
    pub delta: f64,
    /// How far the radio may depart from the model; the decoder's views of scheme `floras` count on it.
    pub margins: Margins,
    /// Where to stop; absent means after all rounds.
    pub budget: Option<Budget>,
}

/// How much may be given away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// The run stops before the round that would exceed this `ε`,
    pub epsilon: f64,
    /// in this view.
    pub view: View,
}

/// What a round's updates were before they were brought to the form in which they are sent.
pub(crate) struct Precoded {
    /// The norm that each had.
    pub(crate) norms: Vec<f64>,
    /// How the paper's normalisation is undone.
    pub(crate) normalisation: Option<Normalisation>,
}

impl PrivacySettings {
    /// Brings the updates of a round to the form in which they are sent.
    pub(crate) fn precode(self, updates: &mut [Vec<f32>]) -> Result<Precoded, UplinkError> {
        let plain = |norms| Precoded { norms, normalisation: None };
        match (self.clip, self.normalise) {
            (None, _) => precode::finite_norms(updates).map(plain),
            (Some(clip), Clipping::Each) => precode::clip(updates, clip).map(plain),
            (Some(clip), Clipping::Paper) => {
                let normalisation = precode::normalise(updates, clip)?;
                Ok(Precoded { norms: normalisation.norms().to_vec(), normalisation: Some(normalisation) })
            }
        }
    }

    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "privacy", &KEYS)?;
        let view = section.parse("view")?.unwrap_or(View::Actual);
        let words = "an epsilon between 1e-9 and 1e5, or \"none\"";
        let budget = section.number_or_none("budget", 1e-9..=MAX_EPSILON, words)?;
        Ok(Self {
            clip: section.number_or_none(
                "clip",
                1e-30..=1e30,
                "a number between 1e-30 and 1e30, or \"none\"",
            )?,
            normalise: section.parse("normalise")?.unwrap_or_default(),
            delta: section.number("delta", 1e-30..=0.5, "a number between 1e-30 and 0.5")?.unwrap_or(1e-5),
            margins: read_margins(&section)?,
            budget: budget.map(|epsilon| Budget { epsilon, view }),
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        match (self.clip, self.normalise) {
            (None, _) => out.key("clip", "none"),
            (Some(clip), mode) => {
                out.key("clip", clip);
                out.choice("normalise", &mode);
            }
        }
        out.key("delta", self.delta);
        write_margins(self.margins, out);
        match self.budget {
            None => out.key("budget", "none"),
            Some(budget) => {
                out.key("budget", budget.epsilon);
                out.choice("view", &budget.view);
            }
        }
    }
}

/// Reads the margins; those that are left out have their defaults.
fn read_margins(section: &Section<'_>) -> Result<Margins, ExperimentError> {
    let default = Margins::default();
    let number = |key: &str, allowed, words: &str| section.number(key, allowed, words);
    Ok(Margins {
        pilot_noise: number("pilot_noise", 0.01..=100.0, "a number between 0.01 and 100")?
            .unwrap_or(default.pilot_noise),
        channel_growth: number("channel_growth", 1.0..=1000.0, "a number between 1 and 1000")?
            .unwrap_or(default.channel_growth),
        foreign_pilots: section.whole("foreign_pilots", 0..=1_000_000_000)?.unwrap_or(default.foreign_pilots),
    })
}

/// Writes the margins that are not at their default, so that files of earlier versions stay as they are.
fn write_margins(margins: Margins, out: &mut Write) {
    let default = Margins::default();
    if margins.pilot_noise != default.pilot_noise {
        out.key("pilot_noise", margins.pilot_noise);
    }
    if margins.channel_growth != default.channel_growth {
        out.key("channel_growth", margins.channel_growth);
    }
    if margins.foreign_pilots != default.foreign_pilots {
        out.key("foreign_pilots", margins.foreign_pilots);
    }
}

#[cfg(test)]
mod tests {
    use crate::Experiment;

    const GIVEN: &str =
        "[uplink]\nsequences = 25\n[privacy]\nclip = 1.0\npilot_noise = 2\nforeign_pilots = 3";

    #[test]
    fn margins_are_written_where_they_are_given() {
        let text = Experiment::parse("a test", GIVEN).unwrap().to_toml();
        assert!(text.contains("pilot_noise = 2.0\nforeign_pilots = 3\n"), "{text}");
        assert!(!text.contains("channel_growth"), "{text}");
        let plain = Experiment::parse("a test", "").unwrap().to_toml();
        assert!(!plain.contains("pilot_noise") && !plain.contains("foreign_pilots"), "{plain}");
    }

    #[test]
    fn margins_that_cannot_be_are_refused() {
        let refusal = |given: &str| {
            Experiment::parse("a test", &GIVEN.replace("pilot_noise = 2", given)).unwrap_err().to_string()
        };
        assert_eq!(
            refusal("pilot_noise = 0"),
            "privacy.pilot_noise must be a number between 0.01 and 100, not 0"
        );
        assert_eq!(
            refusal("channel_growth = 0.5"),
            "privacy.channel_growth must be a number between 1 and 1000, not 0.5"
        );
        let many = GIVEN.replace("foreign_pilots = 3", "foreign_pilots = 6");
        let error = Experiment::parse("a test", &many).unwrap_err().to_string();
        assert_eq!(error, "privacy.foreign_pilots: 6 foreign pilots do not fit on 5 unused sequences");
        let ideal = GIVEN.replace("sequences = 25", "scheme = \"ideal\"");
        let error = Experiment::parse("a test", &ideal).unwrap_err().to_string();
        assert_eq!(error, "privacy.pilot_noise: only scheme \"floras\" is accounted for with it");
    }

    #[test]
    fn margins_reach_the_account_of_the_air() {
        let epsilon = |given: &str| {
            let text = "[uplink]\nsequences = 40\nlength = 64\nreceiver = { clipped = 1.0 }\n[privacy]\nclip = 1.0\n";
            let sections = format!("{text}{given}").parse().unwrap();
            let air = crate::AirInterface::new(&sections, None).unwrap();
            air.spend(crate::Cohort::complete(20, 20)).unwrap()["any_channel"]
        };
        let plain = epsilon("");
        for margin in ["pilot_noise = 1.5", "channel_growth = 1.5", "foreign_pilots = 5"] {
            assert!(epsilon(margin) > 1.05 * plain, "{margin}");
        }
    }
}
