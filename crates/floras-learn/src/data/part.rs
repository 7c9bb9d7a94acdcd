//! The two parts of a data set, and how many samples of each are taken.

use crate::error::{LearnError, require};

/// What a part is called in complaints.
pub(super) struct Part {
    pub(super) what: &'static str,
    pub(super) count: &'static str,
}

pub(super) const TRAINING: Part = Part { what: "training", count: "the number of training samples" };
pub(super) const TEST: Part = Part { what: "test", count: "the number of test samples" };

impl Part {
    /// How many samples to take of those that there are: the `wanted`, or all.
    pub(super) fn size(&self, wanted: Option<usize>, available: usize) -> Result<usize, LearnError> {
        let wanted = wanted.unwrap_or(available);
        require(wanted > 0, self.count, "at least 1", wanted)?;
        if wanted > available {
            return Err(LearnError::TooFewSamples { what: self.what, wanted, available });
        }
        Ok(wanted)
    }
}
