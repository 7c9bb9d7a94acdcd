//! Where experiments come from: presets by name, and files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;
use toml::Table;

use crate::experiment::{ExperimentError, parse_toml};
use crate::presets::{PRESETS, Preset};

/// An experiment file has at most this many bytes.
const LARGEST: u64 = 1 << 20;

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

/// A preset, or else a file; the default preset if nothing is given.
pub fn read_source(source: Option<&str>) -> Result<Table, SourceError> {
    let source = source.unwrap_or(PRESETS[0].name);
    if let Some(preset) = Preset::find(source) {
        return Ok(parse_toml(preset.name, preset.text)?);
    }
    match read_file(Path::new(source)) {
        Err(SourceError::NoSuchFile { .. }) => {
            Err(SourceError::NoSuchExperiment { source_name: source.to_owned() })
        }
        table => table,
    }
}

/// The table of an experiment or sweep file.
pub fn read_file(path: &Path) -> Result<Table, SourceError> {
    let unreadable = |reason: String| SourceError::Unreadable { path: path.to_path_buf(), reason };
    let file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SourceError::NoSuchFile { path: path.to_path_buf() },
        _ => unreadable(error.to_string()),
    })?;
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
    if text.len() as u64 > LARGEST {
        return Err(unreadable("an experiment has at most 1 MiB".to_owned()));
    }
    Ok(parse_toml(&path.display().to_string(), &text)?)
}
