//! `floras benchmark`: the field's schemes under equal conditions.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_core::Choice;
use floras_paper::benchmark::{Candidate, benchmark, is_of};
use floras_paper::reproduce::Workbench;
use floras_sim::benchmark::{AtAirtime, Benchmark, Conditions, Entry, Point, Row, ViewBound};
use floras_sim::number::{decimal, percentage};
use floras_sim::{Estimate, ExperimentBuilder, ExperimentError, SourceError};
use serde::Serialize;

use crate::command::{thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::report;
use crate::run::{free_directory, highest_number, numbered_directory, print_status};
use crate::table::columns;
use crate::text::{paragraph, quoted};
use crate::watcher::Watcher;

/// Which schemes, and where to write the results.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras benchmark --quick                   all schemes at one point, in less than two minutes
  floras benchmark floras digital --quick    two of them
  floras benchmark mine.toml floras          an experiment file of your own beside FLORAS

The directory has report.html with tables and plots, benchmark.json with all numbers, and a run
directory for every result under runs/. The same command resumes an interrupted benchmark. All
schemes at all points take tens of minutes on two cores.")]
pub(crate) struct Options {
    /// Names of schemes in the benchmark, or experiment files; all schemes of the benchmark if absent.
    #[arg(value_name = "NAME|FILE")]
    candidates: Vec<String>,

    /// One point with fewer trials and rounds instead of all points.
    #[arg(long)]
    quick: bool,

    /// The directory; runs/benchmark, with -quick behind it for the small version, if absent, and with a number if that holds the
    /// results of another command.
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
    version: &'a str,
    quick: bool,
    conditions: &'a Conditions,
    entries: &'a [Entry],
    rows: &'a [Row],
    out: String,
}

/// Runs the benchmark and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let candidates = options.candidates()?;
    let directory = options.directory()?;
    print_status(&format!(
        "recording in {}; if interrupted, the same command resumes it",
        directory.display()
    ));
    let watcher = Watcher::default();
    let bench = Workbench {
        quick: options.quick,
        directory: &directory,
        threads: threads_or_all_cores(options.threads),
        watch: &|stage| watcher.update(stage),
    };
    let made = benchmark(&candidates, &options.command(), &bench);
    watcher.clear();
    let made = made?;
    let page = report::at_the_end(&directory, "the report", true);
    options.report(&directory, &made, page.as_deref())
}

impl Options {
    /// The directory that was given, or the default one with results of the same command, or else the next that is free.
    fn directory(&self) -> Result<PathBuf, Failure> {
        let command = self.command();
        if let Some(directory) = &self.out {
            is_of(directory, &command)?;
            return Ok(directory.clone());
        }
        let name = if self.quick { "benchmark-quick" } else { "benchmark" };
        let mut directories = (1..=highest_number(name)).map(|number| numbered_directory(name, number));
        let ours = directories.find(|directory| matches!(is_of(directory, &command), Ok(true)));
        Ok(ours.unwrap_or_else(|| free_directory(name)))
    }

    /// The command that reproduces the results, without the directory and the number of threads.
    fn command(&self) -> String {
        let mut command = "floras benchmark".to_owned();
        for candidate in &self.candidates {
            command.push_str(&format!(" {}", quoted(candidate)));
        }
        if self.quick {
            command.push_str(" --quick");
        }
        command
    }

    fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        if self.candidates.is_empty() {
            return Ok(Candidate::built_in()?);
        }
        let mut candidates: Vec<Candidate> = Vec::new();
        for given in &self.candidates {
            let candidate = open(given)?;
            if candidates.iter().any(|other| other.name() == candidate.name()) {
                let reason = format!("there are two candidates of the name \"{}\"", candidate.name());
                return Err(ExperimentError::Refused { key: "name".to_owned(), reason }.into());
            }
            candidates.push(candidate);
        }
        Ok(candidates)
    }

    fn report(&self, directory: &Path, made: &Benchmark, page: Option<&Path>) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            let Benchmark { version, quick, conditions, entries, rows, .. } = made;
            let out_directory = directory.display().to_string();
            let report = Report { version, quick: *quick, conditions, entries, rows, out: out_directory };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        print_unprotected(&mut out, made)?;
        print_private(&mut out, made)?;
        writeln!(out)?;
        paragraph(&mut out, &made.reading)?;
        writeln!(out)?;
        if let Some(page) = page {
            writeln!(out, "report          {}", page.display())?;
        }
        writeln!(out, "directory       {}", directory.display())?;
        Ok(())
    }
}

/// A candidate by its name in the benchmark, or from a file.
fn open(given: &str) -> Result<Candidate, Failure> {
    if let Some(candidate) = Candidate::named(given) {
        return Ok(candidate?);
    }
    match ExperimentBuilder::file(Path::new(given)) {
        Ok(builder) => Ok(Candidate::new(builder)?),
        Err(SourceError::NoSuchFile { .. }) => {
            let names: Vec<&str> = Candidate::names().collect();
            let allowed = format!("an experiment file or one of {}", names.join(", "));
            Err(Failure::option("NAME|FILE", allowed, given))
        }
        Err(error) => Err(error.into()),
    }
}

fn cells(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn accuracy(found: Option<Estimate>) -> String {
    found.map_or_else(|| "none".to_owned(), percentage)
}

/// Accuracy and airtime at the reference point, without protection.
fn print_unprotected(out: &mut impl Write, made: &Benchmark) -> io::Result<()> {
    let conditions = &made.conditions;
    let Point { clients, snr_db, partition, .. } = &conditions.reference;
    writeln!(
        out,
        "{clients} clients, {snr_db} dB, {partition}, {} rounds, without protection\n",
        conditions.rounds
    )?;
    let at_airtime = format!("at {} uses", conditions.airtime);
    let mut rows = vec![cells(&["scheme", "clients know", "uses", "accuracy", &at_airtime])];
    for entry in &made.entries {
        let Some(row) = made.row(&entry.name, &conditions.reference) else { continue };
        let at_airtime = match row.at_airtime {
            Some(AtAirtime { rounds, is_capped, accuracy }) => {
                format!("{} ({rounds}{})", percentage(accuracy), if is_capped { "*" } else { "" })
            }
            None if row.cost.is_some() => "no round".to_owned(),
            None => "no radio".to_owned(),
        };
        rows.push(vec![
            entry.name.clone(),
            entry.channel_knowledge.label(),
            row.cost.map_or_else(|| "–".to_owned(), |cost| decimal(cost.uses)),
            accuracy(row.accuracy),
            at_airtime,
        ]);
    }
    columns(out, &rows)?;
    writeln!(
        out,
        "\nuses: channel uses per parameter and round; in parentheses: rounds that fit, * at most {}\n",
        conditions.max_rounds
    )
}

/// Accuracy at the reference point with the benchmark's `ε`.
fn print_private(out: &mut impl Write, made: &Benchmark) -> io::Result<()> {
    let conditions = &made.conditions;
    writeln!(out, "the same at ε ≤ {}, δ = {:e}\n", conditions.epsilon, conditions.delta)?;
    let point = conditions.private();
    let mut rows = vec![cells(&["scheme", "accuracy", "view", "ε", "clients trust"])];
    for entry in &made.entries {
        let Some(row) = made.row(&entry.name, &point) else { continue };
        let trust = row.protected_by.as_ref().map_or_else(|| "–".to_owned(), |by| by.trust.label());
        let epsilon = row.bound(entry.view).map_or_else(|| "–".to_owned(), ViewBound::text);
        rows.push(vec![entry.name.clone(), accuracy(row.accuracy), entry.view.to_string(), epsilon, trust]);
    }
    columns(out, &rows)
}
