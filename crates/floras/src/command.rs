//! The command line.

use clap::{Parser, Subcommand};

use crate::bench;

/// Private federated learning over the air.
///
/// Many phones train one model without handing over their data: they send their updates at the same moment over the
/// same radio channel, and the air adds them up.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure how fast this machine is.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: bench::What,
    },
}
