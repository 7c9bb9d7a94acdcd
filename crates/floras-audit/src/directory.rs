//! The output directory of an audit: its own, or that of a run of the same experiment.

use std::fs;
use std::path::{Path, PathBuf};

use floras_sim::{Experiment, RunDirectory, SimError, create_directory, write_atomically};

use super::AuditReport;

impl AuditReport {
    /// The file name of an audit's results.
    pub const FILE: &'static str = "audit.json";

    /// Creates a directory for the audit of an experiment. An earlier audit will be replaced.
    pub fn enter(directory: &Path, experiment: &Experiment) -> Result<(), SimError> {
        Self::may_enter(directory, experiment)?;
        create_directory(directory)
    }

    /// Removes the directory if it is empty.
    pub fn leave(directory: &Path) {
        // The removal fails unless the directory is empty, as intended.
        let _ = fs::remove_dir(directory);
    }

    /// `Ok` if the directory may hold the audit of an experiment.
    fn may_enter(directory: &Path, experiment: &Experiment) -> Result<(), SimError> {
        if !directory.exists() {
            return Ok(());
        }
        if !directory.is_dir() {
            return Err(SimError::NotADirectory { path: directory.to_path_buf() });
        }
        let occupied =
            |what: &str| SimError::Occupied { directory: directory.to_path_buf(), what: what.to_owned() };
        if RunDirectory::experiment_file(directory).exists() {
            let theirs = RunDirectory::read_experiment(directory)?;
            return match experiment.difference(&theirs) {
                None => Ok(()),
                Some(difference) => Err(occupied(&format!(
                    "a run of another experiment, in which {} is {}",
                    difference.key, difference.theirs
                ))),
            };
        }
        if directory.join(Self::FILE).exists() {
            return Ok(());
        }
        let mut entries = fs::read_dir(directory).map_err(SimError::file("read", directory))?;
        if entries.next().is_some() { Err(occupied("neither an audit nor a run")) } else { Ok(()) }
    }

    /// Writes the audit into a directory atomically.
    pub fn write(&self, directory: &Path) -> Result<PathBuf, SimError> {
        create_directory(directory)?;
        let path = directory.join(Self::FILE);
        let mut text = serde_json::to_vec(self).map_err(|error| SimError::encoding(&path, error))?;
        text.push(b'\n');
        write_atomically(&path, &text)?;
        Ok(path)
    }
}
