//! `cargo xtask bench-peers`: our speed compared with other libraries.
//!
//! For Unix. Machines are noisy, so both sides take turns within one run, on as many threads each, and the ratio
//! counts.

mod cnn;
mod numpy;
mod race;
mod round;
mod uplink;

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{python, shell};

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Measure only one of them.
    #[arg(long)]
    only: Option<Subject>,

    /// How often both sides take turns.
    #[arg(long, default_value_t = 5)]
    turns: usize,

    #[command(flatten)]
    uplink: uplink::Sizes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// The uplink of a million parameters.
    Uplink,
    /// The reference learning round.
    Round,
    /// The training of a convolutional network.
    Cnn,
    /// Our own Python package beside the program.
    Python,
}

/// Measures and prints the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    let python = python::with_packages("peers-venv", "xtask/peers/requirements.txt")?;
    let sides = Sides { floras: shell::release_program()?, python };
    let turns = options.turns.max(1);
    let is_wanted = |subject| options.only.is_none_or(|only| only == subject);
    if is_wanted(Subject::Uplink) {
        uplink::run(&sides, turns, &options.uplink)?;
    }
    if is_wanted(Subject::Round) {
        round::run(&sides, turns)?;
    }
    if is_wanted(Subject::Cnn) {
        cnn::run(&sides, turns)?;
    }
    if is_wanted(Subject::Python) {
        numpy::run(&sides.floras, turns)?;
    }
    Ok(())
}

/// What both sides run on.
struct Sides {
    floras: PathBuf,
    python: PathBuf,
}

impl Sides {
    fn ours(&self, bench: &str) -> Command {
        let mut command = shell::program(&self.floras);
        command.args(["bench", bench, "--json", "--threads", "1"]);
        command
    }

    fn theirs(&self, script: &str) -> Command {
        let mut command = shell::program(&self.python);
        command.arg(format!("xtask/peers/{script}"));
        command.envs(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name, "1")));
        command
    }
}
