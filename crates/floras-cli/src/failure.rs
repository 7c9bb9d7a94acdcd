//! What can end the program early, and the one place where it is told to the user.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use floras_phy::UplinkError;
use floras_privacy::PrivacyError;
use floras_report::ReportError;
use floras_sim::{ExperimentError, SimError, SourceError};
use thiserror::Error;

/// Why the program stops.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input was wrong.
    #[error("{0}")]
    Input(#[from] UplinkError),

    /// The accounting refused something.
    #[error("{0}")]
    Privacy(#[from] PrivacyError),

    /// An experiment was wrong.
    #[error("{0}")]
    Experiment(#[from] ExperimentError),

    /// A simulation stopped, or did not begin.
    #[error("{0}")]
    Simulation(#[from] SimError),

    /// There is no report.
    #[error("{0}")]
    Report(#[from] ReportError),

    /// There is no such experiment.
    #[error("{0}")]
    Source(#[from] SourceError),

    /// An option was wrong.
    #[error("{option} must be {allowed}, not {value}")]
    Option {
        /// The option as the user writes it.
        option: Cow<'static, str>,
        /// What is allowed, in words.
        allowed: Cow<'static, str>,
        /// What was given.
        value: String,
    },

    /// A calibration without a solution. It is an answer, and not wrong input.
    #[error("{0}")]
    NothingMeets(String),

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
    /// The complaint about an option.
    pub(crate) fn option(
        option: impl Into<Cow<'static, str>>,
        allowed: impl Into<Cow<'static, str>>,
        value: impl ToString,
    ) -> Self {
        Self::Option { option: option.into(), allowed: allowed.into(), value: value.to_string() }
    }

    /// Tells the user and chooses the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader, say `head`, has seen enough.
            return ExitCode::SUCCESS;
        }
        // Where even this cannot be written, the exit code has to do.
        let _ = writeln!(io::stderr(), "error: {self}{}", self.advice());
        if self.is_input() { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    /// Which option helps, if one does.
    fn advice(&self) -> &'static str {
        let error = match self {
            Self::Experiment(ExperimentError::IsSweep) => return "; run it with `floras sweep`",
            Self::Experiment(ExperimentError::Refused { key, .. }) if key == "data.dir" => {
                return "; docs/data.md says how to get them";
            }
            Self::Simulation(error) => error,
            _ => return "",
        };
        match error {
            SimError::ExperimentChanged { .. } => "; take another --out for the changed one",
            SimError::Locked { .. } => "; wait for it, or take another --out",
            SimError::AlreadyARun { .. } => "; continue it with --resume, or take another --out",
            SimError::NotARun { .. } | SimError::Occupied { .. } | SimError::NotADirectory { .. } => {
                "; take another --out"
            }
            _ => "",
        }
    }

    fn is_input(&self) -> bool {
        match self {
            Self::Simulation(error) => error.is_input(),
            Self::Report(error) => error.is_input(),
            Self::Input(_)
            | Self::Privacy(_)
            | Self::Experiment(_)
            | Self::Source(_)
            | Self::Option { .. } => true,
            Self::NothingMeets(_) | Self::Threads(_) | Self::Output(_) | Self::Json(_) => false,
        }
    }
}
