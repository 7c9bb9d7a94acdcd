//! Pictures: SVG and PNG plots, and the report of a directory as one HTML file that loads nothing.
//!
//! [`write()`] reads a directory that `floras` has left behind and writes `report.html` and `plots/` into it. It finds out
//! by itself which kind it is: a run, a sweep, a reproduction or an audit. Everything comes from the files, so that the same
//! files give the same bytes.
//!
//! [`plot`] draws single pictures.

mod audit;
mod error;
mod files;
mod html;
pub mod plot;
mod privacy;
mod reproduction;
mod run;
mod sweep;

use std::path::{Path, PathBuf};

pub use error::ReportError;

/// What a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What `floras run` leaves.
    Run,
    /// What `floras sweep` leaves.
    Sweep,
    /// What `floras reproduce` leaves.
    Reproduction,
    /// What `floras audit` leaves, unless it was put beside a run.
    Audit,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// What the directory holds.
    pub kind: Kind,
    /// The page.
    pub page: PathBuf,
    /// The pictures.
    pub plots: Vec<PathBuf>,
}

impl Kind {
    /// What a directory holds.
    pub fn of(folder: &Path) -> Result<Self, ReportError> {
        if !folder.is_dir() {
            return Err(ReportError::NoSuchFolder { folder: folder.to_path_buf() });
        }
        let kinds = [
            ("reproduction.json", Self::Reproduction),
            ("sweep.csv", Self::Sweep),
            ("experiment.toml", Self::Run),
            ("audit.json", Self::Audit),
        ];
        let found = kinds.into_iter().find(|(file, _)| folder.join(file).exists());
        found.map(|(_, kind)| kind).ok_or_else(|| ReportError::NothingThere { folder: folder.to_path_buf() })
    }
}

/// Writes the report of a directory, and of every run in it if it is a sweep.
pub fn write(folder: &Path) -> Result<Report, ReportError> {
    let kind = Kind::of(folder)?;
    let (page, plots) = match kind {
        Kind::Run => run::write(folder)?,
        Kind::Sweep => sweep::write(folder)?,
        Kind::Reproduction => reproduction::write(folder)?,
        Kind::Audit => audit::write(folder)?,
    };
    Ok(Report { kind, page, plots })
}

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
