//! Why an experiment could not be read.

use std::path::PathBuf;

use thiserror::Error;

use crate::experiment::ExperimentError;
use crate::presets::PRESETS;

/// Why there is no experiment.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Neither a preset nor a file.
    #[error("there is no file {source_name}, and no preset of that name; presets are {presets}", presets = preset_names())]
    NoSuchExperiment {
        /// What was given.
        source_name: String,
    },

    /// A file that is not there.
    #[error("there is no file {path}", path = path.display())]
    NoSuchFile {
        /// What was given.
        path: PathBuf,
    },

    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// A file that is no TOML.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

fn preset_names() -> String {
    PRESETS.map(|preset| preset.name).join(", ")
}
