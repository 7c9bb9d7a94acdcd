//! `cargo xtask conventions`: which choice, where the paper is silent, comes nearest to all of its numbers together.
//!
//! Reads the sweep of `experiments/conventions.toml`. A choice is a row of the grid with a number of rounds; its distance
//! is the root of the summed squares of what is between the paper's differences in accuracy and ours, in points.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;
use floras_paper::reproduce::claims;
use floras_sim::SweepTable;
use serde::{Deserialize, Serialize};

use crate::shell;

/// Where the ranking is kept.
pub(crate) const TABLE: &str = "docs/reproduction/conventions.csv";

/// What to rank.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The directory of a finished sweep; it is run if absent, which takes half an hour.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
}

/// One choice of conventions and what comes of it. Differences are in points of test accuracy.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Choice {
    pub(crate) distance: f64,
    pub(crate) scale: String,
    pub(crate) rounds: u32,
    pub(crate) modulation: String,
    pub(crate) power_rule: String,
    pub(crate) admission: String,
    pub(crate) noise: String,
    pub(crate) iid_0_db: f64,
    pub(crate) noniid_0_db: f64,
    pub(crate) iid_15_db: f64,
    pub(crate) noniid_15_db: f64,
    pub(crate) iid_gamma_10: f64,
    pub(crate) noniid_gamma_10: f64,
}

/// The differences that the paper gives numbers for: the better task, the other one, and the paper's number.
pub(crate) fn differences() -> [(&'static str, &'static str, f64); 6] {
    let fig4 = |number: usize| claims::FIG4[number].published_points;
    let fig5 = |number: usize| claims::FIG5[number].published_points;
    [
        ("fig4 IID 0 dB floras", "fig4 IID 0 dB channel-inversion", fig4(0)),
        ("fig4 non-IID 0 dB floras", "fig4 non-IID 0 dB channel-inversion", fig4(1)),
        ("fig4 IID 15 dB floras", "fig4 IID 15 dB channel-inversion", fig4(2)),
        ("fig4 non-IID 15 dB floras", "fig4 non-IID 15 dB channel-inversion", fig4(3)),
        ("fig5 IID γ = 10", "fig5 IID γ = 0", fig5(0)),
        ("fig5 non-IID γ = 10", "fig5 non-IID γ = 0", fig5(1)),
    ]
}

/// Runs the sweep if need be, ranks its choices and writes the table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let directory = match &options.from {
        Some(directory) => directory.clone(),
        None => sweep()?,
    };
    let choices = rank(&directory)?;
    let path = shell::root().join(TABLE);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    let mut out = csv::Writer::from_path(&path)?;
    for choice in &choices {
        out.serialize(choice)?;
    }
    out.flush()?;
    for choice in choices.iter().take(10) {
        println!("{choice:?}");
    }
    println!("{} choices in {TABLE}", choices.len());
    Ok(())
}

/// The choices of a recorded ranking, the nearest first.
pub(crate) fn read() -> Result<Vec<Choice>> {
    let mut table = csv::Reader::from_path(shell::root().join(TABLE)).context(TABLE)?;
    table.deserialize().map(|row| Ok(row?)).collect()
}

fn sweep() -> Result<PathBuf> {
    let directory = shell::root().join("target").join("conventions");
    let program = shell::release_program()?;
    shell::run(
        shell::program(program).args(["sweep", "experiments/conventions.toml", "--out"]).arg(&directory),
    )?;
    Ok(directory)
}

/// Accuracy in hundredths by round, of one task.
type Accuracies = BTreeMap<u32, f64>;

fn rank(directory: &Path) -> Result<Vec<Choice>> {
    let table = SweepTable::read(directory)?;
    let mut tasks: BTreeMap<[String; 5], BTreeMap<String, Accuracies>> = BTreeMap::new();
    let mut runs: BTreeMap<String, Accuracies> = BTreeMap::new();
    for row in &table.rows {
        let values: BTreeMap<&String, &String> = table.keys.iter().zip(&row.values).collect();
        let of = |key: &str| {
            let value = values.get(&key.to_owned());
            value.map(|&value| value.clone()).with_context(|| format!("the sweep has no key {key}"))
        };
        if !runs.contains_key(&row.run) {
            runs.insert(row.run.clone(), accuracies(&directory.join(&row.run))?);
        }
        let keys = ["scale", "uplink.modulation", "uplink.power_rule", "uplink.admission", "uplink.noise"];
        let mut place: [String; 5] = Default::default();
        for (place, key) in place.iter_mut().zip(keys) {
            *place = of(key)?;
        }
        tasks.entry(place).or_default().insert(of("task")?, runs[&row.run].clone());
    }
    let mut choices = Vec::new();
    for (place, tasks) in &tasks {
        let first = tasks.values().next().context("a choice without tasks")?;
        choices.extend(first.keys().filter_map(|&rounds| choice(place, tasks, rounds)));
    }
    ensure!(!choices.is_empty(), "the sweep has no choice for which all tasks are done");
    choices.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    Ok(choices)
}

fn choice(place: &[String; 5], tasks: &BTreeMap<String, Accuracies>, rounds: u32) -> Option<Choice> {
    let accuracy = |task: &str| tasks.get(task)?.get(&rounds).copied();
    let mut ours = [0.0; 6];
    let mut squares = 0.0;
    for (ours, (of, than, published)) in ours.iter_mut().zip(differences()) {
        *ours = accuracy(of)? - accuracy(than)?;
        squares += (*ours - published).powi(2);
    }
    let [scale, modulation, power_rule, admission, noise] = place.clone();
    let rounded = |points: f64| (points * 100.0).round() / 100.0;
    let [iid_0_db, noniid_0_db, iid_15_db, noniid_15_db, iid_gamma_10, noniid_gamma_10] = ours.map(rounded);
    Some(Choice {
        distance: rounded(squares.sqrt()),
        scale,
        rounds,
        modulation,
        power_rule,
        admission,
        noise,
        iid_0_db,
        noniid_0_db,
        iid_15_db,
        noniid_15_db,
        iid_gamma_10,
        noniid_gamma_10,
    })
}

fn accuracies(run: &Path) -> Result<Accuracies> {
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in floras_sim::RunDirectory::read_metrics(run)? {
        if let Some(accuracy) = line.test_accuracy {
            by_round.entry(line.round).or_default().push(100.0 * accuracy);
        }
    }
    let mean = |values: &Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    Ok(by_round.iter().map(|(round, values)| (*round, mean(values))).collect())
}
