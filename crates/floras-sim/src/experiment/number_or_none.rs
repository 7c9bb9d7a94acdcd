//! A number that can be switched off in words: `clip = 1.0` or `clip = "none"`.

use std::fmt;

use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A number, or `"none"`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct NumberOrNone(pub(super) Option<f64>);

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
