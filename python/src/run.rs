//! `floras.run`: runs an experiment and returns its results.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use floras_sim::{
    Entry, Estimate, Event, Experiment, ExperimentBuilder, Federation, Outcome, PRESETS, PreparedRun,
    RoundMetrics, RunDirectory, SimError, SourceError, number,
};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::{PyFileNotFoundError, PyOSError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};
use safetensors::SafeTensors;
use serde_json::{Map, Value as Json};

use crate::convert;
use crate::data::OwnArrays;
use crate::error::ToPython;
use crate::number::optional;
use crate::observer::Observer;

/// The source of an experiment: a dictionary, a file, or a preset; the default preset if absent.
pub(crate) fn builder_of(source: Option<&Bound<'_, PyAny>>) -> PyResult<ExperimentBuilder> {
    let Some(source) = source.filter(|source| !source.is_none()) else {
        return ExperimentBuilder::open(None).map_err(no_source);
    };
    if let Some(dictionary) = convert::dictionary_of(source)? {
        return builder_of_dictionary(&dictionary);
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

pub(crate) fn builder_of_dictionary(dictionary: &Bound<'_, PyDict>) -> PyResult<ExperimentBuilder> {
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
pub(crate) fn change(
    mut builder: ExperimentBuilder,
    numbers: [(&str, Option<&Bound<'_, PyAny>>); 3],
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<ExperimentBuilder> {
    for (key, value) in settings.into_iter().flatten() {
        let key = key.extract::<String>().map_err(|_| {
            PyTypeError::new_err("the keys of settings must be text, as in {\"uplink.snr_db\": 10}")
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

/// Every setting of an experiment; see ``floras.experiment``. With ``warn``, the program's notes become warnings of the caller's
/// caller.
#[pyfunction]
#[pyo3(signature = (source = None, *, trials = None, rounds = None, seed = None, settings = None, warn = false))]
pub(crate) fn experiment<'py>(
    py: Python<'py>,
    source: Option<&Bound<'py, PyAny>>,
    trials: Option<&Bound<'py, PyAny>>,
    rounds: Option<&Bound<'py, PyAny>>,
    seed: Option<&Bound<'py, PyAny>>,
    settings: Option<&Bound<'py, PyDict>>,
    warn: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let builder =
        change(builder_of(source)?, [("trials", trials), ("rounds", rounds), ("seed", seed)], settings)?;
    let experiment = builder.build().map_err(ToPython::to_python)?;
    if warn {
        warn_of(py, builder.notes(&experiment), 2)?;
    }
    convert::settings(py, &experiment)
}

/// Issues notes as warnings, `levels` Python functions up.
fn warn_of(py: Python<'_>, notes: Vec<String>, levels: i32) -> PyResult<()> {
    let category = py.get_type::<PyUserWarning>();
    notes.into_iter().try_for_each(|note| PyErr::warn(py, &category, &CString::new(note)?, levels))
}

/// Returns the presets, each with its description.
///
/// Returns
/// -------
/// dict of str to str
///     Descriptions by name.
///
/// Examples
/// --------
/// >>> "private" in floras.presets()
/// True
#[pyfunction]
pub(crate) fn presets(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let presets = PyDict::new(py);
    for preset in PRESETS {
        presets.set_item(preset.name, preset.summary)?;
    }
    Ok(presets)
}

/// Writes the report of a run directory or a sweep and returns its path. An existing report is kept unless ``is_new``.
#[pyfunction]
#[pyo3(signature = (directory, is_new = true))]
pub(crate) fn report(py: Python<'_>, directory: PathBuf, is_new: bool) -> PyResult<PathBuf> {
    py.detach(|| floras_report::page(&directory, is_new)).map_err(ToPython::to_python)
}

/// The given number of threads, or one per core.
pub(crate) fn threads_or_all_cores(threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let threads = optional("threads", threads, 1..=1024)?.map(|threads| threads as usize);
    Ok(threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, |cores| cores.get())))
}

/// Checks a number of threads.
#[pyfunction]
#[pyo3(signature = (threads = None))]
pub(crate) fn check_threads(threads: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    optional("threads", threads, 1..=1024).map(|_| ())
}

/// A mean and half the width of its 95% interval as a percentage, as tables of the program print it.
#[pyfunction]
pub(crate) fn percentage(mean: f64, ci95: Option<f64>) -> String {
    number::percentage(Estimate { mean, ci95 })
}

/// A mean and half the width of its 95% interval, as tables of the program print it.
#[pyfunction]
pub(crate) fn estimate_text(mean: f64, ci95: Option<f64>) -> String {
    number::estimate(Estimate { mean, ci95 })
}

/// Runs an experiment in a directory; see ``floras.run``.
#[pyfunction]
#[pyo3(signature = (experiment, out, *, entry = "new", threads = None, watch = None, with_report = true, data = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of a Python function")]
pub(crate) fn run<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyDict>,
    out: PathBuf,
    entry: &str,
    threads: Option<&Bound<'py, PyAny>>,
    watch: Option<Py<PyAny>>,
    with_report: bool,
    data: Option<Py<OwnArrays>>,
) -> PyResult<Bound<'py, PyDict>> {
    let experiment = builder_of_dictionary(experiment)?.build().map_err(ToPython::to_python)?;
    let threads = threads_or_all_cores(threads)?;
    let entry = match entry {
        "resume" => Entry::Resume,
        "new" => Entry::New,
        other => return Err(PyValueError::new_err(format!("entry must be new or resume, not {other}"))),
    };
    let run = py.detach(|| {
        let federation = match &data {
            Some(arrays) => Federation::with_data(&experiment, arrays.get().data.clone())?,
            None => Federation::new(&experiment)?,
        };
        PreparedRun::of(federation, &out, entry, threads)
    });
    let run = run.map_err(|error| match &error {
        SimError::AlreadyARun { .. } => PyValueError::new_err(format!(
            "{error}: give another out, or resume=True to resume an interrupted run"
        )),
        _ => error.to_python(),
    })?;
    // Called by work, run_in and run in results.py.
    warn_of(py, run.notes(), 4)?;
    let outcome = Observer::new(watch).observe(py, |observer| {
        let watch = |event| {
            if let Event::Round(metrics) = event {
                observer.notify(&complete(&metrics));
            }
        };
        run.run(&watch, observer.stop())
    })?;
    if with_report {
        report(py, out.clone(), outcome.rounds_done > 0)?;
    }
    let order = run.federation().model().tensors();
    let order: Vec<&str> = order.iter().map(|tensor| tensor.name.as_str()).collect();
    results(py, &experiment, &out, &outcome, &order)
}

/// The results of a run as Python values.
fn results<'py>(
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
    let results = PyDict::new(py);
    results.set_item("summary", convert::python(py, &outcome.summary)?)?;
    results.set_item("metrics", columns(py, &metrics)?)?;
    results.set_item("parameters", PyList::new(py, models)?)?;
    results.set_item("experiment", convert::settings(py, experiment)?)?;
    results.set_item("rounds_per_second", outcome.rounds_per_second())?;
    Ok(results)
}

/// Returns the mean of values, and half the width of its 95% interval if there are several.
#[pyfunction]
pub(crate) fn estimate(values: Vec<f64>) -> PyResult<(f64, Option<f64>)> {
    let estimate = Estimate::of(&values);
    let estimate = estimate.ok_or_else(|| PyValueError::new_err("values must not be empty"))?;
    Ok((estimate.mean, estimate.ci95))
}

/// A column's name and the accessor of its values.
type Measured = (&'static str, fn(&RoundMetrics) -> Option<f64>);

/// Every measurement of a round that may be absent.
const MEASURED: [Measured; 16] = [
    ("rate", |line| Some(line.rate)),
    ("silent", |line| line.silent.map(f64::from)),
    ("local_loss", |line| line.local_loss),
    ("train_loss", |line| line.train_loss),
    ("test_loss", |line| line.test_loss),
    ("test_accuracy", |line| line.test_accuracy),
    ("update_norm", |line| line.update_norm),
    ("mean_gain", |line| line.mean_gain),
    ("noise_std", |line| line.noise_std),
    ("power_mean", |line| line.power_mean),
    ("power_peak", |line| line.power_peak),
    ("dynamic_range_db", |line| line.dynamic_range_db),
    ("payload_uses", |line| line.payload_uses.map(|uses| uses as f64)),
    ("pilot_uses", |line| line.pilot_uses.map(|uses| uses as f64)),
    ("control_uses", |line| line.control_uses.map(|uses| uses as f64)),
    ("energy", |line| line.energy),
];

/// The metrics of a round with all keys: null where nothing was measured. `metrics.jsonl` leaves those out.
pub(crate) fn complete(line: &RoundMetrics) -> Json {
    let mut complete: Map<String, Json> =
        MEASURED.iter().map(|(name, _)| ((*name).to_owned(), Json::Null)).collect();
    complete.insert("diverged".to_owned(), line.diverged.into());
    complete.insert("broken".to_owned(), line.broken.into());
    // Numbers and text are always valid JSON.
    if let Ok(Json::Object(measured)) = serde_json::to_value(line) {
        complete.extend(measured);
    }
    Json::Object(complete)
}

/// The lines of a run as columns; NaN where nothing was measured.
fn columns<'py>(py: Python<'py>, lines: &[RoundMetrics]) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    let integers = |value: fn(&RoundMetrics) -> u32| -> Vec<i64> {
        lines.iter().map(|line| i64::from(value(line))).collect()
    };
    columns.set_item("trial", PyArray1::from_vec(py, integers(|line| line.trial)))?;
    columns.set_item("round", PyArray1::from_vec(py, integers(|line| line.round)))?;
    let diverged: Vec<bool> = lines.iter().map(|line| line.diverged).collect();
    columns.set_item("diverged", PyArray1::from_vec(py, diverged))?;
    columns.set_item("broken", PyArray1::from_vec(py, integers(|line| line.broken)))?;
    for (name, value) in MEASURED {
        let values: Vec<f64> = lines.iter().map(|line| value(line).unwrap_or(f64::NAN)).collect();
        columns.set_item(name, PyArray1::from_vec(py, values))?;
    }
    Ok(columns)
}

/// A model as arrays by name, in the model's order.
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
