//! The grid of a sweep file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use crate::experiment::{Experiment, ExperimentBuilder, ExperimentError};

/// Maximum number of points of a sweep.
const MAX_POINTS: usize = 10_000;

/// All combinations of the values of one or more keys, as one experiment each.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    name: String,
    axes: Vec<Axis>,
    points: Vec<Point>,
}

/// A key that varies, or a group of named cases, with its values.
#[derive(Clone, Debug, PartialEq)]
struct Axis {
    key: String,
    choices: Vec<Choice>,
}

/// One value of an axis: its label and its settings.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    label: String,
    settings: Vec<(String, Value)>,
}

/// One point of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// The values of the sweep's keys at this point, as TOML, in the order of the keys.
    pub values: Vec<String>,
    /// The experiment of this point.
    pub experiment: Experiment,
    /// Keys that were given and have no effect here.
    pub unused_keys: Vec<String>,
    /// The first point of the same experiment, counted from 0: the one that is run.
    pub run_of: usize,
}

impl Sweep {
    /// Reads and checks a sweep file with all of its experiments.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ExperimentError> {
        Self::from_builder(&ExperimentBuilder::parse(source_name, text)?)
    }

    pub(crate) fn from_builder(builder: &ExperimentBuilder) -> Result<Self, ExperimentError> {
        let mut builder = builder.clone();
        let Some(Value::Table(grid)) = builder.remove("sweep") else {
            return Err(ExperimentError::NotASweep);
        };
        let axes = read_axes("", &grid)?;
        if ["local.epochs", "local.steps"].iter().all(|key| axes.iter().any(|axis| axis.sets(key))) {
            let reason = "a point has either local.epochs or local.steps, so that only one of them can vary";
            return Err(ExperimentError::refused("sweep", reason));
        }
        check_conflicts(&axes)?;
        if axes.iter().any(|axis| axis.sets("name")) {
            return Err(ExperimentError::refused(
                "name",
                "it cannot vary; all points of a sweep have one name",
            ));
        }
        let points = axes.iter().try_fold(1_usize, |points, axis| points.checked_mul(axis.choices.len()));
        match points {
            Some(1..=MAX_POINTS) if !axes.is_empty() => {}
            _ => {
                let reason = format!("a sweep must have between 1 and {MAX_POINTS} points");
                return Err(ExperimentError::refused("sweep", reason));
            }
        }
        let mut sweep = Self { name: String::new(), axes, points: Vec::new() };
        sweep.points = sweep
            .combinations()
            .enumerate()
            .map(|(number, choices)| {
                let values: Vec<String> = choices.iter().map(|choice| choice.label.clone()).collect();
                let wrong = |error| ExperimentError::Point {
                    point: sweep.describe_values(number, &values),
                    error: Box::new(error),
                };
                let (experiment, unused_keys) = experiment(&builder, &choices).map_err(wrong)?;
                Ok(Point { values, experiment, unused_keys, run_of: 0 })
            })
            .collect::<Result<_, _>>()?;
        let mut first_with: HashMap<String, usize> = HashMap::new();
        for (number, point) in sweep.points.iter_mut().enumerate() {
            point.run_of = *first_with.entry(point.experiment.to_toml()).or_insert(number);
        }
        sweep.name = sweep.points[0].experiment.settings().name.clone();
        Ok(sweep)
    }

    /// The name of the experiment that is varied.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The keys that vary.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.key.as_str())
    }

    /// Whether a key of the experiment varies, alone or as part of a case.
    pub fn varies(&self, key: &str) -> bool {
        self.axes.iter().any(|axis| axis.sets(key))
    }

    /// A point, counted from 0, in words: `point 3 of 9 (uplink.snr_db = 0, uplink.receiver = mmse)`.
    pub fn describe(&self, number: usize) -> String {
        self.describe_values(number, &self.points[number].values)
    }

    fn describe_values(&self, number: usize, values: &[String]) -> String {
        let pairs = self.keys().zip(values).map(|(key, value)| format!("{key} = {value}"));
        let pairs: Vec<String> = pairs.collect();
        format!("point {} of {} ({})", number + 1, self.size(), pairs.join(", "))
    }

    fn size(&self) -> usize {
        self.axes.iter().map(|axis| axis.choices.len()).product()
    }

    /// All points, the last key varying fastest.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The points that are run, counted from 0: one for every experiment.
    pub fn runs(&self) -> impl Iterator<Item = usize> {
        let points = self.points.iter().enumerate();
        points.filter(|(number, point)| point.run_of == *number).map(|(number, _)| number)
    }

    /// The default directory of all runs.
    pub fn default_directory(&self) -> PathBuf {
        Path::new("runs").join(format!("{}-sweep", self.name))
    }

    /// The name of the run directory of a point; points count from 0.
    pub fn directory_name(point: usize) -> String {
        format!("point-{:03}", point + 1)
    }

    fn combinations(&self) -> impl Iterator<Item = Vec<&Choice>> {
        (0..self.size()).map(|mut index| {
            let mut chosen = Vec::new();
            for axis in self.axes.iter().rev() {
                chosen.push(&axis.choices[index % axis.choices.len()]);
                index /= axis.choices.len();
            }
            chosen.reverse();
            chosen
        })
    }
}

impl Point {
    /// Notes for the user about the point, before it runs.
    pub fn notes(&self) -> Vec<String> {
        let unused = self.unused_keys.join(", ");
        let note = || format!("without effect under the other settings: {unused}");
        (!unused.is_empty()).then(note).into_iter().collect()
    }
}

impl Axis {
    fn sets(&self, key: &str) -> bool {
        self.choices.iter().any(|choice| choice.settings.iter().any(|(set, _)| set == key))
    }
}

/// The experiment of a point, and the keys that have no effect there.
fn experiment(
    builder: &ExperimentBuilder,
    choices: &[&Choice],
) -> Result<(Experiment, Vec<String>), ExperimentError> {
    let mut builder = builder.clone();
    for (key, value) in choices.iter().flat_map(|choice| &choice.settings) {
        builder = builder.set_value(key, value.clone())?;
    }
    let experiment = builder.build()?;
    let unused_keys = builder.unused_keys(&experiment);
    Ok((experiment, unused_keys))
}

/// Checks that no two axes set the same key.
fn check_conflicts(axes: &[Axis]) -> Result<(), ExperimentError> {
    for (number, axis) in axes.iter().enumerate() {
        let keys = axis.choices.iter().flat_map(|choice| choice.settings.iter().map(|(key, _)| key));
        for key in keys {
            if let Some(other) = axes[..number].iter().find(|other| other.sets(key)) {
                let reason = format!("both sweep.{} and sweep.{} set it", other.key, axis.key);
                return Err(ExperimentError::refused(key, reason));
            }
        }
    }
    Ok(())
}

/// Text without its quotes, everything else as TOML; very large and very small numbers with a power of ten, as in `1e6`.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Float(number) if *number != 0.0 && !(1e-4..1e5).contains(&number.abs()) => {
            format!("{number:e}")
        }
        other => other.to_string(),
    }
}

/// Reads the axes. A key with a section, as in `uplink.sequences = […]`, is a table within a table.
fn read_axes(prefix: &str, grid: &Table) -> Result<Vec<Axis>, ExperimentError> {
    let mut axes = Vec::new();
    for (name, value) in grid {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            Value::Array(cases) if !key.contains('.') && cases.iter().any(Value::is_table) => {
                axes.push(read_cases(key, cases)?);
            }
            Value::Table(inner) => axes.extend(read_axes(&key, inner)?),
            Value::Array(values) if !values.is_empty() => {
                let choice = |value: &Value| Choice {
                    label: plain(value),
                    settings: vec![(key.clone(), value.clone())],
                };
                axes.push(Axis { choices: values.iter().map(choice).collect(), key });
            }
            other => {
                return Err(ExperimentError::Value {
                    key: format!("sweep.{key}"),
                    allowed: "a list of values, as in [1, 2, 3]".to_owned(),
                    value: other.to_string(),
                });
            }
        }
    }
    Ok(axes)
}

fn read_cases(key: String, cases: &[Value]) -> Result<Axis, ExperimentError> {
    let mut choices: Vec<Choice> = Vec::new();
    for case in cases {
        let wrong = |reason: &str| ExperimentError::refused(&format!("sweep.{key}"), reason);
        let table =
            case.as_table().ok_or_else(|| wrong("every case must be a table of settings with a name"))?;
        let label = table.get("name").and_then(Value::as_str);
        let label = label.ok_or_else(|| wrong("every case needs a name"))?.to_owned();
        if choices.iter().any(|choice| choice.label == label) {
            return Err(wrong(&format!("two cases are called \"{label}\"")));
        }
        let mut settings = Vec::new();
        for (name, value) in table.iter().filter(|(name, _)| *name != "name") {
            match value {
                Value::Table(section) => {
                    let inner = section.iter().map(|(key, value)| (format!("{name}.{key}"), value.clone()));
                    settings.extend(inner);
                }
                plain => settings.push((name.clone(), plain.clone())),
            }
        }
        choices.push(Choice { label, settings });
    }
    Ok(Axis { key, choices })
}
