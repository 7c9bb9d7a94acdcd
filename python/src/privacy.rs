//! `floras.privacy`: accounting and calibration, as in `floras account` and `floras calibrate`.

use floras_core::ChoiceError;
use floras_sim::inquiry::{self, AccountReport, CurveKind, ExperimentAccount, Find, Inquiry, Keywords};
use floras_sim::{ExperimentError, PrivacySettings, SimError};
use numpy::PyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use toml::Table;

use crate::convert;
use crate::error::ToPython;
use crate::number::integers;
use crate::run::builder_of;
use crate::threads::work;
use crate::views::{view_argument, view_of};

/// The given keywords. `None` counts as absent.
fn given(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in keywords.into_iter().flatten().filter(|(_, value)| !value.is_none()) {
        let key = key.extract::<String>()?;
        let value = convert::value(&key, &value)?;
        table.insert(key, value);
    }
    // Underscores in names of views are accepted.
    if let Some(view) = table.get("view").and_then(toml::Value::as_str) {
        let name = view_of(view)?.name();
        table.insert("view".to_owned(), name.into());
    }
    Ok(table)
}

/// An unknown keyword is an error of the call, not of a value.
fn refusal(error: ExperimentError) -> PyErr {
    refusal_without(error, &[])
}

/// [`refusal`] of a function that lacks some of the keywords.
fn refusal_without(error: ExperimentError, without: &[&str]) -> PyErr {
    let ExperimentError::UnknownKey { key, hint } = &error else { return error.to_python() };
    let lacks = |name: &str| without.contains(&name);
    let hint = match hint.strip_prefix(KNOWN) {
        Some(known) => {
            let known: Vec<&str> = known.split(", ").filter(|name| !lacks(name)).collect();
            format!("{KNOWN}{}", known.join(", "))
        }
        // A suggestion that the function lacks does not help.
        None => hint.clone(),
    };
    let is_lacking = without.iter().any(|name| hint == format!("did you mean {name}?"));
    let hint = if is_lacking { String::new() } else { format!("; {hint}") };
    PyTypeError::new_err(format!("there is no keyword {key}{hint}"))
}

/// The beginning of a hint that lists all keys.
const KNOWN: &str = "known are ";

fn keywords_of(given: Table, without: &[&str]) -> PyResult<Keywords> {
    let superfluous = without.iter().find(|key| given.contains_key(**key));
    if let Some(key) = superfluous {
        return Err(PyTypeError::new_err(format!("there is no keyword {key} in this function")));
    }
    Keywords::read(given).map_err(|error| refusal_without(error, without))
}

/// Accounts for a federation; see ``floras.privacy.account``.
#[pyfunction]
#[pyo3(signature = (**keywords))]
pub(crate) fn account<'py>(
    py: Python<'py>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = keywords_of(given(keywords)?, &["epsilon", "view", "find", "max_sequences"])?;
    let inquiry = keywords.inquiry().map_err(refusal)?;
    let sequences = keywords.sequences().map_err(refusal)?;
    let dim = keywords.dim();
    let alpha = keywords.alpha();
    let report = work(py, || {
        let published_renyi = alpha.map(|alpha| inquiry.published_renyi(sequences, alpha)).transpose()?;
        Ok::<_, SimError>(AccountReport { published_renyi, ..inquiry.account(sequences, dim)? })
    })?;
    convert::python(py, &report.map_err(ToPython::to_python)?)
}

/// Finds what meets an epsilon; see ``floras.privacy.calibrate``.
#[pyfunction]
#[pyo3(signature = (**keywords))]
pub(crate) fn calibrate<'py>(
    py: Python<'py>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let keywords = keywords_of(given(keywords)?, &["dim", "alpha"])?;
    let inquiry = keywords.inquiry().map_err(refusal)?;
    let goal = keywords.goal().map_err(refusal)?;
    let report = work(py, || inquiry.calibrate(&goal))?.map_err(ToPython::to_python)?;
    convert::python(py, &report)
}

/// Accounts for an experiment of any scheme; see ``floras.privacy.account_experiment``.
#[pyfunction]
#[pyo3(signature = (experiment = None))]
pub(crate) fn account_experiment<'py>(
    py: Python<'py>,
    experiment: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let experiment = builder_of(experiment)?.build().map_err(ToPython::to_python)?;
    let report = work(py, || ExperimentAccount::new(&experiment)?.report())?;
    convert::python(py, &report.map_err(ToPython::to_python)?)
}

/// Finds what in an experiment meets an epsilon; see ``floras.privacy.calibrate_experiment``.
#[pyfunction]
#[pyo3(signature = (experiment, epsilon, view, find))]
pub(crate) fn calibrate_experiment<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyAny>,
    epsilon: f64,
    view: Option<&Bound<'py, PyAny>>,
    find: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let builder = builder_of(Some(experiment))?;
    let view = match (view, builder.get("privacy.view")) {
        (Some(view), _) => view_argument(view)?,
        (None, Some(name)) => view_of(&name)?,
        (None, None) => PrivacySettings::default_view(builder.get("masks").is_some()),
    };
    let find: Find = find.parse().map_err(|error: ChoiceError| PyValueError::new_err(error.to_string()))?;
    let found = work(py, || inquiry::calibrate_experiment(&builder, epsilon, view, find))?;
    convert::python(py, &found.map_err(ToPython::to_python)?)
}

/// The epsilon after each given number of rounds; see ``floras.privacy.epsilon_curve``.
#[pyfunction]
#[pyo3(signature = (rounds, view, **keywords))]
pub(crate) fn epsilon_curve<'py>(
    py: Python<'py>,
    rounds: &Bound<'py, PyAny>,
    view: &str,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (view, rounds) = (view_of(view)?, integers("rounds", rounds, 1..=1_000_000)?);
    let keywords = keywords_of(
        given(keywords)?,
        &["dim", "alpha", "epsilon", "view", "find", "max_sequences", "rounds"],
    )?;
    let inquiry = keywords.inquiry().map_err(refusal)?;
    let sequences = keywords.sequences().map_err(refusal)?;
    let curve = work(py, || inquiry.epsilon_curve(sequences, view, &rounds))?;
    let curve = curve.map_err(ToPython::to_python)?.into_iter();
    Ok(PyArray1::from_vec(py, curve.map(|epsilon| epsilon.unwrap_or(f64::INFINITY)).collect()))
}

/// The delta at each given epsilon; see ``floras.privacy.delta_curve``.
#[pyfunction]
#[pyo3(signature = (epsilons, view, **keywords))]
pub(crate) fn delta_curve<'py>(
    py: Python<'py>,
    epsilons: Vec<f64>,
    view: &str,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let view = view_of(view)?;
    if let Some(epsilon) = epsilons.iter().find(|epsilon| !(0.0..=1e6).contains(*epsilon)) {
        return Err(PyValueError::new_err(format!("every epsilon must be between 0 and 1e6, not {epsilon}")));
    }
    let keywords =
        keywords_of(given(keywords)?, &["dim", "alpha", "epsilon", "view", "find", "max_sequences"])?;
    let inquiry = keywords.inquiry().map_err(refusal)?;
    let sequences = keywords.sequences().map_err(refusal)?;
    let curve = work(py, || inquiry.delta_curve(sequences, view, &epsilons))?;
    let curve = curve.map_err(ToPython::to_python)?;
    let Some(curve) = curve.into_iter().collect::<Option<Vec<f64>>>() else {
        return Err(PyValueError::new_err(format!(
            "the {view} view has no delta at some of the given epsilons"
        )));
    };
    Ok(PyArray1::from_vec(py, curve))
}

/// The sequences and the inquiry of keywords that describe a federation.
fn described(keywords: Option<&Bound<'_, PyDict>>) -> PyResult<(u64, Inquiry)> {
    let keywords =
        keywords_of(given(keywords)?, &["dim", "alpha", "epsilon", "view", "find", "max_sequences"])?;
    let inquiry = keywords.inquiry().map_err(refusal)?;
    Ok((keywords.sequences().map_err(refusal)?, inquiry))
}

/// An array of numbers for Python.
type Array<'py> = Bound<'py, PyArray1<f64>>;

/// A curve of a view; see ``floras.privacy.curve``.
#[pyfunction]
#[pyo3(signature = (kind, view, at, **keywords))]
pub(crate) fn curve<'py>(
    py: Python<'py>,
    kind: &str,
    view: &str,
    at: Option<Vec<f64>>,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<(Array<'py>, Array<'py>, Option<f64>)> {
    let Some(kind) = CurveKind::ALL.into_iter().find(|known| known.name() == kind) else {
        return Err(PyValueError::new_err(format!("kind must be delta, tradeoff or renyi, not {kind:?}")));
    };
    let view = view_of(view)?;
    let (sequences, inquiry) = described(keywords)?;
    let curves = work(py, || inquiry.curves(sequences, kind, Some(view), at.as_deref()))?;
    let curves = curves.map_err(ToPython::to_python)?;
    let column = |of: usize| {
        let points = curves.iter().flat_map(|curve| &curve.points);
        PyArray1::from_vec(py, points.map(|point| point[of]).collect())
    };
    Ok((column(0), column(1), curves.first().and_then(|curve| curve.event)))
}

/// The loss distribution of one round of a view, as JSON; see ``floras.privacy.losses``.
#[pyfunction]
#[pyo3(signature = (view, **keywords))]
pub(crate) fn losses<'py>(
    py: Python<'py>,
    view: &str,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let view = view_of(view)?;
    let (sequences, inquiry) = described(keywords)?;
    let losses = work(py, || inquiry.losses(sequences, view))?.map_err(ToPython::to_python)?;
    convert::python(py, &losses)
}

/// Checks a loss distribution in JSON.
#[pyfunction]
pub(crate) fn check_losses(text: &str) -> PyResult<()> {
    inquiry::read_losses("losses", text).map(|_| ()).map_err(ToPython::to_python)
}

/// Composes loss distributions in JSON; see ``floras.privacy.compose``.
#[pyfunction]
pub(crate) fn compose<'py>(py: Python<'py>, files: Vec<String>, delta: f64) -> PyResult<Bound<'py, PyAny>> {
    let joint = work(py, || {
        let losses =
            files.iter().map(|text| inquiry::read_losses("losses", text)).collect::<Result<Vec<_>, _>>()?;
        inquiry::compose(&losses, delta)
    })?;
    convert::python(py, &joint.map_err(ToPython::to_python)?)
}

/// The epsilon of a group of clients; see ``floras.privacy.account``.
#[pyfunction]
#[pyo3(signature = (size, **keywords))]
pub(crate) fn group<'py>(
    py: Python<'py>,
    size: u64,
    keywords: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (sequences, inquiry) = described(keywords)?;
    let group = work(py, || inquiry.group(sequences, size, None))?.map_err(ToPython::to_python)?;
    convert::python(py, &group)
}

/// A paragraph for a paper; see ``floras.privacy.statement``.
#[pyfunction]
#[pyo3(signature = (view, **keywords))]
pub(crate) fn statement(
    py: Python<'_>,
    view: &str,
    keywords: Option<&Bound<'_, PyDict>>,
) -> PyResult<String> {
    let view = view_of(view)?;
    let (sequences, inquiry) = described(keywords)?;
    let report = work(py, || inquiry.account(sequences, None))?.map_err(ToPython::to_python)?;
    Ok(report.paragraph(view))
}
