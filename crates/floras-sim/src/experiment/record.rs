//! The section `[record]`: what is measured, and when.

use toml::Table;

use super::WHOLE;
use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

/// The section `[record]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSettings {
    /// Rounds between two evaluations on the test samples.
    pub test_every: u32,
    /// Rounds between two evaluations on all training samples.
    pub train_every: u32,
}

impl RecordSettings {
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "record", &["test_every", "train_every"])?;
        Ok(Self {
            test_every: section.whole("test_every", WHOLE)?.unwrap_or(1) as u32,
            train_every: section.whole("train_every", WHOLE)?.unwrap_or(10) as u32,
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        out.key("test_every", self.test_every);
        out.key("train_every", self.train_every);
    }
}
