//! What can end a simulation early.

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
    /// The experiment was wrong.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),

    /// A point of a sweep that cannot be run.
    #[error("{point}: {error}")]
    Point {
        /// Its number and its values.
        point: String,
        /// What is wrong.
        error: Box<SimError>,
    },

    /// A choice was out of range.
    #[error(transparent)]
    Choice(#[from] floras_core::ChoiceError),

    /// The data or the model were wrong.
    #[error("{key}: {error}")]
    Learn {
        /// The key that led there.
        key: &'static str,
        /// What the learning side says.
        error: LearnError,
    },

    /// The air interface refused something.
    #[error("uplink: {0}")]
    Uplink(#[from] UplinkError),

    /// The accounting refused something.
    #[error("privacy: {0}")]
    Privacy(#[from] PrivacyError),

    /// More memory than a simulation may take.
    #[error(
        "clients.per_round: {clients} updates of {parameters} parameters (trials at a time: {trials}) take {needed} GiB, and \
         at most {most} GiB are allowed; use fewer clients per round, a smaller model or fewer threads"
    )]
    TooMuchMemory {
        /// `K`.
        clients: usize,
        /// `d`.
        parameters: usize,
        /// Trials at once.
        trials: usize,
        /// GiB needed.
        needed: usize,
        /// GiB allowed.
        most: usize,
    },

    /// An audit that asks for too much or too little.
    #[error("{name} must be {allowed}, not {value}")]
    Effort {
        /// What.
        name: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// What was asked for.
        value: f64,
    },

    /// Resuming something else.
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

    /// A run directory that is in use.
    #[error("{directory} is in use by another process", directory = directory.display())]
    Locked {
        /// The run directory.
        directory: PathBuf,
    },

    /// A ledger of another uplink.
    #[error(
        "{path} is the ledger of another uplink: {key} is {theirs} there and {ours} here; use another file for the changed uplink",
        path = path.display(), key = difference.key, theirs = difference.theirs, ours = difference.ours
    )]
    OtherLedger {
        /// The file.
        path: PathBuf,
        /// The first setting that differs.
        difference: Difference,
    },

    /// Noise that is fit for release, without its sum.
    #[error(
        "the noise of a round without a seed is fit for release, and is drawn together with its sum: call add_noise, or give \
         a seed"
    )]
    NoiseApart,

    /// A run that was stopped.
    #[error("the run was stopped; what is done is recorded in {directory}", directory = directory.display())]
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
        /// The directory.
        directory: PathBuf,
    },

    /// A directory with something else in it.
    #[error(
        "{directory} is not empty and holds no run of floras",
        directory = directory.display()
    )]
    NotARun {
        /// The directory.
        directory: PathBuf,
    },

    /// A directory that holds a run, or the figures of another command.
    #[error("{directory} holds {what}", directory = directory.display())]
    Occupied {
        /// The directory.
        directory: PathBuf,
        /// What is there.
        what: String,
    },

    /// A file where a directory should be.
    #[error("{path} is a file and not a directory", path = path.display())]
    NotADirectory {
        /// The file.
        path: PathBuf,
    },

    /// Nothing to resume.
    #[error("there is no run to resume in {directory}", directory = directory.display())]
    NothingToResume {
        /// The directory.
        directory: PathBuf,
    },

    /// A file that should be there and is not.
    #[error("{path} is missing", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
    },

    /// A file of a run directory that is not as it was written.
    #[error("{path} is damaged: {reason}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// A file whose content could not be put into its format.
    #[error("cannot encode {path}: {reason}", path = path.display())]
    Encoding {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },

    /// A step of a trial that has ended.
    #[error("trial {trial} has ended; there are no more rounds to do")]
    TrialEnded {
        /// From 0.
        trial: u16,
    },

    /// Parameters of another model.
    #[error("the model has {expected} parameters, and {found} were given")]
    WrongParameters {
        /// `d`.
        expected: usize,
        /// How many came.
        found: usize,
    },

    /// A file that could not be read or written.
    #[error("cannot {action} {path}: {error}", path = path.display())]
    File {
        /// `read`, `write` or `create`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
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

impl SimError {
    /// Whether the user's input is to blame, and not the machine.
    pub fn is_input(&self) -> bool {
        match self {
            Self::Point { error, .. } => error.is_input(),
            Self::File { .. } | Self::Encoding { .. } | Self::Threads(_) | Self::Stopped { .. } => false,
            _ => true,
        }
    }

    /// The error of reading or writing a file; `action` is a verb, as in `read`.
    pub fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |error| Self::File { action, path, error }
    }

    /// A file that is not as it was written, and what is wrong with it.
    pub fn damaged(path: &Path, reason: impl ToString) -> Self {
        Self::Damaged { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// Results that cannot be written in a file's format.
    pub fn encoding(path: &Path, reason: impl ToString) -> Self {
        Self::Encoding { path: path.to_path_buf(), reason: reason.to_string() }
    }

    /// The error of a data set, a partition or a model, with the key that it belongs to.
    pub fn learn(key: &'static str) -> impl Fn(LearnError) -> Self {
        move |error| Self::Learn { key, error }
    }
}
