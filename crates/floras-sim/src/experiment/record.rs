//! The section `[record]`: what is measured, and when.

use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};

/// The section `[record]`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [record]")]
pub struct RecordSettings {
    /// Rounds between two evaluations on the test samples: at least 1.
    pub test_every: u32,
    /// Rounds between two evaluations on all training samples: at least 1.
    pub train_every: u32,
}

impl RecordSettings {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("record.test_every", Some(self.test_every), COUNTS)?;
        within("record.train_every", Some(self.train_every), COUNTS)
    }
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self { test_every: 1, train_every: 10 }
    }
}
