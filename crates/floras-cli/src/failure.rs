//! Errors that end the program, and how they are reported.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::builder::Styles;
use floras_learn::LearnError;
use floras_live::LiveError;
use floras_phy::UplinkError;
use floras_privacy::PrivacyError;
use floras_report::ReportError;
use floras_sim::{ExperimentError, SimError, SourceError};
use thiserror::Error;

use crate::interrupt;

/// An error that ends the program.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// An error of the air interface.
    #[error("{0}")]
    Input(#[from] UplinkError),

    /// An error of the accounting.
    #[error("{0}")]
    Privacy(#[from] PrivacyError),

    /// An experiment is not valid.
    #[error("{0}")]
    Experiment(#[from] ExperimentError),

    /// An error of a simulation.
    #[error("{0}")]
    Simulation(#[from] SimError),

    /// An error of a report.
    #[error("{0}")]
    Report(#[from] ReportError),

    /// A data set could not be fetched.
    #[error("{message}")]
    Data {
        /// What is missing, and which sources were tried.
        message: String,
        /// Whether the input was wrong, and not a source.
        is_input: bool,
    },

    /// An error of the live view.
    #[error("{0}")]
    Live(#[from] LiveError),

    /// An experiment that cannot be read.
    #[error("{0}")]
    Source(#[from] SourceError),

    /// The value of an option is not allowed.
    #[error("{option} must be {allowed}, not {value}")]
    Option {
        /// The option as the user writes it.
        option: Cow<'static, str>,
        /// What is allowed, in words.
        allowed: Cow<'static, str>,
        /// The value that was given.
        value: String,
    },

    /// Options that exclude each other, a missing option, or a file that cannot be read.
    #[error("{0}")]
    Usage(String),

    /// A calibration without a solution, which is a result and not wrong input.
    #[error("{0}")]
    NothingMeets(String),

    /// Threads could not be started.
    #[error("cannot start the threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),

    /// A result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] io::Error),

    /// Ctrl-C stopped a training. The message states the progress and how to resume it.
    #[error("{0}")]
    Interrupted(String),

    /// A result could not be encoded as JSON.
    #[error("cannot write the result as JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl Failure {
    /// The error of an option.
    pub(crate) fn option(
        option: impl Into<Cow<'static, str>>,
        allowed: impl Into<Cow<'static, str>>,
        value: impl ToString,
    ) -> Self {
        Self::Option { option: option.into(), allowed: allowed.into(), value: value.to_string() }
    }

    /// Prints the error and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if let Self::Output(error) = self
            && error.kind() == io::ErrorKind::BrokenPipe
        {
            // The reader, such as `head`, has closed the pipe.
            return ExitCode::SUCCESS;
        }
        if let Self::Interrupted(message) = self {
            let _ = writeln!(io::stderr(), "{message}");
            return ExitCode::from(interrupt::EXIT_CODE);
        }
        // If this cannot be written either, the exit code remains.
        let _ = writeln!(io::stderr(), "{} {self}{}", heading(), self.advice());
        if self.is_input() { ExitCode::from(2) } else { ExitCode::FAILURE }
    }

    /// Advice about options or commands, to append to the message; empty if there is none.
    fn advice(&self) -> &'static str {
        let error = match self {
            Self::Experiment(ExperimentError::NotASweep) => return "; or vary a key with --over key=a,b,c",
            Self::Experiment(ExperimentError::IsSweep) => return "; run it with `floras sweep`",
            Self::Experiment(ExperimentError::Refused { key, .. }) if key == "data.dir" => {
                return "; for example data.dir=data/mnist";
            }
            Self::Simulation(SimError::Point { error, .. }) => error,
            Self::Live(LiveError::PortInUse { .. }) => {
                return "; choose another --port, or leave it out for a free one";
            }
            Self::Report(ReportError::Occupied { .. }) => return "; choose another --out",
            Self::Simulation(error) | Self::Report(ReportError::Write(error)) => error,
            _ => return "",
        };
        match error {
            SimError::ExperimentChanged { .. } => "; choose another --out for the changed experiment",
            SimError::Locked { .. } => "; wait for it, or choose another --out",
            SimError::AlreadyARun { .. } => "; resume it with --resume, or choose another --out",
            SimError::NotARun { .. }
            | SimError::NotASweep { .. }
            | SimError::Occupied { .. }
            | SimError::OtherSweep { .. } => "; choose another --out",
            SimError::NotADirectory { .. } | SimError::UnusableDirectory { .. } => {
                "; choose another directory"
            }
            SimError::Learn { error: LearnError::MissingFile { .. }, .. } => {
                "; `floras data fetch` downloads them"
            }
            _ => "",
        }
    }

    fn is_input(&self) -> bool {
        match self {
            Self::Simulation(error) => error.is_input(),
            Self::Report(error) => error.is_input(),
            Self::Live(error) => error.is_input(),
            Self::Data { is_input, .. } => *is_input,
            Self::Input(_)
            | Self::Privacy(_)
            | Self::Experiment(_)
            | Self::Source(_)
            | Self::Option { .. }
            | Self::Usage(_) => true,
            Self::NothingMeets(_)
            | Self::Threads(_)
            | Self::Output(_)
            | Self::Json(_)
            | Self::Interrupted(_) => false,
        }
    }
}

/// `error:` in the colour of clap's own errors, if standard error is a terminal that shows colours.
fn heading() -> String {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_plain = is_set("NO_COLOR") || env::var_os("TERM").is_some_and(|term| term == "dumb");
    if is_plain || !io::stderr().is_terminal() {
        return "error:".to_owned();
    }
    let styles = Styles::styled();
    let style = styles.get_error();
    format!("{style}error:{style:#}")
}
