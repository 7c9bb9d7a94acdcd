//! `floras report`: the report of a directory, as one page and plots.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use floras_report::ReportError;
use indicatif::ProgressBar;

use crate::failure::Failure;
use crate::run::print_status;
use crate::text::quoted;

/// Options of `floras report`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras report runs/digits-iid              a run
  floras report runs/unused-sequences-sweep  a sweep, and every run in it

It writes DIR/report.html, which needs no network, and DIR/plots/ with SVG, PNG, PDF
and CSV files.
`floras run`, `sweep`, `reproduce`, `benchmark` and `audit` write their report when they end. The report of an
incomplete run shows the rounds so far.")]
pub(crate) struct Options {
    /// The directory of a run, a sweep, a reproduction, a benchmark or an audit.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Writes the report and prints its path.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let report = floras_report::write(&options.directory)?;
    let mut out = io::stdout().lock();
    writeln!(out, "report          {}", report.page.display())?;
    if let Some(plots) = report.plots.first().and_then(|plot| plot.parent()) {
        writeln!(out, "plots           {}", plots.display())?;
    }
    Ok(())
}

/// Writes the report at the end of a run or a sweep, if there are new results; `what` describes what is drawn. A failure is only
/// printed, because the results are already on disk.
pub(crate) fn at_the_end(directory: &Path, what: &str, is_new: bool) -> Option<PathBuf> {
    let print = |error: &ReportError| {
        print_status(&format!(
            "note: no report was written: {error}; the results are complete, and `floras report {}` tries again",
            quoted(directory)
        ));
    };
    let spinner = ProgressBar::new_spinner().with_message(format!("drawing {what}"));
    spinner.enable_steady_tick(Duration::from_millis(200));
    if is_new && spinner.is_hidden() {
        print_status(&spinner.message());
    }
    let page = floras_report::page(directory, is_new);
    spinner.finish_and_clear();
    page.inspect_err(print).ok()
}
