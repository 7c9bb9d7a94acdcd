//! The section `[privacy]`: clipping, the parameters of the privacy statements, and the budget.

use floras_core::{Clipping, Level, View};
use floras_privacy::{MAX_EPSILON, Margins};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};
use super::number_or_none::NumberOrNone;

/// Default clip norm `C` of an experiment.
const DEFAULT_CLIP: f64 = 1.0;

/// Clipping, `δ`, quoted view and budget: the section `[privacy]` of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivacySettings {
    /// Clip norm `C`, from 1e-30 to 1e30; absent means that updates are not clipped.
    pub clip: Option<f64>,
    /// How updates are limited to norm `C`.
    pub normalise: Clipping,
    /// `δ` of the privacy statements: from 1e-30 to 0.5.
    pub delta: f64,
    /// What the privacy statements protect: all data of a client, or one sample.
    pub level: Level,
    /// How far the radio may depart from the model; the decoder's views of scheme `floras` assume it.
    pub margins: Margins,
    /// A run stops before the round that would exceed this `ε` in `view`: from 1e-9 to 1e5. Absent: no limit.
    pub budget: Option<f64>,
    /// The view that is quoted: the budget, the report and tables of sweeps use it.
    pub view: View,
}

impl PrivacySettings {
    /// The default view: any-channel, or raw-signal with masks, which protect the raw signal.
    pub fn default_view(has_masks: bool) -> View {
        if has_masks { View::RawSignal } else { View::AnyChannel }
    }
}

/// The section as written in a file.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [privacy]")]
pub(crate) struct PrivacyFile {
    clip: Option<NumberOrNone>,
    #[serde(skip_serializing_if = "Option::is_none")]
    normalise: Option<Clipping>,
    delta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Level>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pilot_noise: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    channel_growth: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    foreign_pilots: Option<u64>,
    budget: NumberOrNone,
    view: Option<View>,
}

impl PrivacyFile {
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        self.clip.unwrap_or_default().within("privacy.clip", 1e-30..=1e30)?;
        within("privacy.delta", self.delta, 1e-30..=0.5)?;
        within("privacy.pilot_noise", self.pilot_noise, 0.01..=100.0)?;
        within("privacy.channel_growth", self.channel_growth, 1.0..=1000.0)?;
        within("privacy.foreign_pilots", self.foreign_pilots, 0..=1_000_000_000)?;
        self.budget.within("privacy.budget", 1e-9..=MAX_EPSILON)
    }

    /// The settings of an experiment, whose updates are clipped by default.
    pub(super) fn settings(self, has_masks: bool) -> PrivacySettings {
        let clip = Some(self.clip.unwrap_or(NumberOrNone(Some(DEFAULT_CLIP))));
        Self { clip, ..self }.settings_of_uplink(has_masks)
    }

    /// The settings of an uplink on its own, whose updates are not clipped by default. The default view depends on masks.
    pub(crate) fn settings_of_uplink(self, has_masks: bool) -> PrivacySettings {
        let default = Margins::default();
        PrivacySettings {
            clip: self.clip.unwrap_or_default().0,
            normalise: self.normalise.unwrap_or_default(),
            delta: self.delta.unwrap_or(1e-5),
            level: self.level.unwrap_or_default(),
            margins: Margins {
                pilot_noise: self.pilot_noise.unwrap_or(default.pilot_noise),
                channel_growth: self.channel_growth.unwrap_or(default.channel_growth),
                foreign_pilots: self.foreign_pilots.unwrap_or(default.foreign_pilots),
            },
            budget: self.budget.0,
            view: self.view.unwrap_or_else(|| PrivacySettings::default_view(has_masks)),
        }
    }
}

impl From<PrivacySettings> for PrivacyFile {
    fn from(settings: PrivacySettings) -> Self {
        let PrivacySettings { clip, normalise, delta, level, margins, budget, view } = settings;
        let default = Margins::default();
        // Level and margins at their default are left out, as in files of earlier versions.
        Self {
            clip: Some(NumberOrNone(clip)),
            normalise: Some(normalise).filter(|&mode| clip.is_some() || mode != Clipping::default()),
            delta: Some(delta),
            level: Some(level).filter(|&level| level != Level::default()),
            pilot_noise: Some(margins.pilot_noise).filter(|&ratio| ratio != default.pilot_noise),
            channel_growth: Some(margins.channel_growth).filter(|&ratio| ratio != default.channel_growth),
            foreign_pilots: Some(margins.foreign_pilots).filter(|&count| count != default.foreign_pilots),
            budget: NumberOrNone(budget),
            view: Some(view),
        }
    }
}

impl Default for PrivacySettings {
    fn default() -> Self {
        PrivacyFile::default().settings(false)
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
    fn only_item_level_is_written() {
        let text = |given: &str| Experiment::parse("a test", given).unwrap().to_toml();
        assert!(text("[privacy]\nlevel = \"item\"").contains("\nlevel = \"item\"\n"));
        assert_eq!(text("[privacy]\nlevel = \"client\""), text(""));
        let error = Experiment::parse("a test", "[privacy]\nlevel = \"user\"").unwrap_err().to_string();
        assert!(error.starts_with("privacy.level must be client or item"), "{error}");
    }

    #[test]
    fn margins_that_cannot_be_are_refused() {
        let refusal = |given: &str| {
            Experiment::parse("a test", &GIVEN.replace("pilot_noise = 2", given)).unwrap_err().to_string()
        };
        assert_eq!(refusal("pilot_noise = 0"), "privacy.pilot_noise must be between 0.01 and 100, not 0");
        assert_eq!(
            refusal("channel_growth = 0.5"),
            "privacy.channel_growth must be between 1 and 1000, not 0.5"
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
            let experiment = Experiment::parse("a test", &format!("{text}{given}")).unwrap();
            let air = crate::AirInterface::from_experiment(&experiment).unwrap();
            air.spend(crate::Cohort::complete(20, 20)).unwrap()["any_channel"]
        };
        let plain = epsilon("");
        for margin in ["pilot_noise = 1.5", "channel_growth = 1.5", "foreign_pilots = 5"] {
            assert!(epsilon(margin) > 1.05 * plain, "{margin}");
        }
    }
}
