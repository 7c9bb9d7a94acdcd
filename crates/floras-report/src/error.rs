//! Errors of a report.

use std::path::{Path, PathBuf};

use floras_sim::SimError;
use thiserror::Error;

use crate::plot::PlotError;

/// A report that could not be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// A missing directory.
    #[error("there is no directory {directory}", directory = directory.display())]
    NoSuchDirectory {
        /// The path as given by the caller.
        directory: PathBuf,
    },

    /// A directory that is not a run, a sweep, a reproduction, a benchmark or an audit.
    #[error(
        "{directory} has nothing to report: expected experiment.toml (run), sweep.csv (sweep), reproduction.json (reproduction), \
         benchmark.json (benchmark) or audit.json (audit)",
        directory = directory.display()
    )]
    NothingThere {
        /// The path as given by the caller.
        directory: PathBuf,
    },

    /// A directory of figures or attacks where a run was expected.
    #[error("{directory} holds neither a run nor a sweep", directory = directory.display())]
    NotARun {
        /// The path as given by the caller.
        directory: PathBuf,
    },

    /// A directory whose own report the plots of a comparison would replace.
    #[error("{directory} holds {what}, whose plots a comparison would replace", directory = directory.display())]
    Occupied {
        /// The given path.
        directory: PathBuf,
        /// A description of its content.
        what: &'static str,
    },

    /// A comparison of fewer than two runs.
    #[error("a comparison needs at least 2 runs, not {count}")]
    TooFewRuns {
        /// Number of runs that were given.
        count: usize,
    },

    /// A file that is missing, damaged or cannot be read.
    #[error(transparent)]
    Read(#[from] SimError),

    /// A file or directory that cannot be written.
    #[error(transparent)]
    Write(SimError),

    /// A plot that cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
}

impl ReportError {
    /// Whether the input is wrong; otherwise the machine failed.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Write(error) => error.is_input(),
            Self::Plot(_) => false,
            _ => true,
        }
    }

    pub(crate) fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Read(SimError::damaged(path, reason))
    }
}
