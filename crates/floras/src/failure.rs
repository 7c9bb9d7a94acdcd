//! What can end the program early, and the one place where it is told to the user.

use std::io::{self, Write};
use std::process::ExitCode;

use floras_phy::UplinkError;
use thiserror::Error;

/// Why the program stops.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input was wrong.
    #[error("{0}")]
    Input(#[from] UplinkError),

    /// An option was wrong.
    #[error("{option} must be {allowed}, not {value}")]
    Option {
        /// The option as the user writes it.
        option: &'static str,
        /// What is allowed, in words.
        allowed: &'static str,
        /// What was given.
        value: String,
    },

    /// Threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),

    /// A result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),

    /// A result could not be put into JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Failure {
    /// Tells the user and chooses the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader, say `head`, has seen enough.
            return ExitCode::SUCCESS;
        }
        // Where even this cannot be written, the exit code has to do.
        let _ = writeln!(io::stderr(), "error: {self}");
        match self {
            Self::Input(_) | Self::Option { .. } => ExitCode::from(2),
            Self::Threads(_) | Self::Output(_) | Self::Json(_) => ExitCode::FAILURE,
        }
    }
}
