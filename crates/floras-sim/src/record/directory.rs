//! The run directory: the results of a run, and the files from which it resumes after a kill.
//!
//! | path | content |
//! |---|---|
//! | `experiment.toml` | the experiment with every setting spelled out, the version and the seed |
//! | `partition.json` | number of samples of each label per client |
//! | `metrics.jsonl` | one line per trial and round |
//! | `ledger.jsonl` | what each round leaked, in every view, synced before its result is released |
//! | `parameters/` | the final model of each trial, as safetensors |
//! | `summary.json` | how each trial ended, and means with 95% intervals over the trials |
//! | `signals/` | the signals of the rounds that the experiment records, as `.npz` |
//! | `tb/` | event files for TensorBoard |
//! | `checkpoint/` | the state of each trial, to resume from |
//! | `lock` | locked by the running process |

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::ledger_entry::LedgerEntry;
use super::read::{if_exists, read_json, read_text};
use super::{atomic, log};
use crate::error::SimError;
use crate::experiment::{Difference, Experiment, VERSION};
use crate::federation::RoundMetrics;
use crate::summary::Summary;

/// Directories within a run directory.
pub(super) const INNER: [&str; 3] = ["checkpoint", "parameters", "tb"];

/// What a run that was killed at its beginning leaves: a lock file, or empty directories.
const BEGUN: [&str; 5] = ["lock", "checkpoint", "parameters", "tb", "experiment.toml.partial"];

/// How to enter a run directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A new run; the directory must be empty or absent.
    New,
    /// Resume the run in the directory.
    Resume,
    /// Resume the run in the directory, or begin one.
    ResumeOrNew,
}

/// A run directory that this process has locked.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    _lock: File,
}

impl RunDirectory {
    /// Locks the directory of an experiment, and creates it if it does not exist. Fails if it holds the run of another experiment.
    pub fn enter(path: &Path, experiment: &Experiment, entry: Entry) -> Result<Self, SimError> {
        require_directory(path)?;
        let holds_a_run = Self::experiment_file(path).exists();
        match entry {
            Entry::New if holds_a_run => return Err(SimError::AlreadyARun { directory: path.to_path_buf() }),
            Entry::Resume if !holds_a_run => {
                return Err(SimError::NothingToResume { directory: path.to_path_buf() });
            }
            _ if !holds_a_run && has_other_files(path, |name| BEGUN.contains(&name))? => {
                return Err(SimError::NotARun { directory: path.to_path_buf() });
            }
            _ => {}
        }
        create_directory(path)?;
        let directory = Self { path: path.to_path_buf(), _lock: lock(path)? };
        // Checked again under the lock.
        if Self::experiment_file(path).exists() {
            if entry == Entry::New {
                return Err(SimError::AlreadyARun { directory: path.to_path_buf() });
            }
            Self::check_experiment(path, experiment)?;
        }
        for inner in INNER.map(|inner| path.join(inner)) {
            fs::create_dir_all(&inner).map_err(SimError::file("create", &inner))?;
        }
        if !Self::experiment_file(path).exists() {
            atomic::write(&Self::experiment_file(path), experiment.to_toml().as_bytes())?;
        }
        Ok(directory)
    }

    /// The path of the experiment file.
    pub fn experiment_file(path: &Path) -> PathBuf {
        path.join("experiment.toml")
    }

    /// The path of the metrics of all trials.
    pub(crate) fn metrics_file(path: &Path) -> PathBuf {
        path.join("metrics.jsonl")
    }

    /// The path of the label counts of the clients.
    pub(crate) fn partition_file(path: &Path) -> PathBuf {
        path.join("partition.json")
    }

    /// The common metrics and the common ledger of a run directory. They contain the trials that have ended and the first one that
    /// has not.
    pub fn logs(path: &Path) -> [PathBuf; 2] {
        [Self::metrics_file(path), path.join("ledger.jsonl")]
    }

    /// The metrics and the ledger of one trial, which exist until the run is complete. Trials count from 0.
    pub fn trial_logs(path: &Path, trial: u32) -> [PathBuf; 2] {
        let (directory, trial) = (path.join("checkpoint"), trial as usize);
        [log::trial_log::<RoundMetrics>(&directory, trial), log::trial_log::<LedgerEntry>(&directory, trial)]
    }

    /// The path of the lock file, which a running process has locked.
    pub fn lock_file(path: &Path) -> PathBuf {
        path.join("lock")
    }

    /// The path of the summary.
    pub fn summary_file(path: &Path) -> PathBuf {
        path.join("summary.json")
    }

    /// The experiment of a run directory, without entering it.
    pub fn read_experiment(path: &Path) -> Result<Experiment, SimError> {
        require_directory(path)?;
        let file = Self::experiment_file(path);
        let text = if_exists(read_text(&file))?;
        let text = text.ok_or_else(|| SimError::NothingToResume { directory: path.to_path_buf() })?;
        let experiment = Experiment::parse(&file.display().to_string(), &text)?;
        // Runs of another version may have other results.
        match Experiment::version_in(&text) {
            Some(version) if version == VERSION => Ok(experiment),
            Some(theirs) => {
                let difference = Difference { key: "version".to_owned(), ours: VERSION.to_owned(), theirs };
                Err(SimError::ExperimentChanged { directory: path.to_path_buf(), difference })
            }
            None => Err(SimError::damaged(&file, "it has no version, which every run writes into it")),
        }
    }

    /// The metrics of all recorded rounds of a run directory, without entering it.
    pub fn read_metrics(path: &Path) -> Result<Vec<RoundMetrics>, SimError> {
        metrics_in(&Self::metrics_file(path))
    }

    /// The metrics of all rounds of an incomplete run so far, ordered by trial and round: those of the common file, and those that
    /// only the trials' own logs have.
    pub(crate) fn read_metrics_so_far(path: &Path, trials: u32) -> Result<Vec<RoundMetrics>, SimError> {
        let mut metrics = BTreeMap::new();
        let own = (0..trials).map(|trial| Self::trial_logs(path, trial)[0].clone());
        for file in own.chain([Self::metrics_file(path)]) {
            let lines = if_exists(metrics_in(&file))?.unwrap_or_default();
            metrics.extend(lines.into_iter().map(|line| ((line.trial, line.round), line)));
        }
        Ok(metrics.into_values().collect())
    }

    /// The summary of a run directory, if its run is complete, without entering it.
    pub fn read_summary(path: &Path) -> Result<Option<Summary>, SimError> {
        if_exists(read_json(&Self::summary_file(path)))
    }

    /// The path of the final model of a trial; trials count from 0.
    pub fn final_parameters(path: &Path, trial: u32) -> PathBuf {
        path.join("parameters").join(format!("trial-{trial:04}.safetensors"))
    }

    /// The path of the signal of a round; trials count from 0, rounds from 1.
    pub fn signal_file(path: &Path, trial: u32, round: u32) -> PathBuf {
        path.join("signals").join(format!("trial-{trial:04}")).join(format!("round-{round:06}.npz"))
    }

    /// Fails if a directory holds the run of another experiment. The directory is not entered.
    pub fn check_experiment(path: &Path, experiment: &Experiment) -> Result<(), SimError> {
        if !Self::experiment_file(path).exists() {
            return Ok(());
        }
        match experiment.difference(&Self::read_experiment(path)?) {
            None => Ok(()),
            Some(difference) => {
                Err(SimError::ExperimentChanged { directory: path.to_path_buf(), difference })
            }
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The summary, if the run is complete.
    pub fn summary(&self) -> Result<Option<Summary>, SimError> {
        Self::read_summary(&self.path)
    }

    /// Writes the summary, which marks the run as complete, and removes the logs that only a resume needs.
    pub(crate) fn complete(&self, summary: &Summary) -> Result<(), SimError> {
        let path = Self::summary_file(&self.path);
        let mut text =
            serde_json::to_string_pretty(summary).map_err(|error| SimError::encoding(&path, error))?;
        text.push('\n');
        atomic::write(&path, text.as_bytes())?;
        self.remove_logs(summary.trials.len())
    }

    /// Removes the trials' logs, whose lines are in `metrics.jsonl` and `ledger.jsonl`.
    pub(crate) fn remove_logs(&self, trials: usize) -> Result<(), SimError> {
        let logs = (0..trials).flat_map(|trial| [self.trial_log(trial), self.trial_ledger(trial)]);
        for path in logs.filter(|path| path.exists()) {
            fs::remove_file(&path).map_err(SimError::file("remove", &path))?;
        }
        Ok(())
    }

    pub(crate) fn checkpoint_directory(&self) -> PathBuf {
        self.path.join("checkpoint")
    }

    pub(crate) fn trial_log(&self, trial: usize) -> PathBuf {
        log::trial_log::<RoundMetrics>(&self.checkpoint_directory(), trial)
    }

    pub(crate) fn ledger_file(&self) -> PathBuf {
        self.path.join("ledger.jsonl")
    }

    pub(crate) fn trial_ledger(&self, trial: usize) -> PathBuf {
        log::trial_log::<LedgerEntry>(&self.checkpoint_directory(), trial)
    }

    pub(crate) fn checkpoint_file(&self, trial: u16) -> PathBuf {
        self.checkpoint_directory().join(format!("trial-{trial:04}.safetensors"))
    }

    pub(crate) fn parameters_file(&self, trial: u16) -> PathBuf {
        Self::final_parameters(&self.path, trial.into())
    }

    /// The path of the event file of a trial. It has its own directory, because TensorBoard draws one curve per directory.
    pub(crate) fn events_file(&self, trial: u16) -> Result<PathBuf, SimError> {
        let directory = self.path.join("tb").join(format!("trial-{trial:04}"));
        fs::create_dir_all(&directory).map_err(SimError::file("create", &directory))?;
        Ok(directory.join("events.out.tfevents.floras"))
    }
}

/// Fails if a path is something else than a directory; it need not exist.
pub(crate) fn require_directory(path: &Path) -> Result<(), SimError> {
    if path.exists() && !path.is_dir() {
        return Err(SimError::NotADirectory { path: path.to_path_buf() });
    }
    Ok(())
}

/// Creates a directory and those above it, unless it exists.
pub fn create_directory(path: &Path) -> Result<(), SimError> {
    require_directory(path)?;
    fs::create_dir_all(path).map_err(unusable("create", path))
}

fn unusable(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SimError {
    move |error| SimError::UnusableDirectory { action, directory: path.to_path_buf(), error }
}

/// Whether a directory holds files whose names are not `ours`; it need not exist.
pub(crate) fn has_other_files(path: &Path, is_ours: impl Fn(&str) -> bool) -> Result<bool, SimError> {
    if !path.exists() {
        return Ok(false);
    }
    let entries = fs::read_dir(path).map_err(SimError::file("read", path))?;
    let mut names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
    Ok(names.any(|name| !name.to_str().is_some_and(&is_ours)))
}

/// The metrics in a file.
fn metrics_in(path: &Path) -> Result<Vec<RoundMetrics>, SimError> {
    let text = read_text(path)?;
    let mut metrics = Vec::new();
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => metrics.push(line),
            // A run that is in progress, or was killed, may have written an incomplete line.
            Err(_) if !line.ends_with('\n') => {}
            Err(error) => return Err(SimError::damaged(path, format!("line {}: {error}", number + 1))),
        }
    }
    Ok(metrics)
}

/// Locks a directory for this process, until the file is dropped.
pub fn lock(path: &Path) -> Result<File, SimError> {
    let file_path = RunDirectory::lock_file(path);
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(&file_path);
    let file = file.map_err(unusable("write to", path))?;
    take_lock(&file, path)?;
    Ok(file)
}

/// Locks an open file for this process, until it is dropped; `path` is named in errors.
pub(crate) fn take_lock(file: &File, path: &Path) -> Result<(), SimError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SimError::Locked { directory: path.to_path_buf() },
        TryLockError::Error(error) => SimError::file("lock", path)(error),
    })
}
