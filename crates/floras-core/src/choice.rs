//! The common interface of all choices: one text form, a list of values, a label.
//!
//! A text form is a name, `rayleigh`, or a name with its parameter, `rician=3`. Data formats may also write a name with its
//! parameter as a table with one entry, `{ rician = 3 }`.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Unexpected, Visitor};
use thiserror::Error as ThisError;

/// One validated choice with one text form, which `FromStr` reads and `Display` writes.
pub trait Choice: Clone + fmt::Display + FromStr<Err = ChoiceError> {
    /// The name of the choice in messages: `receiver`.
    const WHAT: &'static str;

    /// The text forms in listing order. A parameter is written as its symbol: `clipped=c`.
    const FORMS: &'static [&'static str];

    /// The ranges of the parameters, such as `c between 1e-6 and 1e6`; empty for choices without parameters.
    const RANGES: &'static str = "";

    /// A short description for tables and figures, such as `Rician, factor 3`.
    fn label(&self) -> String;

    /// The allowed values in words: `paper, mmse or clipped=c (c between 1e-6 and 1e6)`.
    fn allowed() -> String {
        let forms = list(Self::FORMS);
        if Self::RANGES.is_empty() { forms } else { format!("{forms} ({})", Self::RANGES) }
    }

    /// The error for a value that is not allowed.
    fn refuse(value: impl fmt::Display) -> ChoiceError {
        ChoiceError { what: Self::WHAT, allowed: Self::allowed(), value: value.to_string() }
    }
}

/// A text that is not one of a choice's forms, or a parameter out of range.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
#[error("the {what} must be {allowed}, not {value}")]
pub struct ChoiceError {
    /// The name of the choice: `receiver`.
    pub what: &'static str,
    /// The allowed values, in words.
    pub allowed: String,
    /// The rejected value.
    pub value: String,
}

/// Joins items to `a, b or c`.
pub fn list(items: &[impl AsRef<str>]) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [others @ .., last] => format!("{} or {last}", others.join(", ")),
    }
}

/// Splits a text form into its name and its parameter, if present.
pub fn split(text: &str) -> (&str, Option<&str>) {
    match text.trim().split_once('=') {
        None => (text.trim(), None),
        Some((name, parameter)) => (name.trim(), Some(parameter.trim())),
    }
}

/// Reads a choice from a string, or from a table with one entry: `"rician=3"` or `{ rician = 3 }`.
pub fn deserialize<'de, T: Choice, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_any(TextOrEntry(PhantomData))
}

struct TextOrEntry<T>(PhantomData<T>);

impl<'de, T: Choice> Visitor<'de> for TextOrEntry<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", T::allowed())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(|_| E::invalid_value(Unexpected::Str(text), &self))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let entry = map.next_entry::<String, Parameter>()?;
        let another = map.next_entry::<String, Parameter>()?;
        let text = match entry {
            Some((name, parameter)) if another.is_none() && !matches!(parameter, Parameter::Other(_)) => {
                Some(format!("{name}={parameter}"))
            }
            _ => None,
        };
        let choice = text.and_then(|text| text.parse().ok());
        choice.ok_or_else(|| A::Error::invalid_value(Unexpected::Map, &self))
    }
}

/// The parameter in a table with one entry.
#[derive(Deserialize)]
#[serde(untagged)]
enum Parameter {
    Integer(i64),
    Number(f64),
    Text(String),
    /// Neither number nor text; always rejected.
    Other(IgnoredAny),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
            Self::Other(_) => Err(fmt::Error),
        }
    }
}

/// Implements `serde` for a [`Choice`]: written as its text form, read by [`deserialize`].
#[macro_export]
macro_rules! serde_as_text {
    ($type:ty) => {
        impl $crate::serde::Serialize for $type {
            fn serialize<S: $crate::serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> $crate::serde::Deserialize<'de> for $type {
            fn deserialize<D: $crate::serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::deserialize(deserializer)
            }
        }
    };
}

/// Makes an enum without parameters a [`Choice`]: each value with its text form and its label.
///
/// ```
/// use floras_core::{Choice, named_choice};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Colour {
///     Red,
///     Blue,
/// }
///
/// named_choice!(Colour, "colour", [Red => "red", "warm red"], [Blue => "blue", "cold blue"]);
///
/// assert_eq!("blue".parse(), Ok(Colour::Blue));
/// assert_eq!(Colour::ALL.map(Colour::name), ["red", "blue"]);
/// assert_eq!(Colour::Red.label(), "warm red");
/// assert_eq!("green".parse::<Colour>().unwrap_err().to_string(), "the colour must be red or blue, not green");
/// ```
#[macro_export]
macro_rules! named_choice {
    ($type:ident, $what:literal, $([$variant:ident => $name:literal, $label:literal]),+ $(,)?) => {
        impl $type {
            /// All values, in the order in which they are listed.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            /// The name in experiment files, on the command line, in JSON and in Python.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }

        impl $crate::Choice for $type {
            const WHAT: &'static str = $what;
            const FORMS: &'static [&'static str] = &[$($name),+];

            fn label(&self) -> String {
                match self {
                    $(Self::$variant => $label),+
                }
                .to_owned()
            }
        }

        impl std::str::FromStr for $type {
            type Err = $crate::ChoiceError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let known = Self::ALL.into_iter().find(|value| value.name() == text.trim());
                known.ok_or_else(|| <Self as $crate::Choice>::refuse(text))
            }
        }

        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        $crate::serde_as_text!($type);
    };
}
