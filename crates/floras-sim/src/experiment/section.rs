//! Reading one section of an experiment: typed values, and errors that name the key and what is allowed.

use std::ops::RangeInclusive;

use floras_core::Choice;
use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::error::ExperimentError;

/// One section of an experiment file, in which every key is known.
pub(crate) struct Section<'a> {
    /// As in `uplink`; empty for the top level.
    path: &'static str,
    table: Option<&'a Table>,
}

/// A value that is a name, or a name with one argument: `"rayleigh"`, `{ rician = 3 }`.
pub(crate) struct Named<'a> {
    pub(crate) name: &'a str,
    pub(crate) argument: Option<&'a Value>,
}

impl<'a> Section<'a> {
    /// The section `path` of the whole experiment, which may be absent; keys other than `keys` are refused.
    pub(crate) fn open(
        experiment: &'a Table,
        path: &'static str,
        keys: &[&str],
    ) -> Result<Self, ExperimentError> {
        let table = match experiment.get(path) {
            None => None,
            Some(Value::Table(table)) => Some(table),
            Some(other) => return Err(wrong(path, format!("a section, [{path}]"), other)),
        };
        let section = Self { path, table };
        section.refuse_unknown(keys)?;
        Ok(section)
    }

    /// The keys outside of all sections.
    pub(crate) fn top(experiment: &'a Table, keys: &[&str]) -> Result<Self, ExperimentError> {
        let section = Self { path: "", table: Some(experiment) };
        section.refuse_unknown(keys)?;
        Ok(section)
    }

    fn refuse_unknown(&self, keys: &[&str]) -> Result<(), ExperimentError> {
        let given = self.table.into_iter().flat_map(Table::keys);
        match given.into_iter().find(|key| !keys.contains(&key.as_str())) {
            None => Ok(()),
            Some(key) => {
                Err(ExperimentError::UnknownKey { key: self.full(key), hint: hint(key, self.path, keys) })
            }
        }
    }

    /// The key with its section.
    pub(crate) fn full(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn value(&self, key: &str) -> Option<&'a Value> {
        self.table?.get(key)
    }

    fn wrong(&self, key: &str, allowed: impl Into<String>, value: &Value) -> ExperimentError {
        wrong(&self.full(key), allowed, value)
    }

    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, ExperimentError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "text in quotes", value))
    }

    pub(crate) fn whole(
        &self,
        key: &str,
        allowed: RangeInclusive<u64>,
    ) -> Result<Option<u64>, ExperimentError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        whole(value, &allowed).map(Some).ok_or_else(|| self.wrong(key, in_words(&allowed), value))
    }

    pub(crate) fn number(
        &self,
        key: &str,
        allowed: RangeInclusive<f64>,
        words: &str,
    ) -> Result<Option<f64>, ExperimentError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let number = number(value).filter(|number| allowed.contains(number));
        number.map(Some).ok_or_else(|| self.wrong(key, words, value))
    }

    /// A number that may be left out, in words as well: `"none"`.
    pub(crate) fn number_or_none(
        &self,
        key: &str,
        allowed: RangeInclusive<f64>,
        words: &str,
    ) -> Result<Option<f64>, ExperimentError> {
        match self.value(key).and_then(Value::as_str) {
            Some("none") => Ok(None),
            _ => self.number(key, allowed, words),
        }
    }

    /// A name, or a table with one name and its argument.
    pub(crate) fn named(&self, key: &str, words: &str) -> Result<Option<Named<'a>>, ExperimentError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        let choice = match value {
            Value::String(name) => Some(Named { name, argument: None }),
            Value::Table(table) if table.len() == 1 => {
                table.iter().next().map(|(name, argument)| Named { name, argument: Some(argument) })
            }
            _ => None,
        };
        choice.map(Some).ok_or_else(|| self.wrong(key, words, value))
    }

    /// A choice: its text form, or a table with a name and its parameter.
    pub(crate) fn parse<T: Choice + DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<T>, ExperimentError> {
        let Some(value) = self.value(key) else { return Ok(None) };
        T::deserialize(value.clone()).map(Some).map_err(|_| self.wrong(key, T::allowed(), value))
    }

    /// The complaint about a choice that is none.
    pub(crate) fn no_such_choice(&self, key: &str, words: &str) -> ExperimentError {
        match self.value(key) {
            Some(value) => self.wrong(key, words, value),
            None => ExperimentError::Refused { key: self.full(key), reason: format!("must be {words}") },
        }
    }
}

impl Named<'_> {
    /// The argument as a number.
    pub(crate) fn number(&self) -> Option<f64> {
        self.argument.and_then(number)
    }

    /// The argument as a whole number that is not negative.
    pub(crate) fn whole(&self) -> Option<u64> {
        self.argument.and_then(|value| whole(value, &(0..=u64::MAX)))
    }
}

fn wrong(key: &str, allowed: impl Into<String>, value: &Value) -> ExperimentError {
    ExperimentError::Value { key: key.to_owned(), allowed: allowed.into(), value: value.to_string() }
}

fn whole(value: &Value, allowed: &RangeInclusive<u64>) -> Option<u64> {
    let number = u64::try_from(value.as_integer()?).ok()?;
    allowed.contains(&number).then_some(number)
}

/// A number, with a fraction or without.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

fn in_words(allowed: &RangeInclusive<u64>) -> String {
    match (allowed.start(), allowed.end()) {
        (0, most) => format!("a whole number, at most {most}"),
        (least, most) => format!("a whole number between {least} and {most}"),
    }
}

fn hint(key: &str, path: &str, keys: &[&str]) -> String {
    let nearest = keys.iter().map(|known| (strsim::damerau_levenshtein(key, known), known)).min();
    match nearest {
        Some((distance, known)) if distance <= 1 + key.len() / 3 => format!("did you mean {known}?"),
        _ if path.is_empty() => format!("known at the top are {}", keys.join(", ")),
        _ => format!("known in [{path}] are {}", keys.join(", ")),
    }
}
