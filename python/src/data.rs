//! Data sets and their partition, as NumPy arrays.

use floras_core::random::StreamName;
use floras_learn::Samples;
use floras_learn::Shares;
use floras_learn::data::DataSet;
use floras_sim::{Federation, OwnData, purpose};
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;
use crate::number::optional;
use crate::run::experiment_of;
use crate::threads::work;

/// Features, one row per sample, and labels.
type Arrays<'py> = (Bound<'py, PyArray2<f32>>, Bound<'py, PyArray1<i64>>);

fn arrays<'py>(py: Python<'py>, samples: &Samples) -> PyResult<Arrays<'py>> {
    let features = PyArray1::from_slice(py, samples.features());
    let features = features.reshape([samples.count(), samples.width()])?;
    let labels = samples.labels().iter().map(|&label| i64::from(label)).collect();
    Ok((features, PyArray1::from_vec(py, labels)))
}

/// The embedded digits; see ``floras.load_digits20``.
#[pyfunction]
#[pyo3(signature = (train = None, test = None))]
pub(crate) fn digits20<'py>(
    py: Python<'py>,
    train: Option<&Bound<'py, PyAny>>,
    test: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Arrays<'py>, Arrays<'py>)> {
    let train = optional("train", train, 1..=1_000_000)?.unwrap_or(4000) as usize;
    let test = optional("test", test, 1..=1_000_000)?.unwrap_or(1000) as usize;
    let set = work(py, || floras_learn::data::digits20(train, test))?;
    let set = set.map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok((arrays(py, &set.train)?, arrays(py, &set.test)?))
}

/// The clients' samples of an experiment; see ``floras.federate``.
#[pyfunction]
#[pyo3(signature = (experiment = None, trial = None))]
pub(crate) fn federate<'py>(
    py: Python<'py>,
    experiment: Option<&Bound<'py, PyAny>>,
    trial: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let experiment = experiment_of(experiment)?;
    let last = u64::from(experiment.settings().trials) - 1;
    let trial = optional("trial", trial, 0..=last)?.unwrap_or(0) as u16;
    let loaded = work(py, || {
        let federation = Federation::new(&experiment)?;
        let clients = federation.client_samples(trial)?;
        let initial = federation.initial_model(trial);
        let tensors = federation.model().tensors();
        let shapes: Vec<(String, Vec<usize>)> =
            tensors.into_iter().map(|tensor| (tensor.name, tensor.shape)).collect();
        Ok((clients, federation.test().clone(), initial, shapes))
    })?;
    let (clients, test, initial, shapes) = loaded.map_err(|error: floras_sim::SimError| error.to_python())?;
    let federated = PyDict::new(py);
    let clients = clients.iter().map(|samples| arrays(py, samples)).collect::<PyResult<Vec<_>>>()?;
    federated.set_item("clients", clients)?;
    federated.set_item("test", arrays(py, &test)?)?;
    federated.set_item("initial_model", PyArray1::from_vec(py, initial))?;
    federated.set_item("shapes", shapes)?;
    federated.set_item("experiment", convert::settings(py, &experiment)?)?;
    Ok(federated)
}

/// Arrays of the caller as the data set of an experiment.
#[pyclass(module = "floras._core", frozen)]
pub(crate) struct OwnArrays {
    pub(crate) data: OwnData,
}

#[pymethods]
impl OwnArrays {
    /// Training and test samples, and optionally the training rows of each client.
    #[new]
    #[pyo3(signature = (train, test, classes, rows = None))]
    fn new(
        py: Python<'_>,
        train: (PyReadonlyArray2<'_, f32>, PyReadonlyArray1<'_, i64>),
        test: (PyReadonlyArray2<'_, f32>, PyReadonlyArray1<'_, i64>),
        classes: usize,
        rows: Option<Vec<Vec<u32>>>,
    ) -> PyResult<Self> {
        let samples = |name: &str, (x, y): &(PyReadonlyArray2<'_, f32>, PyReadonlyArray1<'_, i64>)| {
            let label = |&label: &i64| u16::try_from(label).ok();
            let Some(labels) = y.as_slice()?.iter().map(label).collect::<Option<Vec<u16>>>() else {
                return Err(PyValueError::new_err(format!("labels of {name} must be between 0 and 65535")));
            };
            Samples::new(x.shape()[1], classes, x.as_slice()?.to_vec(), labels)
                .map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
        };
        let set = DataSet { train: samples("data", &train)?, test: samples("test", &test)? };
        let data = work(py, || OwnData::new(set, rows))?.map_err(ToPython::to_python)?;
        Ok(Self { data })
    }

    /// SHA-256 of the arrays and rows, in hexadecimal digits.
    #[getter]
    fn sha256(&self, py: Python<'_>) -> PyResult<String> {
        work(py, || self.data.fingerprint())
    }
}

/// Checks the listed training rows of each client: at least one per client, each below `samples`, and none twice.
#[pyfunction]
pub(crate) fn check_rows(rows: Vec<Vec<u32>>, samples: usize) -> PyResult<()> {
    let shares = Shares::of_lists(rows, samples);
    shares.map(|_| ()).map_err(|error| PyValueError::new_err(format!("data: {error}")))
}

/// Returns the training rows of each client in a trial, with the partition of `floras run`.
#[pyfunction]
pub(crate) fn partition<'py>(
    py: Python<'py>,
    experiment: &Bound<'py, PyDict>,
    labels: PyReadonlyArray1<'py, i64>,
    trial: u16,
) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
    let experiment = experiment_of(Some(experiment.as_any()))?;
    let settings = experiment.settings();
    let labels: Result<Vec<u16>, _> = labels.as_slice()?.iter().map(|&label| u16::try_from(label)).collect();
    let labels = labels.map_err(|_| PyValueError::new_err("labels must be between 0 and 65535"))?;
    let classes = labels.iter().max().map_or(1, |&label| usize::from(label) + 1);
    let mut stream = StreamName::new(settings.seed, purpose::PARTITION).trial(trial).stream();
    let clients = settings.clients.total as usize;
    let shares = settings.data.partition.share(&labels, classes, clients, &mut stream);
    let shares = shares.map_err(|error| PyValueError::new_err(format!("data.partition: {error}")))?;
    let rows = |client| shares.of(client).iter().map(|&row| i64::from(row)).collect();
    Ok((0..clients).map(|client| PyArray1::from_vec(py, rows(client))).collect())
}

/// Returns the selected clients of a round, from 1, in ascending order, as `floras run` selects them.
#[pyfunction]
pub(crate) fn select(experiment: &Bound<'_, PyDict>, trial: u16, round: u32) -> PyResult<Vec<u32>> {
    let experiment = experiment_of(Some(experiment.as_any()))?;
    Ok(floras_sim::select(experiment.settings(), trial.into(), round))
}
