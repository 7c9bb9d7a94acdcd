//! What can be wrong with an experiment.

use thiserror::Error;

/// Why an experiment was refused. Each message names the key and what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ExperimentError {
    /// A text that is not TOML.
    #[error("{source_name} is not valid TOML: {reason}")]
    Syntax {
        /// The file or preset.
        source_name: String,
        /// What is wrong, and where.
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
        /// What was given, as TOML.
        value: String,
    },

    /// A value that another part of the system refused, or that does not go with others.
    #[error("{key}: {reason}")]
    Refused {
        /// The key, with its section.
        key: String,
        /// Why, and what is allowed.
        reason: String,
    },

    /// A `--set` without key or value.
    #[error("--set takes key=value, as in uplink.snr_db=10, not '{given}'")]
    Override {
        /// What was given.
        given: String,
    },
}

impl ExperimentError {
    /// The complaint of another crate about the value of a key.
    pub(crate) fn refused(key: &str, reason: impl ToString) -> Self {
        Self::Refused { key: key.to_owned(), reason: reason.to_string() }
    }
}
