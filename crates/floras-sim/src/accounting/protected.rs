//! The unit that the statements about an experiment protect: a client, or a sample with the sizes of data and batches.

use std::ops::RangeInclusive;

use floras_core::{ChoiceError, LocalWork};
use floras_learn::{LocalSgd, Work};
use floras_privacy::PrivacyUnit;

/// The unit of an experiment's statements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Protected {
    unit: PrivacyUnit,
    /// Samples of the smallest and of the largest client, at the item level.
    sizes: RangeInclusive<u64>,
}

impl Protected {
    /// All data of a client.
    pub(crate) const CLIENT: Self = Self { unit: PrivacyUnit::Client, sizes: 0..=0 };

    /// One sample of a client, for clients with numbers of samples in `sizes`. A sample of the smallest client enters a round with
    /// the largest probability, so the statements about it hold for all clients.
    pub(crate) fn item(local: LocalSgd, sizes: RangeInclusive<u64>) -> Result<Self, ChoiceError> {
        let samples = *sizes.start();
        let batch = (local.batch() as u64).min(samples);
        let local = match local.work() {
            Work::Epochs(_) => LocalWork::Epochs,
            Work::Steps(steps) => LocalWork::steps(steps)?,
        };
        Ok(Self { unit: PrivacyUnit::Item { batch, samples, local }, sizes })
    }

    /// The unit, with the batch and sample counts of the smallest client.
    pub(crate) fn unit(&self) -> PrivacyUnit {
        self.unit
    }

    /// Batch size `b` and number of samples `D` of the smallest client, at the item level.
    pub(crate) fn batch_and_samples(&self) -> Option<(u64, u64)> {
        match self.unit {
            PrivacyUnit::Client => None,
            PrivacyUnit::Item { batch, samples, .. } => Some((batch, samples)),
        }
    }

    /// A note on participation at the item level; `None` at the client level.
    pub(crate) fn note(&self) -> Option<String> {
        let PrivacyUnit::Item { batch, samples, local } = self.unit else { return None };
        let used = match local {
            LocalWork::ONE_STEP => {
                format!("one mini-batch of b = {batch}, and a sample takes part if that has it")
            }
            LocalWork::Steps(steps) => {
                format!("{steps} mini-batches of b = {batch}, and a sample takes part if one of them has it")
            }
            LocalWork::Epochs => "all, and a sample takes part whenever its client does".to_owned(),
        };
        let largest = *self.sizes.end();
        let sizes = if largest == samples {
            format!("of a client's D = {samples} samples")
        } else {
            format!(
                "clients hold from {samples} to {largest} samples, and ε is that of the smallest client; of its D = {samples}"
            )
        };
        Some(format!("item level: {sizes}, each round uses {used}"))
    }
}
