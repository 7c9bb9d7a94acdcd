//! `floras sweep`: an experiment for every point of a grid.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_sim::{Entry, ExperimentBuilder, Federation, Outcome, Point, RunDirectory, Summary, Sweep};
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
    let folder = match &options.out {
        Some(folder) => folder.clone(),
        None => Path::new("runs").join(format!("{}-sweep", sweep.name())),
    };
    let threads = threads_or_all_cores(options.threads);
    let to_run: Vec<usize> =
        (0..sweep.points().len()).filter(|&number| sweep.points()[number].run_of == number).collect();
    let experiments = match to_run.len() {
        runs if runs < sweep.points().len() => format!(" ({} that differ)", count(runs, "experiment")),
        _ => String::new(),
    };
    talk(&format!("{}{experiments} in {}", count(sweep.points().len(), "point"), folder.display()));
    // What cannot work is told before the first point has taken its time.
    for &number in &to_run {
        Federation::new(&sweep.points()[number].experiment)?.check_memory(threads)?;
    }
    let _lock = Sweep::enter(&folder)?;
    let mut done: Vec<Option<Summary>> = vec![None; sweep.points().len()];
    let mut rounds_done = 0;
    for &number in &to_run {
        let point = &sweep.points()[number];
        let values: Vec<String> =
            sweep.keys().zip(&point.values).map(|(key, value)| format!("{key} = {value}")).collect();
        talk(&format!("point {} of {}: {}", number + 1, done.len(), values.join(", ")));
        if !point.unused_keys.is_empty() {
            talk(&format!("note: without effect under the other settings: {}", point.unused_keys.join(", ")));
        }
        let outcome = run_point(point, &Sweep::point_folder(&folder, number), threads)?;
        rounds_done += outcome.rounds_done;
        for (other, done) in sweep.points().iter().zip(&mut done) {
            if other.run_of == number {
                *done = Some(outcome.summary.clone());
            }
        }
        sweep.write_table(&folder, &done)?;
    }
    let summaries: Vec<Summary> = done.into_iter().flatten().collect();
    let page = report::at_the_end(&folder, rounds_done > 0);
    options.report(&sweep, &folder, &summaries, page.as_deref())
}

fn run_point(point: &Point, folder: &Path, threads: usize) -> Result<Outcome, Failure> {
    let federation = Federation::new(&point.experiment)?;
    let directory = RunDirectory::enter(folder, &point.experiment, Entry::ResumeOrNew)?;
    let progress = Progress::new(&federation);
    let outcome = floras_sim::run(&federation, &directory, threads, &|event| progress.watch(event));
    progress.clear();
    Ok(outcome?)
}

impl Options {
    fn report(
        &self,
        sweep: &Sweep,
        folder: &Path,
        summaries: &[Summary],
        page: Option<&Path>,
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            let points = sweep.points().iter().zip(summaries);
            let points =
                points.map(|(point, summary)| PointReport { values: &point.values, summary }).collect();
            let report = Report {
                name: sweep.name(),
                keys: sweep.keys().collect(),
                points,
                out: folder.display().to_string(),
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        print_table(&mut out, sweep, summaries)?;
        if let Some(page) = page {
            writeln!(out, "report          {}", page.display())?;
        }
        writeln!(out, "table           {}", folder.join("sweep.csv").display())?;
        Ok(())
    }
}

fn print_table(out: &mut impl Write, sweep: &Sweep, summaries: &[Summary]) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = Vec::new();
    let measured = ["train loss", "test accuracy", "diverged"].map(str::to_owned);
    rows.push(sweep.keys().map(str::to_owned).chain(measured).collect());
    for (point, summary) in sweep.points().iter().zip(summaries) {
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
        rows.push(point.values.iter().cloned().chain(measured).collect());
    }
    columns(out, &rows)
}
