//! What can go wrong with a report.

use std::path::{Path, PathBuf};

use floras_sim::SimError;
use thiserror::Error;

use crate::plot::PlotError;

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A directory that is not there.
    #[error("there is no directory {directory}", directory = directory.display())]
    NoSuchDirectory {
        /// What was given.
        directory: PathBuf,
    },

    /// A directory of none of the four kinds.
    #[error(
        "{directory} holds nothing to report: it has neither experiment.toml (a run), sweep.csv (a sweep), reproduction.json (a \
         reproduction) nor audit.json (an audit)",
        directory = directory.display()
    )]
    NothingThere {
        /// What was given.
        directory: PathBuf,
    },

    /// A file that is missing, damaged or cannot be read.
    #[error(transparent)]
    Read(#[from] SimError),

    /// A file or directory that cannot be written.
    #[error(transparent)]
    Write(SimError),

    /// A picture that cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ReportError {
    /// Whether the input is to blame, and not the machine.
    pub fn is_input(&self) -> bool {
        !matches!(self, Self::Write(_) | Self::Plot(_))
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Read(SimError::damaged(path, reason))
    }
}
