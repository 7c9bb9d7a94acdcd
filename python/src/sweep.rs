//! `floras.sweep`: the points of a sweep, run here or stored from elsewhere.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use floras_sim::{Event, ExperimentBuilder, PreparedSweep, SimError, Sweep, SweepEvent};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::json;

use crate::convert;
use crate::error::ToPython;
use crate::observer::Observer;
use crate::run::{builder_of, change, complete, threads_or_all_cores};

/// Trials, rounds and seed, where they are given.
type Numbers<'py> = (Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// The points of a sweep and its directory.
#[pyclass(module = "floras._core", frozen)]
pub(crate) struct Grid {
    /// Name of the experiment that is varied.
    #[pyo3(get)]
    name: String,
    /// Keys that vary.
    #[pyo3(get)]
    keys: Vec<String>,
    /// Directory of the sweep.
    #[pyo3(get)]
    directory: PathBuf,
    /// Number of points that are run.
    #[pyo3(get)]
    runs: usize,
    /// Locked while the sweep runs; `None` after the directory is released.
    prepared: Mutex<Option<PreparedSweep>>,
}

#[pymethods]
impl Grid {
    /// Checks every point, and locks the directory until ``leave`` is called. ``numbers`` are trials, rounds and seed.
    #[new]
    #[pyo3(signature = (source, over, settings, numbers, out = None, threads = None))]
    fn new(
        py: Python<'_>,
        source: Option<&Bound<'_, PyAny>>,
        over: Option<&Bound<'_, PyDict>>,
        settings: Option<&Bound<'_, PyDict>>,
        numbers: Numbers<'_>,
        out: Option<PathBuf>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let threads = threads_or_all_cores(threads)?;
        let numbers =
            [("trials", numbers.0.as_ref()), ("rounds", numbers.1.as_ref()), ("seed", numbers.2.as_ref())];
        let builder = vary(change(builder_of(source)?, numbers, settings)?, over)?;
        let sweep = builder.build_sweep().map_err(ToPython::to_python)?;
        let fixed = settings.into_iter().flatten().map(|(key, _)| key.to_string());
        let given = numbers.into_iter().filter(|(_, number)| number.is_some()).map(|(key, _)| key.to_owned());
        if let Some(key) = fixed.chain(given).find(|key| sweep.varies(key)) {
            return Err(PyValueError::new_err(format!(
                "{key} is set and also varied by the sweep: give one of them"
            )));
        }
        let (name, keys) = (sweep.name().to_owned(), sweep.keys().map(str::to_owned).collect());
        let (directory, runs) = (out.unwrap_or_else(|| sweep.default_directory()), sweep.runs().count());
        let prepared = py.detach(|| PreparedSweep::new(sweep, &directory, threads));
        let prepared = Mutex::new(Some(prepared.map_err(ToPython::to_python)?));
        Ok(Self { name, keys, directory, runs, prepared })
    }

    /// Returns the points whose runs are incomplete: number, values, directory, experiment and notes.
    fn to_do<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let points = self.with(|prepared| {
            let point = |number: usize| (number, prepared.sweep().points()[number].clone());
            Ok(prepared.to_do().map(point).collect::<Vec<_>>())
        });
        let describe = |(number, point): (usize, floras_sim::Point)| {
            let item = PyDict::new(py);
            item.set_item("number", number)?;
            item.set_item("values", &point.values)?;
            item.set_item("directory", Sweep::directory_name(number))?;
            item.set_item("experiment", convert::settings(py, &point.experiment)?)?;
            item.set_item("notes", point.notes())?;
            Ok(item)
        };
        available(points)?.into_iter().map(describe).collect()
    }

    /// Runs all points. ``watch`` is called with each event: ``{"ended": number}`` for a finished point, ``{"metrics": …}`` for a
    /// round, and ``{"done": rounds}`` for the rounds of a resumed trial that were done before.
    fn run(&self, py: Python<'_>, watch: Option<Py<PyAny>>) -> PyResult<()> {
        let run = Observer::new(watch).observe(py, |observer| {
            let watch = |event: SweepEvent<'_>| match event {
                SweepEvent::PointEnds { number } => observer.notify(&json!({ "ended": number })),
                SweepEvent::Run(Event::Round(metrics)) => {
                    observer.notify(&json!({ "metrics": complete(&metrics) }));
                }
                SweepEvent::Run(Event::TrialBegins { done, .. }) if done > 0 => {
                    observer.notify(&json!({ "done": done }));
                }
                _ => {}
            };
            self.with(|prepared| prepared.run(&watch, observer.stop()))
        })?;
        available(Ok(run)).map(|_| ())
    }

    /// Rounds of the runs that are complete, and of all runs, over all trials.
    fn rounds(&self) -> PyResult<(u64, u64)> {
        available(self.with(|prepared| Ok(prepared.rounds())))
    }

    /// Stores the files of a point's run, and adds the point to the table.
    fn put(&self, py: Python<'_>, number: usize, files: BTreeMap<PathBuf, Vec<u8>>) -> PyResult<()> {
        available(py.detach(|| self.with(|prepared| prepared.put(number, files))))
    }

    /// Writes ``sweep.csv`` with a row for each finished point.
    fn write_table(&self, py: Python<'_>) -> PyResult<()> {
        available(py.detach(|| self.with(|prepared| prepared.write_table())))
    }

    /// Releases the directory.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}

impl Grid {
    /// Calls `work` with the sweep; `None` if the sweep is running or its directory was released.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut PreparedSweep) -> Result<T, SimError>,
    ) -> Result<Option<T>, SimError> {
        let Ok(mut prepared) = self.prepared.try_lock() else { return Ok(None) };
        prepared.as_mut().map(work).transpose()
    }
}

/// Adds keys that vary, as ``{"uplink.snr_db": [0, 10]}``, to an experiment.
fn vary(builder: ExperimentBuilder, over: Option<&Bound<'_, PyDict>>) -> PyResult<ExperimentBuilder> {
    let wrong =
        || PyTypeError::new_err("over must map keys to lists of values, as in {\"uplink.snr_db\": [0, 10]}");
    over.into_iter().flatten().try_fold(builder, |builder, (key, values)| {
        let key = key.extract::<String>().map_err(|_| wrong())?;
        if values.is_instance_of::<PyString>() || values.is_instance_of::<PyDict>() {
            return Err(wrong());
        }
        let values = values.try_iter().map_err(|_| wrong())?.map(|value| convert::value(&key, &value?));
        builder.vary_to(&key, values.collect::<PyResult<Vec<_>>>()?).map_err(ToPython::to_python)
    })
}

fn available<T>(worked: Result<Option<T>, SimError>) -> PyResult<T> {
    let reason = "the sweep is running, or its directory was released";
    worked.map_err(ToPython::to_python)?.ok_or_else(|| PyRuntimeError::new_err(reason))
}
