//! Python's part of the tests: the wheel is built, put into a virtual environment, and tested there. For Unix.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::parts::Parts;
use crate::{python, shell};

/// What tests have said.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// Builds the wheel and runs the Python tests: those of the core and of Flower, and with `all` those of pfl, which needs torch.
pub(crate) fn test(all: bool, parts: &mut Parts) -> Result<Counted> {
    parts.begin("Python: packages");
    let python = python::with_packages("python-venv", "python/requirements-test.txt")?;
    parts.begin("Python: the wheel");
    // Built as the tests are, which shares most of the work with them.
    let wheel = build(&python, "dev")?;
    install(&python, &wheel)?;
    parts.begin("Python: formatting, lints and types");
    check(&python)?;
    parts.begin("Python: tests");
    let mut counted = pytest(&python, &["python/tests", "--ignore=python/tests/pfl"])?;
    if all {
        parts.begin("Python: tests of pfl");
        let python = python::with_packages("pfl-venv", "python/requirements-pfl.txt")?;
        install(&python, &wheel)?;
        let of_pfl = pytest(&python, &["python/tests/pfl", "python/tests/flower/test_flower_clip.py"])?;
        counted.passed += of_pfl.passed;
        counted.failed += of_pfl.failed;
    }
    Ok(counted)
}

/// The interpreter of an environment with an optimised wheel.
pub(crate) fn optimised() -> Result<PathBuf> {
    let python = python::with_packages("python-venv", "python/requirements-test.txt")?;
    let wheel = build(&python, "release")?;
    install(&python, &wheel)?;
    Ok(python)
}

fn build(python: &Path, profile: &str) -> Result<PathBuf> {
    let directory = shell::root().join("target").join("wheels").join(profile);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    let options = ["-m", "maturin", "build", "--locked", "--quiet", "--profile", profile];
    let mut command = shell::program(python);
    command
        .args(options)
        .args(["--manifest-path", "python/Cargo.toml"])
        .arg("--interpreter")
        .arg(python)
        .arg("--out")
        .arg(&directory);
    shell::run(&mut command).context("the wheel cannot be built")?;
    let wheels = fs::read_dir(&directory)?.filter_map(Result::ok).map(|entry| entry.path());
    wheels.into_iter().next().context("maturin has built no wheel")
}

fn install(python: &Path, wheel: &Path) -> Result<()> {
    let options =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"];
    shell::run(shell::program(python).args(options).arg(wheel))
}

fn check(python: &Path) -> Result<()> {
    let ruff = |arguments: &[&str]| {
        let sources = ["python", "examples"];
        let settings = ["--config", "python/pyproject.toml"];
        shell::run(shell::program(python).args(["-m", "ruff"]).args(arguments).args(settings).args(sources))
    };
    ruff(&["format", "--check", "--quiet"])?;
    ruff(&["check", "--quiet"])?;
    let mypy = ["-m", "mypy", "--config-file", "python/pyproject.toml"];
    shell::run(shell::program(python).args(mypy).env("MYPYPATH", "python/package"))
}

/// Runs pytest, passing on what it prints.
fn pytest(python: &Path, tests: &[&str]) -> Result<Counted> {
    let mut command: Command = shell::program(python);
    // The files are shared out over two processes: most tests keep one core busy.
    let spread = ["-n", "2", "--dist", "loadfile"];
    command
        .args(["-m", "pytest", "--quiet", "--durations=5"])
        .args(spread)
        .args(tests)
        .stdout(Stdio::piped());
    command.env("FLORAS_PROGRAM", shell::target().join("debug").join("floras"));
    command.env("PYTHONSAFEPATH", "1");
    let mut child = command.spawn().context("cannot start pytest")?;
    let stdout = child.stdout.take().context("pytest has no output")?;
    let mut counted = Counted::default();
    for line in BufReader::new(stdout).lines() {
        let line = line?;
        println!("{line}");
        counted.read(&line);
    }
    let status = child.wait()?;
    let Counted { passed, failed } = counted;
    ensure!(status.success(), "pytest ended with {status}: {passed} passed, {failed} failed");
    ensure!(passed > 0, "pytest ran no test");
    Ok(counted)
}

impl Counted {
    /// Adds what pytest's last line says: `3 failed, 98 passed, 1 skipped in 10.15s`.
    fn read(&mut self, line: &str) {
        let words: Vec<&str> = line.split([' ', ',', '=']).filter(|word| !word.is_empty()).collect();
        if !line.contains(" in ") || !words.last().is_some_and(|last| last.ends_with(['s', ')'])) {
            return;
        }
        for pair in words.windows(2) {
            let Ok(count) = pair[0].parse::<usize>() else { continue };
            match pair[1] {
                "passed" => self.passed += count,
                "failed" | "error" | "errors" => self.failed += count,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_pytest_is_counted_and_no_other() {
        let mut counted = Counted::default();
        counted.read("tests/test_ray.py::test_three_passed 3 passed by");
        counted.read("1 failed, 98 passed, 1 skipped in 10.15s");
        counted.read("===== 2 passed, 1 error in 75.00s (0:01:15) =====");
        assert_eq!((counted.passed, counted.failed), (100, 2));
    }
}
