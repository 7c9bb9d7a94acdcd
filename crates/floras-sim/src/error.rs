//! Errors of experiments, runs and their files.

use std::io;
use std::path::{Path, PathBuf};

use floras_learn::LearnError;
use floras_phy::UplinkError;
use floras_privacy::PrivacyError;
use thiserror::Error;

use crate::experiment::{Difference, ExperimentError};

/// Why a simulation stopped, or did not begin.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SimError {
    /// The experiment is not valid.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),

    /// A point of a sweep that cannot be run.
    #[error("{point}: {error}")]
    Point {
        /// The number and the values of the point.
        point: String,
        /// The error of the point.
        error: Box<SimError>,
    },

    /// A choice is out of range.
    #[error(transparent)]
    Choice(#[from] floras_core::ChoiceError),

    /// The data or the model are not valid.
    #[error("{key}: {error}")]
    Learn {
        /// The key of the experiment that it belongs to.
        key: &'static str,
        /// The error of the data set, the partition or the model.
        error: LearnError,
    },

    /// An error of the air interface.
    #[error("uplink: {0}")]
    Uplink(#[from] UplinkError),

    /// An error of the privacy accounting.
    #[error("privacy: {0}")]
    Privacy(#[from] PrivacyError),

    /// More memory than a simulation may take.
    #[error(
        "clients.per_round: {clients} updates of {parameters} parameters (trials at a time: {trials}) take {needed} GiB, and \
         at most {most} GiB are allowed; use fewer clients per round, a smaller model or fewer threads"
    )]
    TooMuchMemory {
        /// Number of updates of a trial that are in memory at once, at most `K`.
        clients: usize,
        /// Number of parameters `d` of the model.
        parameters: usize,
        /// Number of trials that run at once.
        trials: usize,
        /// Memory that the updates take, in GiB, rounded down.
        needed: usize,
        /// Maximum memory for updates, in GiB.
        most: usize,
    },

    /// A number of an audit that is out of range.
    #[error("{name} must be {allowed}, not {value}")]
    Effort {
        /// The number that is out of range, for the message.
        name: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// The value that was given.
        value: f64,
    },

    /// The directory holds the run of a different experiment.
    #[error(
        "{directory} holds another experiment: {key} is {theirs} there and {ours} here, and a run can only be resumed \
         unchanged",
        directory = directory.display(), key = difference.key, theirs = difference.theirs, ours = difference.ours
    )]
    ExperimentChanged {
        /// The run directory.
        directory: PathBuf,
        /// The first key that differs.
        difference: Difference,
    },

    /// The directory holds the runs of a different sweep.
    #[error("{directory} holds another sweep: {reason}", directory = directory.display())]
    OtherSweep {
        /// The directory of the sweep.
        directory: PathBuf,
        /// The difference between the experiment in the directory and the new one.
        reason: String,
    },

    /// A run directory that is in use.
    #[error("{directory} is in use by another process", directory = directory.display())]
    Locked {
        /// The run directory.
        directory: PathBuf,
    },

    /// The ledger was written for a different uplink.
    #[error(
        "{path} is the ledger of another uplink: {key} is {theirs} there and {ours} here; use another file for the changed uplink",
        path = path.display(), key = difference.key, theirs = difference.theirs, ours = difference.ours
    )]
    OtherLedger {
        /// The path of the ledger file.
        path: PathBuf,
        /// The first setting that differs.
        difference: Difference,
    },

    /// The noise of a round without a seed was requested without the sum to which it is added. Such noise is fit for release only if
    /// both are drawn together.
    #[error(
        "the noise of a round without a seed is fit for release, and is drawn together with its sum: call add_noise, or give \
         a seed"
    )]
    NoiseApart,

    /// A run that was stopped.
    #[error("the run was stopped; completed rounds are recorded in {directory}", directory = directory.display())]
    Stopped {
        /// The run directory.
        directory: PathBuf,
    },

    /// A directory that already holds a run.
    #[error(
        "{directory} already holds a run",
        directory = directory.display()
    )]
    AlreadyARun {
        /// The run directory.
        directory: PathBuf,
    },

    /// A directory that is neither empty nor a run directory.
    #[error(
        "{directory} is not empty and is not a floras run directory",
        directory = directory.display()
    )]
    NotARun {
        /// The directory that was given.
        directory: PathBuf,
    },

    /// A directory that is neither empty nor that of a sweep.
    #[error(
        "{directory} is not empty and is not a floras sweep directory",
        directory = directory.display()
    )]
    NotASweep {
        /// The directory that was given.
        directory: PathBuf,
    },

    /// A directory that holds a run, or the results of another command.
    #[error("{directory} holds {what}", directory = directory.display())]
    Occupied {
        /// The directory that was given.
        directory: PathBuf,
        /// A description of its content.
        what: String,
    },

    /// A file where a directory should be.
    #[error("{path} is a file and not a directory", path = path.display())]
    NotADirectory {
        /// The path that was given.
        path: PathBuf,
    },

    /// A directory that cannot be created or written to.
    #[error("cannot {action} the directory {directory}: {error}", directory = directory.display())]
    UnusableDirectory {
        /// `create` or `write to`.
        action: &'static str,
        /// The directory that was given.
        directory: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },

    /// A directory without a run to resume.
    #[error("there is no run to resume in {directory}", directory = directory.display())]
    NothingToResume {
        /// The directory that was given.
        directory: PathBuf,
    },

    /// A required file that does not exist.
    #[error("{path} is missing", path = path.display())]
    Missing {
        /// The path of the missing file.
        path: PathBuf,
    },

    /// A damaged file of a run directory.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The path of the damaged file.
        path: PathBuf,
        /// A description of the damage.
        reason: String,
    },

    /// Content that cannot be encoded in the format of its file.
    #[error("cannot encode {path}: {reason}", path = path.display())]
    Encoding {
        /// The path of the file to be written.
        path: PathBuf,
        /// Why the content cannot be encoded.
        reason: String,
    },

    /// A step was requested of a trial that has ended.
    #[error("trial {trial} has ended; there are no more rounds to do")]
    TrialEnded {
        /// The trial, counted from 0.
        trial: u16,
    },

    /// Parameters whose number does not fit the model.
    #[error("the model has {expected} parameters, and {found} were given")]
    WrongParameters {
        /// Number of parameters `d` of the model.
        expected: usize,
        /// Number of parameters that were given.
        found: usize,
    },

    /// A file that could not be read or written.
    #[error("cannot {action} {path}: {error}", path = path.display())]
    File {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },

    /// Threads that could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
}

/// The error of a value outside the allowed range.
pub(crate) fn wrong(key: &str, allowed: &str, value: impl ToString) -> SimError {
    let (key, allowed) = (key.to_owned(), allowed.to_owned());
    ExperimentError::Value { key, allowed, value: value.to_string() }.into()
}

/// The error of a value that is missing, or that another value rules out.
pub(crate) fn incomplete(key: &str, requirement: impl ToString) -> SimError {
    ExperimentError::Incomplete { key: key.to_owned(), requirement: requirement.to_string() }.into()
}

impl SimError {
    /// Whether the user's input caused the error, and not the machine.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Point { error, .. } => error.is_input(),
            Self::File { .. } | Self::Encoding { .. } | Self::Threads(_) | Self::Stopped { .. } => false,
            _ => true,
        }
    }

    /// Whether a directory holds something other than the expected run or sweep.
    pub fn is_other_experiment(&self) -> bool {
        match self {
            Self::Point { error, .. } => error.is_other_experiment(),
            Self::ExperimentChanged { .. } | Self::OtherSweep { .. } | Self::NotASweep { .. } => true,
            _ => false,
        }
    }

    /// The error of reading or writing a file; `action` is a verb, as in `read`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self::File { action, path, error }
    }

    /// The error of a damaged file; `reason` describes the damage.
    pub fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// The error of content that cannot be encoded in the format of its file.
    pub fn encoding(path: &Path, reason: impl ToString) -> Self {
        Self::Encoding { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// The error of a data set, a partition or a model, with the key that it belongs to.
    pub fn learn(key: &'static str) -> impl Fn(LearnError) -> Self {
        move |error| Self::Learn { key, error }
    }
}
