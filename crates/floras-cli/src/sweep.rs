//! `floras sweep`: an experiment for every point of a grid.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clap::Args;
use floras_sim::{ExperimentBuilder, PreparedSweep, Summary, Sweep, SweepEvent, SweepTable};
use serde::Serialize;

use crate::command::{thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report;
use crate::run::talk;
use crate::table::{columns, count};

/// Which grid, and where to keep its runs.
#[derive(Debug, Args)]
#[command(after_help = "\
A sweep file is an experiment file with one more section:

  [sweep]
  uplink.sequences = [20, 21, 25, 30]
  data.partition = [\"iid\", \"one-label\"]

Example:

  floras sweep experiments/unused-sequences.toml

An interrupted sweep goes on when the same command is given again.")]
pub(crate) struct Options {
    /// The sweep file.
    file: PathBuf,

    /// The directory for all runs; runs/NAME-sweep if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a str,
    keys: Vec<&'a str>,
    points: Vec<PointReport<'a>>,
    out: String,
}

#[derive(Debug, Serialize)]
struct PointReport<'a> {
    values: &'a [String],
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Runs all points and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let sweep = ExperimentBuilder::file(&options.file)?.build_sweep()?;
    let directory = options.out.clone().unwrap_or_else(|| sweep.default_directory());
    let experiments = match sweep.runs().count() {
        runs if runs < sweep.points().len() => format!(" ({} that differ)", count(runs, "experiment")),
        _ => String::new(),
    };
    talk(&format!("{}{experiments} in {}", count(sweep.points().len(), "point"), directory.display()));
    let watcher = Watcher { sweep: &sweep, progress: Mutex::new(None) };
    let mut prepared = PreparedSweep::new(sweep.clone(), &directory, threads_or_all_cores(options.threads))?;
    let rounds_done = prepared.run(&|event| watcher.see(event), &AtomicBool::new(false));
    watcher.clear();
    let rounds_done = rounds_done?;
    let page = report::at_the_end(&directory, rounds_done > 0);
    options.report(&prepared, page.as_deref())
}

/// Shows how far the point at hand has come.
struct Watcher<'a> {
    sweep: &'a Sweep,
    progress: Mutex<Option<Progress>>,
}

impl Watcher<'_> {
    fn see(&self, event: SweepEvent<'_>) {
        match event {
            SweepEvent::PointBegins { number, point, federation } => {
                let pairs = self.sweep.keys().zip(&point.values);
                let values: Vec<String> = pairs.map(|(key, value)| format!("{key} = {value}")).collect();
                let points = self.sweep.points().len();
                talk(&format!("point {} of {points}: {}", number + 1, values.join(", ")));
                for note in point.notes() {
                    talk(&format!("note: {note}"));
                }
                *self.progress() = Some(Progress::new(federation));
            }
            SweepEvent::Run(event) => {
                if let Some(progress) = &*self.progress() {
                    progress.watch(event);
                }
            }
            SweepEvent::PointEnds { .. } => self.clear(),
        }
    }

    fn clear(&self) {
        if let Some(progress) = self.progress().take() {
            progress.clear();
        }
    }

    fn progress(&self) -> MutexGuard<'_, Option<Progress>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Options {
    fn report(&self, prepared: &PreparedSweep, page: Option<&Path>) -> Result<(), Failure> {
        let (sweep, directory) = (prepared.sweep(), prepared.directory());
        let mut out = io::stdout().lock();
        if self.json {
            let points = sweep.points().iter().zip(prepared.summaries());
            let points =
                points.map(|(point, summary)| PointReport { values: &point.values, summary }).collect();
            let report = Report {
                name: sweep.name(),
                keys: sweep.keys().collect(),
                points,
                out: directory.display().to_string(),
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        print_table(&mut out, prepared)?;
        if let Some(page) = page {
            writeln!(out, "report          {}", page.display())?;
        }
        writeln!(out, "table           {}", SweepTable::file(directory).display())?;
        Ok(())
    }
}

fn print_table(out: &mut impl Write, prepared: &PreparedSweep) -> io::Result<()> {
    let sweep = prepared.sweep();
    let mut rows: Vec<Vec<String>> = Vec::new();
    let has_cost = prepared.summaries().any(|summary| summary.cost.is_some());
    let cost: &[&str] = if has_cost { &["channel uses", "energy"] } else { &[] };
    let measured = ["train loss", "test accuracy", "diverged"].into_iter().chain(cost.iter().copied());
    let measured = measured.map(str::to_owned);
    rows.push(sweep.keys().map(str::to_owned).chain(measured).collect());
    for (point, summary) in sweep.points().iter().zip(prepared.summaries()) {
        let estimate = |pick: fn(&floras_sim::Finals) -> floras_sim::Estimate| match &summary.finals {
            None => "–".to_owned(),
            Some(finals) => {
                let estimate = pick(finals);
                let interval = estimate.ci95.map_or(String::new(), |width| format!(" ± {width:.4}"));
                format!("{:.4}{interval}", estimate.mean)
            }
        };
        let measured = [
            estimate(|finals| finals.train_loss),
            estimate(|finals| finals.test_accuracy),
            format!("{} of {}", summary.diverged().len(), summary.trials.len()),
        ];
        let cost = match summary.cost {
            _ if !has_cost => Vec::new(),
            None => vec!["–".to_owned(); 2],
            Some(cost) => vec![cost.channel_uses().to_string(), format!("{:.3e}", cost.energy)],
        };
        rows.push(point.values.iter().cloned().chain(measured).chain(cost).collect());
    }
    columns(out, &rows)
}
