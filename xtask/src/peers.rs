//! `cargo xtask bench-peers`: our speed beside NumPy's.
//!
//! For Unix. Machines are noisy, so both sides take turns within one run, on one thread each, and what counts is the
//! ratio.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Args;
use serde::Deserialize;

use crate::shell;

/// How to measure.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How often both sides take turns.
    #[arg(long, default_value_t = 5)]
    turns: usize,

    /// Clients a round (K).
    #[arg(long, default_value_t = 20)]
    per_round: usize,

    /// Sequences and chips (N = L), a power of two.
    #[arg(long, default_value_t = 32)]
    length: usize,

    /// Parameters (d).
    #[arg(long, default_value_t = 1_000_000)]
    dim: usize,
}

/// What either side prints.
#[derive(Debug, Deserialize)]
struct Measurement {
    seconds_per_round: f64,
    /// Absent or 0 where the system does not tell.
    #[serde(default)]
    peak_bytes: Option<u64>,
    #[serde(default)]
    version: String,
}

/// A row of the table: what is measured, and the ratio to reach.
struct Race {
    fidelity: &'static str,
    bar: f64,
}

const RACES: [Race; 2] = [Race { fidelity: "symbol", bar: 0.4 }, Race { fidelity: "chip", bar: 1.0 / 6.0 }];

/// Measures and prints the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let python = python_with_numpy()?;
    shell::run(shell::cargo().args(["build", "--release", "--quiet", "--package", "floras"]))?;
    println!(
        "one round of FLORAS, one thread: K = {}, N = L = {}, d = {}; median of {} turns",
        options.per_round, options.length, options.dim, options.turns
    );
    for race in RACES {
        let mut turns = Vec::new();
        for _ in 0..options.turns.max(1) {
            turns.push((ours(options, race.fidelity)?, numpys(&python, options, race.fidelity)?));
        }
        print_race(&race, &turns);
    }
    Ok(())
}

fn ours(options: &Options, fidelity: &str) -> Result<Measurement> {
    let mut command = shell::program(&release_program().to_string_lossy());
    command.args(["bench", "uplink", "--json", "--threads", "1", "--repeat", "15", "--fidelity", fidelity]);
    command.args(sizes(options)).args(["--sequences", &options.length.to_string()]);
    measurement(&mut command)
}

fn numpys(python: &Path, options: &Options, fidelity: &str) -> Result<Measurement> {
    let mut command = shell::program(&python.to_string_lossy());
    command.args(["xtask/peers/uplink.py", fidelity]).args(sizes(options));
    for threads in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(threads, "1");
    }
    measurement(&mut command)
}

fn sizes(options: &Options) -> [String; 6] {
    let Options { per_round, length, dim, .. } = options;
    let flag = |name: &str| name.to_owned();
    [
        flag("--per-round"),
        per_round.to_string(),
        flag("--length"),
        length.to_string(),
        flag("--dim"),
        dim.to_string(),
    ]
}

fn measurement(command: &mut Command) -> Result<Measurement> {
    let text = shell::output(command)?;
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("{command:?} printed no measurement"))
}

fn print_race(race: &Race, turns: &[(Measurement, Measurement)]) {
    let sorted = |measure: &dyn Fn(&(Measurement, Measurement)) -> f64| {
        let mut values: Vec<f64> = turns.iter().map(measure).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let median = |values: &[f64]| values[values.len() / 2];
    let ours = median(&sorted(&|(ours, _)| ours.seconds_per_round)) * 1e3;
    let numpys = median(&sorted(&|(_, numpys)| numpys.seconds_per_round)) * 1e3;
    let ratios = sorted(&|(ours, numpys)| ours.seconds_per_round / numpys.seconds_per_round);
    let (ratio, lowest, highest) = (median(&ratios), ratios[0], ratios[ratios.len() - 1]);
    let verdict = if ratio <= race.bar { "reached" } else { "missed" };
    let mib = |bytes: Option<u64>| bytes.unwrap_or(0) >> 20;
    let (our_mib, numpy_mib) = (mib(turns[0].0.peak_bytes), mib(turns[0].1.peak_bytes));
    println!("{} level", race.fidelity);
    println!("  floras  {ours:8.2} ms  {our_mib:4} MiB");
    println!("  NumPy   {numpys:8.2} ms  {numpy_mib:4} MiB  (version {})", turns[0].1.version);
    println!("  ratio   {ratio:.3} ({lowest:.3} to {highest:.3}); at most {:.3} {verdict}", race.bar);
}

fn release_program() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| shell::root().join("target"), PathBuf::from);
    target.join("release").join("floras")
}

/// The interpreter of a virtual environment under `target/` that holds the pinned NumPy.
fn python_with_numpy() -> Result<PathBuf> {
    let environment = shell::root().join("target").join("peers-venv");
    let python = environment.join("bin").join("python");
    if !python.exists() {
        shell::run(shell::program("python3").args(["-m", "venv"]).arg(&environment))
            .context("bench-peers needs Python 3 with its venv module")?;
    }
    let install = ["-m", "pip", "install", "--quiet", "--requirement", "xtask/peers/requirements.txt"];
    shell::run(shell::program(&python.to_string_lossy()).args(install)).context("cannot install NumPy")?;
    Ok(python)
}
