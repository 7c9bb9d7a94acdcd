//! `cargo xtask check-accounting`: mpmath and Google's dp-accounting still come to the values our tests are held against.

use anyhow::{Context, Result};

use crate::{python, shell};

const FOLDER: &str = "crates/floras-privacy/tests/reference";

/// Remakes both files of reference values, the quick one first; what differs from the recorded ones is an error.
pub(crate) fn run() -> Result<()> {
    let python = python::with_packages("accounting-venv", "xtask/accounting/requirements.txt")?;
    for name in ["normal", "accounting"] {
        shell::run(shell::program(&python).arg(format!("{FOLDER}/{name}.py")).arg("--check"))
            .with_context(|| format!("{name}.json is not what {name}.py makes"))?;
    }
    Ok(())
}
