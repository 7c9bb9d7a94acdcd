//! `floras.Ledger`: what the rounds so far have leaked.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use floras_core::View;
use floras_sim::{AirLedger, Cohort};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;
use crate::number::{optional, whole};
use crate::threads::{pool, work};
use crate::uplink::{Channel, MAX_CLIENTS, Uplink};

/// The ledger of an uplink: what its rounds have leaked so far, in every view.
///
/// With a ``path`` it is kept in a file, one line per round. A round is on the disk before ``record`` returns, so that a crash
/// cannot lose it. An existing file is resumed; a file written for a different uplink is rejected.
///
/// Rounds may differ in the number of clients that answered. After one round with a seed, no view is a guarantee.
///
/// >>> import numpy as np
/// >>> uplink = floras.Uplink(sequences=25, clip=1.0, receiver="clipped=1")
/// >>> ledger = floras.Ledger(uplink)
/// >>> for number in (1, 2, 3):
/// ...     deltas = np.zeros((20, 10), np.float32)
/// ...     ledger.record(uplink.aggregate(deltas, seed=7, round=number))
/// >>> ledger.rounds
/// 3
/// >>> ledger.epsilon("any-channel") < ledger.after(20, rounds=1, view="any-channel")
/// True
#[pyclass(module = "floras", frozen)]
pub(crate) struct Ledger {
    uplink: Py<Uplink>,
    ledger: Mutex<AirLedger>,
    path: Option<PathBuf>,
}

/// The view of a name, with dashes or underscores.
pub(crate) fn view_of(name: &str) -> PyResult<View> {
    let found = View::ALL.into_iter().find(|view| view.name() == name.replace('_', "-"));
    found.ok_or_else(|| {
        let known: Vec<String> = View::ALL.iter().map(|view| format!("\"{view}\"")).collect();
        PyValueError::new_err(format!("view must be one of {}, not \"{name}\"", known.join(", ")))
    })
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (uplink, path = None))]
    fn new(py: Python<'_>, uplink: Py<Uplink>, path: Option<PathBuf>) -> PyResult<Self> {
        let air = uplink.get().air.clone();
        let opened = work(py, || match &path {
            Some(path) => AirLedger::open(air, path),
            None => AirLedger::new(air),
        })?;
        Ok(Self { uplink, ledger: Mutex::new(opened.map_err(ToPython::to_python)?), path })
    }

    /// The uplink that it belongs to.
    #[getter]
    fn uplink(&self, py: Python<'_>) -> Py<Uplink> {
        self.uplink.clone_ref(py)
    }

    /// The file that it is kept in, if there is one.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// How many rounds are on record.
    #[getter]
    fn rounds(&self, py: Python<'_>) -> u32 {
        // Not while the interpreter is held: the ledger may be at work for seconds.
        py.detach(|| self.ledger.lock().unwrap_or_else(PoisonError::into_inner).rounds())
    }

    /// The delta of all statements.
    #[getter]
    fn delta(&self) -> f64 {
        self.uplink.get().air.delta()
    }

    /// Enters a round: the result of ``aggregate``, or the channel of ``realise``. Rounds come in their order.
    fn record(&self, py: Python<'_>, round: &Bound<'_, PyAny>) -> PyResult<()> {
        let Ok(round) = round.cast::<Channel>() else {
            let given = convert::type_name(round);
            return Err(PyTypeError::new_err(format!(
                "round must be an Aggregate or a Channel, not {given}"
            )));
        };
        let draw = &round.get().draw;
        if draw.air.description() != self.uplink.get().air.description() {
            return Err(PyValueError::new_err(
                "round must come from the ledger's own uplink, not from another one",
            ));
        }
        let recorded = self.work(py, |ledger| ledger.record(&draw.spec, &draw.channel))?;
        recorded.map_err(ToPython::to_python)
    }

    /// The epsilon of all rounds so far in a view; ``None`` if there is no finite one, 0 before the first round.
    #[pyo3(signature = (view = "actual"))]
    fn epsilon(&self, py: Python<'_>, view: &str) -> PyResult<Option<f64>> {
        let view = view_of(view)?;
        self.work(py, |ledger| ledger.epsilon(view))?.map_err(ToPython::to_python)
    }

    /// The epsilon after ``rounds`` further rounds in which ``per_round`` clients answer, of ``selected`` that were sampled from
    /// ``among``.
    #[pyo3(signature = (per_round, rounds = None, view = "actual", selected = None, among = None))]
    fn after(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        rounds: Option<&Bound<'_, PyAny>>,
        view: &str,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<f64>> {
        let (view, cohort) = (view_of(view)?, self.cohort(per_round, selected, among)?);
        let more = optional("rounds", rounds, 0..=1_000_000)?.unwrap_or(1);
        self.work(py, |ledger| ledger.epsilon_after(view, cohort, more))?.map_err(ToPython::to_python)
    }

    /// The number of further rounds with ``per_round`` clients that a budget allows, at most ``most``.
    #[pyo3(signature = (per_round, budget, view = "actual", most = None, among = None))]
    fn affordable(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        budget: f64,
        view: &str,
        most: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let (view, cohort) = (view_of(view)?, self.cohort(per_round, None, among)?);
        let most = optional("most", most, 0..=1_000_000)?.unwrap_or(1_000_000);
        self.work(py, |ledger| ledger.affordable(view, budget, cohort, most))?.map_err(ToPython::to_python)
    }

    /// What is said in every view about all rounds so far: epsilon, whether it is a guarantee, against whom, and why not.
    fn views<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statements = self.work(py, |ledger| {
            View::ALL.map(|view| ledger.statement(view).map(|statement| (view, statement)))
        })?;
        let views = PyDict::new(py);
        for statement in statements {
            let (view, statement) = statement.map_err(ToPython::to_python)?;
            if let Some(statement) = statement {
                views.set_item(view.field(), convert::python(py, &statement)?)?;
            }
        }
        Ok(views)
    }

    /// Why no view is a guarantee, because of the noise of some round on record; ``None`` if all of it is fit for release.
    #[getter]
    fn noise_caveat(&self, py: Python<'_>) -> Option<&'static str> {
        py.detach(|| self.ledger.lock().unwrap_or_else(PoisonError::into_inner).noise_caveat())
    }

    /// The client whose channels have leaked the most so far; ``None`` if no loss is finite.
    #[getter]
    fn worst<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let worst = self.work(py, |ledger| ledger.worst())?.map_err(ToPython::to_python)?;
        convert::python(py, &worst)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.path.as_ref().map_or_else(String::new, |path| format!(" in {}", path.display()));
        format!("<Ledger of {} rounds{place}>", self.rounds(py))
    }
}

impl Ledger {
    /// Does some work with the ledger without holding the interpreter. The ledger is locked before the pool's threads start: a
    /// thread that waits for the lock could be the one that its holder needs.
    fn work<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut AirLedger) -> T + Send) -> PyResult<T> {
        let pool = pool()?;
        Ok(py.detach(|| {
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            let ledger: &mut AirLedger = &mut ledger;
            pool.install(|| work(ledger))
        }))
    }

    fn cohort(
        &self,
        per_round: &Bound<'_, PyAny>,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cohort> {
        let answered = whole("per_round", per_round, 1..=MAX_CLIENTS)?;
        let selected = optional("selected", selected, 1..=MAX_CLIENTS)?.unwrap_or(answered);
        let all = self.uplink.get().air.clients().map_or(selected, u64::from);
        let among = optional("among", among, 1..=MAX_CLIENTS)?.unwrap_or(all);
        Ok(Cohort { answered: answered as u32, selected: selected as u32, among: among as u32 })
    }
}
