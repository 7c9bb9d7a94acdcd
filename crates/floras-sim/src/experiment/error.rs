//! Errors of experiment files.

use std::fmt::Display;
use std::ops::RangeInclusive;

use floras_core::ChoiceError;
use thiserror::Error;

/// Why an experiment was rejected. Each message names the key and the allowed values.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A text that is not TOML.
    #[error("{source_name} is not valid TOML: {reason}")]
    Syntax {
        /// The file or preset.
        source_name: String,
        /// The error of the parser, with its position.
        reason: String,
    },

    /// A key that does not exist.
    #[error("there is no key {key}; {hint}")]
    UnknownKey {
        /// The key, with its section.
        key: String,
        /// The nearest known key, or all of them.
        hint: String,
    },

    /// A value that is not allowed.
    #[error("{key} must be {allowed}, not {value}")]
    Value {
        /// The key, with its section.
        key: String,
        /// What is allowed, in words.
        allowed: String,
        /// The value that was given, as TOML.
        value: String,
    },

    /// A name that is not allowed, and is similar to one that is.
    #[error("{key} must be {allowed}, not {value}; {hint}")]
    Misspelt {
        /// The key, with its section.
        key: String,
        /// What is allowed, in words.
        allowed: String,
        /// The name that was given, as TOML.
        value: String,
        /// The similar name, as in `did you mean floras?`.
        hint: String,
    },

    /// A value that another crate rejected, or that conflicts with other values.
    #[error("{key}: {reason}")]
    Refused {
        /// The key, with its section.
        key: String,
        /// Why, and what is allowed.
        reason: String,
    },

    /// A value that is missing, or that another value rules out.
    #[error("{key} {requirement}")]
    Incomplete {
        /// The key, with its section.
        key: String,
        /// What must be given or left out, as in `must be given together with a length`.
        requirement: String,
    },

    /// A point of a grid whose experiment is wrong.
    #[error("{point}: {error}")]
    Point {
        /// The number and the values of the point.
        point: String,
        /// The error of the experiment.
        error: Box<ExperimentError>,
    },

    /// An experiment without a grid where a grid was expected.
    #[error(
        "sweep: there is no section [sweep] with a list of values for some keys, as in uplink.sequences = [20, 25]"
    )]
    NotASweep,

    /// A grid of experiments where one experiment was expected.
    #[error("sweep: a file with this section is a grid of experiments, and not one of them")]
    IsSweep,

    /// Values of a key to vary, without key or values.
    #[error("a key to vary is key=a,b,c, as in uplink.snr_db=0,10,20, not '{given}'")]
    Variation {
        /// The text that was given.
        given: String,
    },

    /// An assignment without key or value.
    #[error("a setting is key=value, as in uplink.snr_db=10, not '{given}'")]
    Assignment {
        /// The text that was given.
        given: String,
    },
}

impl ExperimentError {
    /// The error of a choice, with its key.
    pub fn value(key: &str, error: ChoiceError) -> Self {
        Self::Value { key: key.to_owned(), allowed: error.allowed, value: error.value }
    }

    /// The error of a value that another crate rejected, or that conflicts with other values.
    pub fn refused(key: &str, reason: impl ToString) -> Self {
        Self::Refused { key: key.to_owned(), reason: reason.to_string() }
    }
}

/// Range of counts without a narrower limit.
pub(super) const COUNTS: RangeInclusive<u32> = 1..=u32::MAX - 1;

/// Fails if a number is given and is outside of a range; the error names the key.
pub fn within<N: PartialOrd + Display>(
    key: &str,
    value: Option<N>,
    range: RangeInclusive<N>,
) -> Result<(), ExperimentError> {
    let allowed = || format!("between {} and {}", plain(range.start()), plain(range.end()));
    match value {
        Some(value) if !range.contains(&value) => {
            Err(ExperimentError::Value { key: key.to_owned(), allowed: allowed(), value: plain(&value) })
        }
        _ => Ok(()),
    }
}

/// A number as text, in scientific notation if it is very large or very small.
fn plain(number: &impl Display) -> String {
    let text = number.to_string();
    match text.parse::<f64>() {
        Ok(value) if text.len() > 12 && text.trim_end_matches('0').len() < 6 => format!("{value:e}"),
        Ok(value) if value != 0.0 && value.abs() < 1e-6 => format!("{value:e}"),
        _ => text,
    }
}
