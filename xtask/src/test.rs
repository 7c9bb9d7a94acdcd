//! `cargo xtask test`: the one command that passes all tests, cheapest checks first.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;

use crate::parts::Parts;
use crate::{book, language, live, packages, report, shell, wheel};

/// How much to test.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Also test the wheel, pfl and PyTorch (some gigabytes to install), and open report, live view and book in Chromium.
    #[arg(long)]
    all: bool,
}

/// Runs every check; the first one that fails ends the run.
pub(crate) fn run(options: &Options) -> Result<()> {
    let mut parts = Parts::default();
    let tally = checks(options, &mut parts);
    parts.end();
    println!("\n{parts}");
    let tally = tally?;
    println!("\ntests: {} passed, {} failed", tally.passed, tally.failed);
    Ok(())
}

fn checks(options: &Options, parts: &mut Parts) -> Result<Tally> {
    // Downloads run while cargo builds.
    let interpreter = thread::spawn(wheel::test_interpreter);
    parts.begin("formatting");
    shell::run(shell::cargo().args(["fmt", "--all", "--check"]))?;
    parts.begin("the book's links");
    book::check_links()?;
    parts.begin("language");
    language::check(&language::Options::default())?;
    parts.begin("lints");
    let lints = ["clippy", "--locked", "--workspace", "--all-targets", "--quiet", "--", "--deny", "warnings"];
    shell::run(shell::cargo().args(lints))?;
    parts.begin("building the tests");
    // Unlike `cargo test --no-run`, this builds the library of the Python package too, with the same features.
    let all = ["build", "--locked", "--workspace", "--lib", "--bins", "--tests", "--examples", "--quiet"];
    shell::run(shell::cargo().args(all))?;
    parts.begin("tests");
    let mut tally = run_tests()?;
    parts.begin("documentation");
    let documentation =
        ["doc", "--locked", "--workspace", "--no-deps", "--document-private-items", "--quiet"];
    shell::run(shell::cargo().args(documentation).env("RUSTDOCFLAGS", "--deny warnings"))?;
    parts.begin("packages");
    packages::check()?;
    parts.begin("Python: packages");
    let interpreter = interpreter.join().map_err(|_| anyhow!("installing packages of Python panicked"))??;
    let of_python = wheel::test(&interpreter, options.all, parts)?;
    tally.passed += of_python.passed;
    tally.failed += of_python.failed;
    if options.all {
        parts.begin("pages in Chromium");
        report::run()?;
        live::run()?;
        book::check()?;
    }
    Ok(tally)
}

/// Runs Python's part alone.
pub(crate) fn run_python(options: &Options) -> Result<()> {
    let mut parts = Parts::default();
    parts.begin("program and library");
    let build = ["build", "--locked", "--quiet", "--package", "floras-cli", "--package", "floras-python"];
    shell::run(shell::cargo().args(build))?;
    parts.begin("Python: packages");
    let interpreter = wheel::test_interpreter()?;
    let wheel::Counted { passed, failed } = wheel::test(&interpreter, options.all, &mut parts)?;
    parts.end();
    println!("\n{parts}\n\ntests: {passed} passed, {failed} failed");
    Ok(())
}

#[derive(Debug, Default)]
struct Tally {
    passed: usize,
    failed: usize,
}

impl Tally {
    /// Adds what a line of the test runner reports: `test result: ok. 5 passed; 0 failed; …`.
    fn read(&mut self, line: &str) {
        let Some(report) = line.strip_prefix("test result: ") else { return };
        let words: Vec<&str> = report.split([' ', ';']).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2) {
            let count = pair[0].parse::<usize>().unwrap_or(0);
            match pair[1] {
                "passed" => self.passed += count,
                "failed" => self.failed += count,
                _ => {}
            }
        }
    }
}

/// Runs unit, integration and documentation tests, passing on what they print.
fn run_tests() -> Result<Tally> {
    let mut command = shell::cargo();
    command.args(["test", "--locked", "--workspace", "--no-fail-fast"]).stdout(Stdio::piped());
    let mut tests = command.spawn().context("cannot start cargo test")?;
    let mut tally = Tally::default();
    let stdout = tests.stdout.take().context("cargo test has no output")?;
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        tally.read(&line);
    }
    let status = tests.wait()?;
    ensure!(
        status.success(),
        "cargo test ended with {status}: {} passed, {} failed",
        tally.passed,
        tally.failed
    );
    ensure!(tally.passed > 0, "cargo test ran no test");
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_added_up() {
        let mut tally = Tally::default();
        tally.read(
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
        );
        tally.read("running 3 tests");
        tally.read("test result: FAILED. 2 passed; 7 failed; 0 ignored; 0 measured; 0 filtered out");
        assert_eq!((tally.passed, tally.failed), (7, 7));
    }
}
