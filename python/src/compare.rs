//! `floras.compare`: runs side by side.

use std::path::PathBuf;

use floras_report::Comparison;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;

/// Compares directories of runs and sweeps, and writes the plot into `out`; see ``floras.compare``.
#[pyfunction]
#[pyo3(signature = (directories, out = None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    directories: Vec<PathBuf>,
    out: Option<PathBuf>,
) -> PyResult<Bound<'py, PyAny>> {
    let compared = py.detach(|| {
        let comparison = floras_report::compare(&directories)?;
        let plots = out.map_or(Ok(Vec::new()), |directory| comparison.write(&directory))?;
        Ok::<(Comparison, Vec<PathBuf>), floras_report::ReportError>((comparison, plots))
    });
    let (comparison, plots) = compared.map_err(ToPython::to_python)?;
    let found = convert::python(py, &comparison)?;
    let parts = found.cast::<PyDict>()?;
    // Not in the JSON object.
    parts.set_item("plots", plots)?;
    Ok(found)
}
