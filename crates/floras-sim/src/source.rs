//! Why an experiment could not be read.

use std::path::PathBuf;

use thiserror::Error;

use crate::experiment::{ExperimentError, nearest};
use crate::presets::PRESETS;

/// Why an experiment cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Neither a preset nor a file.
    #[error("there is no preset and no file {source_name}; {}", preset_hint(source_name))]
    NoSuchExperiment {
        /// The name or path that was given.
        source_name: String,
    },

    /// No preset of this name.
    #[error("there is no preset {name}; {}", preset_hint(name))]
    NoSuchPreset {
        /// The name or path that was given.
        name: String,
    },

    /// A file that does not exist.
    #[error("there is no file {path}", path = path.display())]
    NoSuchFile {
        /// The name or path that was given.
        path: PathBuf,
    },

    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}", path = path.display())]
    Unreadable {
        /// The path of the file.
        path: PathBuf,
        /// Why the file cannot be read.
        reason: String,
    },

    /// An experiment that is not valid.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// The preset that is meant, or the list of all.
fn preset_hint(source_name: &str) -> String {
    let names = PRESETS.map(|preset| preset.name);
    let looks_like_file = source_name.contains(['/', '.', '\\']);
    let meant = if looks_like_file { None } else { nearest(source_name, &names) };
    meant.unwrap_or_else(|| format!("presets are {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use crate::ExperimentBuilder;

    #[test]
    fn misspelt_presets_are_suggested() {
        let message = |name| ExperimentBuilder::preset(name).unwrap_err().to_string();
        assert_eq!(message("qick"), "there is no preset and no file qick; did you mean quick?");
        assert_eq!(message("Quick"), "there is no preset and no file Quick; did you mean quick?");
        assert!(message("mine.toml").contains("; presets are private, "));
    }
}
