//! The run directory: what a run leaves behind, and what it needs to go on after a kill.
//!
//! | path | what it holds |
//! |---|---|
//! | `experiment.toml` | the experiment with every setting spelled out, the version and the seed |
//! | `partition.json` | who holds how many samples of each label |
//! | `metrics.jsonl` | one line a trial and round |
//! | `ledger.jsonl` | what each round gave away, in every view, on the disk before its result |
//! | `parameters/` | the final model of each trial, as safetensors |
//! | `summary.json` | how each trial ended, and means with 95% intervals over the trials |
//! | `tb/` | event files for TensorBoard |
//! | `checkpoint/` | the state of each trial, to resume from |
//! | `lock` | held by the process at work |

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use floras_privacy::ledger::Spend;

use super::{atomic, log};
use crate::error::SimError;
use crate::experiment::Experiment;
use crate::federation::RoundMetrics;
use crate::summary::Summary;

/// How to enter a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A new run; the directory must be empty or absent.
    New,
    /// Go on with the run that is there.
    Resume,
    /// Go on with the run that is there, or begin one.
    ResumeOrNew,
}

/// A run directory that this process has to itself.
#[derive(Debug)]
pub struct RunDirectory {
    folder: PathBuf,
    _lock: File,
}

impl RunDirectory {
    /// Enters a directory for an experiment, creating it if need be. A run of another experiment is refused.
    pub fn enter(folder: &Path, experiment: &Experiment, entry: Entry) -> Result<Self, SimError> {
        if folder.exists() && !folder.is_dir() {
            return Err(SimError::NotADirectory { path: folder.to_path_buf() });
        }
        let holds_a_run = Self::experiment_file(folder).exists();
        match entry {
            Entry::New if holds_a_run => return Err(SimError::AlreadyARun { folder: folder.to_path_buf() }),
            Entry::Resume if !holds_a_run => {
                return Err(SimError::NothingToResume { folder: folder.to_path_buf() });
            }
            _ if !holds_a_run && has_other_files(folder)? => {
                return Err(SimError::NotARun { folder: folder.to_path_buf() });
            }
            _ => {}
        }
        fs::create_dir_all(folder).map_err(SimError::file("create", folder))?;
        let directory = Self { folder: folder.to_path_buf(), _lock: lock(folder)? };
        // Looked at again, now that nobody else can write.
        if Self::experiment_file(folder).exists() {
            if entry == Entry::New {
                return Err(SimError::AlreadyARun { folder: folder.to_path_buf() });
            }
            Self::refuse_other(folder, experiment)?;
        }
        for inner in ["checkpoint", "parameters", "tb"] {
            let inner = folder.join(inner);
            fs::create_dir_all(&inner).map_err(SimError::file("create", &inner))?;
        }
        if !Self::experiment_file(folder).exists() {
            atomic::write(&Self::experiment_file(folder), experiment.to_toml().as_bytes())?;
        }
        Ok(directory)
    }

    /// Where a directory keeps its experiment.
    pub fn experiment_file(folder: &Path) -> PathBuf {
        folder.join("experiment.toml")
    }

    /// The experiment of a run directory, without entering it.
    pub fn read_experiment(folder: &Path) -> Result<Experiment, SimError> {
        let path = Self::experiment_file(folder);
        if !path.exists() {
            return Err(SimError::NothingToResume { folder: folder.to_path_buf() });
        }
        let text = fs::read_to_string(&path).map_err(SimError::file("read", &path))?;
        let experiment = Experiment::parse(&path.display().to_string(), &text)?;
        match experiment.version_difference(&text) {
            Ok(None) => Ok(experiment),
            Ok(Some(difference)) => {
                Err(SimError::ExperimentChanged { folder: folder.to_path_buf(), difference })
            }
            Err(reason) => Err(SimError::Damaged { path, reason }),
        }
    }

    /// Every round of every trial of a run directory, as far as it has come, without entering it.
    pub fn read_metrics(folder: &Path) -> Result<Vec<RoundMetrics>, SimError> {
        let path = folder.join("metrics.jsonl");
        let text = fs::read_to_string(&path).map_err(SimError::file("read", &path))?;
        let line = |(number, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| SimError::Damaged {
                path: path.clone(),
                reason: format!("line {}: {error}", number + 1),
            })
        };
        // A run that is at work may have written half a line.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().enumerate().map(line).collect()
    }

    /// The summary of a run directory, if its run is complete, without entering it.
    pub fn read_summary(folder: &Path) -> Result<Option<Summary>, SimError> {
        let path = folder.join("summary.json");
        if !path.exists() {
            return Ok(None);
        }
        let bytes = fs::read(&path).map_err(SimError::file("read", &path))?;
        let summary = serde_json::from_slice(&bytes);
        summary.map(Some).map_err(|error| SimError::Damaged { path, reason: error.to_string() })
    }

    /// Where a run directory keeps the final model of a trial.
    pub fn final_parameters(folder: &Path, trial: u32) -> PathBuf {
        folder.join("parameters").join(format!("trial-{trial:04}.safetensors"))
    }

    /// Refuses a directory that holds the run of another experiment, without entering it.
    pub fn refuse_other(folder: &Path, experiment: &Experiment) -> Result<(), SimError> {
        if !Self::experiment_file(folder).exists() {
            return Ok(());
        }
        match experiment.difference(&Self::read_experiment(folder)?) {
            None => Ok(()),
            Some(difference) => Err(SimError::ExperimentChanged { folder: folder.to_path_buf(), difference }),
        }
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The summary, if the run is complete.
    pub fn summary(&self) -> Result<Option<Summary>, SimError> {
        Self::read_summary(&self.folder)
    }

    /// Writes the summary, which marks the run as complete, and removes what only a resume would need.
    pub(crate) fn complete(&self, summary: &Summary) -> Result<(), SimError> {
        let path = self.summary_file();
        let mut text =
            serde_json::to_string_pretty(summary).map_err(|error| SimError::encoding(&path, error))?;
        text.push('\n');
        atomic::write(&path, text.as_bytes())?;
        self.remove_logs(summary.trials.len())
    }

    /// Removes the trials' logs, which `metrics.jsonl` and `ledger.jsonl` have taken in.
    pub(crate) fn remove_logs(&self, trials: usize) -> Result<(), SimError> {
        let logs = (0..trials).flat_map(|trial| [self.trial_log(trial), self.trial_ledger(trial)]);
        for path in logs.filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(SimError::file("remove", &path))?;
        }
        Ok(())
    }

    fn summary_file(&self) -> PathBuf {
        self.folder.join("summary.json")
    }

    pub(crate) fn metrics_file(&self) -> PathBuf {
        self.folder.join("metrics.jsonl")
    }

    pub(crate) fn partition_file(&self) -> PathBuf {
        self.folder.join("partition.json")
    }

    pub(crate) fn checkpoint_folder(&self) -> PathBuf {
        self.folder.join("checkpoint")
    }

    pub(crate) fn trial_log(&self, trial: usize) -> PathBuf {
        log::trial_log::<RoundMetrics>(&self.checkpoint_folder(), trial)
    }

    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.folder.join("ledger.jsonl")
    }

    pub(crate) fn trial_ledger(&self, trial: usize) -> PathBuf {
        log::trial_log::<Spend>(&self.checkpoint_folder(), trial)
    }

    pub(crate) fn checkpoint_file(&self, trial: u16) -> PathBuf {
        self.checkpoint_folder().join(format!("trial-{trial:04}.safetensors"))
    }

    pub(crate) fn parameters_file(&self, trial: u16) -> PathBuf {
        Self::final_parameters(&self.folder, trial.into())
    }

    /// TensorBoard takes each folder with an event file for a curve of its own.
    pub(crate) fn events_file(&self, trial: u16) -> Result<PathBuf, SimError> {
        let folder = self.folder.join("tb").join(format!("trial-{trial:04}"));
        fs::create_dir_all(&folder).map_err(SimError::file("create", &folder))?;
        Ok(folder.join("events.out.tfevents.floras"))
    }
}

fn has_other_files(folder: &Path) -> Result<bool, SimError> {
    if !folder.exists() {
        return Ok(false);
    }
    let entries = fs::read_dir(folder).map_err(SimError::file("read", folder))?;
    // A run that was killed in its first moment leaves a lock, or folders without anything in them.
    let ours = ["lock", "checkpoint", "parameters", "tb", "experiment.toml.partial"];
    let mut names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.any(|name| !ours.iter().any(|&known| name == known)))
}

/// Locks a directory for this process, until the file is dropped.
pub(crate) fn lock(folder: &Path) -> Result<File, SimError> {
    let path = folder.join("lock");
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let file = file.map_err(SimError::file("create", &path))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SimError::Locked { folder: folder.to_path_buf() }),
        Err(TryLockError::Error(error)) => Err(SimError::file("lock", &path)(error)),
    }
}
