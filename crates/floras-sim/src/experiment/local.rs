//! The section `[local]`: a client's training in a round.

use floras_learn::{LocalSgd, Rate, Work};
use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};

/// How a client trains in a round: the section `[local]` of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSettings {
    /// Batch size, and the number of epochs or steps.
    pub sgd: LocalSgd,
    /// Learning rate `η_t` of the SGD steps in round `t`, constant or falling; between 1e-12 and 1e6 in the first round.
    pub rate: Rate,
}

impl Default for LocalSettings {
    fn default() -> Self {
        Self { sgd: LocalSgd::default(), rate: default_rate() }
    }
}

/// With a rate of 1, most updates reach the default clip norm, which makes the signal as strong as possible.
fn default_rate() -> Rate {
    Rate::constant(1.0).unwrap_or_default()
}

/// The section as written in a file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [local]")]
pub(super) struct LocalFile {
    batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    rate: Rate,
}

impl Default for LocalFile {
    fn default() -> Self {
        Self { batch: None, epochs: None, steps: None, rate: default_rate() }
    }
}

impl LocalFile {
    pub(super) fn settings(&self) -> Result<LocalSettings, ExperimentError> {
        within("local.batch", self.batch, COUNTS)?;
        within("local.epochs", self.epochs, 1..=1_000_000)?;
        within("local.steps", self.steps, 1..=1_000_000)?;
        let work = match (self.epochs, self.steps) {
            (Some(_), Some(_)) => {
                let reason = "give either local.epochs or local.steps, not both";
                return Err(ExperimentError::refused("local.steps", reason));
            }
            (None, Some(steps)) => Work::Steps(steps),
            (epochs, None) => Work::Epochs(epochs.unwrap_or(1)),
        };
        let batch = self.batch.map_or(LocalSgd::default().batch(), |batch| batch as usize);
        let sgd = LocalSgd::new(batch, work);
        let sgd = sgd.map_err(|error| ExperimentError::refused("local", error))?;
        Ok(LocalSettings { sgd, rate: self.rate })
    }
}

impl From<LocalSettings> for LocalFile {
    fn from(LocalSettings { sgd, rate }: LocalSettings) -> Self {
        let (epochs, steps) = match sgd.work() {
            Work::Epochs(epochs) => (Some(epochs), None),
            Work::Steps(steps) => (None, Some(steps)),
        };
        Self { batch: Some(u32::try_from(sgd.batch()).unwrap_or(u32::MAX)), epochs, steps, rate }
    }
}
