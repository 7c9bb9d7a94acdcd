//! A common benchmark: the field's schemes for learning over the air under equal conditions.
//!
//! All candidates train the same model on the same data with the same clients, rounds, steps and clip norm. The mean power of a client
//! is at most 1, both over the channel uses of its payload and over those of payload and pilots together, silent ones included. The
//! receiver's noise is the same in every channel use. Candidates are compared without protection, and with noise that gives each client
//! the same `ε` after all rounds in the view that its file names.
//!
//! Runs of their own at the reference point compare them at an equal airtime, each for as many rounds as fit, and with channels that clients
//! estimate from one pilot of unit power. The second comparison has no protection: the guarantees of the schemes assume exact knowledge.
//!
//! [`benchmark`] writes `benchmark.json`. Each run has a run directory of its own and each calibration a file of its own, so that an
//! interrupted benchmark resumes.

mod candidate;
mod grid;
mod panels;
mod protect;
mod rows;
mod speed;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use floras_core::Snr;
use floras_sim::benchmark::{Benchmark, Conditions, Point, Row};
use floras_sim::{Experiment, ExperimentError, Federation, SimError, VERSION, write_atomically};

use self::grid::{EPSILON, Grid};
use self::protect::Protected;
use self::rows::{RunOfRow, rounds_at_airtime};
use crate::reproduce::{RunRecord, Workbench, check_directory, enter};

pub use self::candidate::Candidate;
pub use self::speed::timed_experiments;

/// The airtime of the comparison at equal airtime, in channel uses per parameter.
const AIRTIME: f64 = 1000.0;
/// The largest mean power of the clients over all rounds of a point. Its expectation is at most 1. Inverted channels have powers of
/// standard deviation 1.1, so that the mean of 20 clients in 200 rounds has one of 0.018.
pub const MAX_POWER: f64 = 1.05;
/// Directory of the stored protections.
const PROTECTIONS: &str = "protections";

/// Writes the sentences of a benchmark: its reading and its notes, from the numbers alone.
pub fn describe(benchmark: &mut Benchmark) {
    benchmark.reading = words::reading(benchmark);
    benchmark.notes = words::notes(benchmark);
}

/// Whether a directory holds results of the benchmark `command`. An error if it holds a run, a sweep or the results of another command.
pub fn is_of(directory: &Path, command: &str) -> Result<bool, SimError> {
    check_directory(directory, command)
}

/// Runs all candidates at all points and writes `benchmark.json`. `command` is the command that does so, which a directory belongs to.
pub fn benchmark(
    candidates: &[Candidate],
    command: &str,
    bench: &Workbench<'_>,
) -> Result<Benchmark, SimError> {
    let grid = if bench.quick { &grid::QUICK } else { &grid::FULL };
    let _lock = enter(bench, command)?;
    let plan = Plan::new(candidates, grid, bench)?;
    let mut runs = bench.run_all(plan.experiments()?)?;
    let rows = plan.rows(&runs);
    check_power(&rows)?;
    runs.extend(bench.run_all(plan.at_airtime(&rows)?)?);
    let rows = plan.rows(&runs);
    let conditions = plan.conditions.clone();
    let entries = candidates.iter().map(|one| one.entry(conditions.reference.clients)).collect();
    let mut benchmark = Benchmark {
        version: VERSION.to_owned(),
        command: command.to_owned(),
        quick: bench.quick,
        seed: candidates.first().map_or(0, |candidate| candidate.settings().seed),
        conditions,
        entries,
        rows,
        reading: String::new(),
        notes: Vec::new(),
        panels: Vec::new(),
    };
    benchmark.panels = panels::all(&benchmark, |entry| plan.longest_run(entry, &runs));
    describe(&mut benchmark);
    let path = bench.directory.join(Benchmark::FILE);
    let mut text = serde_json::to_string(&benchmark).map_err(|error| SimError::encoding(&path, error))?;
    text.push('\n');
    write_atomically(&path, text.as_bytes())?;
    Ok(benchmark)
}

/// An error if clients of an entry exceed the mean power that all others keep, with or without their pilots.
fn check_power(rows: &[Row]) -> Result<(), SimError> {
    let above = |row: &&Row| row.cost.is_some_and(|cost| cost.power() > MAX_POWER);
    let Some((row, cost)) = rows.iter().find(above).and_then(|row| Some((row, row.cost?))) else {
        return Ok(());
    };
    let (key, over) = match cost.power_mean > MAX_POWER {
        true => ("uplink.power", "its payload"),
        false => ("uplink.pilot", "payload and pilots"),
    };
    let Point { clients, snr_db, partition, .. } = &row.point;
    let allowed = format!(
        "such that {} sends at a mean power of at most 1 over {over}: it is {:.2} with {clients} clients at {snr_db} dB ({partition}, {})",
        row.entry,
        cost.power(),
        row.point.protection()
    );
    let value = "that of its file".to_owned();
    Err(ExperimentError::Value { key: key.to_owned(), allowed, value }.into())
}

/// The runs by their names.
type Runs = BTreeMap<String, (Experiment, RunRecord)>;

/// Every candidate at every point, with what protects it.
struct Plan<'a> {
    candidates: &'a [Candidate],
    grid: &'a Grid,
    conditions: Conditions,
    protections: BTreeMap<String, Option<Protected>>,
}

impl<'a> Plan<'a> {
    /// Calibrates the noise of all private points, or reads that of an earlier call.
    fn new(candidates: &'a [Candidate], grid: &'a Grid, bench: &Workbench<'_>) -> Result<Self, SimError> {
        let conditions = conditions(candidates, grid)?;
        let mut tasks = BTreeMap::new();
        for candidate in candidates {
            for point in grid.points() {
                let Some(epsilon) = point.epsilon else { continue };
                let (builder, view) = (grid.experiment(candidate, &point)?, candidate.view());
                let about = format!("floras {VERSION}, ε = {epsilon}, {view} view\n{}", builder.to_toml());
                tasks.insert(Grid::run_name(candidate, &point), (about, (builder, view, epsilon)));
            }
        }
        let protections = bench.calibrate_all(PROTECTIONS, tasks, |(builder, view, epsilon)| {
            protect::protect(builder, *view, *epsilon)
        })?;
        Ok(Self { candidates, grid, conditions, protections })
    }

    /// The experiments of all points, by the names of their runs. A point whose `ε` nothing meets has none.
    fn experiments(&self) -> Result<BTreeMap<String, Experiment>, SimError> {
        let mut planned = BTreeMap::new();
        for candidate in self.candidates {
            for point in self.grid.points() {
                let name = Grid::run_name(candidate, &point);
                if planned.contains_key(&name) {
                    continue;
                }
                let experiment = match point.epsilon {
                    None => Some(self.grid.experiment(candidate, &point)?.build()?),
                    Some(_) => match self.protected(&name) {
                        None => None,
                        Some(protected) => Some(Experiment::parse(&name, &protected.file)?),
                    },
                };
                planned.extend(experiment.map(|experiment| (name, experiment)));
            }
            let estimated = self.grid.with_estimates(candidate, self.conditions.channel_error)?;
            planned.extend(estimated.map(|experiment| (with_estimates(candidate.name()), experiment)));
        }
        Ok(planned)
    }

    /// The experiments of all candidates of which at least one round fits into the airtime.
    fn at_airtime(&self, rows: &[Row]) -> Result<BTreeMap<String, Experiment>, SimError> {
        let mut planned = BTreeMap::new();
        for candidate in self.candidates {
            let is_its_own =
                |row: &&Row| row.entry == candidate.name() && row.point == self.conditions.reference;
            let cost = rows.iter().find(is_its_own).and_then(|row| row.cost);
            let rounds = cost.map_or(0, |cost| rounds_at_airtime(&cost, &self.conditions));
            if rounds > 0 {
                let experiment = self.grid.at_airtime(candidate, rounds)?.build()?;
                planned.insert(at_airtime(candidate.name()), experiment);
            }
        }
        Ok(planned)
    }

    fn protected(&self, name: &str) -> Option<&Protected> {
        self.protections.get(name)?.as_ref()
    }

    fn rows(&self, runs: &Runs) -> Vec<Row> {
        let record = |name: &str| runs.get(name).map(|(_, record)| record);
        let row = |candidate: &Candidate, point: Point| {
            let name = Grid::run_name(candidate, &point);
            let is_reference = point == self.conditions.reference;
            let besides = |name: String| record(&name).filter(|_| is_reference);
            let run = RunOfRow {
                entry: candidate.name(),
                point,
                by: self.protected(&name).map(|protected| protected.by.clone()),
                record: record(&name),
                at_airtime: besides(at_airtime(candidate.name())),
                with_estimates: besides(with_estimates(candidate.name())),
            };
            run.row(&self.conditions)
        };
        let points = self.grid.points();
        self.candidates
            .iter()
            .flat_map(|candidate| points.iter().map(move |point| row(candidate, point.clone())))
            .collect()
    }

    /// The longer of the two runs of a scheme at the reference point: that for all rounds, and that for the airtime.
    fn longest_run<'r>(&self, entry: &str, runs: &'r Runs) -> Option<&'r RunRecord> {
        let candidate = self.candidates.iter().find(|candidate| candidate.name() == entry)?;
        let names = [Grid::run_name(candidate, &self.conditions.reference), at_airtime(entry)];
        let records = names.iter().filter_map(|name| runs.get(name)).map(|(_, record)| record);
        records.max_by_key(|record| record.summary.rounds)
    }
}

/// The name of an entry's run for the airtime of the benchmark.
fn at_airtime(entry: &str) -> String {
    format!("{entry}-airtime")
}

/// The name of an entry's run with estimated channels.
fn with_estimates(entry: &str) -> String {
    format!("{entry}-estimates")
}

/// The conditions, which all candidates share.
fn conditions(candidates: &[Candidate], grid: &Grid) -> Result<Conditions, SimError> {
    let reference = grid.reference();
    let Some(candidate) = candidates.first() else {
        let (key, allowed) = ("candidates".to_owned(), "at least one".to_owned());
        return Err(ExperimentError::Value { key, allowed, value: "none".to_owned() }.into());
    };
    let experiment = grid.experiment(candidate, &reference)?.build()?;
    let settings = experiment.settings();
    let snr = Snr::new(reference.snr_db, settings.uplink.radio.snr_convention);
    let snr = snr.map_err(|error| ExperimentError::value("uplink.snr_db", error))?;
    Ok(Conditions {
        trials: settings.trials,
        rounds: settings.rounds,
        parameters: Federation::new(&experiment)?.model().parameters(),
        clip: settings.privacy.clip.unwrap_or(f64::INFINITY),
        delta: settings.privacy.delta,
        epsilon: EPSILON,
        airtime: AIRTIME,
        max_rounds: grid.max_rounds,
        // A pilot of unit power is received with noise in both real dimensions.
        channel_error: 2_f64.sqrt() * snr.symbol_noise_std(1),
        reference,
    })
}
