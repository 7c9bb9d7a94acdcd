//! Which of the selected clients are silent in a round.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize, Serializer};

use crate::choice::{Choice, ChoiceError};

/// A probability with which each selected client is silent, or a file that lists the silent ones.
///
/// Files hold a number or a text: `0.1`, `"trace=file.csv"` or `{ trace = "file.csv" }`.
///
/// ```
/// use floras_core::Dropout;
///
/// assert_eq!("0.1".parse(), Dropout::probability(0.1));
/// assert!("1".parse::<Dropout>().is_err());
/// assert!(Dropout::default().is_none());
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Dropout(Source);

#[derive(Clone, Debug, PartialEq)]
enum Source {
    Probability(f64),
    Trace(PathBuf),
}

impl Dropout {
    /// Each selected client is silent with probability `p`, independently: `0 ≤ p < 1`.
    pub fn probability(p: f64) -> Result<Self, ChoiceError> {
        // Not −0, which would be written differently.
        if (0.0..1.0).contains(&p) { Ok(Self(Source::Probability(p.abs()))) } else { Err(Self::refuse(p)) }
    }

    /// The file lists the silent clients.
    pub fn trace(path: impl Into<PathBuf>) -> Self {
        Self(Source::Trace(path.into()))
    }

    /// `p`, with `0 ≤ p < 1`; `None` for a trace.
    pub fn as_probability(&self) -> Option<f64> {
        match self.0 {
            Source::Probability(p) => Some(p),
            Source::Trace(_) => None,
        }
    }

    /// The file; `None` for a probability.
    pub fn as_trace(&self) -> Option<&Path> {
        match &self.0 {
            Source::Probability(_) => None,
            Source::Trace(path) => Some(path),
        }
    }

    /// Whether every selected client sends in every round: `p = 0`.
    pub fn is_none(&self) -> bool {
        self.as_probability() == Some(0.0)
    }
}

impl Default for Dropout {
    /// No client is silent.
    fn default() -> Self {
        Self(Source::Probability(0.0))
    }
}

impl Choice for Dropout {
    const WHAT: &'static str = "dropout";
    const FORMS: &'static [&'static str] = &["p", "trace=file"];
    const RANGES: &'static str = "p at least 0 and below 1";

    fn label(&self) -> String {
        match &self.0 {
            Source::Probability(p) => format!("probability {p}"),
            Source::Trace(path) => format!("trace {}", path.display()),
        }
    }
}

impl FromStr for Dropout {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text.split_once('=') {
            Some(("trace", path)) if !path.is_empty() => Ok(Self::trace(path)),
            Some(_) => Err(Self::refuse(text)),
            None => text.trim().parse().map_or_else(|_| Err(Self::refuse(text)), Self::probability),
        }
    }
}

impl fmt::Display for Dropout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::Probability(p) => p.fmt(f),
            Source::Trace(path) => write!(f, "trace={}", path.display()),
        }
    }
}

impl Serialize for Dropout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Source::Probability(p) => serializer.serialize_f64(p),
            Source::Trace(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Dropout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrTrace)
    }
}

struct NumberOrTrace;

impl<'de> Visitor<'de> for NumberOrTrace {
    type Value = Dropout;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Dropout::allowed())
    }

    fn visit_f64<E: Error>(self, p: f64) -> Result<Dropout, E> {
        Dropout::probability(p).map_err(|_| E::invalid_value(Unexpected::Float(p), &self))
    }

    fn visit_i64<E: Error>(self, p: i64) -> Result<Dropout, E> {
        self.visit_f64(p as f64)
    }

    fn visit_u64<E: Error>(self, p: u64) -> Result<Dropout, E> {
        self.visit_f64(p as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Dropout, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Dropout, A::Error> {
        crate::choice::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json, to_value};

    use super::*;

    #[test]
    fn numbers_and_texts_round_trip() {
        for (text, value) in
            [("0", json!(0.0)), ("0.25", json!(0.25)), ("trace=a/b.csv", json!("trace=a/b.csv"))]
        {
            let dropout: Dropout = text.parse().unwrap();
            assert_eq!(dropout.to_string(), text);
            assert_eq!(to_value(&dropout).unwrap(), value);
            assert_eq!(from_value::<Dropout>(value).unwrap(), dropout);
            assert_eq!(from_value::<Dropout>(json!(text)).unwrap(), dropout);
            assert!(!dropout.label().is_empty());
        }
        assert_eq!(from_value::<Dropout>(json!(0)).unwrap(), Dropout::default());
        assert_eq!(from_value::<Dropout>(json!({"trace": "x.csv"})).unwrap(), Dropout::trace("x.csv"));
        assert_eq!(Dropout::probability(-0.0).unwrap().to_string(), "0");
    }

    #[test]
    fn probabilities_out_of_range_are_refused() {
        let allowed = "the dropout must be p or trace=file (p at least 0 and below 1), not ";
        for text in ["1", "-0.1", "NaN", "inf", "", "trace", "trace=", "file=x", "p=0.1"] {
            assert_eq!(text.parse::<Dropout>().unwrap_err().to_string(), format!("{allowed}{text}"));
        }
        for value in [json!(1), json!(-1), json!(1.5), json!(null), json!([]), json!({}), json!({"p": 0.1})] {
            assert!(from_value::<Dropout>(value.clone()).is_err(), "{value}");
        }
        for both in [json!({"trace": "a", "file": "b"}), json!({"trace": 1, "p": 2})] {
            assert!(from_value::<Dropout>(both).is_err());
        }
    }
}
