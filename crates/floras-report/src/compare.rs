//! Runs side by side: results, privacy, the settings that differ, and accuracy by round.

use std::path::{Path, PathBuf};

use floras_core::View;
use floras_core::verdict::Verdict;
use floras_sim::figure::{Panel, Style};
use floras_sim::{Finals, PointPrivacy, RecordedRun, SweepTable, create_directory};
use serde::Serialize;

use crate::Kind;
use crate::error::ReportError;
use crate::files::Output;
use crate::run::{curves, trials};

/// Results, privacy and differing settings of several runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The runs, in the given order; a sweep stands for all its points.
    pub runs: Vec<ComparedRun>,
    /// The settings in which at least two runs differ.
    pub settings: Vec<DifferingSetting>,
    /// Test accuracy by round, one curve per run; `None` if no run has recorded any.
    #[serde(skip)]
    pub accuracy: Option<Panel>,
}

/// One run of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The directory's name, or its path where two directories have the same name.
    pub name: String,
    /// Path of the run directory, as given.
    pub directory: PathBuf,
    /// Rounds done so far in a trial.
    pub rounds: u32,
    /// Number of trials of the experiment, at least 1.
    pub trials: u32,
    /// Seed of all random streams of the experiment.
    pub seed: u64,
    /// Whether all trials have ended; if not, there are no results yet.
    pub is_complete: bool,
    /// Means over the trials that finished; `None` if all diverged.
    #[serde(rename = "final")]
    pub finals: Option<Finals>,
    /// Privacy parameter `δ` at which `epsilon` holds, between 0 and 1.
    pub delta: f64,
    /// The view that the experiment quotes: `privacy.view`.
    pub view: View,
    /// `ε` in this view, an upper bound; `None` if there is no finite one.
    pub epsilon: Option<f64>,
    /// No `ε` up to this value is established. Present instead of an `epsilon` that would be too large to be useful.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_above: Option<f64>,
    /// The strength of `epsilon`: strong, moderate, weak, none or not proven; `None` before the run is complete.
    pub verdict: Option<Verdict>,
}

/// A setting in which runs differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferingSetting {
    /// The key with its section.
    pub key: String,
    /// The value of each run as TOML; `None` where the key has no effect.
    pub values: Vec<Option<String>>,
}

/// Compares runs, and the points of sweeps.
///
/// Fails for fewer than two runs, and for directories that hold no run.
pub fn compare(directories: &[PathBuf]) -> Result<Comparison, ReportError> {
    let directories = expanded(directories)?;
    if directories.len() < 2 {
        return Err(ReportError::TooFewRuns { count: directories.len() });
    }
    let runs = directories.iter().map(|path| RecordedRun::read(path)).collect::<Result<Vec<_>, _>>()?;
    let names = names(&directories);
    let rows = runs.iter().zip(&directories).zip(&names);
    Ok(Comparison {
        runs: rows.map(|((run, directory), name)| row(run, directory, name)).collect(),
        settings: differences(&runs),
        accuracy: accuracy(&runs, &names),
    })
}

impl Comparison {
    /// Fails if a directory holds a run, a sweep, a reproduction, a benchmark or an audit, whose own plots [`write`](Self::write) would replace.
    pub fn check_output(directory: &Path) -> Result<(), ReportError> {
        let what = match Kind::of(directory) {
            Ok(Kind::Run) => "a run",
            Ok(Kind::Sweep) => "a sweep",
            Ok(Kind::Reproduction) => "a reproduction",
            Ok(Kind::Benchmark) => "a benchmark",
            Ok(Kind::Audit) => "an audit",
            Err(_) => return Ok(()),
        };
        Err(ReportError::Occupied { directory: directory.to_path_buf(), what })
    }

    /// Writes the plot into `plots/` of a directory, and returns its files; none if no run has recorded any accuracy. A directory
    /// that holds a run or another report is rejected.
    pub fn write(&self, directory: &Path) -> Result<Vec<PathBuf>, ReportError> {
        Self::check_output(directory)?;
        create_directory(directory).map_err(ReportError::Write)?;
        let mut output = Output::new(directory);
        if let Some(panel) = &self.accuracy {
            output.panel(panel)?;
        }
        Ok(output.into_plots())
    }
}

/// The directories of runs; a sweep is replaced by the runs of its points.
fn expanded(directories: &[PathBuf]) -> Result<Vec<PathBuf>, ReportError> {
    let mut runs: Vec<PathBuf> = Vec::new();
    for directory in directories {
        match Kind::of(directory)? {
            Kind::Run => runs.push(directory.clone()),
            Kind::Sweep => {
                for row in SweepTable::read(directory)?.rows {
                    let run = directory.join(row.run);
                    if !runs.contains(&run) {
                        runs.push(run);
                    }
                }
            }
            Kind::Reproduction | Kind::Benchmark | Kind::Audit => {
                return Err(ReportError::NotARun { directory: directory.clone() });
            }
        }
    }
    Ok(runs)
}

/// Names of directories, or their paths where names are the same.
fn names(directories: &[PathBuf]) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let of_path = |path: &PathBuf| {
        let is_unique = directories.iter().filter(|other| name(other) == name(path)).count() == 1;
        name(path).filter(|_| is_unique).unwrap_or_else(|| path.display().to_string())
    };
    directories.iter().map(of_path).collect()
}

fn row(run: &RecordedRun, directory: &Path, name: &str) -> ComparedRun {
    let settings = run.experiment.settings();
    let view = settings.privacy.view;
    let done = run.metrics.iter().map(|line| line.round).max().unwrap_or(0);
    let privacy = run.summary.as_ref().map(|summary| PointPrivacy::new(summary, view));
    ComparedRun {
        name: name.to_owned(),
        directory: directory.to_path_buf(),
        rounds: privacy.map_or(done, |privacy| privacy.rounds_done),
        trials: settings.trials,
        seed: settings.seed,
        is_complete: run.summary.is_some(),
        finals: run.summary.as_ref().and_then(|summary| summary.finals),
        delta: settings.privacy.delta,
        view,
        epsilon: privacy.and_then(|privacy| privacy.epsilon),
        epsilon_above: privacy.and_then(|privacy| privacy.epsilon_above),
        verdict: privacy.map(|privacy| privacy.verdict),
    }
}

/// The settings in which runs differ, in the order of the file. The program's version is not a setting.
fn differences(runs: &[RecordedRun]) -> Vec<DifferingSetting> {
    let entries: Vec<Vec<(String, String)>> = runs.iter().map(|run| run.experiment.entries()).collect();
    let mut keys: Vec<&String> = Vec::new();
    for (key, _) in entries.iter().flatten() {
        if !keys.contains(&key) && key != "version" {
            keys.push(key);
        }
    }
    let value = |entries: &[(String, String)], key: &String| {
        entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
    };
    let settings = keys.into_iter().map(|key| DifferingSetting {
        key: key.clone(),
        values: entries.iter().map(|entries| value(entries, key)).collect(),
    });
    settings.filter(|setting| setting.values.iter().any(|value| *value != setting.values[0])).collect()
}

/// The accuracy of all runs in one panel.
fn accuracy(runs: &[RecordedRun], names: &[String]) -> Option<Panel> {
    let mut joint: Option<Panel> = None;
    for (colour, (run, name)) in runs.iter().zip(names).enumerate() {
        let Some(panel) = curves::accuracy(&run.metrics, &trials(run)) else { continue };
        let joint = joint.get_or_insert_with(|| Panel { curves: Vec::new(), ..panel.clone() });
        for mut curve in panel.curves {
            curve.name.clone_from(name);
            curve.colour = colour;
            // Colours repeat after eight curves.
            curve.style = [Style::Solid, Style::Dashed, Style::Dotted][(colour / 8) % 3];
            joint.curves.push(curve);
        }
    }
    joint
}
