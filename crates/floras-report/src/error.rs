//! What can go wrong with a report.

use std::io;
use std::path::{Path, PathBuf};

use floras_sim::SimError;
use thiserror::Error;

use crate::plot::PlotError;

/// Why there is no report.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A directory that is not there.
    #[error("there is no directory {folder}", folder = folder.display())]
    NoSuchFolder {
        /// What was given.
        folder: PathBuf,
    },

    /// A directory of none of the four kinds.
    #[error(
        "{folder} holds nothing to report: it has neither experiment.toml (a run), sweep.csv (a sweep), reproduction.json (a \
         reproduction) nor audit.json (an audit)",
        folder = folder.display()
    )]
    NothingThere {
        /// What was given.
        folder: PathBuf,
    },

    /// A file that should be there and is not.
    #[error("{path} is missing", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },

    /// A file that is not as it was written.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A file that cannot be read.
    #[error("cannot read {path}: {error}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },

    /// A folder that cannot be made.
    #[error("cannot create {path}: {error}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },

    /// A file that cannot be written.
    #[error(transparent)]
    Write(SimError),

    /// A picture that cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ReportError {
    /// Whether the input is to blame, and not the machine.
    pub fn is_input(&self) -> bool {
        !matches!(self, Self::Folder { .. } | Self::Write(_) | Self::Plot(_))
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }
}
