//! Python's part of the tests: the package is put into a virtual environment, and tested there. For Unix.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::parts::Parts;
use crate::{python, shell};

/// Numbers of tests.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

/// The interpreter that runs the tests, in an environment with what they need.
pub(crate) fn test_interpreter() -> Result<PathBuf> {
    python::with_packages("python-venv", "python/requirements-test.txt")
}

/// Runs the Python tests on the library that cargo has built: those of the core and of Flower. With `all` on the wheel, which takes
/// minutes to build, and those of pfl too, which needs torch.
pub(crate) fn test(python: &Path, all: bool, parts: &mut Parts) -> Result<Counted> {
    parts.begin("Python: installation");
    let wheel = all.then(|| build(python, "dev")).transpose()?;
    match &wheel {
        Some(wheel) => install(python, wheel)?,
        None => install_library(python)?,
    }
    parts.begin("Python: formatting, lints and types");
    check(python)?;
    parts.begin("Python: tests");
    let mut counted = pytest(python, &["python/tests", "--ignore=python/tests/pfl"])?;
    if let Some(wheel) = &wheel {
        parts.begin("Python: tests of pfl");
        let python = python::with_packages("pfl-venv", "python/requirements-pfl.txt")?;
        install(&python, wheel)?;
        let with_torch =
            ["test_flower_clip.py", "test_flower_torch.py"].map(|file| format!("python/tests/flower/{file}"));
        let of_pfl = pytest(&python, &["python/tests/pfl", &with_torch[0], &with_torch[1]])?;
        counted.passed += of_pfl.passed;
        counted.failed += of_pfl.failed;
    }
    Ok(counted)
}

/// The interpreter of an environment with an optimised wheel.
pub(crate) fn optimised() -> Result<PathBuf> {
    let python = test_interpreter()?;
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

/// Installs the package and the library of cargo's last build in an environment, where a wheel would install them.
fn install_library(python: &Path) -> Result<()> {
    let place = "import sysconfig; print(sysconfig.get_path('platlib'))";
    let packages = shell::output(shell::program(python).args(["-c", place]))?;
    let installed = Path::new(packages.trim()).join("floras");
    if installed.exists() {
        fs::remove_dir_all(&installed)?;
    }
    let source = shell::root().join("python").join("package").join("floras");
    for extension in ["py", "pyi", "typed"] {
        for file in shell::files(&source, extension)? {
            let target = installed.join(file.strip_prefix(&source)?);
            fs::create_dir_all(target.parent().context("a file of the package has no directory")?)?;
            fs::copy(&file, target)?;
        }
    }
    let library = format!("{DLL_PREFIX}_core{DLL_SUFFIX}");
    let library = shell::target().join("debug").join(library);
    fs::copy(&library, installed.join("_core.abi3.so"))
        .with_context(|| format!("cannot install {}", library.display()))?;
    Ok(())
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
    shell::run(shell::program(python).args(mypy).env("MYPYPATH", "python/package"))?;
    // The stub of the Rust module against the module that is installed.
    let stubtest = ["-P", "-m", "mypy.stubtest", "--concise", "--ignore-missing-stub", "floras._core"];
    shell::run(shell::program(python).args(stubtest))
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
    /// Adds the counts in pytest's last line: `3 failed, 98 passed, 1 skipped in 10.15s`.
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
    fn only_the_last_line_of_pytest_counts() {
        let mut counted = Counted::default();
        counted.read("tests/test_ray.py::test_three_passed 3 passed by");
        counted.read("1 failed, 98 passed, 1 skipped in 10.15s");
        counted.read("===== 2 passed, 1 error in 75.00s (0:01:15) =====");
        assert_eq!((counted.passed, counted.failed), (100, 2));
    }
}
