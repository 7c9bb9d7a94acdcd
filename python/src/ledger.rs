//! `floras.Ledger`: the privacy loss of all rounds so far.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use floras_core::View;
use floras_sim::number::count;
use floras_sim::{AirLedger, Cohort};
use pyo3::exceptions::{PyDeprecationWarning, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::convert;
use crate::error::ToPython;
use crate::number::{integer, optional};
use crate::threads::{pool, work};
use crate::uplink::{Channel, MAX_CLIENTS, Uplink};
use crate::views::{instance, view_argument};

/// The ledger of an uplink: the privacy loss of all its rounds so far, in every view.
///
/// Rounds may differ in the number of clients that answered. After one round with a seed, no view is a guarantee.
///
/// Parameters
/// ----------
/// uplink : Uplink
///     The uplink whose rounds are recorded.
/// path : path, optional
///     File with one line per round. A round is on the disk before ``record`` returns, so that a crash cannot lose it. An
///     existing file is resumed; a file written for a different uplink is rejected.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> uplink = floras.Uplink(sequences=25, clip=1.0, receiver="clipped=1")
/// >>> ledger = floras.Ledger(uplink)
/// >>> for number in (1, 2, 3):
/// ...     deltas = np.zeros((20, 10), np.float32)
/// ...     ledger.record(uplink.aggregate(deltas, seed=7, round=number))
/// >>> ledger.rounds
/// 3
/// >>> ledger.epsilon() < ledger.after(20, rounds=1)
/// True
#[pyclass(module = "floras", frozen)]
pub(crate) struct Ledger {
    uplink: Py<Uplink>,
    ledger: Mutex<AirLedger>,
    path: Option<PathBuf>,
}

#[pymethods]
impl Ledger {
    #[new]
    #[pyo3(signature = (uplink, path = None))]
    fn new(py: Python<'_>, uplink: &Bound<'_, PyAny>, path: Option<PathBuf>) -> PyResult<Self> {
        let Ok(uplink) = uplink.cast::<Uplink>() else {
            let given = convert::type_name(uplink);
            return Err(PyTypeError::new_err(format!("uplink must be an Uplink, not {given}")));
        };
        let uplink = uplink.clone().unbind();
        let air = uplink.get().air.clone();
        let opened = work(py, || match &path {
            Some(path) => AirLedger::open(air, path),
            None => AirLedger::new(air),
        })?;
        Ok(Self { uplink, ledger: Mutex::new(opened.map_err(ToPython::to_python)?), path })
    }

    /// The uplink whose rounds the ledger records.
    #[getter]
    fn uplink(&self, py: Python<'_>) -> Py<Uplink> {
        self.uplink.clone_ref(py)
    }

    /// Path of the file; ``None`` for a ledger in memory.
    #[getter]
    fn path(&self) -> Option<PathBuf> {
        self.path.clone()
    }

    /// Number of recorded rounds.
    #[getter]
    fn rounds(&self, py: Python<'_>) -> u32 {
        // The interpreter is released: work on the ledger may take seconds.
        py.detach(|| self.ledger.lock().unwrap_or_else(PoisonError::into_inner).rounds())
    }

    /// The delta of all statements.
    #[getter]
    fn delta(&self) -> f64 {
        self.uplink.get().air.delta()
    }

    /// Records a round. Rounds are recorded in order.
    ///
    /// Parameters
    /// ----------
    /// round : Aggregate or Channel
    ///     The result of ``aggregate``, or the channel of ``realise``.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If it is not the next round, or if it belongs to a different uplink.
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

    /// Returns the epsilon of all rounds so far.
    ///
    /// Parameters
    /// ----------
    /// view : str, optional
    ///     Name of the view; that of the uplink by default.
    ///
    /// Returns
    /// -------
    /// float or None
    ///     An upper bound, 0 before the first round; ``None`` if no finite epsilon is established.
    #[pyo3(signature = (view = None))]
    fn epsilon(&self, py: Python<'_>, view: Option<&Bound<'_, PyAny>>) -> PyResult<Option<f64>> {
        let view = self.view(view)?;
        self.work(py, |ledger| ledger.epsilon(view))?.map_err(ToPython::to_python)
    }

    /// Returns the epsilon after further rounds.
    ///
    /// Parameters
    /// ----------
    /// per_round : int
    ///     Number of clients that answer in each of them, at least 1.
    /// rounds : int
    ///     Number of further rounds, between 0 and 1,000,000.
    /// view : str, optional
    ///     Name of the view; that of the uplink by default.
    /// selected, among : int, optional
    ///     Number of clients that are selected, and from how many; ``per_round`` and all clients by default.
    ///
    /// Returns
    /// -------
    /// float or None
    ///     An upper bound; ``None`` if no finite epsilon is established.
    #[pyo3(signature = (per_round, rounds = None, view = None, selected = None, among = None))]
    fn after(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        rounds: Option<&Bound<'_, PyAny>>,
        view: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<f64>> {
        let (view, cohort) = (self.view(view)?, self.cohort(per_round, selected, among)?);
        let more = optional("rounds", rounds, 0..=1_000_000)?.unwrap_or(1);
        self.work(py, |ledger| ledger.epsilon_after(view, cohort, more))?.map_err(ToPython::to_python)
    }

    /// Returns the number of further rounds that a budget allows.
    ///
    /// Parameters
    /// ----------
    /// per_round : int
    ///     Number of clients that answer in each of them, at least 1.
    /// budget : float
    ///     Largest epsilon, between 1e-9 and 1e5.
    /// view : str, optional
    ///     Name of the view; that of the uplink by default.
    /// max_rounds : int
    ///     Largest number to return, between 0 and 1,000,000.
    /// among : int, optional
    ///     From how many clients they are selected; all clients by default.
    /// most : int
    ///     Deprecated name of ``max_rounds``.
    ///
    /// Returns
    /// -------
    /// int
    ///     Number of rounds, at most ``max_rounds``; 0 if the budget is spent.
    #[pyo3(signature = (per_round, budget, view = None, max_rounds = None, among = None, *, most = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python method")]
    fn affordable(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        budget: f64,
        view: Option<&Bound<'_, PyAny>>,
        max_rounds: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
        most: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let (view, cohort) = (self.view(view)?, self.cohort(per_round, None, among)?);
        if most.is_some() {
            let category = py.get_type::<PyDeprecationWarning>();
            PyErr::warn(py, &category, c"the keyword most is now max_rounds", 1)?;
        }
        let most = optional("max_rounds", max_rounds.or(most), 0..=1_000_000)?.unwrap_or(1_000_000);
        self.work(py, |ledger| ledger.affordable(view, budget, cohort, most))?.map_err(ToPython::to_python)
    }

    /// Returns the statement of each view about all rounds so far; empty before the first round.
    ///
    /// Returns
    /// -------
    /// Views
    ///     Epsilon, verdict, adversary and assumptions, by view.
    fn views<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let statements = self.work(py, |ledger| {
            View::ALL.map(|view| ledger.statement(view).map(|statement| (view.field(), statement)))
        })?;
        let statements = statements.into_iter().collect::<Result<BTreeMap<_, _>, _>>();
        instance(py, "Views", &statements.map_err(ToPython::to_python)?)
    }

    /// Why the noise of a recorded round excludes a guarantee; ``None`` if the noise of all rounds is fit for real data.
    #[getter]
    fn noise_caveat(&self, py: Python<'_>) -> Option<&'static str> {
        py.detach(|| self.ledger.lock().unwrap_or_else(PoisonError::into_inner).noise_caveat())
    }

    /// The client with the largest loss so far, given its channels; ``None`` if no loss is finite.
    #[getter]
    fn worst<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let worst = self.work(py, |ledger| ledger.worst())?.map_err(ToPython::to_python)?;
        worst.map(|worst| instance(py, "WorstClient", &worst)).transpose()
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let place = self.path.as_ref().map_or_else(String::new, |path| format!(" in {}", path.display()));
        format!("<Ledger of {}{place}>", count(self.rounds(py).into(), "round"))
    }
}

impl Ledger {
    /// Works with the ledger without holding the interpreter. The ledger is locked before the pool's threads start: a thread
    /// of the pool that waits for the lock could be one that the lock's holder needs.
    fn work<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut AirLedger) -> T + Send) -> PyResult<T> {
        let pool = pool()?;
        Ok(py.detach(|| {
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            let ledger: &mut AirLedger = &mut ledger;
            pool.install(|| work(ledger))
        }))
    }

    /// The view with a name, or the uplink's default.
    fn view(&self, view: Option<&Bound<'_, PyAny>>) -> PyResult<View> {
        view.map_or_else(|| Ok(self.uplink.get().default_view()), view_argument)
    }

    fn cohort(
        &self,
        per_round: &Bound<'_, PyAny>,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Cohort> {
        let answered = integer("per_round", per_round, 1..=MAX_CLIENTS)?;
        let selected = optional("selected", selected, 1..=MAX_CLIENTS)?.unwrap_or(answered);
        let all = self.uplink.get().air.clients().map_or(selected, u64::from);
        let among = optional("among", among, 1..=MAX_CLIENTS)?.unwrap_or(all);
        Ok(Cohort { answered: answered as u32, selected: selected as u32, among: among as u32 })
    }
}
