//! `floras.run`: an experiment goes in, and what `floras run` would have recorded comes out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use floras_sim::{
    Entry, Estimate, Event, Experiment, ExperimentBuilder, Federation, Outcome, PRESETS, RoundMetrics,
    RunDirectory, SimError, SourceError, run_until,
};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use safetensors::SafeTensors;

use crate::convert;
use crate::error::ToPython;
use crate::number::optional;

/// How often a run looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What an experiment begins with: a dictionary, a file, or a preset; the default preset if absent.
pub(crate) fn builder_of(source: Option<&Bound<'_, PyAny>>) -> PyResult<ExperimentBuilder> {
    let Some(source) = source.filter(|source| !source.is_none()) else {
        return ExperimentBuilder::open(None).map_err(no_source);
    };
    if let Ok(dictionary) = source.cast::<PyDict>() {
        return builder_of_dictionary(dictionary);
    }
    if let Ok(name) = source.cast::<PyString>() {
        return ExperimentBuilder::open(Some(name.to_str()?)).map_err(no_source);
    }
    let path = source.extract::<PathBuf>().map_err(|_| {
        let given = convert::type_name(source);
        PyTypeError::new_err(format!(
            "experiment must be a dictionary, a path, or the name of a preset, not {given}"
        ))
    })?;
    ExperimentBuilder::file(&path).map_err(no_source)
}

fn builder_of_dictionary(dictionary: &Bound<'_, PyDict>) -> PyResult<ExperimentBuilder> {
    ExperimentBuilder::from_sections(convert::table("", dictionary)?).map_err(ToPython::to_python)
}

fn no_source(error: SourceError) -> PyErr {
    match &error {
        SourceError::NoSuchExperiment { .. } | SourceError::Experiment(_) => {
            PyValueError::new_err(error.to_string())
        }
        SourceError::NoSuchFile { .. } => PyFileNotFoundError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// A checked experiment of a dictionary, a file, or a preset.
pub(crate) fn experiment_of(source: Option<&Bound<'_, PyAny>>) -> PyResult<Experiment> {
    builder_of(source)?.build().map_err(ToPython::to_python)
}

/// Changes to an experiment's settings, as keywords and as ``{"uplink.snr_db": 10}``.
fn change(
    mut builder: ExperimentBuilder,
    numbers: [(&str, Option<&Bound<'_, PyAny>>); 3],
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<ExperimentBuilder> {
    for (key, value) in settings.into_iter().flatten() {
        let key = key.extract::<String>().map_err(|_| {
            PyTypeError::new_err("the keys of set must be text, as in {\"uplink.snr_db\": 10}")
        })?;
        builder = builder.set_to(&key, convert::value(&key, &value)?).map_err(ToPython::to_python)?;
    }
    for (key, number) in numbers {
        if let Some(number) = number.filter(|number| !number.is_none()) {
            builder = builder.set_to(key, convert::value(key, number)?).map_err(ToPython::to_python)?;
        }
    }
    Ok(builder)
}

/// Every setting of an experiment; see ``floras.experiment``.
#[pyfunction]
#[pyo3(signature = (source = None, *, trials = None, rounds = None, seed = None, set = None))]
pub(crate) fn experiment<'py>(
    py: Python<'py>,
    source: Option<&Bound<'py, PyAny>>,
    trials: Option<&Bound<'py, PyAny>>,
    rounds: Option<&Bound<'py, PyAny>>,
    seed: Option<&Bound<'py, PyAny>>,
    set: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyDict>> {
    let builder = change(builder_of(source)?, [("trials", trials), ("rounds", rounds), ("seed", seed)], set)?;
    convert::settings(py, &builder.build().map_err(ToPython::to_python)?)
}

/// The experiments that are known by name, each with what it is.
#[pyfunction]
pub(crate) fn presets(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let presets = PyDict::new(py);
    for preset in PRESETS {
        presets.set_item(preset.name, preset.summary)?;
    }
    Ok(presets)
}

/// Writes the report of a run directory or a sweep, and returns its path.
#[pyfunction]
pub(crate) fn report(py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
    let report = py.detach(|| floras_report::write(&folder)).map_err(ToPython::to_python)?;
    Ok(report.page)
}

/// Runs an experiment in a directory; see ``floras.run``.
#[pyfunction]
#[pyo3(signature = (experiment, out, *, entry = "new", threads = None, watch = None, with_report = true))]
pub(crate) fn run<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyDict>,
    out: PathBuf,
    entry: &str,
    threads: Option<&Bound<'py, PyAny>>,
    watch: Option<Py<PyAny>>,
    with_report: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let experiment = builder_of_dictionary(experiment)?.build().map_err(ToPython::to_python)?;
    let threads = optional("threads", threads, 1..=1024)?.map(|threads| threads as usize);
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |cores| cores.get()));
    let entry = match entry {
        "resume" => Entry::Resume,
        "either" => Entry::ResumeOrNew,
        "new" => Entry::New,
        other => {
            return Err(PyValueError::new_err(format!("entry must be new, resume or either, not {other}")));
        }
    };
    let work = Work { experiment: &experiment, out: &out, entry, threads, watch };
    let (outcome, order) = work.until_interrupted(py)?;
    if with_report && (outcome.rounds_done > 0 || !out.join("report.html").exists()) {
        report(py, out.clone())?;
    }
    told(py, &experiment, &out, &outcome, &order)
}

/// A run and who watches it.
struct Work<'a> {
    experiment: &'a Experiment,
    out: &'a Path,
    entry: Entry,
    threads: usize,
    watch: Option<Py<PyAny>>,
}

impl Work<'_> {
    /// Runs on a thread of its own, so that this one can look for an interruption from the keyboard.
    fn until_interrupted(&self, py: Python<'_>) -> PyResult<(Outcome, Vec<&'static str>)> {
        let (stop, complaint) = (AtomicBool::new(false), Mutex::new(None));
        let (outcome, interrupted) = thread::scope(|scope| {
            let worker = scope.spawn(|| self.run(&stop, &complaint));
            let mut interrupted = None;
            while !worker.is_finished() {
                py.detach(|| thread::park_timeout(LOOK_EVERY));
                if let Err(error) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    interrupted.get_or_insert(error);
                }
            }
            let outcome = py.detach(|| worker.join());
            (outcome, interrupted)
        });
        if let Some(error) = interrupted.or_else(|| complaint.into_inner().unwrap_or_default()) {
            return Err(error);
        }
        match outcome {
            Ok(outcome) => outcome.map_err(ToPython::to_python),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Runs; returns how it ended, and the names of the model's parts in their order.
    fn run(
        &self,
        stop: &AtomicBool,
        complaint: &Mutex<Option<PyErr>>,
    ) -> Result<(Outcome, Vec<&'static str>), SimError> {
        let federation = Federation::new(self.experiment)?;
        federation.check_memory(self.threads)?;
        let directory = RunDirectory::enter(self.out, self.experiment, self.entry)?;
        let watch = |event| self.tell(event, stop, complaint);
        let outcome = run_until(&federation, &directory, self.threads, &watch, stop)?;
        let order = federation.model().tensors().iter().map(|tensor| tensor.name).collect();
        Ok((outcome, order))
    }

    /// Tells the watcher. What it raises stops the run, and is raised again where the run was called.
    fn tell(&self, event: Event, stop: &AtomicBool, complaint: &Mutex<Option<PyErr>>) {
        let (Some(watch), Event::Round(metrics)) = (&self.watch, event) else { return };
        let told = Python::attach(|py| {
            let metrics = convert::python(py, &metrics)?;
            watch.call1(py, (metrics,))
        });
        if let Err(error) = told {
            stop.store(true, Ordering::Relaxed);
            if let Ok(mut complaint) = complaint.lock() {
                complaint.get_or_insert(error);
            }
        }
    }
}

/// What is told about a run, as Python's values.
fn told<'py>(
    py: Python<'py>,
    experiment: &Experiment,
    out: &Path,
    outcome: &Outcome,
    order: &[&str],
) -> PyResult<Bound<'py, PyDict>> {
    let metrics = py.detach(|| RunDirectory::read_metrics(out)).map_err(ToPython::to_python)?;
    let models = (0..outcome.summary.trials.len() as u32)
        .map(|trial| parameters(py, &RunDirectory::final_parameters(out, trial), order))
        .collect::<PyResult<Vec<_>>>()?;
    let told = PyDict::new(py);
    told.set_item("summary", convert::python(py, &outcome.summary)?)?;
    told.set_item("metrics", columns(py, &metrics)?)?;
    told.set_item("parameters", PyList::new(py, models)?)?;
    told.set_item("experiment", convert::settings(py, experiment)?)?;
    told.set_item("rounds_per_second", outcome.rounds_per_second())?;
    Ok(told)
}

/// The mean of some values, and half the width of its 95% interval if there are several.
#[pyfunction]
pub(crate) fn estimate(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    let estimate = Estimate::of(&values);
    let estimate =
        estimate.ok_or_else(|| PyValueError::new_err("there must be at least one value, not none"))?;
    Ok((estimate.mean, estimate.ci95))
}

/// A column's name, and where its values are.
type Measured = (&'static str, fn(&RoundMetrics) -> Option<f64>);

/// The lines of a run as columns; what was not measured is not a number.
fn columns<'py>(py: Python<'py>, lines: &[RoundMetrics]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let whole = |value: fn(&RoundMetrics) -> u32| -> Vec<i64> {
        lines.iter().map(|line| i64::from(value(line))).collect()
    };
    columns.set_item("trial", PyArray1::from_vec(py, whole(|line| line.trial)))?;
    columns.set_item("round", PyArray1::from_vec(py, whole(|line| line.round)))?;
    let diverged: Vec<bool> = lines.iter().map(|line| line.diverged).collect();
    columns.set_item("diverged", PyArray1::from_vec(py, diverged))?;
    columns.set_item("broken", PyArray1::from_vec(py, whole(|line| line.broken)))?;
    let measured: [Measured; 8] = [
        ("rate", |line| Some(line.rate)),
        ("local_loss", |line| line.local_loss),
        ("train_loss", |line| line.train_loss),
        ("test_loss", |line| line.test_loss),
        ("test_accuracy", |line| line.test_accuracy),
        ("update_norm", |line| line.update_norm),
        ("mean_gain", |line| line.mean_gain),
        ("noise_std", |line| line.noise_std),
    ];
    for (name, value) in measured {
        let values: Vec<f64> = lines.iter().map(|line| value(line).unwrap_or(f64::NAN)).collect();
        columns.set_item(name, PyArray1::from_vec(py, values))?;
    }
    Ok(columns)
}

/// A model as arrays by name, in the order in which the model has them.
fn parameters<'py>(py: Python<'py>, path: &Path, order: &[&str]) -> PyResult<Bound<'py, PyDict>> {
    let damaged = |reason: String| PyOSError::new_err(format!("cannot read {}: {reason}", path.display()));
    let bytes = fs::read(path).map_err(|error| damaged(error.to_string()))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let model = PyDict::new(py);
    for name in order {
        let tensor = tensors.tensor(name).map_err(|error| damaged(error.to_string()))?;
        let (values, _) = tensor.data().as_chunks::<4>();
        let values = values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        model.set_item(name, PyArray1::from_vec(py, values).reshape(tensor.shape().to_vec())?)?;
    }
    Ok(model)
}
