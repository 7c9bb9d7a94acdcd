//! What can be wrong with the input of the learning side.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why the learning side refused its input. Each message names the thing and what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LearnError {
    /// A number outside its range.
    #[error("{name} must be {allowed}, not {value}")]
    OutOfRange {
        /// What the number is, in words.
        name: &'static str,
        /// The range, in words.
        allowed: String,
        /// What was given.
        value: String,
    },

    /// More samples asked for than there are.
    #[error("{wanted} samples were asked for ({what}), but the data set has {available}")]
    TooFewSamples {
        /// Which samples.
        what: &'static str,
        /// How many were asked for.
        wanted: usize,
        /// How many there are.
        available: usize,
    },

    /// Features and labels that do not fit together.
    #[error("{reason}")]
    MisshapenSamples {
        /// What does not fit.
        reason: String,
    },

    /// A data set that is kept in files, without its directory or one of its files.
    #[error("there is no {file} (nor {file}.gz) in {directory}: {how}", directory = directory.display())]
    MissingFile {
        /// The file.
        file: String,
        /// Where it was looked for.
        directory: PathBuf,
        /// How to get it.
        how: &'static str,
    },

    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },

    /// A file that is not what its name says.
    #[error("{path} is not a valid data file: {reason}", path = path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },

    /// A partition that cannot be made.
    #[error("{reason}")]
    Partition {
        /// Why not, and what is allowed.
        reason: String,
    },
}

impl LearnError {
    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_path_buf(), reason: reason.into() }
    }
}

/// `Ok` if `holds`, and else the complaint that `name`, which is `value`, is not `allowed`.
pub(crate) fn require(
    holds: bool,
    name: &'static str,
    allowed: impl Into<String>,
    value: impl fmt::Display,
) -> Result<(), LearnError> {
    if holds {
        Ok(())
    } else {
        Err(LearnError::OutOfRange { name, allowed: allowed.into(), value: value.to_string() })
    }
}
