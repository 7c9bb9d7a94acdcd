//! A number that can be switched off in words: `clip = 1.0` or `clip = "none"`.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::error::{ExperimentError, within};

/// A number, or `"none"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NumberOrNone(pub(super) Option<f64>);

impl NumberOrNone {
    /// Fails if there is a number outside of a range.
    pub(super) fn within(self, key: &str, range: RangeInclusive<f64>) -> Result<(), ExperimentError> {
        within(key, self.0, range).map_err(|error| match error {
            ExperimentError::Value { key, allowed, value } => {
                ExperimentError::Value { key, allowed: format!("{allowed}, or \"none\""), value }
            }
            other => other,
        })
    }
}

impl Serialize for NumberOrNone {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            None => serializer.serialize_str("none"),
            Some(number) => serializer.serialize_f64(number),
        }
    }
}

impl<'de> Deserialize<'de> for NumberOrNone {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

struct NumberVisitor;

impl Visitor<'_> for NumberVisitor {
    type Value = NumberOrNone;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number or \"none\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NumberOrNone, E> {
        match text {
            "none" => Ok(NumberOrNone(None)),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<NumberOrNone, E> {
        Ok(NumberOrNone(Some(number)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<NumberOrNone, E> {
        self.visit_f64(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<NumberOrNone, E> {
        self.visit_f64(number as f64)
    }
}
