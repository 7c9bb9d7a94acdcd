//! Writing an experiment with every setting spelled out.

use floras_core::Choice;
use toml::{Table, Value};

/// Collects keys with their sections, in the order of the file.
pub(super) struct Write {
    section: &'static str,
    entries: Vec<Entry>,
}

/// One setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    section: &'static str,
    key: &'static str,
    pub(super) value: Value,
}

impl Entry {
    /// The key with its section.
    pub(super) fn full_key(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }
}

impl Write {
    pub(super) fn new() -> Self {
        Self { section: "", entries: Vec::new() }
    }

    pub(super) fn section(&mut self, name: &'static str) {
        self.section = name;
    }

    pub(super) fn key(&mut self, key: &'static str, value: impl IntoValue) {
        self.entries.push(Entry { section: self.section, key, value: value.into_value() });
    }

    /// A choice in its text form.
    pub(super) fn choice(&mut self, key: &'static str, value: &impl Choice) {
        self.key(key, Value::String(value.to_string()));
    }

    pub(super) fn finish(self) -> Vec<Entry> {
        self.entries
    }
}

/// The settings as the text of an experiment file.
pub(super) fn to_text(entries: &[Entry]) -> String {
    let mut text = String::new();
    let mut section = "";
    for entry in entries {
        if entry.section != section {
            section = entry.section;
            text.push_str(&format!("\n[{section}]\n"));
        }
        text.push_str(&format!("{} = {}\n", entry.key, entry.value));
    }
    text
}

/// `{ name = argument }`.
pub(super) fn named(name: &str, argument: impl Into<Value>) -> Value {
    Value::Table(Table::from_iter([(name.to_owned(), argument.into())]))
}

/// What can stand behind a key.
pub(super) trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for Value {
    fn into_value(self) -> Value {
        self
    }
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        self.into()
    }
}

impl IntoValue for f64 {
    fn into_value(self) -> Value {
        self.into()
    }
}

impl IntoValue for u64 {
    /// TOML's whole numbers end at 2⁶³, and so does every setting.
    fn into_value(self) -> Value {
        Value::Integer(i64::try_from(self).unwrap_or(i64::MAX))
    }
}

impl IntoValue for usize {
    fn into_value(self) -> Value {
        (self as u64).into_value()
    }
}

impl IntoValue for u32 {
    fn into_value(self) -> Value {
        u64::from(self).into_value()
    }
}
