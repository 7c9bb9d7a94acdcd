//! The two parts of a data set, and how many samples of each are taken.

use crate::error::{LearnError, require};

/// The name of a part in error messages.
pub(super) struct Part {
    pub(super) what: &'static str,
    pub(super) count: &'static str,
}

pub(super) const TRAINING: Part = Part { what: "training", count: "the number of training samples" };
pub(super) const TEST: Part = Part { what: "test", count: "the number of test samples" };

impl Part {
    /// Number of samples to take: the `wanted` number, or all that are available.
    pub(super) fn size(&self, wanted: Option<usize>, available: usize) -> Result<usize, LearnError> {
        let wanted = wanted.unwrap_or(available);
        require(wanted > 0, self.count, "at least 1", wanted)?;
        if wanted > available {
            return Err(LearnError::TooFewSamples { what: self.what, wanted, available });
        }
        Ok(wanted)
    }
}
