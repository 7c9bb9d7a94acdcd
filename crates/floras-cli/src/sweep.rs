//! `floras sweep`: one run per point of a grid of settings.

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_sim::{
    ExperimentBuilder, PointPrivacy, PreparedSweep, SimError, Summary, Sweep, SweepEvent, SweepRow,
    SweepTable, number,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::command::{changed, integer, thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::interrupt::Training;
use crate::privacy::epsilon_or_above;
use crate::progress::Progress;
use crate::report;
use crate::run::{free_directory, highest_number, numbered_directory, print_status};
use crate::table::{columns, count, width};
use crate::text::{WIDTH, quoted};

/// Maximum number of lines about the preparation, in a pipe.
const MAX_LINES: usize = 10;

/// The grid, and where to record it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras sweep quick --over uplink.snr_db=0,10,20       a preset with three values of one key
  floras sweep quick --over uplink.snr_db=0,20 --over uplink.receiver=clipped=2,mmse    a grid
  floras sweep experiments/unused-sequences.toml        a sweep file

A sweep file is an experiment file with one more section:

  [sweep]
  uplink.sequences = [20, 21, 25, 30]
  data.partition = [\"iid\", \"one-label\"]

All points are checked before the first one is trained. Repeat the command to resume an interrupted sweep.")]
pub(crate) struct Options {
    /// An experiment or sweep file, or the name of a preset; `private` if absent.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Vary a setting, as in uplink.snr_db=0,10,20; several of these make a grid, in which the last varies fastest.
    #[arg(long = "over", value_name = "key=a,b,c")]
    over: Vec<String>,

    /// Change a setting of all points, as in uplink.snr_db=10; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,

    /// Independent repetitions of each point.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>)]
    trials: Option<u32>,

    /// Learning rounds in a trial.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>)]
    rounds: Option<u32>,

    /// Seed of all random numbers.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u64>)]
    seed: Option<u64>,

    /// The directory for all runs; runs/NAME-sweep if absent, with a number if that holds another sweep.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
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
    /// Rounds that `epsilon` covers: the maximum that a trial did.
    rounds_done: u32,
    /// `privacy.view` of the point.
    view: String,
    /// `ε` in this view; `null` if there is no finite one.
    epsilon: Option<f64>,
    /// No `ε` up to this value is established.
    epsilon_above: Option<f64>,
    verdict: String,
    #[serde(flatten)]
    summary: &'a Summary,
}

/// Runs all points and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let sweep = options.sweep()?;
    let directory = options.out.clone().unwrap_or_else(|| default_directory(&sweep));
    PreparedSweep::check(&sweep, &directory)?;
    let experiments = match sweep.runs().count() {
        runs if runs < sweep.points().len() => format!(" ({})", count(runs, "different experiment")),
        _ => String::new(),
    };
    print_status(&format!(
        "{}{experiments} in {}",
        count(sweep.points().len(), "point"),
        directory.display()
    ));
    let mut prepared = prepare(sweep, &directory, threads_or_all_cores(options.threads))?;
    let (sweep, progress) = (prepared.sweep().clone(), Progress::of_sweep(prepared.rounds()));
    let training = Training::begin();
    let rounds_done = prepared.run(&|event| show_event(&sweep, &progress, event), training.stop());
    let (done, all) = progress.rounds();
    progress.clear();
    if let Err(SimError::Stopped { .. }) = rounds_done {
        drop(training);
        let arguments: Vec<String> = env::args_os().skip(1).map(quoted).collect();
        return Err(Failure::Interrupted(format!(
            "interrupted after {done} of {}; resume with `floras {}`",
            count(all as usize, "round"),
            arguments.join(" ")
        )));
    }
    let rounds_done = rounds_done?;
    let _writing = training.completed();
    let reports =
        format!("the reports of {} and of the sweep", count(prepared.sweep().runs().count(), "run"));
    let page = report::at_the_end(&directory, &reports, rounds_done > 0);
    options.report(&prepared, page.as_deref())
}

/// `runs/NAME-sweep`, then `runs/NAME-sweep-2` and so on: the one that holds most runs of this sweep, or else the next that is free.
fn default_directory(sweep: &Sweep) -> PathBuf {
    let name = format!("{}-sweep", sweep.name());
    let directories = (1..=highest_number(&name)).map(|number| numbered_directory(&name, number));
    // An error of another kind is reported when the sweep enters the directory.
    let is_ours = |directory: &PathBuf| {
        directory.is_dir()
            && !PreparedSweep::check(sweep, directory).is_err_and(|error| error.is_other_experiment())
    };
    // Of several with the same number of runs, the first.
    let ours = directories.filter(is_ours).rev().max_by_key(|directory| Sweep::runs_in(directory));
    ours.unwrap_or_else(|| free_directory(&name))
}

/// The first key that two --over options vary, with the values of both.
fn check_repeated(over: &[String]) -> Result<(), Failure> {
    let axes: Vec<(&str, &str)> = over.iter().filter_map(|over| over.split_once('=')).collect();
    for (number, (key, _)) in axes.iter().enumerate() {
        let same = axes.iter().filter(|(other, _)| other.trim() == key.trim());
        if axes[..number].iter().any(|(other, _)| other.trim() == key.trim()) {
            let values: Vec<&str> = same.map(|(_, values)| without_brackets(values.trim())).collect();
            let (key, values) = (key.trim(), values.join(","));
            return Err(Failure::Usage(format!("{key} is given twice in --over; write {key}={values}")));
        }
    }
    Ok(())
}

/// The values of a list that may be in brackets.
fn without_brackets(list: &str) -> &str {
    list.strip_prefix('[').and_then(|list| list.strip_suffix(']')).unwrap_or(list)
}

/// Validates all points, and shows which one is being prepared.
fn prepare(sweep: Sweep, directory: &Path, threads: usize) -> Result<PreparedSweep, SimError> {
    let (grid, runs) = (sweep.clone(), sweep.runs().count());
    let bar = ProgressBar::with_draw_target(Some(runs as u64), ProgressDrawTarget::stderr_with_hz(10));
    bar.set_style(ProgressStyle::with_template("preparing {msg}").expect("the template is well-formed"));
    let watch = |number: usize| {
        let point = grid.describe(number);
        if bar.is_hidden() && bar.position().is_multiple_of(runs.div_ceil(MAX_LINES) as u64) {
            print_status(&format!("preparing {point}"));
        }
        bar.set_message(point);
        bar.inc(1);
    };
    let prepared = PreparedSweep::watched(sweep, directory, threads, &watch);
    bar.finish_and_clear();
    prepared
}

/// Shows a step of the sweep.
fn show_event(sweep: &Sweep, progress: &Progress, event: SweepEvent<'_>) {
    match event {
        SweepEvent::PointBegins { number, point, federation } => {
            progress.print(&sweep.describe(number));
            for note in point.notes() {
                progress.print(&format!("note: {note}"));
            }
            progress.begin_run(federation);
        }
        SweepEvent::Run(event) => progress.watch(event),
        SweepEvent::PointEnds { number } => {
            progress.end_run();
            let remaining = progress.remaining().map_or_else(String::new, |time| format!(", {time} left"));
            let point = format!("point {} of {}", number + 1, sweep.points().len());
            progress.print(&format!("{point} done{remaining}"));
        }
    }
}

impl Options {
    /// The grid with the command line's changes.
    fn sweep(&self) -> Result<Sweep, Failure> {
        check_repeated(&self.over)?;
        let builder = ExperimentBuilder::open(self.experiment.as_deref())?;
        let builder = changed(builder, &self.settings, (self.trials, self.rounds, self.seed))?;
        let builder = self.over.iter().try_fold(builder, |builder, over| builder.vary(over))?;
        let sweep = builder.build_sweep()?;
        let key_of = |setting: &String| setting.split('=').next().unwrap_or_default().trim().to_owned();
        let options = [
            ("trials", self.trials.is_some()),
            ("rounds", self.rounds.is_some()),
            ("seed", self.seed.is_some()),
        ];
        let mut given = options.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key);
        if let Some(key) = given.find(|key| sweep.varies(key)) {
            return Err(Failure::Usage(format!("--{key} must be left out: the sweep varies {key}")));
        }
        match self.settings.iter().map(key_of).find(|key| sweep.varies(key)) {
            None => Ok(sweep),
            Some(key) => Err(Failure::option("--set", "a key that the sweep does not vary", key)),
        }
    }

    fn report(&self, prepared: &PreparedSweep, page: Option<&Path>) -> Result<(), Failure> {
        let (sweep, directory) = (prepared.sweep(), prepared.directory());
        let mut out = io::stdout().lock();
        if self.json {
            let points = sweep.points().iter().zip(prepared.summaries()).map(|(point, summary)| {
                let view = point.experiment.settings().privacy.view;
                let PointPrivacy { rounds_done, epsilon, epsilon_above, verdict, .. } =
                    PointPrivacy::new(summary, view);
                let (view, verdict) = (view.to_string(), verdict.to_string());
                PointReport {
                    values: &point.values,
                    rounds_done,
                    view,
                    epsilon,
                    epsilon_above,
                    verdict,
                    summary,
                }
            });
            let report = Report {
                name: sweep.name(),
                keys: sweep.keys().collect(),
                points: points.collect(),
                out: directory.display().to_string(),
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        print_table(&mut out, &prepared.table())?;
        writeln!(out)?;
        if let Some(page) = page {
            writeln!(out, "report          {}", page.display())?;
        }
        writeln!(out, "table           {}", SweepTable::file(directory).display())?;
        Ok(())
    }
}

/// One row per point. `ε` is that of the view in its heading; points that quote different views name theirs in a column.
fn print_table(out: &mut impl Write, table: &SweepTable) -> io::Result<()> {
    let views: Vec<_> = table.rows.iter().filter_map(|row| row.privacy).map(|privacy| privacy.view).collect();
    let common_view = views.first().filter(|first| views.iter().all(|view| view == *first));
    let has_diverged = table.rows.iter().any(|row| row.diverged > 0);
    let mut heading: Vec<String> = table.keys.clone();
    heading.extend(["rounds", "test accuracy"].map(str::to_owned));
    heading.push(common_view.map_or_else(|| "ε".to_owned(), |view| format!("ε ({view})")));
    heading.push("verdict".to_owned());
    let more = [(common_view.is_none(), "view"), (has_diverged, "diverged")];
    heading.extend(more.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, name)| name.to_owned()));
    let cells = |row: &SweepRow| {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "–".to_owned());
        let mut cells = row.values.clone();
        cells.push(or_dash(row.privacy.map(|privacy| privacy.rounds_done.to_string())));
        cells.push(or_dash(row.finals.map(|finals| number::percentage(finals.test_accuracy))));
        cells.push(or_dash(
            row.privacy.map(|privacy| epsilon_or_above(privacy.epsilon, privacy.epsilon_above)),
        ));
        cells.push(or_dash(row.privacy.map(|privacy| privacy.verdict.to_string())));
        if common_view.is_none() {
            cells.push(or_dash(row.privacy.map(|privacy| privacy.view.to_string())));
        }
        if has_diverged {
            cells.push(format!("{} of {}", row.diverged, row.trials));
        }
        cells
    };
    let mut rows: Vec<Vec<String>> = std::iter::once(heading).chain(table.rows.iter().map(cells)).collect();
    if width(&rows) > WIDTH {
        shorten_keys(&mut rows[0][..table.keys.len()]);
    }
    columns(out, &rows)
}

/// Keys without their sections, except for those that would then be the same.
fn shorten_keys(keys: &mut [String]) {
    let short = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let all: Vec<String> = keys.iter().map(|key| short(key)).collect();
    for (key, own) in keys.iter_mut().zip(&all) {
        if all.iter().filter(|other| *other == own).count() == 1 {
            key.clone_from(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_lose_their_section() {
        let mut keys = ["uplink.snr_db", "seed", "local.rate", "other.rate"].map(str::to_owned);
        shorten_keys(&mut keys);
        assert_eq!(keys, ["snr_db", "seed", "local.rate", "other.rate"]);
    }
}
