//! `cargo xtask check-tensorboard`: TensorBoard itself reads our event files and finds the values of `metrics.jsonl`.

use anyhow::{Context, Result};

use crate::{python, shell};

/// Makes a short run and has it read; what differs is an error.
pub(crate) fn run() -> Result<()> {
    let python = python::with_packages("tensorboard-venv", "xtask/tensorboard/requirements.txt")?;
    let floras = shell::release_program()?;
    let directory = tempfile::tempdir().context("cannot make a temporary directory")?;
    let run = ["run", "quick", "--rounds", "5", "--trials", "2", "--json", "--out"];
    shell::output(shell::program(floras).args(run).arg(directory.path()))?;
    shell::run(shell::program(python).arg("xtask/tensorboard/check.py").arg(directory.path()))
        .context("TensorBoard does not show the values of metrics.jsonl")
}
