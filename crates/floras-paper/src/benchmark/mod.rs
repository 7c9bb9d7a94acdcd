//! A common benchmark: the field's schemes for learning over the air under equal conditions.
//!
//! All candidates train the same model on the same data with the same clients, rounds, steps and clip norm. Every client sends at an
//! expected power of at most 1 in every channel use of its payload, and the receiver's noise is the same in every channel use. Candidates are
//! compared at an equal number of rounds and at equal airtime, without protection and with noise that gives each client the same
//! `ε` after all rounds in the view that its file names; at one point with several `ε`. [`benchmark`] writes `benchmark.json`; each run has a run directory of its own,
//! so that an interrupted benchmark resumes.

mod candidate;
mod grid;
mod panels;
mod protect;
mod rows;
mod speed;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use floras_sim::benchmark::{Benchmark, Conditions, Point, Row};
use floras_sim::{Experiment, ExperimentError, Federation, SimError, VERSION, write_atomically};
use rayon::prelude::*;

use self::grid::{EPSILON, Grid};
use self::protect::Protected;
use self::rows::RunOfRow;
use crate::reproduce::{RunRecord, Stage, Workbench, check_directory, enter};

pub use self::candidate::Candidate;
pub use self::speed::timed_experiments;

/// The airtime of the comparison at equal airtime, in channel uses per parameter.
const AIRTIME: f64 = 1000.0;
/// The largest mean power of the clients over all rounds of a point. Its expectation is at most 1. Inverted channels have powers of
/// standard deviation 1.1, so that the mean of 20 clients in 200 rounds has one of 0.018.
pub const MAX_POWER: f64 = 1.05;
/// File name of the stored protections.
const PROTECTIONS: &str = "benchmark-protections.json";

/// The reading of the results in sentences, from the numbers alone.
pub fn reading(benchmark: &Benchmark) -> Vec<String> {
    words::paragraphs(benchmark)
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
    let runs = bench.run_all(plan.experiments()?)?;
    let conditions = plan.conditions()?;
    let rows = plan.rows(&runs, &conditions);
    check_power(&rows)?;
    let entries = candidates.iter().map(|one| one.entry(conditions.reference.clients)).collect();
    let mut benchmark = Benchmark {
        version: VERSION.to_owned(),
        command: command.to_owned(),
        quick: bench.quick,
        seed: candidates.first().map_or(0, |candidate| candidate.settings().seed),
        conditions,
        entries,
        rows,
        text: Vec::new(),
        panels: Vec::new(),
    };
    benchmark.panels = panels::all(&benchmark, |entry| plan.reference_run(entry, &runs));
    benchmark.text = words::paragraphs(&benchmark);
    let path = bench.directory.join(Benchmark::FILE);
    let mut text = serde_json::to_string(&benchmark).map_err(|error| SimError::encoding(&path, error))?;
    text.push('\n');
    write_atomically(&path, text.as_bytes())?;
    Ok(benchmark)
}

/// An error if clients of an entry exceed the mean power that all others keep.
fn check_power(rows: &[Row]) -> Result<(), SimError> {
    let Some(row) = rows.iter().find(|row| row.cost.is_some_and(|cost| cost.power_mean > MAX_POWER)) else {
        return Ok(());
    };
    let power = row.cost.map_or(0.0, |cost| cost.power_mean);
    let Point { clients, snr_db, partition, .. } = &row.point;
    let allowed = format!(
        "such that {} sends at a mean power of at most 1: it is {power:.2} with {clients} clients at {snr_db} dB ({partition}, {})",
        row.entry,
        row.point.protection()
    );
    let value = "that of its file".to_owned();
    Err(ExperimentError::Value { key: "uplink.power".to_owned(), allowed, value }.into())
}

/// The runs by their names.
type Runs = BTreeMap<String, (Experiment, RunRecord)>;

/// Every candidate at every point, with what protects it.
struct Plan<'a> {
    candidates: &'a [Candidate],
    grid: &'a Grid,
    protections: BTreeMap<String, Option<Protected>>,
}

impl<'a> Plan<'a> {
    /// Calibrates the noise of all private points, or reads that of an earlier call.
    fn new(candidates: &'a [Candidate], grid: &'a Grid, bench: &Workbench<'_>) -> Result<Self, SimError> {
        let mut tasks: BTreeMap<String, (&Candidate, Point, f64)> = BTreeMap::new();
        for candidate in candidates {
            for point in grid.points() {
                if let Some(epsilon) = point.epsilon {
                    tasks.insert(Grid::run_name(candidate, &point), (candidate, point, epsilon));
                }
            }
        }
        let keys: Vec<String> = tasks.keys().cloned().collect();
        let files: Vec<String> = candidates.iter().map(|candidate| candidate.builder().to_toml()).collect();
        let about = format!("floras {VERSION}\n{}", files.join("\n"));
        let protections = bench.recall(PROTECTIONS, about, &keys, || {
            (bench.watch)(Stage::Working("calibrating the noise of every private point"));
            let find = |(key, (candidate, point, epsilon)): (&String, &(&Candidate, Point, f64))| {
                let builder = grid.experiment(candidate, point)?;
                Ok((key.clone(), protect::protect(&builder, candidate.view(), *epsilon)?))
            };
            let pool = rayon::ThreadPoolBuilder::new().num_threads(bench.threads).build()?;
            let tasks: Vec<_> = tasks.iter().collect();
            pool.install(|| tasks.into_par_iter().with_max_len(1).map(find).collect::<Result<_, SimError>>())
        })?;
        Ok(Self { candidates, grid, protections })
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
        }
        Ok(planned)
    }

    fn protected(&self, name: &str) -> Option<&Protected> {
        self.protections.get(name)?.as_ref()
    }

    /// The conditions, which all candidates share.
    fn conditions(&self) -> Result<Conditions, SimError> {
        let reference = self.grid.reference();
        let Some(candidate) = self.candidates.first() else {
            let (key, allowed) = ("candidates".to_owned(), "at least one".to_owned());
            return Err(ExperimentError::Value { key, allowed, value: "none".to_owned() }.into());
        };
        let experiment = self.grid.experiment(candidate, &reference)?.build()?;
        let settings = experiment.settings();
        Ok(Conditions {
            trials: settings.trials,
            rounds: settings.rounds,
            parameters: Federation::new(&experiment)?.model().parameters(),
            clip: settings.privacy.clip.unwrap_or(f64::INFINITY),
            delta: settings.privacy.delta,
            epsilon: EPSILON,
            airtime: AIRTIME,
            reference,
        })
    }

    fn rows(&self, runs: &Runs, conditions: &Conditions) -> Vec<Row> {
        let row = |candidate: &Candidate, point: Point| {
            let name = Grid::run_name(candidate, &point);
            let by = self.protected(&name).map(|protected| protected.by.clone());
            let record = runs.get(&name).map(|(_, record)| record);
            RunOfRow { entry: candidate.name(), point, by, record }.row(conditions)
        };
        let points = self.grid.points();
        self.candidates
            .iter()
            .flat_map(|candidate| points.iter().map(move |point| row(candidate, point.clone())))
            .collect()
    }

    /// The run of an entry at the reference point.
    fn reference_run<'r>(&self, entry: &str, runs: &'r Runs) -> Option<&'r RunRecord> {
        let candidate = self.candidates.iter().find(|candidate| candidate.name() == entry)?;
        runs.get(&Grid::run_name(candidate, &self.grid.reference())).map(|(_, record)| record)
    }
}
