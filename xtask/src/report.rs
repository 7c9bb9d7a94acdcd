//! `cargo xtask check-report`: a real browser opens the reports of a short run, of an interrupted one, of a short sweep, of short
//! audits and of a quick reproduction.
//!
//! Errors are: a message on the console, anything that the page loads, a page wider than the screen, a table that is cut at 1400
//! pixels, text with a contrast below 4.5, and a tooltip that is missing, leaves the viewport or covers its point. Screenshots at 390, 768 and 1400 pixels, light
//! and dark, and a printed page are written to `target/reports`. Needs Chromium and Node.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::shell;

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const SWEEP: &str = r#"
name = "short"
trials = 3
rounds = 30
[local]
rate = 0.005
[uplink]
truncate = 6.0
[privacy]
clip = 6.33
normalise = "paper"
[sweep]
uplink.sequences = [20, 21, 25, 30]
uplink.receiver = ["mmse", { clipped = 2.0 }]
"#;

/// Writes the reports and opens them in the browser.
pub(crate) fn run() -> Result<()> {
    let browser = browser()?;
    let floras = shell::release_program()?;
    let directory = shell::root().join("target").join("reports");
    if directory.exists() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot empty {}", directory.display()))?;
    }
    fs::create_dir_all(&directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let (run, sweep, grid) = (directory.join("run"), directory.join("sweep"), directory.join("short.toml"));
    let short = ["run", "--trials", "3", "--rounds", "60", "--json", "--out"];
    shell::output(shell::program(&floras).args(short).arg(&run))?;
    fs::write(&grid, SWEEP).with_context(|| format!("cannot write {}", grid.display()))?;
    shell::output(shell::program(&floras).arg("sweep").arg(&grid).args(["--json", "--out"]).arg(&sweep))?;
    // One audit has its own page; one is a section of a run's report, with complete trainings.
    let (audit, audited) = (directory.join("audit"), directory.join("audited-run"));
    attack(&floras, &["--games", "2000"], &audit)?;
    let brief = ["run", "quick", "--trials", "1", "--rounds", "3", "--json", "--out"];
    shell::output(shell::program(&floras).args(brief).arg(&audited))?;
    let experiment = audited.join("experiment.toml").display().to_string();
    attack(&floras, &[&experiment, "--games", "2000", "--trainings", "8"], &audited)?;
    let (interrupted, reproduction) = (directory.join("interrupted"), directory.join("reproduction"));
    interrupt(&floras, &interrupted)?;
    shell::output(
        shell::program(&floras).args(["reproduce", "fig2", "--quick", "--out"]).arg(&reproduction),
    )?;
    for of in [run, interrupted, sweep, audit, audited, reproduction] {
        look(&browser, &of)?;
    }
    println!("no errors; the screenshots are in {}", directory.display());
    Ok(())
}

/// Kills a run after its first rounds, and writes its report.
fn interrupt(floras: &Path, out: &Path) -> Result<()> {
    let long = ["run", "quick", "--trials", "5", "--rounds", "100000", "--json", "--out"];
    let mut run = shell::program(floras).args(long).arg(out).spawn().context("cannot start floras")?;
    let metrics = out.join("metrics.jsonl");
    let begun = Instant::now();
    let has_rounds = || fs::metadata(&metrics).is_ok_and(|file| file.len() > 0);
    while !has_rounds() && begun.elapsed() < Duration::from_secs(60) {
        thread::sleep(Duration::from_millis(50));
    }
    run.kill().context("cannot end floras")?;
    run.wait().context("cannot end floras")?;
    shell::output(shell::program(floras).arg("report").arg(out)).map(drop)
}

fn attack(floras: &Path, what: &[&str], out: &Path) -> Result<()> {
    shell::output(shell::program(floras).arg("audit").args(what).args(["--json", "--out"]).arg(out)).map(drop)
}

fn look(browser: &Path, of: &Path) -> Result<()> {
    let page = of.join("report.html");
    shell::run(shell::program("node").arg("xtask/report/open.mjs").arg(browser).arg(&page).arg(of))
        .with_context(|| format!("{} failed the check, or Node is missing", page.display()))
}

/// Chromium in the PATH.
pub(crate) fn browser() -> Result<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let places =
        std::env::split_paths(&paths).flat_map(|directory| BROWSERS.map(|name| directory.join(name)));
    match places.into_iter().find(|place| place.is_file()) {
        Some(place) => Ok(place),
        None => bail!("this check needs Chromium in the PATH, as one of {}", BROWSERS.join(", ")),
    }
}
