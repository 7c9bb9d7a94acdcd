//! Python for the chores that compare us with Python packages. For Unix.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::shell;

/// The interpreter of the virtual environment `target/NAME`, made if need be, with the required packages.
pub(crate) fn with_packages(name: &str, requirements: &str) -> Result<PathBuf> {
    let environment = shell::root().join("target").join(name);
    let python = environment.join("bin").join("python");
    if !python.exists() {
        shell::run(shell::program("python3").args(["-m", "venv"]).arg(&environment))
            .context("this chore needs Python 3 with its venv module")?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"];
    shell::run(shell::program(&python).args(install).arg(requirements))
        .with_context(|| format!("cannot install what {requirements} lists"))?;
    Ok(python)
}
