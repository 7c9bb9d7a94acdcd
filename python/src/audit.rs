//! `floras.audit`: attacks an experiment and measures what leaks.

use std::path::PathBuf;

use floras_audit::{AuditReport, Effort, audit as attack};
use floras_sim::{Federation, SimError};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rayon::ThreadPoolBuilder;

use crate::convert;
use crate::error::ToPython;
use crate::number::integer;
use crate::run::{builder_of_dictionary, report, threads_or_all_cores};

/// Audits an experiment in a directory; see ``floras.audit``.
#[pyfunction]
#[pyo3(signature = (experiment, out, games, trainings, confidence, threads = None))]
pub(crate) fn audit<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyDict>,
    out: PathBuf,
    games: &Bound<'py, PyAny>,
    trainings: &Bound<'py, PyAny>,
    confidence: f64,
    threads: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let [games, trainings] = [("games", games), ("trainings", trainings)]
        .map(|(name, number)| integer(name, number, 0..=u32::MAX.into()).map(|number| number as u32));
    let (games, trainings) = (games?, trainings?);
    let effort = Effort::new(games, trainings, confidence).map_err(ToPython::to_python)?;
    let experiment = builder_of_dictionary(experiment)?.build().map_err(ToPython::to_python)?;
    let pool = ThreadPoolBuilder::new().num_threads(threads_or_all_cores(threads)?).build();
    let pool = pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    let found = py.detach(|| {
        let federation = Federation::new(&experiment)?;
        AuditReport::enter(&out, &experiment)?;
        let found = pool.install(|| attack(&federation, effort, &|_| {}));
        let found = found.inspect_err(|_| AuditReport::leave(&out))?;
        found.write(&out)?;
        Ok::<_, SimError>(found)
    });
    let found = found.map_err(ToPython::to_python)?;
    report(py, out, true)?;
    convert::python(py, &found.brief())
}
