//! Data sets and their partition, as NumPy arrays.

use floras_learn::Samples;
use floras_sim::Federation;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::convert;
use crate::error::ToPython;
use crate::number::optional;
use crate::run::experiment_of;
use crate::threads::work;

/// Features, one row a sample, and labels.
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
            tensors.into_iter().map(|tensor| (tensor.name.to_owned(), tensor.shape)).collect();
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
