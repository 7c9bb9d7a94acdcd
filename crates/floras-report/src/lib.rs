//! Plots as SVG, PNG, PDF and CSV files, and the report of a directory as one HTML file that loads nothing.
//!
//! [`write()`] reads the directory of a run, a sweep, a reproduction, a benchmark or an audit and writes `report.html` and `plots/` into it.
//! All content comes from the files: the same files give the same bytes.
//!
//! [`plot`] draws single plots.

mod audit;
mod benchmark;
mod compare;
mod error;
mod files;
mod html;
pub mod plot;
mod privacy;
mod reproduction;
mod run;
mod sweep;

use std::path::{Path, PathBuf};

use floras_audit::AuditReport;
use floras_sim::benchmark::Benchmark;
use floras_sim::figure::Reproduction;
use floras_sim::{RunDirectory, SweepTable};

pub use compare::{ComparedRun, Comparison, DifferingSetting, compare};
pub use error::ReportError;

/// The kind of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Written by `floras run`.
    Run,
    /// Written by `floras sweep`.
    Sweep,
    /// Written by `floras reproduce`.
    Reproduction,
    /// Written by `floras benchmark`.
    Benchmark,
    /// Written by `floras audit` into a directory without a run.
    Audit,
}

/// The files of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The kind of the directory.
    pub kind: Kind,
    /// The path of the HTML page.
    pub page: PathBuf,
    /// The paths of the plots.
    pub plots: Vec<PathBuf>,
}

impl Kind {
    /// The kind of a directory, by the files in it.
    pub fn of(directory: &Path) -> Result<Self, ReportError> {
        if !directory.is_dir() {
            return Err(ReportError::NoSuchDirectory { directory: directory.to_path_buf() });
        }
        let kinds = [
            (directory.join(Reproduction::FILE), Self::Reproduction),
            (directory.join(Benchmark::FILE), Self::Benchmark),
            (SweepTable::file(directory), Self::Sweep),
            (RunDirectory::experiment_file(directory), Self::Run),
            (directory.join(AuditReport::FILE), Self::Audit),
        ];
        let found = kinds.into_iter().find(|(file, _)| file.exists());
        found
            .map(|(_, kind)| kind)
            .ok_or_else(|| ReportError::NothingThere { directory: directory.to_path_buf() })
    }
}

/// Writes the report of a directory, and of every run in it if it is a sweep.
pub fn write(directory: &Path) -> Result<Report, ReportError> {
    let kind = Kind::of(directory)?;
    let (page, plots) = match kind {
        Kind::Run => run::write(directory)?,
        Kind::Sweep => sweep::write(directory)?,
        Kind::Reproduction => reproduction::write(directory)?,
        Kind::Benchmark => benchmark::write(directory)?,
        Kind::Audit => audit::write(directory)?,
    };
    Ok(Report { kind, page, plots })
}

/// The page of a directory, which is written if `is_new` or missing.
pub fn page(directory: &Path, is_new: bool) -> Result<PathBuf, ReportError> {
    let page = files::page(directory);
    if is_new || !page.exists() {
        write(directory)?;
    }
    Ok(page)
}

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
