//! Views and verdicts: their names and thresholds, and the Python types that hold statements.

use floras_core::View;
use floras_core::verdict::Verdict;
use floras_sim::PrivacySettings;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::Serialize;

use crate::convert;

/// The module with the dataclasses of statements.
const STATEMENTS: &str = "floras.statements";

/// The view with a name, written with hyphens or underscores.
pub(crate) fn view_of(name: &str) -> PyResult<View> {
    let found = View::ALL.into_iter().find(|view| view.name() == name.replace('_', "-"));
    found.ok_or_else(|| {
        let known = View::BY_ADVERSARY.map(|view| format!("\"{view}\""));
        PyValueError::new_err(format!("view must be one of {}, not \"{name}\"", known.join(", ")))
    })
}

/// [`view_of`] an argument.
pub(crate) fn view_argument(view: &Bound<'_, PyAny>) -> PyResult<View> {
    let Ok(name) = view.cast::<PyString>() else {
        let given = convert::type_name(view);
        return Err(PyTypeError::new_err(format!(
            "view must be the name of a view, such as \"any-channel\", not {given}"
        )));
    };
    view_of(name.to_str()?)
}

/// The names of all views, the strongest adversary first.
pub(crate) fn names() -> Vec<&'static str> {
    View::BY_ADVERSARY.map(View::name).to_vec()
}

/// Returns the name of a view with hyphens.
#[pyfunction]
pub(crate) fn view_name(name: &Bound<'_, PyAny>) -> PyResult<&'static str> {
    view_argument(name).map(View::name)
}

/// Returns the name of the default view, with or without masks.
#[pyfunction]
pub(crate) fn default_view(masks: bool) -> &'static str {
    PrivacySettings::default_view(masks).name()
}

/// Returns the verdict on an epsilon, and one sentence on what it means.
#[pyfunction]
#[pyo3(signature = (epsilon, proven))]
pub(crate) fn verdict(epsilon: Option<f64>, proven: bool) -> (&'static str, String) {
    let verdict = Verdict::of(epsilon, proven);
    (verdict.label(), verdict.meaning(epsilon))
}

/// Returns the thresholds of all verdicts in one sentence.
#[pyfunction]
pub(crate) fn verdict_scale() -> String {
    Verdict::scale()
}

/// A value that JSON can hold, as an instance of a Python class of `floras.statements`.
pub(crate) fn instance<'py>(
    py: Python<'py>,
    class: &str,
    value: &impl Serialize,
) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import(STATEMENTS)?.getattr(class)?;
    class.call_method1("from_dict", (convert::python(py, value)?,))
}
