//! Errors of data sets, partitions, models and training.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Invalid input of the learning code. Each message names the value and what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LearnError {
    /// A number outside its range.
    #[error("{name} must be {allowed}, not {value}")]
    OutOfRange {
        /// The quantity, in words.
        name: &'static str,
        /// The range, in words.
        allowed: String,
        /// The given value.
        value: String,
    },

    /// More samples requested than there are.
    #[error("{wanted} samples were asked for ({what}), but the data set has {available}")]
    TooFewSamples {
        /// The purpose of the requested samples, in words.
        what: &'static str,
        /// Number that was requested.
        wanted: usize,
        /// Number that is available.
        available: usize,
    },

    /// Features and labels of inconsistent sizes or values.
    #[error("{reason}")]
    MisshapenSamples {
        /// What is inconsistent, in words.
        reason: String,
    },

    /// A data file is missing, or its directory.
    #[error("the file {file} (or {file}.gz) is missing in the directory {directory}; {how}", directory = directory.display())]
    MissingFile {
        /// Name of the missing file, without `.gz`.
        file: String,
        /// The directory that was searched.
        directory: PathBuf,
        /// Where to get the file, in words.
        how: &'static str,
    },

    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Unreadable {
        /// Path of the file.
        path: PathBuf,
        /// The error of the operating system.
        reason: String,
    },

    /// A file whose content is invalid.
    #[error("{path} is not a valid data file: {reason}", path = path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// The error in the file, in words.
        reason: String,
    },

    /// A layer of a network that does not fit its input.
    #[error("layer {number} ({layer}): {reason}")]
    Layer {
        /// The place of the layer, counted from 1.
        number: usize,
        /// The layer as text.
        layer: String,
        /// Why it does not fit, with both shapes.
        reason: String,
    },

    /// A partition that is impossible for these data.
    #[error("{reason}")]
    Partition {
        /// Why the partition is impossible, and what is allowed.
        reason: String,
    },
}

impl LearnError {
    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_path_buf(), reason: reason.into() }
    }
}

/// `Ok` if `holds`; otherwise the error that `name` must be `allowed`, not `value`.
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
