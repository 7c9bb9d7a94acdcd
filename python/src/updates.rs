//! Updates in NumPy arrays. Contiguous float32 arrays are read without a copy.

use floras_phy::precode;
use numpy::{
    PyArray1, PyArray2, PyArrayDescrMethods, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::convert::type_name;
use crate::error::ToPython;
use crate::threads::work;
use crate::uplink::MAX_CLIENTS;

/// The updates of a round, each one row, borrowed from their arrays.
pub(crate) enum Updates<'py> {
    /// One array of shape `(K, d)`.
    Stacked(PyReadonlyArray2<'py, f32>),
    /// `K` arrays of shape `(d,)`.
    Listed(Vec<PyReadonlyArray1<'py, f32>>),
}

impl<'py> Updates<'py> {
    /// Reads an array of shape `(K, d)`, or a sequence of `K` arrays of shape `(d,)`.
    pub(crate) fn new(deltas: &Bound<'py, PyAny>) -> PyResult<Self> {
        if deltas.cast::<PyUntypedArray>().is_ok() {
            let array = float32("deltas", deltas)?;
            if array.ndim() != 2 {
                return Err(PyValueError::new_err(format!(
                    "deltas must have two dimensions, one row for each client, not the shape {}",
                    shape_text(&array)
                )));
            }
            let (clients, parameters) = (array.shape()[0] as u64, array.shape()[1]);
            if clients == 0 || clients > MAX_CLIENTS || parameters == 0 {
                return Err(PyValueError::new_err(format!(
                    "deltas must have between 1 and {MAX_CLIENTS} rows, one for each client, and at least one value in an \
                     update, not the shape {}",
                    shape_text(&array)
                )));
            }
            let array = array.cast::<PyArray2<f32>>().map_err(PyErr::from)?;
            return Ok(Self::Stacked(array.try_readonly().map_err(|error| borrowed("deltas", &error))?));
        }
        let is_text = deltas.is_instance_of::<PyString>();
        let items = deltas.try_iter().ok().filter(|_| !is_text).ok_or_else(|| {
            let given = type_name(deltas);
            PyTypeError::new_err(format!(
                "deltas must be a floating-point array with one row for each client, or a sequence of floating-point arrays, \
                 not {given}"
            ))
        })?;
        let rows = items.enumerate().map(|(number, item)| row(&format!("deltas[{number}]"), &item?));
        rows.collect::<PyResult<_>>().map(Self::Listed)
    }

    /// The updates of the round, one slice per client.
    pub(crate) fn rows(&self) -> PyResult<Vec<&[f32]>> {
        match self {
            Self::Stacked(array) => {
                let parameters = array.shape()[1];
                let values = array.as_slice().map_err(|_| not_aligned("deltas"))?;
                Ok(values.chunks(parameters).collect())
            }
            Self::Listed(rows) => rows
                .iter()
                .enumerate()
                .map(|(number, row)| row.as_slice().map_err(|_| not_aligned(&format!("deltas[{number}]"))))
                .collect(),
        }
    }
}

/// Reads one update: a float32 array of shape `(d,)`. `name` appears in errors.
fn row<'py>(name: &str, item: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArray1<'py, f32>> {
    let array = float32(name, item)?;
    if array.ndim() != 1 {
        return Err(PyValueError::new_err(format!(
            "{name} must have one dimension, not the shape {}",
            shape_text(&array)
        )));
    }
    let array = array.cast::<PyArray1<f32>>().map_err(PyErr::from)?;
    array.try_readonly().map_err(|error| borrowed(name, &error))
}

/// A contiguous float32 array. Other floating-point arrays are converted, and anything else is rejected.
fn float32<'py>(name: &str, item: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyUntypedArray>> {
    let Ok(array) = item.cast::<PyUntypedArray>() else {
        let given = type_name(item);
        return Err(PyTypeError::new_err(format!("{name} must be a floating-point array, not {given}")));
    };
    if item.hasattr("mask")? {
        return Err(PyTypeError::new_err(format!("{name} must be a plain array, not a masked one")));
    }
    let dtype = array.dtype();
    if dtype.is_equiv_to(&numpy::dtype::<f32>(item.py())) && array.is_c_contiguous() {
        return Ok(array.clone());
    }
    if dtype.kind() != b'f' {
        return Err(PyTypeError::new_err(format!(
            "{name} must be floating-point, not {dtype}; array.astype(numpy.float32) converts it"
        )));
    }
    let converted = item.call_method1("astype", (numpy::dtype::<f32>(item.py()), "C"))?;
    Ok(converted.cast::<PyUntypedArray>().map_err(PyErr::from)?.clone())
}

fn not_aligned(name: &str) -> PyErr {
    PyValueError::new_err(format!("{name} must be aligned in memory; array.copy() makes it so"))
}

fn borrowed(name: &str, error: &numpy::BorrowError) -> PyErr {
    PyValueError::new_err(format!("{name} cannot be read: {error}"))
}

fn shape_text(array: &Bound<'_, PyUntypedArray>) -> String {
    let sizes: Vec<String> = array.shape().iter().map(ToString::to_string).collect();
    format!("({})", sizes.join(", "))
}

/// Clips an update to a norm, as an uplink does.
///
/// On the client's own device this makes the guarantee independent of the server.
///
/// Parameters
/// ----------
/// update : ndarray
///     Floating-point array of shape ``(d,)``. Arrays of other precision are converted to float32.
/// norm : float
///     Largest Euclidean norm, between 1e-30 and 1e30.
///
/// Returns
/// -------
/// ndarray of float32
///     A new array whose norm is at most ``norm``, rounding included.
///
/// Examples
/// --------
/// >>> import numpy as np
/// >>> floras.clip(np.array([3, 4], np.float32), 1.0).round(4)
/// array([0.6, 0.8], dtype=float32)
#[pyfunction]
pub(crate) fn clip<'py>(
    py: Python<'py>,
    update: &Bound<'py, PyAny>,
    norm: f64,
) -> PyResult<Bound<'py, PyArray1<f32>>> {
    let array = row("update", update)?;
    let mut values = [array.as_slice().map_err(|_| not_aligned("update"))?.to_vec()];
    if values[0].is_empty() {
        return Err(PyValueError::new_err("update must have at least one value"));
    }
    work(py, || precode::clip(&mut values, norm))?.map_err(ToPython::to_python)?;
    let [clipped] = values;
    Ok(PyArray1::from_vec(py, clipped))
}
