//! `cargo xtask check-accounting`: the reference values of the accounting are what independent programs compute.

use anyhow::{Context, Result};

use crate::{python, shell};

/// What to compare.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Compare `floras account` with the independent evaluator in this many random settings, instead of remaking the
    /// reference values.
    #[arg(long, value_name = "N")]
    random: Option<u32>,
    /// Seed of the random settings.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "random")]
    seed: u32,
}

/// The scripts that make reference values, the quick one first.
const SCRIPTS: [&str; 3] = [
    "crates/floras-privacy/tests/reference/normal.py",
    "xtask/accounting/recorded.py",
    "crates/floras-privacy/tests/reference/accounting.py",
];

pub(crate) fn run(options: &Options) -> Result<()> {
    let python = python::with_packages("accounting-venv", "xtask/accounting/requirements.txt")?;
    if let Some(count) = options.random {
        let program = shell::release_program()?;
        let mut check = shell::program(&python);
        check.arg("xtask/accounting/check.py").arg(program).arg("--found");
        check.args(["--random", &count.to_string(), "--seed", &options.seed.to_string()]);
        return shell::run(&mut check).context("a statement of floras account does not hold");
    }
    for script in SCRIPTS {
        shell::run(shell::program(&python).arg(script).arg("--check"))
            .with_context(|| format!("the recorded values are not what {script} makes"))?;
    }
    Ok(())
}
