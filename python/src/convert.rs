//! Values between Python, TOML and JSON.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde::Serialize;
use toml::{Table, Value};

use crate::error::ToPython;

/// Maximum depth of nested sections.
const MAX_NESTED: u32 = 8;

/// A dictionary as a table. `None` becomes `"none"`, as in a file.
pub(crate) fn table(name: &str, dictionary: &Bound<'_, PyDict>) -> PyResult<Table> {
    nested_table(name, dictionary, 0)
}

fn nested_table(name: &str, dictionary: &Bound<'_, PyDict>, depth: u32) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in dictionary {
        let Ok(key) = key.cast::<PyString>() else {
            return Err(PyTypeError::new_err(format!(
                "the keys of {name} must be text, not {}",
                type_name(&key)
            )));
        };
        let key = key.to_str()?.to_owned();
        let inner = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
        table.insert(key, nested_value(&inner, &value, depth + 1)?);
    }
    Ok(table)
}

/// A mapping as a dictionary; `None` for anything else.
pub(crate) fn dictionary_of<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    if let Ok(dictionary) = value.cast::<PyDict>() {
        return Ok(Some(dictionary.clone()));
    }
    let Ok(mapping) = value.cast::<PyMapping>() else { return Ok(None) };
    let dictionary = value.py().get_type::<PyDict>().call1((mapping,))?;
    Ok(Some(dictionary.cast_into().map_err(PyErr::from)?))
}

/// A value as TOML; `name` is for messages.
pub(crate) fn value(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Value> {
    nested_value(name, value, 0)
}

fn nested_value(name: &str, value: &Bound<'_, PyAny>, depth: u32) -> PyResult<Value> {
    if depth > MAX_NESTED {
        return Err(PyValueError::new_err(format!("{name} is nested too deeply")));
    }
    if value.is_none() {
        return Ok(Value::String("none".to_owned()));
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Boolean(flag.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(Value::Float(float.value()));
    }
    if value.is_instance_of::<PyInt>() {
        let integer = value.extract::<i64>();
        let too_large =
            |_| PyValueError::new_err(format!("{name} must be an integer of 64 bits, not {value}"));
        return integer.map(Value::Integer).map_err(too_large);
    }
    if let Some(inner) = dictionary_of(value)? {
        return nested_table(name, &inner, depth).map(Value::Table);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let items = value.try_iter()?.map(|item| nested_value(name, &item?, depth + 1));
        return items.collect::<PyResult<_>>().map(Value::Array);
    }
    number_of_numpy(name, value, depth)
}

/// Numbers and arrays of NumPy, and paths.
fn number_of_numpy(name: &str, value: &Bound<'_, PyAny>, depth: u32) -> PyResult<Value> {
    if value.hasattr("__fspath__")? {
        return Ok(Value::String(value.call_method0("__fspath__")?.extract::<String>()?));
    }
    // tolist turns NumPy's numbers and arrays into Python's.
    if value.hasattr("ndim")? && value.hasattr("tolist")? {
        let plain = value.call_method0("tolist")?;
        if !plain.hasattr("tolist")? {
            return nested_value(name, &plain, depth + 1);
        }
    }
    Err(PyTypeError::new_err(format!(
        "{name} must be a number, text, a list or a dictionary, not {}",
        type_name(value)
    )))
}

/// The name of a value's type.
pub(crate) fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "an unknown type".to_owned(), |name| name.to_string())
}

/// A value that JSON can hold, as Python values.
pub(crate) fn python<'py>(py: Python<'py>, value: &impl Serialize) -> PyResult<Bound<'py, PyAny>> {
    let value = serde_json::to_value(value).map_err(ToPython::to_python)?;
    json(py, &value)
}

fn json<'py>(py: Python<'py>, value: &serde_json::Value) -> PyResult<Bound<'py, PyAny>> {
    use serde_json::Value as Json;
    Ok(match value {
        Json::Null => py.None().into_bound(py),
        Json::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => integer.into_pyobject(py)?.into_any(),
            (None, Some(integer), _) => integer.into_pyobject(py)?.into_any(),
            (None, None, number) => PyFloat::new(py, number.unwrap_or(f64::NAN)).into_any(),
        },
        Json::String(text) => PyString::new(py, text).into_any(),
        Json::Array(items) => {
            let items = items.iter().map(|item| json(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Json::Object(entries) => {
            let dictionary = PyDict::new(py);
            for (key, value) in entries {
                dictionary.set_item(key, json(py, value)?)?;
            }
            dictionary.into_any()
        }
    })
}

/// Settings as a dictionary. Numbers that JSON lacks, such as `inf`, are kept.
pub(crate) fn settings<'py>(py: Python<'py>, settings: &impl Serialize) -> PyResult<Bound<'py, PyDict>> {
    let table = Table::try_from(settings).map_err(|error| PyValueError::new_err(error.to_string()))?;
    dictionary(py, &table)
}

fn dictionary<'py>(py: Python<'py>, table: &Table) -> PyResult<Bound<'py, PyDict>> {
    let dictionary = PyDict::new(py);
    for (key, value) in table {
        dictionary.set_item(key, of_toml(py, value)?)?;
    }
    Ok(dictionary)
}

fn of_toml<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Integer(integer) => integer.into_pyobject(py)?.into_any(),
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Boolean(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Datetime(time) => PyString::new(py, &time.to_string()).into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| of_toml(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Table(inner) => dictionary(py, inner)?.into_any(),
    })
}
