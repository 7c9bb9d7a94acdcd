//! The section `[local]`: what a client does in a round.

use floras_learn::{LocalSgd, Rate, Work};
use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};

/// The section `[local]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSettings {
    /// Mini-batches, and how many.
    pub sgd: LocalSgd,
    /// The learning rate.
    pub rate: Rate,
}

/// The section as it stands in a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [local]")]
pub(super) struct LocalFile {
    batch: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    epochs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<u32>,
    rate: RateFile,
}

/// A learning rate as it stands in a file.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(
    untagged,
    expecting = "expected a number above 0, { initial = 0.1, factor = 0.99, every = 10 } or { mu = 0.02, offset = 0 }"
)]
enum RateFile {
    Constant(f64),
    Decay(Decay),
    InverseTime(InverseTime),
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Decay {
    initial: f64,
    factor: f64,
    every: u32,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct InverseTime {
    mu: f64,
    offset: f64,
}

impl LocalFile {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("local.batch", self.batch, COUNTS)?;
        within("local.epochs", self.epochs, 1..=1_000_000)?;
        within("local.steps", self.steps, 1..=1_000_000)?;
        if self.epochs.is_some() && self.steps.is_some() {
            let reason = "give either local.epochs or local.steps, not both";
            return Err(ExperimentError::refused("local.steps", reason));
        }
        let rate = Rate::from(self.rate);
        rate.check().map_err(|error| ExperimentError::refused("local.rate", error))
    }
}

impl From<LocalFile> for LocalSettings {
    fn from(file: LocalFile) -> Self {
        let work = match (file.epochs, file.steps) {
            (None, Some(steps)) => Work::Steps(steps),
            (epochs, _) => Work::Epochs(epochs.unwrap_or(1)),
        };
        let batch = file.batch.unwrap_or(20) as usize;
        Self { sgd: LocalSgd { batch, work }, rate: file.rate.into() }
    }
}

impl From<LocalSettings> for LocalFile {
    fn from(LocalSettings { sgd, rate }: LocalSettings) -> Self {
        let (epochs, steps) = match sgd.work {
            Work::Epochs(epochs) => (Some(epochs), None),
            Work::Steps(steps) => (None, Some(steps)),
        };
        Self { batch: Some(u32::try_from(sgd.batch).unwrap_or(u32::MAX)), epochs, steps, rate: rate.into() }
    }
}

impl From<RateFile> for Rate {
    fn from(file: RateFile) -> Self {
        match file {
            RateFile::Constant(rate) => Self::Constant(rate),
            RateFile::Decay(Decay { initial, factor, every }) => Self::Decay { initial, factor, every },
            RateFile::InverseTime(InverseTime { mu, offset }) => Self::InverseTime { mu, offset },
        }
    }
}

impl From<Rate> for RateFile {
    fn from(rate: Rate) -> Self {
        match rate {
            Rate::Constant(rate) => Self::Constant(rate),
            Rate::Decay { initial, factor, every } => Self::Decay(Decay { initial, factor, every }),
            Rate::InverseTime { mu, offset } => Self::InverseTime(InverseTime { mu, offset }),
        }
    }
}

impl Default for RateFile {
    fn default() -> Self {
        Self::Constant(0.005)
    }
}

impl Default for LocalSettings {
    fn default() -> Self {
        LocalFile::default().into()
    }
}
