//! `floras compare`: runs side by side.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use floras_core::verdict::Verdict;
use floras_report::{ComparedRun, Comparison, compare};
use floras_sim::number::{estimate, percentage};
use serde::Serialize;

use crate::failure::Failure;
use crate::privacy::epsilon_or_above;
use crate::table::{columns, width};
use crate::text::WIDTH;

/// Options of `floras compare`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras compare runs/quick runs/quick-2                    two runs
  floras compare runs/unused-sequences-sweep                all points of a sweep
  floras compare runs/quick runs/private --out runs/both    with a plot of the accuracy by round

Epsilon is in the view that each experiment quotes, privacy.view.")]
pub(crate) struct Options {
    /// Directories of runs; a sweep stands for all its points.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,

    /// Write a plot of the test accuracy by round to plots/ in this directory.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    comparison: &'a Comparison,
    plots: Vec<String>,
}

/// Place of the loss in the table.
const LOSS: usize = 3;

/// Compares and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    // Reading runs can take long: an unusable --out is reported first.
    options.out.as_deref().map_or(Ok(()), Comparison::check_output)?;
    let comparison = compare(&options.directories)?;
    let plots = match &options.out {
        Some(directory) => comparison.write(directory)?,
        None => Vec::new(),
    };
    let mut out = io::stdout().lock();
    if options.json {
        let plots = plots.iter().map(|plot| plot.display().to_string()).collect();
        writeln!(out, "{}", serde_json::to_string(&Report { comparison: &comparison, plots })?)?;
        return Ok(());
    }
    print(&mut out, &comparison)?;
    if let Some(plots) = plots.first().and_then(|plot| plot.parent()) {
        writeln!(out, "\nplots           {}", plots.display())?;
    }
    Ok(())
}

fn print(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    let runs = &comparison.runs;
    // One view in the heading, or a column if runs quote several.
    let shared = runs.iter().all(|run| run.view == runs[0].view).then_some(runs[0].view);
    let mut heading = vec!["", "run", "test accuracy", "test loss", "epsilon", "verdict"];
    if shared.is_none() {
        heading.push("view");
    }
    heading.push("rounds");
    let mut rows = vec![heading.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    for (number, run) in runs.iter().enumerate() {
        let mut row = vec![(number + 1).to_string(), run.name.clone()];
        row.extend(results(run));
        if shared.is_none() {
            row.push(run.view.to_string());
        }
        row.push(run.rounds.to_string());
        rows.push(row);
    }
    if width(&rows) > WIDTH {
        // The loss is in the JSON output.
        rows.iter_mut().for_each(|row| drop(row.remove(LOSS)));
    }
    columns(out, &rows)?;
    if let Some(view) = shared {
        writeln!(out, "Epsilon is in the {view} view at delta = {:e}.", runs[0].delta)?;
    }
    writeln!(out, "{}", Verdict::scale())?;
    if comparison.settings.is_empty() {
        return writeln!(out, "\nAll settings are the same.");
    }
    let heading = ["setting".to_owned()].into_iter().chain((1..=runs.len()).map(|number| number.to_string()));
    let mut rows = vec![heading.collect::<Vec<String>>()];
    for setting in &comparison.settings {
        let values = setting.values.iter().map(|value| value.as_deref().unwrap_or("–").to_owned());
        rows.push([setting.key.clone()].into_iter().chain(values).collect());
    }
    writeln!(out)?;
    columns(out, &rows)
}

/// Accuracy, loss, epsilon and verdict as cells; a wider table would not fit 80 columns.
fn results(run: &ComparedRun) -> [String; 4] {
    if !run.is_complete {
        return ["not complete", "–", "–", "–"].map(str::to_owned);
    }
    let [accuracy, loss] = match run.finals {
        None => ["diverged", "–"].map(str::to_owned),
        Some(finals) => [percentage(finals.test_accuracy), estimate(finals.test_loss)],
    };
    let epsilon = epsilon_or_above(run.epsilon, run.epsilon_above);
    let verdict = run.verdict.map_or("–".to_owned(), |verdict| verdict.to_string());
    [accuracy, loss, epsilon, verdict]
}
