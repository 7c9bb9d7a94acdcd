//! `cargo xtask conventions`: which choice, where the paper is silent, comes nearest to all of its numbers together.
//!
//! The paper leaves open what `E = 1` counts, `C`, `B`, `T`, what SNR refers to, and how channel inversion sets its power.
//! A [`Convention`] is one reading of all of them. Its distance is the root of the summed squares of the differences between the
//! paper's six numbers and ours, in points of test accuracy. The search has three steps, all on the seed [`CHOICE_SEED`]:
//!
//! 1. a grid over the readings that matter most, few trials each;
//! 2. around the nearest: other values of `C` and `B`, and every other reading changed alone;
//! 3. the nearest again with more trials.
//!
//! Steps 2 and 3 take the nearest with channel inversion truncated to `B`, and the nearest with channel inversion not truncated, which
//! is what the paper's text states.
//!
//! Figures 4 and 5 take the nearest of the last step with at least [`MIN_ROUNDS`] rounds for both partitions ([`chosen`]). The verdicts
//! in the chapter do not come from this search: `floras reproduce` runs the chosen setting on another seed. Other settings that were
//! run on seeds of their own are in [`crate::confirmations`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use clap::Args;
use floras_paper::reproduce::claims;
use floras_sim::{Experiment, ExperimentBuilder, Federation, Status, Trial};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::shell;

/// Where the ranking is kept.
pub(crate) const TABLE: &str = "docs/reproduction/conventions.csv";
/// The seed of every run of the search. No figure uses it.
pub(crate) const CHOICE_SEED: u64 = 1;
/// Trials of the first two steps, and of the last one.
const FEW_TRIALS: u16 = 2;
const MORE_TRIALS: u16 = 6;
/// How many of the nearest go into the second and into the third step, with channel inversion truncated and not truncated.
const REFINED: [usize; 2] = [4, 4];
const FINALISTS: [usize; 2] = [8, 4];
/// Rounds that the setting of the figures must have at least: the paper speaks of convergence.
pub(crate) const MIN_ROUNDS: u32 = 100;
/// Parameters of the model: 400 weights and a bias for each of ten digits.
const PARAMETERS: f64 = 4010.0;
/// Rounds between two readings of the accuracy.
const READ_EVERY: u32 = 10;

/// What to search.
#[derive(Debug, Args)]
pub(crate) struct Options {}

/// One reading of what the paper leaves open.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Convention {
    /// What a client does in a round (`E = 1`): `step` or `epoch`.
    pub(crate) work: String,
    /// `ρ = C/√d`: the longest update has the power `ρ²` in each symbol.
    pub(crate) rho: f64,
    /// `B/ρ`; `C/ρ` is 63.3.
    pub(crate) bound: f64,
    /// What SNR refers to: `unit` power, or the `actual` power `ρ²`.
    pub(crate) snr: String,
    /// Whether channel inversion is truncated to `B`, too.
    pub(crate) inversion_truncated: bool,
    pub(crate) length: u32,
    pub(crate) modulation: String,
    pub(crate) power_rule: String,
    pub(crate) admission: String,
    pub(crate) noise: String,
}

/// A convention with the rounds at which both partitions are read, and what comes of it in points of test accuracy.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Choice {
    /// From all six numbers.
    pub(crate) distance: f64,
    /// Which step of the search it is from.
    pub(crate) step: u8,
    pub(crate) trials: u16,
    pub(crate) work: String,
    pub(crate) rho: f64,
    pub(crate) bound: f64,
    pub(crate) snr: String,
    pub(crate) inversion_truncated: bool,
    pub(crate) length: u32,
    pub(crate) modulation: String,
    pub(crate) power_rule: String,
    pub(crate) admission: String,
    pub(crate) noise: String,
    /// `T` of the IID and of the non-IID partition.
    pub(crate) rounds_iid: u32,
    pub(crate) rounds_noniid: u32,
    pub(crate) iid_0_db: f64,
    pub(crate) noniid_0_db: f64,
    pub(crate) iid_15_db: f64,
    pub(crate) noniid_15_db: f64,
    pub(crate) iid_gamma_10: f64,
    pub(crate) noniid_gamma_10: f64,
}

/// A curve of figure 4 or 5: `(scheme, SNR in dB, sequences, batch)`.
pub(crate) type Task = (&'static str, f64, u32, u32);

/// The differences for which the paper states numbers: the partition, the better curve, the other one, and the paper's number.
pub(crate) fn differences() -> [(&'static str, Task, Task, f64); 6] {
    let fig4 = |number: usize| claims::FIG4[number].published;
    let fig5 = |number: usize| claims::FIG5[number].published;
    let floras = |snr_db| ("floras", snr_db, 20, 50);
    let inversion = |snr_db| ("channel-inversion", snr_db, 20, 50);
    let unused = |gamma: u32| ("floras", 20.0, 20 + gamma, 20);
    [
        ("iid", floras(0.0), inversion(0.0), fig4(0)),
        ("one-label", floras(0.0), inversion(0.0), fig4(1)),
        ("iid", floras(15.0), inversion(15.0), fig4(2)),
        ("one-label", floras(15.0), inversion(15.0), fig4(3)),
        ("iid", unused(10), unused(0), fig5(0)),
        ("one-label", unused(10), unused(0), fig5(1)),
    ]
}

/// Searches, and writes the table.
pub(crate) fn run(_: &Options) -> Result<()> {
    let search = Search::open()?;
    let mut found = search.measure(1, &grid(), FEW_TRIALS)?;
    let around: Vec<Convention> = nearest_of_both(&found, REFINED).iter().flat_map(around).collect();
    found.extend(search.measure(2, &around, FEW_TRIALS)?);
    let finalists = nearest_of_both(&found, FINALISTS);
    found.extend(search.measure(3, &finalists, MORE_TRIALS)?);
    sort(&mut found);
    let path = shell::root().join(TABLE);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let mut out = csv::Writer::from_path(&path)?;
    for choice in &found {
        out.serialize(choice)?;
    }
    out.flush()?;
    for choice in found.iter().filter(|choice| choice.step == 3) {
        println!("{choice:?}");
    }
    println!("{} choices in {TABLE}", found.len());
    Ok(())
}

/// The choices of a recorded search: those of the last step first, the nearest first.
pub(crate) fn read() -> Result<Vec<Choice>> {
    let mut table = csv::Reader::from_path(shell::root().join(TABLE)).context(TABLE)?;
    table.deserialize().map(|row| Ok(row?)).collect()
}

/// The setting of figures 4 and 5: the nearest of the last step with enough rounds.
pub(crate) fn chosen(choices: &[Choice]) -> Option<&Choice> {
    let enough = |choice: &&Choice| choice.rounds_iid.min(choice.rounds_noniid) >= MIN_ROUNDS;
    let last = choices.iter().filter(|choice| choice.step == 3).filter(enough);
    last.min_by(|a, b| a.distance.total_cmp(&b.distance))
}

fn sort(choices: &mut [Choice]) {
    choices.sort_by(|a, b| b.step.cmp(&a.step).then(a.distance.total_cmp(&b.distance)));
}

/// A reading with the usual values for all other choices.
pub(crate) fn convention(
    work: &str,
    rho: f64,
    bound: f64,
    snr: &str,
    inversion_truncated: bool,
) -> Convention {
    Convention {
        work: work.to_owned(),
        rho,
        bound,
        snr: snr.to_owned(),
        inversion_truncated,
        length: 32,
        modulation: "real".to_owned(),
        power_rule: "fixed-at-threshold".to_owned(),
        admission: "amplitude=0.01".to_owned(),
        noise: "per-symbol".to_owned(),
    }
}

/// The first step.
fn grid() -> Vec<Convention> {
    let mut grid = Vec::new();
    for work in ["step", "epoch"] {
        for rho in [0.3, 0.5, 0.7, 1.0] {
            for bound in [20.0, 30.0, 40.0, 60.0, 120.0, 633.0] {
                // At ρ = 1 the two are the same.
                let references: &[&str] = if rho == 1.0 { &["unit"] } else { &["unit", "actual"] };
                for snr in references {
                    for inversion_truncated in [true, false] {
                        grid.push(convention(work, rho, bound, snr, inversion_truncated));
                    }
                }
            }
        }
    }
    grid
}

/// The second step: what differs from a convention in one reading.
fn around(centre: &Convention) -> Vec<Convention> {
    let mut all = Vec::new();
    let mut with = |change: &dyn Fn(&mut Convention)| {
        let mut convention = centre.clone();
        change(&mut convention);
        all.push(convention);
    };
    for factor in [0.8, 1.25] {
        with(&|it| it.rho = rounded(it.rho * factor));
        with(&|it| it.bound = rounded(it.bound * factor));
    }
    with(&|it| it.length = 64);
    with(&|it| it.modulation = "phase-corrected".to_owned());
    with(&|it| it.power_rule = "worst-admitted".to_owned());
    with(&|it| it.admission = "power=0.01".to_owned());
    with(&|it| it.noise = "same-bandwidth".to_owned());
    all
}

/// The conventions nearest to the paper: given numbers of them with channel inversion truncated and not truncated.
fn nearest_of_both(found: &[Choice], [truncated, not_truncated]: [usize; 2]) -> Vec<Convention> {
    let mut both = nearest(found, true, truncated);
    both.extend(nearest(found, false, not_truncated));
    both
}

fn nearest(found: &[Choice], truncated: bool, count: usize) -> Vec<Convention> {
    let mut sorted: Vec<&Choice> =
        found.iter().filter(|choice| choice.inversion_truncated == truncated).collect();
    sorted.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    let mut nearest = Vec::new();
    for choice in sorted {
        let convention = choice.convention();
        if nearest.len() < count && !nearest.contains(&convention) {
            nearest.push(convention);
        }
    }
    nearest
}

impl Choice {
    pub(crate) fn convention(&self) -> Convention {
        Convention {
            work: self.work.clone(),
            rho: self.rho,
            bound: self.bound,
            snr: self.snr.clone(),
            inversion_truncated: self.inversion_truncated,
            length: self.length,
            modulation: self.modulation.clone(),
            power_rule: self.power_rule.clone(),
            admission: self.admission.clone(),
            noise: self.noise.clone(),
        }
    }
}

impl Convention {
    /// The experiment of a curve in the search.
    fn experiment(&self, partition: &str, task: Task) -> Result<Experiment> {
        let rounds = if self.work == "step" { 600 } else { 400 };
        self.experiment_of(partition, task, CHOICE_SEED, rounds)
    }

    /// The experiment of a curve.
    pub(crate) fn experiment_of(
        &self,
        partition: &str,
        task: Task,
        seed: u64,
        rounds: u32,
    ) -> Result<Experiment> {
        let (scheme, snr_db, sequences, batch) = task;
        let rate = if partition == "iid" { 0.005 } else { 0.001 };
        let offset = if self.snr == "actual" { -20.0 * self.rho.log10() } else { 0.0 };
        let truncated = scheme == "floras" || self.inversion_truncated;
        let mut builder = ExperimentBuilder::preset("fig4-floras")?
            .seed(seed)
            .rounds(rounds)
            .set("data.partition", partition)?
            .set_to("local.rate", rate)?
            .set_to("local.batch", batch)?
            .set(if self.work == "step" { "local.steps" } else { "local.epochs" }, "1")?
            .set("uplink.scheme", scheme)?
            .set_to("uplink.sequences", sequences)?
            .set_to("uplink.length", self.length)?
            .set_to("uplink.snr_db", snr_db + offset)?
            .set_to("privacy.clip", self.rho * PARAMETERS.sqrt())?
            .set("uplink.modulation", &self.modulation)?
            .set_to("record.test_every", READ_EVERY)?
            .set_to("record.train_every", rounds)?;
        builder = match truncated {
            true => builder.set_to("uplink.truncate", self.bound * self.rho)?,
            false => builder.set("uplink.truncate", "none")?,
        };
        if scheme != "floras" {
            builder = builder
                .set("uplink.power_rule", &self.power_rule)?
                .set("uplink.admission", &self.admission)?
                .set("uplink.noise", &self.noise)?;
        }
        Ok(builder.build()?)
    }

    fn read(
        &self,
        step: u8,
        trials: u16,
        rounds: [u32; 2],
        accuracy: impl Fn(&str, Task) -> Option<f64>,
    ) -> Option<Choice> {
        let mut ours = [0.0; 6];
        let mut squares = 0.0;
        for (ours, (partition, of, than, published)) in ours.iter_mut().zip(differences()) {
            *ours = accuracy(partition, of)? - accuracy(partition, than)?;
            squares += (*ours - published).powi(2);
        }
        let [iid_0_db, noniid_0_db, iid_15_db, noniid_15_db, iid_gamma_10, noniid_gamma_10] =
            ours.map(rounded);
        let Self { work, rho, bound, snr, inversion_truncated, length, .. } = self.clone();
        let Self { modulation, power_rule, admission, noise, .. } = self.clone();
        Some(Choice {
            distance: rounded(squares.sqrt()),
            step,
            trials,
            work,
            rho,
            bound,
            snr,
            inversion_truncated,
            length,
            modulation,
            power_rule,
            admission,
            noise,
            rounds_iid: rounds[0],
            rounds_noniid: rounds[1],
            iid_0_db,
            noniid_0_db,
            iid_15_db,
            noniid_15_db,
            iid_gamma_10,
            noniid_gamma_10,
        })
    }
}

fn rounded(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The mean accuracy in hundredths by round, smoothed over three readings.
type Accuracies = BTreeMap<u32, f64>;

/// The runs of a search. A file keeps what is done, so that an interrupted search can be resumed.
struct Search {
    done: Mutex<(BTreeMap<String, Accuracies>, fs::File)>,
}

#[derive(Deserialize, Serialize)]
struct Line {
    run: String,
    accuracies: Accuracies,
}

impl Search {
    fn open() -> Result<Self> {
        let directory = shell::root().join("target").join("conventions");
        fs::create_dir_all(&directory)?;
        let path = directory.join("runs.jsonl");
        let text = fs::read_to_string(&path).unwrap_or_default();
        // A line that was cut short is run again.
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let done = lines.map(|line| (line.run, line.accuracies)).collect();
        let mut file = OpenOptions::new().append(true).create(true).open(&path)?;
        file.write_all(b"\n")?;
        Ok(Self { done: Mutex::new((done, file)) })
    }

    /// Runs what is missing for some conventions, and reads each at its best common round, and at its best pair of rounds.
    fn measure(&self, step: u8, conventions: &[Convention], trials: u16) -> Result<Vec<Choice>> {
        let mut experiments = BTreeMap::new();
        for convention in conventions {
            for (partition, of, than, _) in differences() {
                for task in [of, than] {
                    let experiment = convention.experiment(partition, task)?;
                    experiments.insert(name(&experiment, trials), experiment);
                }
            }
        }
        let missing: BTreeSet<&String> = {
            let done = self.done.lock().expect("no run panics while it holds the lock");
            experiments.keys().filter(|run| !done.0.contains_key(*run)).collect()
        };
        println!("step {step}: {} conventions, {} runs to do", conventions.len(), missing.len());
        let finished = Mutex::new(0);
        missing.par_iter().try_for_each(|&run| -> Result<()> {
            let accuracies = accuracies(&experiments[run], trials)?;
            let mut done = self.done.lock().expect("no run panics while it holds the lock");
            let line = Line { run: run.clone(), accuracies };
            writeln!(done.1, "{}", serde_json::to_string(&line)?)?;
            done.0.insert(line.run, line.accuracies);
            let mut finished = finished.lock().expect("no run panics while it holds the lock");
            *finished += 1;
            if *finished % 50 == 0 {
                println!("{finished} of {}", missing.len());
            }
            Ok(())
        })?;
        let done = self.done.lock().expect("no run panics while it holds the lock");
        let mut choices = Vec::new();
        for convention in conventions {
            let mut tasks: BTreeMap<String, &Accuracies> = BTreeMap::new();
            for (partition, of, than, _) in differences() {
                for task in [of, than] {
                    let run = name(&convention.experiment(partition, task)?, trials);
                    tasks.insert(format!("{partition} {task:?}"), &done.0[&run]);
                }
            }
            let rounds: Vec<u32> = tasks.values().next().context("no task")?.keys().copied().collect();
            let read = |pair: [u32; 2]| {
                convention.read(step, trials, pair, |partition, task| {
                    let round = pair[usize::from(partition != "iid")];
                    tasks[&format!("{partition} {task:?}")].get(&round).copied()
                })
            };
            let best = |pairs: Vec<[u32; 2]>| {
                let all = pairs.into_iter().filter_map(read);
                all.min_by(|a, b| a.distance.total_cmp(&b.distance))
            };
            choices.extend(best(rounds.iter().map(|&round| [round; 2]).collect()));
            // The two partitions do not enter the same number, so that each has its own best round.
            let first = rounds.first().copied().unwrap_or(READ_EVERY);
            let iid = best_round(&rounds, |round| read([round, first]), 0);
            let noniid = best_round(&rounds, |round| read([first, round]), 1);
            if iid != noniid {
                choices.extend(read([iid, noniid]));
            }
        }
        ensure!(!choices.is_empty(), "no convention has all of its runs");
        sort(&mut choices);
        Ok(choices)
    }
}

/// The round at which one partition's three numbers are nearest to the paper's.
fn best_round(rounds: &[u32], read: impl Fn(u32) -> Option<Choice>, partition: usize) -> u32 {
    let published = differences().map(|(.., published)| published);
    let distance = |choice: &Choice| -> f64 {
        let ours = choice.points();
        (0..6).filter(|number| number % 2 == partition).map(|at| (ours[at] - published[at]).powi(2)).sum()
    };
    let all = rounds.iter().filter_map(|&round| Some((round, distance(&read(round)?))));
    all.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(READ_EVERY, |(round, _)| round)
}

impl Choice {
    /// Our six numbers, in the order of [`differences`].
    pub(crate) fn points(&self) -> [f64; 6] {
        [
            self.iid_0_db,
            self.noniid_0_db,
            self.iid_15_db,
            self.noniid_15_db,
            self.iid_gamma_10,
            self.noniid_gamma_10,
        ]
    }
}

fn name(experiment: &Experiment, trials: u16) -> String {
    format!("{trials} trials\n{}", experiment.to_toml())
}

fn accuracies(experiment: &Experiment, trials: u16) -> Result<Accuracies> {
    let federation = Federation::new(experiment)?;
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for number in 0..trials {
        let mut trial = Trial::begin(&federation, number)?;
        while trial.status() == Status::Running {
            let metrics = trial.step()?.metrics;
            if let Some(accuracy) = metrics.test_accuracy {
                by_round.entry(metrics.round).or_default().push(100.0 * accuracy);
            }
        }
    }
    let means: Vec<(u32, f64)> = by_round
        .iter()
        .filter(|(_, values)| values.len() == usize::from(trials))
        .map(|(round, values)| (*round, values.iter().sum::<f64>() / values.len() as f64))
        .collect();
    let smooth =
        |window: &[(u32, f64)]| (window[1].0, window.iter().map(|(_, mean)| mean).sum::<f64>() / 3.0);
    Ok(means.windows(3).map(smooth).collect())
}
