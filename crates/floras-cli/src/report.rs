//! `floras report`: what a directory says, as one page and some pictures.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_report::ReportError;

use crate::failure::Failure;
use crate::run::talk;

/// Of what to make a report.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras report runs/digits-iid              a run
  floras report runs/unused-sequences-sweep  a sweep, and every run in it

It writes DIR/report.html, which loads nothing from anywhere, and DIR/plots/ with SVG and PNG files.
`floras run`, `sweep`, `reproduce` and `audit` do so at their end. A run that is not complete gets a report of what is there.")]
pub(crate) struct Options {
    /// The directory of a run, a sweep, a reproduction or an audit.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the report and says where it is.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let report = floras_report::write(&options.directory)?;
    let mut out = io::stdout().lock();
    writeln!(out, "report          {}", report.page.display())?;
    if let Some(plots) = report.plots.first().and_then(|plot| plot.parent()) {
        writeln!(out, "plots           {}", plots.display())?;
    }
    Ok(())
}

/// The report at the end of a run or a sweep, if something new is to be told. What fails here is told and no more: the
/// results are on the disk already.
pub(crate) fn at_the_end(directory: &Path, is_new: bool) -> Option<PathBuf> {
    let tell = |error: &ReportError| {
        talk(&format!(
            "note: there is no report, because {error}; the results are complete, and `floras report {}` tries again",
            directory.display()
        ));
    };
    floras_report::page(directory, is_new).inspect_err(tell).ok()
}
