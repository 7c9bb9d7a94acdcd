//! `floras.Uplink`: from a round's updates to the decoded sum.

use std::ffi::CString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use floras_core::View;
use floras_phy::{Complex64, EffectiveChannel, Signal};
use floras_sim::{AirInterface, ExperimentError, Noise, PrivacySettings, RoundSpec, SimError};
use numpy::{Element, PyArray1, PyArrayDyn, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::convert;
use crate::error::ToPython;
use crate::number::{integer, integers, optional, seed};
use crate::run::experiment_of;
use crate::threads::work;
use crate::updates::Updates;
use crate::views::instance;

/// Maximum number of clients in a round.
pub(crate) const MAX_CLIENTS: u64 = 1 << 24;

/// An uplink: it turns the updates of a round's clients into one noisy sum.
///
/// Parameters
/// ----------
/// scheme : str
///     ``"floras"``, ``"channel-inversion"``, ``"phase-corrected"``, ``"ideal"`` or ``"gaussian"``.
/// clients : int, optional
///     M, the number of clients in all. Leave it out if all of them take part in every round.
/// masks : dict, optional
///     The keys of the section ``[masks]``: ``mask_std``, ``noise_std`` and ``colluding``.
/// **settings
///     Every key of the sections ``[uplink]`` and ``[privacy]`` of an experiment file, such as ``sequences``, ``length``,
///     ``receiver``, ``fading``, ``snr_db`` (in dB), ``clip`` (a norm) and ``delta``. An absent key has the file's default.
///
/// Raises
/// ------
/// ValueError
///     If a value is out of its range. The message names the key and what is allowed.
/// TypeError
///     If there is no such key.
///
/// Warns
/// -----
/// UserWarning
///     If a setting has no effect under the other settings, such as ``sequences`` of the scheme ``"gaussian"``.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> uplink = floras.Uplink("floras", sequences=25, length=32, snr_db=20.0, clip=1.0, receiver="clipped=1")
/// >>> deltas = np.full((20, 1000), 0.01, dtype=np.float32)
/// >>> result = uplink.aggregate(deltas, seed=1, round=1)
/// >>> result.sum.shape, result.gains.shape
/// ((1000,), (20,))
/// >>> list(result.spend)
/// ['raw-signal', 'any-channel', 'actual', 'idealised', 'published']
#[pyclass(module = "floras", frozen)]
pub(crate) struct Uplink {
    pub(crate) air: Arc<AirInterface>,
}

#[pymethods]
impl Uplink {
    #[new]
    #[pyo3(signature = (scheme = "floras", *, clients = None, **settings))]
    fn new(
        py: Python<'_>,
        scheme: &str,
        clients: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let mut keys =
            settings.map_or_else(|| Ok(toml::Table::new()), |settings| convert::table("", settings))?;
        keys.insert("scheme".to_owned(), toml::Value::String(scheme.to_owned()));
        let clients = optional("clients", clients, 1..=MAX_CLIENTS)?.map(|clients| clients as u32);
        let is_given = |(_, value): &(&String, &toml::Value)| value.as_str() != Some("none");
        let given: Vec<String> = keys.iter().filter(is_given).map(|(key, _)| key.clone()).collect();
        let air = AirInterface::from_keys(keys, clients).map_err(refusal)?;
        let is_used = |key: &String| air.description().entries().any(|(used, _)| used == key);
        let unused: Vec<String> = given.into_iter().filter(|key| !is_used(key)).collect();
        if !unused.is_empty() {
            let note =
                format!("without effect under the other settings, and left out: {}", unused.join(", "));
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(note)?, 1)?;
        }
        Ok(Self { air: Arc::new(air) })
    }

    /// Returns the uplink of an experiment.
    ///
    /// Parameters
    /// ----------
    /// experiment : dict, path or str, optional
    ///     A dictionary, the path of a file, or the name of a preset; the default preset if absent.
    ///
    /// Returns
    /// -------
    /// Uplink
    ///     The uplink, with the experiment's clip norm, delta, masks and number of clients.
    ///
    /// Examples
    /// --------
    /// >>> floras.Uplink.of_experiment("quick").settings["sequences"]
    /// 220
    #[staticmethod]
    #[pyo3(signature = (experiment = None))]
    fn of_experiment(experiment: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let experiment = experiment_of(experiment)?;
        let air = AirInterface::from_experiment(&experiment).map_err(ToPython::to_python)?;
        Ok(Self { air: Arc::new(air) })
    }

    /// All settings that have an effect.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::settings(py, self.air.description())
    }

    /// C, the norm to which updates are clipped; ``None`` without clipping.
    #[getter]
    fn clip(&self) -> Option<f64> {
        self.air.clip()
    }

    /// The view that is quoted unless another one is named: ``"raw-signal"`` with masks, ``"any-channel"`` otherwise.
    #[getter]
    fn view(&self) -> &'static str {
        self.default_view().name()
    }

    /// M, the number of clients in all; ``None`` if all take part in every round.
    #[getter]
    fn clients(&self) -> Option<u32> {
        self.air.clients()
    }

    /// Aggregates the updates of a round over the air.
    ///
    /// Parameters
    /// ----------
    /// deltas : array or sequence of arrays
    ///     Floating-point array of shape ``(K, d)`` with one row per client, or K arrays of shape ``(d,)``. **Sign:** an
    ///     update is the common model *minus* the trained model, so that the server subtracts the mean. Contiguous float32
    ///     arrays are read without a copy and never changed. Other floating-point arrays are converted to float32 first.
    /// seed : int, optional
    ///     Between 0 and 2**63 - 1. With a seed the round is reproducible to the last bit, its noise is the simulation's, and
    ///     no view is a guarantee. Without one the noise is fit for real data: it comes from a cryptographic generator with a
    ///     key from the operating system, and the sum lies on a public grid.
    /// round : int
    ///     Number of the round, from 1.
    /// clients : iterable of int, optional
    ///     Numbers of the clients that sent, from 0; 0 to K - 1 by default.
    /// selected : int, optional
    ///     How many clients were selected, if some did not answer; K by default.
    /// among : int, optional
    ///     From how many clients they were drawn, if not from all.
    /// trial : int
    ///     Number of the trial, from 0, for independent repetitions with one seed.
    ///
    /// Returns
    /// -------
    /// Aggregate
    ///     The decoded sum, the effective channel, and the epsilon of this round.
    ///
    /// Raises
    /// ------
    /// ValueError
    ///     If shapes or numbers are wrong.
    /// TypeError
    ///     If the updates are not floating-point arrays.
    #[pyo3(signature = (deltas, *, seed = None, round = None, clients = None, selected = None, among = None, trial = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python method")]
    fn aggregate(
        &self,
        py: Python<'_>,
        deltas: &Bound<'_, PyAny>,
        seed: Option<&Bound<'_, PyAny>>,
        round: Option<&Bound<'_, PyAny>>,
        clients: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
        trial: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<Aggregate>> {
        let updates = Updates::new(deltas)?;
        let rows = updates.rows()?;
        let spec = spec(rows.len() as u64, seed, round, clients, (selected, among), trial)?;
        let aggregate = work(py, || self.air.aggregate(&spec, &rows))?.map_err(ToPython::to_python)?;
        let result = Aggregate {
            parameters: aggregate.sum.len(),
            sum: read_only(PyArray1::from_vec(py, aggregate.sum)).unbind(),
            clients: rows.len() as f32,
            norms: aggregate.norms,
            broken: aggregate.broken,
            signal: OnceLock::new(),
        };
        let scheme = "an uplink without training has a linear scheme";
        let channel = aggregate.channel.ok_or_else(|| PyValueError::new_err(scheme))?;
        let channel = Channel { draw: Draw { air: Arc::clone(&self.air), spec, channel } };
        Py::new(py, PyClassInitializer::from(channel).add_subclass(result))
    }

    /// Draws the effective channel of a round without any updates. ``aggregate`` has the same channel.
    ///
    /// Parameters
    /// ----------
    /// per_round : int
    ///     K, the number of clients that send, at least 1.
    /// seed, round, clients, selected, among, trial
    ///     As in ``aggregate``.
    ///
    /// Returns
    /// -------
    /// Channel
    ///     Gains, noise and the epsilon of this round.
    #[pyo3(signature = (per_round, *, seed = None, round = None, clients = None, selected = None, among = None, trial = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of a Python method")]
    fn realise(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        seed: Option<&Bound<'_, PyAny>>,
        round: Option<&Bound<'_, PyAny>>,
        clients: Option<&Bound<'_, PyAny>>,
        selected: Option<&Bound<'_, PyAny>>,
        among: Option<&Bound<'_, PyAny>>,
        trial: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Channel> {
        let per_round = integer("per_round", per_round, 1..=MAX_CLIENTS)?;
        let spec = spec(per_round, seed, round, clients, (selected, among), trial)?;
        let channel = work(py, || self.air.realise(&spec))?.map_err(ToPython::to_python)?;
        Ok(Channel { draw: Draw { air: Arc::clone(&self.air), spec, channel } })
    }

    /// Accounts for some rounds, in every view.
    ///
    /// Parameters
    /// ----------
    /// per_round : int
    ///     K, the number of clients in a round, at least 1.
    /// rounds : int
    ///     Number of rounds, between 1 and 1,000,000.
    ///
    /// Returns
    /// -------
    /// Privacy
    ///     A statement for each view, as ``privacy`` of a run.
    ///
    /// Examples
    /// --------
    /// >>> uplink = floras.Uplink(sequences=25, clip=1.0)
    /// >>> account = uplink.account(per_round=20, rounds=10)
    /// >>> account.views["idealised"].guarantee
    /// True
    #[pyo3(signature = (per_round, rounds = None))]
    fn account<'py>(
        &self,
        py: Python<'py>,
        per_round: &Bound<'_, PyAny>,
        rounds: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let per_round = integer("per_round", per_round, 1..=MAX_CLIENTS)? as u32;
        let rounds = optional("rounds", rounds, 1..=1_000_000)?.unwrap_or(1) as u32;
        let report = work(py, || self.air.report(per_round, rounds))?.map_err(ToPython::to_python)?;
        instance(py, "Privacy", &report)
    }

    fn __repr__(&self) -> String {
        let description = self.air.description();
        let settings: Vec<String> =
            description.entries().map(|(key, value)| format!("{key}={}", literal(&value))).collect();
        format!("Uplink({})", settings.join(", "))
    }

    /// Uplinks are equal if they have the same settings.
    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| self.air.description() == other.get().air.description())
    }

    fn __hash__(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.air.description().to_string().hash(&mut hasher);
        hasher.finish()
    }

    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        Ok((PyTuple::empty(py), self.settings(py)?))
    }
}

/// An array that Python cannot write to.
fn read_only<T: Element>(array: Bound<'_, PyArray1<T>>) -> Bound<'_, PyArray1<T>> {
    let (_, array) = (array.readwrite().make_nonwriteable(), array);
    array
}

impl Uplink {
    /// The view that is quoted unless another one is named.
    pub(crate) fn default_view(&self) -> View {
        PrivacySettings::default_view(self.air.description().entries().any(|(key, _)| key == "masks"))
    }
}

/// An unknown keyword is an error of the call, not of a value.
fn refusal(error: SimError) -> PyErr {
    match error {
        SimError::Experiment(unknown @ ExperimentError::UnknownKey { .. }) => {
            PyTypeError::new_err(unknown.to_string())
        }
        other => other.to_python(),
    }
}

fn spec(
    count: u64,
    given_seed: Option<&Bound<'_, PyAny>>,
    round: Option<&Bound<'_, PyAny>>,
    clients: Option<&Bound<'_, PyAny>>,
    (selected, among): (Option<&Bound<'_, PyAny>>, Option<&Bound<'_, PyAny>>),
    trial: Option<&Bound<'_, PyAny>>,
) -> PyResult<RoundSpec> {
    let clients: Vec<u32> = match clients.filter(|clients| !clients.is_none()) {
        None => (0..count as u32).collect(),
        Some(clients) => {
            let numbers = integers("clients", clients, 0..=MAX_CLIENTS - 1)?;
            numbers.into_iter().map(|number| number as u32).collect()
        }
    };
    let is_given = given_seed.is_some_and(|seed| !seed.is_none());
    Ok(RoundSpec {
        noise: if is_given { Noise::Simulated } else { Noise::Release },
        seed: seed(given_seed)?,
        trial: optional("trial", trial, 0..=u16::MAX.into())?.unwrap_or(0) as u16,
        round: optional("round", round, 1..=u64::from(u32::MAX))?.unwrap_or(1) as u32,
        selected: optional("selected", selected, 1..=MAX_CLIENTS)?.unwrap_or(count) as u32,
        among: optional("among", among, 1..=MAX_CLIENTS)?.map(|among| among as u32),
        clients,
    })
}

/// A drawn round: its clients and their channel.
pub(crate) struct Draw {
    pub(crate) air: Arc<AirInterface>,
    pub(crate) spec: RoundSpec,
    pub(crate) channel: EffectiveChannel,
}

/// The effective channel of a round: the decoded sum is ``sum(gains[k] * x[k]) + noise_std * n``.
#[pyclass(module = "floras", frozen, subclass)]
pub(crate) struct Channel {
    pub(crate) draw: Draw,
}

#[pymethods]
impl Channel {
    /// The factor of each client's update in the sum.
    #[getter]
    fn gains<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.draw.channel.gains())
    }

    /// The standard deviation of the noise in every parameter of the sum.
    #[getter]
    fn noise_std(&self) -> f64 {
        self.draw.channel.noise_std()
    }

    /// Numbers of the clients that send, from 0.
    #[getter]
    fn clients(&self) -> Vec<u32> {
        self.draw.spec.clients.clone()
    }

    /// Number of clients that were selected.
    #[getter]
    fn selected(&self) -> u32 {
        self.draw.spec.selected
    }

    /// The round's number, from 1.
    #[getter]
    fn round(&self) -> u32 {
        self.draw.spec.round
    }

    /// The epsilon of this round alone, by view; views without a finite epsilon are left out. Do not add up rounds: use
    /// ``Ledger``.
    #[getter]
    fn spend<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let Draw { air, spec, .. } = &self.draw;
        let spend = work(py, || air.spend(air.cohort(spec)))?.map_err(ToPython::to_python)?;
        instance(py, "ByView", &spend)
    }

    /// Whether the noise is fit for real data. It is not with a seed, and then no view is a guarantee.
    #[getter]
    fn is_for_release(&self) -> bool {
        self.draw.spec.noise == Noise::Release
    }

    /// Draws the same round for other clients. Clients in both draws have the same channels.
    ///
    /// Parameters
    /// ----------
    /// per_round : int
    ///     Number of clients that send, numbered from 0.
    /// selected : int, optional
    ///     Number of clients that were selected; ``per_round`` by default.
    ///
    /// Returns
    /// -------
    /// Channel
    ///     The channel of the same round for these clients.
    #[pyo3(signature = (per_round, selected = None))]
    fn with_clients(
        &self,
        py: Python<'_>,
        per_round: &Bound<'_, PyAny>,
        selected: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let per_round = integer("per_round", per_round, 1..=MAX_CLIENTS)? as u32;
        let selected =
            optional("selected", selected, 1..=MAX_CLIENTS)?.map_or(per_round, |selected| selected as u32);
        let Draw { air, spec, .. } = &self.draw;
        let spec = RoundSpec { clients: (0..per_round).collect(), selected, ..spec.clone() };
        let channel = work(py, || air.realise(&spec))?.map_err(ToPython::to_python)?;
        Ok(Self { draw: Draw { air: Arc::clone(air), spec, channel } })
    }

    /// Adds the round's noise to a sum ``sum(gains[k] * x[k])``.
    ///
    /// Without a seed the noise is fit for real data and new in every call: call this method once. Add with compensation, as
    /// ``math.fsum`` does: the accounting covers a rounding error of the sum up to 24 units in the last place.
    ///
    /// Parameters
    /// ----------
    /// sum : ndarray of float64
    ///     The sum, of shape ``(d,)``.
    ///
    /// Returns
    /// -------
    /// ndarray of float32
    ///     The noisy sum, of shape ``(d,)``.
    fn add_noise<'py>(
        &self,
        py: Python<'py>,
        sum: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let sum: PyReadonlyArray1<'py, f64> = sum.extract().map_err(|_| {
            let given = convert::type_name(sum);
            PyTypeError::new_err(format!("sum must be a one-dimensional float64 array, not {given}"))
        })?;
        let sum = sum.as_slice()?;
        let Draw { air, spec, channel } = &self.draw;
        let noisy = work(py, || air.add_noise(spec, channel.noise_std(), sum))?;
        Ok(PyArray1::from_vec(py, noisy.map_err(ToPython::to_python)?))
    }

    /// Returns the noise in a sum, the same in every call. It needs a seed; see ``add_noise``.
    ///
    /// Parameters
    /// ----------
    /// parameters : int
    ///     d, the number of parameters of the sum, at least 1.
    ///
    /// Returns
    /// -------
    /// ndarray of float32
    ///     The noise, of shape ``(d,)``.
    fn noise<'py>(
        &self,
        py: Python<'py>,
        parameters: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let parameters = integer("parameters", parameters, 1..=1 << 40)? as usize;
        let room = Vec::<f32>::new().try_reserve_exact(2 * parameters);
        room.map_err(|_| PyMemoryError::new_err(format!("not enough memory for {parameters} parameters")))?;
        let Draw { air, spec, channel } = &self.draw;
        let noise = work(py, || air.noise(spec, channel.noise_std(), parameters))?;
        Ok(PyArray1::from_vec(py, noise.map_err(ToPython::to_python)?))
    }

    fn __repr__(&self) -> String {
        let RoundSpec { round, clients, .. } = &self.draw.spec;
        format!("<Channel of {} clients in round {round}, noise {:.4}>", clients.len(), self.noise_std())
    }
}

/// A value of a description as a Python literal. It differs from TOML for `"none"` and for tables such as `{ amplitude = 1.0 }`.
fn literal(value: &str) -> String {
    if value == "\"none\"" {
        return "None".to_owned();
    }
    let Some(table) = value.strip_prefix("{ ").and_then(|rest| rest.strip_suffix(" }")) else {
        return value.to_owned();
    };
    let entries: Vec<String> = table
        .split(", ")
        .filter_map(|entry| entry.split_once(" = "))
        .map(|(key, value)| format!("\"{key}\": {value}"))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// A table with rows of this width; a list if they have one entry.
fn rows<'py, T: Element>(py: Python<'py>, values: &[T], width: usize) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    let shape = if width > 1 { vec![values.len() / width, width] } else { vec![values.len()] };
    PyArray1::from_slice(py, values).reshape(shape)
}

/// The result of a round: the decoded sum and its effective channel.
#[pyclass(module = "floras", frozen, extends = Channel)]
pub(crate) struct Aggregate {
    parameters: usize,
    sum: Py<PyArray1<f32>>,
    clients: f32,
    norms: Option<Vec<f64>>,
    broken: Vec<usize>,
    /// Drawn again from the round's streams when it is first asked for.
    signal: OnceLock<Option<Signal>>,
}

impl Aggregate {
    /// The signal behind the gains; `None` for a scheme without a radio.
    fn signal<'a>(this: &'a PyRef<'_, Self>, py: Python<'_>) -> PyResult<Option<&'a Signal>> {
        if this.signal.get().is_none() {
            let (Draw { air, spec, .. }, parameters) = (&this.as_super().draw, this.parameters);
            let signal = work(py, || air.signal(spec, parameters))?.map_err(ToPython::to_python)?;
            // Another thread may have drawn the same one in the meantime.
            let _ = this.signal.set(signal);
        }
        Ok(this.signal.get().and_then(Option::as_ref))
    }
}

#[pymethods]
impl Aggregate {
    /// The complex channel of each client; ``None`` for a scheme without a radio. The base station does not know it. With several
    /// antennas the shape is ``(K, antennas)``.
    #[getter]
    fn channels<'py>(
        this: PyRef<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyArrayDyn<Complex64>>>> {
        let antennas =
            |signal: &Signal| signal.channels.len() * signal.branches / signal.amplitudes.len().max(1);
        let signal = Self::signal(&this, py)?;
        signal.map(|signal| rows(py, &signal.channels, antennas(signal))).transpose()
    }

    /// The real amplitude at which a unit symbol of each client arrives; ``None`` for a scheme without a radio. With several real
    /// branches (complex modulation, or several antennas) the shape is ``(K, branches)``, and that of estimates and weights
    /// ``(N, branches)``.
    #[getter]
    fn amplitudes<'py>(
        this: PyRef<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        let signal = Self::signal(&this, py)?;
        signal.map(|signal| rows(py, &signal.amplitudes, signal.branches)).transpose()
    }

    /// The sequence of each client, from 0; ``None`` for a scheme without sequences. It is secret from the base station: with
    /// real data, keep it where the updates are.
    #[getter]
    fn assignment<'py>(
        this: PyRef<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let signal = Self::signal(&this, py)?.filter(|signal| !signal.assigned.is_empty());
        let numbers =
            |signal: &Signal| signal.assigned.iter().map(|&sequence| sequence as i64).collect::<Vec<i64>>();
        Ok(signal.map(|signal| PyArray1::from_vec(py, numbers(signal))))
    }

    /// The base station's channel estimate of every sequence; ``None`` for a scheme without a pilot to the base station.
    #[getter]
    fn estimates<'py>(
        this: PyRef<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        let signal = Self::signal(&this, py)?.filter(|signal| signal.pilot_noise_std.is_some());
        signal.map(|signal| rows(py, &signal.estimates, signal.branches)).transpose()
    }

    /// The decoder's weight of every sequence, or the one factor of a scheme without sequences; ``None`` without a radio.
    ///
    /// With orthonormal sequences ``gains == amplitudes * weights[assignment]``, up to rounding.
    ///
    /// >>> import numpy as np
    /// >>> uplink = floras.Uplink(sequences=25, length=32, snr_db=20.0)
    /// >>> result = uplink.aggregate(np.zeros((20, 10), np.float32), seed=1, round=1)
    /// >>> bool(np.allclose(result.gains, result.amplitudes * result.weights[result.assignment]))
    /// True
    #[getter]
    fn weights<'py>(
        this: PyRef<'py, Self>,
        py: Python<'py>,
    ) -> PyResult<Option<Bound<'py, PyArrayDyn<f64>>>> {
        let signal = Self::signal(&this, py)?;
        signal.map(|signal| rows(py, &signal.weights, signal.branches)).transpose()
    }

    /// s, the standard deviation of the receiver's noise in a despread payload symbol; ``None`` without a radio.
    #[getter]
    fn symbol_noise_std(this: PyRef<'_, Self>, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(Self::signal(&this, py)?.map(|signal| signal.symbol_noise_std))
    }

    /// The standard deviation of the error of an estimate; ``None`` without estimates.
    #[getter]
    fn pilot_noise_std(this: PyRef<'_, Self>, py: Python<'_>) -> PyResult<Option<f64>> {
        Ok(Self::signal(&this, py)?.and_then(|signal| signal.pilot_noise_std))
    }

    /// The decoded sum of the updates, noise included; read-only.
    #[getter]
    fn sum<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        self.sum.bind(py).clone()
    }

    /// The decoded sum divided by the number of clients. The server subtracts it from the common model.
    #[getter]
    fn mean<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let clients = PyArray1::from_vec(py, vec![self.clients]);
        self.sum.bind(py).call_method1("__truediv__", (clients,))
    }

    /// Norms of the updates before clipping; ``None`` without clipping. Not private: they depend on the data.
    #[getter]
    fn norms<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.norms.as_ref().map(|norms| PyArray1::from_slice(py, norms))
    }

    /// Positions of the updates with a value that is not finite. They were sent as zero. Not private: it depends on the data.
    #[getter]
    fn broken(&self) -> Vec<usize> {
        self.broken.clone()
    }

    fn __repr__(this: PyRef<'_, Self>) -> String {
        let RoundSpec { round, clients, .. } = &this.as_super().draw.spec;
        format!("<Aggregate of {} clients in round {round}>", clients.len())
    }
}
