//! `floras.sweep`: the points of a sweep file, run here or put into place.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use floras_sim::{PreparedSweep, SimError, Sweep, SweepEvent};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;
use crate::observer::Observer;
use crate::run::{builder_of, threads_or_all_cores};

/// The points of a sweep, and the directory that they are recorded in.
#[pyclass(module = "floras._core", frozen)]
pub(crate) struct Grid {
    /// The name of the experiment that is varied.
    #[pyo3(get)]
    name: String,
    /// The keys that vary.
    #[pyo3(get)]
    keys: Vec<String>,
    /// Where everything is recorded.
    #[pyo3(get)]
    directory: PathBuf,
    /// How many points are run: one for every experiment.
    #[pyo3(get)]
    runs: usize,
    /// Locked while the sweep is at work; `None` once the directory is given back.
    prepared: Mutex<Option<PreparedSweep>>,
}

#[pymethods]
impl Grid {
    /// Checks every point, and takes the directory until ``leave`` is called.
    #[new]
    #[pyo3(signature = (source, out = None, threads = None))]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        out: Option<PathBuf>,
        threads: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let threads = threads_or_all_cores(threads)?;
        let sweep = builder_of(Some(source))?.build_sweep().map_err(ToPython::to_python)?;
        let (name, keys) = (sweep.name().to_owned(), sweep.keys().map(str::to_owned).collect());
        let (directory, runs) = (out.unwrap_or_else(|| sweep.default_directory()), sweep.runs().count());
        let prepared = py.detach(|| PreparedSweep::new(sweep, &directory, threads));
        let prepared = Mutex::new(Some(prepared.map_err(ToPython::to_python)?));
        Ok(Self { name, keys, directory, runs, prepared })
    }

    /// The points whose runs are not complete: number, values, directory, experiment and notes.
    fn to_do<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let points = self.with(|prepared| {
            let point = |number: usize| (number, prepared.sweep().points()[number].clone());
            Ok(prepared.to_do().map(point).collect::<Vec<_>>())
        });
        let told = |(number, point): (usize, floras_sim::Point)| {
            let told = PyDict::new(py);
            told.set_item("number", number)?;
            told.set_item("values", &point.values)?;
            told.set_item("directory", Sweep::directory_name(number))?;
            told.set_item("experiment", convert::settings(py, &point.experiment)?)?;
            told.set_item("notes", point.notes())?;
            Ok(told)
        };
        available(points)?.into_iter().map(told).collect()
    }

    /// Runs all points; ``watch`` is called with the number of each that is done.
    fn run(&self, py: Python<'_>, watch: Option<Py<PyAny>>) -> PyResult<()> {
        let run = Observer::new(watch).observe(py, |observer| {
            let watch = |event: SweepEvent<'_>| {
                if let SweepEvent::PointEnds { number } = event {
                    observer.tell(&number);
                }
            };
            self.with(|prepared| prepared.run(&watch, observer.stop()))
        })?;
        available(Ok(run)).map(|_| ())
    }

    /// Puts the files of a point's run into their place, and the point into the table.
    fn put(&self, py: Python<'_>, number: usize, files: BTreeMap<PathBuf, Vec<u8>>) -> PyResult<()> {
        available(py.detach(|| self.with(|prepared| prepared.put(number, files))))
    }

    /// Writes ``sweep.csv`` with a row for every point that is done.
    fn write_table(&self, py: Python<'_>) -> PyResult<()> {
        available(py.detach(|| self.with(|prepared| prepared.write_table())))
    }

    /// Gives the directory back.
    fn leave(&self, py: Python<'_>) {
        py.detach(|| *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = None);
    }
}

impl Grid {
    /// Works with the sweep; `None` if it is at work already, or if its directory was given back.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut PreparedSweep) -> Result<T, SimError>,
    ) -> Result<Option<T>, SimError> {
        let Ok(mut prepared) = self.prepared.try_lock() else { return Ok(None) };
        prepared.as_mut().map(work).transpose()
    }
}

fn available<T>(worked: Result<Option<T>, SimError>) -> PyResult<T> {
    let reason = "this sweep is at work, or its directory was given back";
    worked.map_err(ToPython::to_python)?.ok_or_else(|| PyRuntimeError::new_err(reason))
}
