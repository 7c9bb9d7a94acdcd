//! The section `[masks]`: masks and noise that clients add to their updates before sending.

use floras_core::{Clipping, Masks};
use floras_phy::masks::MaskGrid;
use serde::{Deserialize, Serialize};

use super::Settings;
use super::error::ExperimentError;

/// The section as written in a file.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [masks]")]
pub(crate) struct MasksFile {
    mask_std: Option<f64>,
    noise_std: Option<f64>,
    colluding: u32,
}

impl MasksFile {
    pub(crate) fn masks(self) -> Result<Masks, ExperimentError> {
        let Some(noise_std) = self.noise_std else {
            let reason = "it must be given with masks: they cancel in the sum, where only the clients' own noise protects updates";
            return Err(ExperimentError::refused("masks.noise_std", reason));
        };
        Masks::new(self.mask_std.unwrap_or(0.0), noise_std, self.colluding).map_err(|error| {
            let key = if error.what == Masks::MASK_STD { "masks.mask_std" } else { "masks.noise_std" };
            ExperimentError::value(key, error)
        })
    }
}

impl From<Masks> for MasksFile {
    fn from(masks: Masks) -> Self {
        Self {
            mask_std: Some(masks.mask_std()),
            noise_std: Some(masks.noise_std()),
            colluding: masks.colluding(),
        }
    }
}

impl Settings {
    /// Checks what masks require: updates that are clipped individually, and at least two honest clients.
    pub(super) fn check_masks(&self) -> Result<(), ExperimentError> {
        let Some(masks) = self.masks else { return Ok(()) };
        let refused = |key: &str, allowed: String, value: &dyn ToString| {
            Err(ExperimentError::Value { key: key.to_owned(), allowed, value: value.to_string() })
        };
        if self.privacy.clip.is_none() {
            let allowed = "a number with masks, which hide updates of bounded norm".to_owned();
            return refused("privacy.clip", allowed, &"\"none\"");
        }
        if self.privacy.normalise == Clipping::Paper {
            let allowed = "\"clip\" with masks: the paper's normalisation sends means and norms without them"
                .to_owned();
            return refused("privacy.normalise", allowed, &"\"paper\"");
        }
        let (colluding, per_round) = (masks.colluding(), self.clients.per_round);
        if colluding > 0 && colluding.saturating_add(2) > per_round {
            let allowed = match per_round.checked_sub(2) {
                Some(most) => format!("at most {most}, so that two of K = {per_round} clients are honest"),
                None => format!("0 with K = {per_round} clients per round"),
            };
            return refused("masks.colluding", allowed, &colluding);
        }
        if masks.mask_std() > 0.0 && per_round >= 2 {
            // Masks that no client can encode are rejected before anything is recorded.
            MaskGrid::new(per_round, masks.mask_std(), masks.noise_std())
                .map_err(|error| ExperimentError::refused("masks.mask_std", error))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Experiment;

    const GIVEN: &str = "[privacy]\nclip = 1.0\n[masks]\nmask_std = 2.0\nnoise_std = 0.1";

    #[test]
    fn masks_that_no_grid_holds_are_refused() {
        let text = GIVEN.replace("mask_std = 2.0", "mask_std = 2e5");
        let error = Experiment::parse("a test", &text).unwrap_err().to_string();
        assert!(error.starts_with("masks.mask_std: ") && error.contains("2^20"), "{error}");
    }

    #[test]
    fn masks_are_written_where_they_are_given() {
        let experiment = Experiment::parse("a test", GIVEN).unwrap();
        let text = experiment.to_toml();
        assert!(text.contains("\n[masks]\nmask_std = 2.0\nnoise_std = 0.1\ncolluding = 0\n"), "{text}");
        assert_eq!(Experiment::parse("a test", &text).unwrap(), experiment);
        assert!(!Experiment::parse("a test", "").unwrap().to_toml().contains("masks"));
        let noise = Experiment::parse("a test", &GIVEN.replace("mask_std = 2.0\n", "")).unwrap();
        assert_eq!(noise.settings().masks.unwrap().mask_std(), 0.0);
    }

    #[test]
    fn masks_that_hide_nothing_are_refused() {
        let refusal = |from: &str, to: &str| {
            Experiment::parse("a test", &GIVEN.replace(from, to)).unwrap_err().to_string()
        };
        assert!(refusal("noise_std = 0.1", "").starts_with("masks.noise_std: it must be given with masks"));
        assert_eq!(
            refusal("noise_std = 0.1", "noise_std = -0.1"),
            "masks.noise_std must be between 1e-30 and 1e30, not -0.1"
        );
        assert_eq!(
            refusal("mask_std = 2.0", "mask_std = -2"),
            "masks.mask_std must be 0 or between 1e-30 and 1e30, not -2"
        );
        assert_eq!(
            refusal("mask_std", "colluding = 19\nmask_std"),
            "masks.colluding must be at most 18, so that two of K = 20 clients are honest, not 19"
        );
        assert_eq!(
            refusal("clip = 1.0", "clip = \"none\""),
            "privacy.clip must be a number with masks, which hide updates of bounded norm, not \"none\""
        );
        assert_eq!(
            refusal("clip = 1.0", "clip = 1.0\nnormalise = \"paper\""),
            "privacy.normalise must be \"clip\" with masks: the paper's normalisation sends means and norms without them, \
             not \"paper\""
        );
        let unknown = refusal("noise_std", "noise");
        assert_eq!(unknown, "there is no key masks.noise; did you mean masks.noise_std?");
    }
}
