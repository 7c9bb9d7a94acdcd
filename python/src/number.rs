//! Checks of numbers in arguments.

use std::ops::RangeInclusive;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use toml::Value;

use crate::convert;

/// Maximum seed that an experiment file can hold.
const MAX_SEED: u64 = i64::MAX as u64;

/// An integer in a range.
pub(crate) fn integer(name: &str, value: &Bound<'_, PyAny>, allowed: RangeInclusive<u64>) -> PyResult<u64> {
    let Value::Integer(number) = convert::value(name, value)? else {
        let given = convert::type_name(value);
        return Err(PyTypeError::new_err(format!("{name} must be an integer, not {given}")));
    };
    let number_allowed = u64::try_from(number).ok().filter(|number| allowed.contains(number));
    number_allowed.ok_or_else(|| {
        let (least, most) = allowed.into_inner();
        PyValueError::new_err(format!("{name} must be between {least} and {most}, not {number}"))
    })
}

/// An optional integer in a range.
pub(crate) fn optional(
    name: &str,
    value: Option<&Bound<'_, PyAny>>,
    allowed: RangeInclusive<u64>,
) -> PyResult<Option<u64>> {
    value.filter(|value| !value.is_none()).map(|value| integer(name, value, allowed)).transpose()
}

/// A seed; from the operating system if absent.
pub(crate) fn seed(value: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    match optional("seed", value, 0..=MAX_SEED)? {
        Some(seed) => Ok(seed),
        None => fresh_seed(),
    }
}

fn fresh_seed() -> PyResult<u64> {
    use rand::TryRng;
    let failed = |_| PyValueError::new_err("the operating system provides no random numbers; give a seed");
    rand::rngs::SysRng.try_next_u64().map_err(failed)
}

/// The integers of a sequence.
pub(crate) fn integers(
    name: &str,
    values: &Bound<'_, PyAny>,
    allowed: RangeInclusive<u64>,
) -> PyResult<Vec<u64>> {
    let items = values.try_iter().map_err(|_| {
        let given = convert::type_name(values);
        PyTypeError::new_err(format!("{name} must be a sequence of integers, not {given}"))
    })?;
    let number = |(at, item): (usize, PyResult<Bound<'_, PyAny>>)| {
        integer(&format!("{name}[{at}]"), &item?, allowed.clone())
    };
    items.enumerate().map(number).collect()
}
