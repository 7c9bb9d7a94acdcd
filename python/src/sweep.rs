//! `floras.sweep`: the grid of a sweep file, and the table of its runs.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use floras_sim::{Federation, RunDirectory, Sweep};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;
use crate::number::optional;
use crate::run::builder_of;

/// The points of a sweep, and the directory that they are recorded in.
#[pyclass(module = "floras._core", frozen)]
pub(crate) struct Grid {
    sweep: Sweep,
    /// Held while the sweep is at work.
    lock: Mutex<Option<File>>,
}

#[pymethods]
impl Grid {
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        let sweep = builder_of(Some(source))?.build_sweep().map_err(ToPython::to_python)?;
        Ok(Self { sweep, lock: Mutex::new(None) })
    }

    /// The name of the experiment that is varied.
    #[getter]
    fn name(&self) -> &str {
        self.sweep.name()
    }

    /// The keys that vary.
    #[getter]
    fn keys(&self) -> Vec<&str> {
        self.sweep.keys().collect()
    }

    /// Every point: its values, its experiment, its folder, and the number of the point that is run for it.
    fn points<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let point = |(number, point): (usize, &floras_sim::Point)| {
            let told = PyDict::new(py);
            told.set_item("number", number)?;
            told.set_item("values", &point.values)?;
            told.set_item("run_of", point.run_of)?;
            let folder = Sweep::point_folder(std::path::Path::new(""), point.run_of);
            told.set_item("folder", folder.to_string_lossy())?;
            told.set_item("experiment", convert::settings(py, &point.experiment)?)?;
            told.set_item("without_effect", &point.unused_keys)?;
            Ok(told)
        };
        self.sweep.points().iter().enumerate().map(point).collect()
    }

    /// Loads what every point needs, so that what cannot work is told before the first has taken its time.
    fn check(&self, py: Python<'_>, threads: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let threads = optional("threads", threads, 1..=1024)?.unwrap_or(1) as usize;
        let checked = py.detach(|| {
            let points = self.sweep.points().iter().enumerate();
            for (_, point) in points.filter(|(number, point)| point.run_of == *number) {
                Federation::new(&point.experiment)?.check_memory(threads)?;
            }
            Ok(())
        });
        checked.map_err(|error: floras_sim::SimError| error.to_python())
    }

    /// Takes a directory for the sweep until ``leave`` is called.
    fn enter(&self, folder: PathBuf) -> PyResult<()> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Err(PyRuntimeError::new_err("this grid is at work already"));
        }
        *lock = Some(Sweep::enter(&folder).map_err(ToPython::to_python)?);
        Ok(())
    }

    /// Gives the directory back.
    fn leave(&self) {
        *self.lock.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// For every point, whether its run is complete in a directory. A run of another experiment there is refused.
    fn done(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<bool>> {
        let done = py.detach(|| {
            let is_done = |point: &floras_sim::Point| {
                let place = Sweep::point_folder(&folder, point.run_of);
                RunDirectory::refuse_other(&place, &point.experiment)?;
                Ok(RunDirectory::read_summary(&place)?.is_some())
            };
            self.sweep.points().iter().map(is_done).collect::<Result<Vec<bool>, floras_sim::SimError>>()
        });
        done.map_err(ToPython::to_python)
    }

    /// Writes ``sweep.csv`` with a row for every point whose run is complete.
    fn write_table(&self, py: Python<'_>, folder: PathBuf) -> PyResult<()> {
        let written = py.detach(|| {
            let summary = |point: &floras_sim::Point| {
                RunDirectory::read_summary(&Sweep::point_folder(&folder, point.run_of))
            };
            let done = self.sweep.points().iter().map(summary).collect::<Result<Vec<_>, _>>()?;
            self.sweep.write_table(&folder, &done)
        });
        written.map_err(ToPython::to_python)
    }
}
