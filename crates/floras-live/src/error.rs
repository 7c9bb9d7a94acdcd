//! Errors of the live view.

use std::io;
use std::path::PathBuf;

use floras_sim::SimError;
use thiserror::Error;

/// The reason why a live view cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The directory does not exist.
    #[error("there is no directory {}", directory.display())]
    NoSuchDirectory {
        /// The path that was given.
        directory: PathBuf,
    },

    /// The directory is not a run directory.
    #[error("{} is not a floras run directory: experiment.toml is missing", directory.display())]
    NotARun {
        /// The path that was given.
        directory: PathBuf,
    },

    /// The experiment of the run cannot be read.
    #[error(transparent)]
    Run(#[from] SimError),

    /// Another program listens on the port.
    #[error("port {port} of 127.0.0.1 is in use")]
    PortInUse {
        /// The requested port.
        port: u16,
    },

    /// The operating system rejects the port for another reason.
    #[error("cannot listen on port {port} of 127.0.0.1: {error}")]
    Listen {
        /// The requested port; 0 for any.
        port: u16,
        /// The error of the operating system.
        error: io::Error,
    },

    /// A thread could not be started.
    #[error("cannot start a thread of the live view: {0}")]
    Thread(io::Error),
}

impl LiveError {
    /// Whether the cause is wrong input, and not the system.
    pub fn is_input(&self) -> bool {
        match self {
            Self::NoSuchDirectory { .. } | Self::NotARun { .. } | Self::PortInUse { .. } => true,
            Self::Listen { error, .. } => error.kind() == io::ErrorKind::PermissionDenied,
            Self::Run(error) => error.is_input(),
            Self::Thread(_) => false,
        }
    }
}
