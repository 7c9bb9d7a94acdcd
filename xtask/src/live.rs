//! `cargo xtask check-live`: a browser follows a training by its live view.
//!
//! `xtask/live/follow.mjs` states what is checked. Screenshots are left in `target/live`. Needs Chromium and Node.

use std::fs;

use anyhow::{Context, Result};

use crate::{report, shell};

/// Builds the program and lets the browser follow it.
pub(crate) fn run() -> Result<()> {
    let browser = report::browser()?;
    let floras = shell::release_program()?;
    let directory = shell::target().join("live");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    shell::run(shell::program("node").arg("xtask/live/follow.mjs").arg(browser).arg(floras).arg(&directory))
        .context("the live view does not follow a run as it should, or Node is missing")?;
    println!("no errors; the screenshots are in {}", directory.display());
    Ok(())
}
