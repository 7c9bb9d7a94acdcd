//! The section `[record]`: which measurements are recorded, and in which rounds.

use floras_core::{Choice, ChoiceError, RoundSet};
use serde::{Deserialize, Serialize};

use super::error::{COUNTS, ExperimentError, within};

/// What a run records besides its metrics: the section `[record]` of an experiment file.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [record]")]
pub struct RecordSettings {
    /// Rounds between two evaluations on the test samples: at least 1.
    pub test_every: u32,
    /// Rounds between two evaluations on all training samples: at least 1.
    pub train_every: u32,
    /// Rounds whose signal is recorded, from 1 to the last round of a trial.
    pub signal: RoundSet,
}

impl RecordSettings {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("record.test_every", Some(self.test_every), COUNTS)?;
        within("record.train_every", Some(self.train_every), COUNTS)
    }

    /// Rejects a list with a round beyond the last one.
    pub(super) fn check_rounds(&self, rounds: u32) -> Result<(), ExperimentError> {
        match self.signal.last() {
            Some(last) if last > rounds => {
                let allowed = format!("none, all or rounds from 1 to {rounds}");
                let error = ChoiceError { what: RoundSet::WHAT, allowed, value: self.signal.to_string() };
                Err(ExperimentError::value("record.signal", error))
            }
            _ => Ok(()),
        }
    }
}

impl Default for RecordSettings {
    fn default() -> Self {
        Self { test_every: 1, train_every: 10, signal: RoundSet::NONE }
    }
}
