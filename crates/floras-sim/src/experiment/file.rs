//! Reads and writes the experiment file with `serde`, section by section.
//!
//! Every key has a default. Keys that do not exist, values of the wrong type and values out of range are refused with their key.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::clients::ClientsFile;
use super::data::DataFile;
use super::error::{COUNTS, ExperimentError, within};
use super::local::LocalFile;
use super::masks::MasksFile;
use super::model::ModelFile;
use super::privacy::PrivacyFile;
use super::record::RecordSettings;
use super::uplink::UplinkSettings;
use super::{DEFAULT_NAME, Settings, VERSION};

/// The keys and sections of an experiment file.
#[derive(Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SettingsFile {
    name: String,
    version: String,
    seed: u64,
    trials: u32,
    rounds: u32,
    data: DataFile,
    clients: ClientsFile,
    model: ModelFile,
    local: LocalFile,
    /// Its keys depend on the scheme.
    uplink: Table,
    privacy: PrivacyFile,
    #[serde(skip_serializing_if = "Option::is_none")]
    masks: Option<MasksFile>,
    record: RecordSettings,
}

impl Default for SettingsFile {
    fn default() -> Self {
        Self {
            name: DEFAULT_NAME.to_owned(),
            version: VERSION.to_owned(),
            seed: 1,
            trials: 5,
            rounds: 300,
            data: DataFile::default(),
            clients: ClientsFile::default(),
            model: ModelFile::default(),
            local: LocalFile::default(),
            uplink: UplinkSettings::default().to_table(),
            privacy: PrivacyFile::default(),
            masks: None,
            record: RecordSettings::default(),
        }
    }
}

impl SettingsFile {
    /// Reads and checks a table.
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        if table.contains_key("sweep") {
            return Err(ExperimentError::IsSweep);
        }
        if let Some((name, list)) = table.iter().find(|(name, value)| value.is_array() && is_section(name)) {
            let allowed = format!("a section, [{name}]");
            return Err(ExperimentError::Value { key: name.clone(), allowed, value: list.to_string() });
        }
        let file: Self = deserialize(table)?;
        file.check()?;
        Ok(file)
    }

    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        check_name(&self.name)?;
        within("seed", Some(self.seed), 0..=i64::MAX as u64)?;
        within("trials", Some(self.trials), 1..=1 << 16)?;
        within("rounds", Some(self.rounds), COUNTS)?;
        self.data.check()?;
        self.clients.check()?;
        self.model.check()?;
        self.local.settings()?;
        UplinkSettings::of_experiment(&self.uplink)?;
        self.privacy.check()?;
        self.masks.map(MasksFile::masks).transpose()?;
        self.record.check()
    }

    pub(super) fn to_table(&self) -> Table {
        Table::try_from(self).expect("every value of a checked file can be written as TOML")
    }
}

impl TryFrom<SettingsFile> for Settings {
    type Error = ExperimentError;

    fn try_from(file: SettingsFile) -> Result<Self, ExperimentError> {
        Ok(Self {
            name: file.name,
            seed: file.seed,
            trials: file.trials,
            rounds: file.rounds,
            data: file.data.try_into()?,
            clients: file.clients.into(),
            model: file.model.try_into()?,
            local: file.local.settings()?,
            uplink: UplinkSettings::of_experiment(&file.uplink)?,
            privacy: file.privacy.settings(file.masks.is_some()),
            masks: file.masks.map(MasksFile::masks).transpose()?,
            record: file.record,
        })
    }
}

impl From<&Settings> for SettingsFile {
    fn from(settings: &Settings) -> Self {
        Self {
            name: settings.name.clone(),
            version: VERSION.to_owned(),
            seed: settings.seed,
            trials: settings.trials,
            rounds: settings.rounds,
            data: (&settings.data).into(),
            clients: settings.clients.clone().into(),
            model: (&settings.model).into(),
            local: settings.local.into(),
            uplink: settings.uplink.to_table(),
            privacy: settings.privacy.into(),
            masks: settings.masks.map(MasksFile::from),
            record: settings.record.clone(),
        }
    }
}

/// The names of all sections.
pub(super) const SECTIONS: [&str; 8] =
    ["data", "clients", "model", "local", "uplink", "privacy", "masks", "record"];

fn is_section(name: &str) -> bool {
    SECTIONS.contains(&name)
}

/// Restricts the characters of the name, which also names the run directory.
fn check_name(name: &str) -> Result<(), ExperimentError> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let holds = (1..=100).contains(&name.len()) && name.chars().all(fits) && !name.starts_with(['.', '-']);
    if holds {
        return Ok(());
    }
    Err(ExperimentError::Value {
        key: "name".to_owned(),
        allowed: "1 to 100 letters, digits, '-', '_' and '.', not beginning with '.' or '-'".to_owned(),
        value: format!("\"{name}\""),
    })
}

/// A table as text, with one line per key.
pub(super) fn to_text(table: &Table) -> String {
    let mut text = String::new();
    let (sections, keys): (Vec<_>, Vec<_>) = table.iter().partition(|(_, value)| value.is_table());
    for (key, value) in keys {
        let _ = writeln!(text, "{key} = {value}");
    }
    for (name, section) in sections {
        let _ = writeln!(text, "\n[{name}]");
        for (key, value) in section.as_table().into_iter().flatten() {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
    text
}

/// The keys of a table with their sections, and the values.
pub(super) fn entries(table: &Table) -> Vec<(String, &Value)> {
    let mut entries = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(section) => {
                entries.extend(section.iter().map(|(inner, value)| (format!("{key}.{inner}"), value)));
            }
            _ => entries.push((key.clone(), value)),
        }
    }
    entries
}

/// Deserializes a table; errors name the key.
pub(crate) fn deserialize<T: for<'de> Deserialize<'de>>(table: &Table) -> Result<T, ExperimentError> {
    deserialize_section("", table)
}

/// Deserializes the table of one section; errors name the key with its section.
pub(crate) fn deserialize_section<T: for<'de> Deserialize<'de>>(
    section: &str,
    table: &Table,
) -> Result<T, ExperimentError> {
    check_kinds(section, table)?;
    let deserializer = Value::Table(table.clone());
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let path = error.path().to_string();
        explain(section, path.trim_end_matches(['?', '.']), error.inner().message(), table)
    })
}

/// The error about a key that does not exist in a section.
pub(crate) fn unknown_key(unknown: &str, section: &str, known: &[&str]) -> ExperimentError {
    ExperimentError::UnknownKey { key: join(section, unknown), hint: hint(unknown, section, known) }
}

fn join(section: &str, key: &str) -> String {
    match (section, key) {
        ("", key) => key.to_owned(),
        (section, "") => section.to_owned(),
        (section, key) => format!("{section}.{key}"),
    }
}

/// Keys whose value may be a list.
const LISTS: [&str; 2] = ["model.hidden", "model.layers"];

/// Rejects lists of other keys, and dates, which no key takes. `serde` would read them as a section or as text.
fn check_kinds(section: &str, table: &Table) -> Result<(), ExperimentError> {
    for (name, value) in table {
        let key = join(section, name);
        match value {
            Value::Table(inner) => check_kinds(&key, inner)?,
            Value::Array(_) if LISTS.contains(&key.as_str()) => {}
            Value::Array(_) | Value::Datetime(_) => {
                let allowed = match value {
                    Value::Array(_) => "a single value (only model.hidden and model.layers take lists)",
                    _ => "a number, a text in quotes or a table",
                };
                let allowed = allowed.to_owned();
                return Err(ExperimentError::Value { key, allowed, value: value.to_string() });
            }
            Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_) => {}
        }
    }
    Ok(())
}

/// Rewords an error of `serde`; `path` is relative to the section.
fn explain(section: &str, path: &str, message: &str, table: &Table) -> ExperimentError {
    if let Some((unknown, known)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.rsplit_once("`, expected "))
    {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let path = path.strip_suffix(unknown).unwrap_or(path).trim_end_matches('.');
        return unknown_key(unknown, &join(section, path), &known);
    }
    if let Some(missing) = message.strip_prefix("missing field `") {
        let key = join(&join(section, path), missing.trim_end_matches('`'));
        return ExperimentError::refused(&key, "it must be given");
    }
    let value = path.split('.').try_fold(None, |inside: Option<&Value>, key| {
        inside.map_or_else(|| table.get(key), |inside| inside.get(key)).map(Some)
    });
    let key = join(section, path);
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected);
    match (expected.or_else(|| message.strip_prefix("expected ")), value.flatten()) {
        (Some(expected), Some(value)) => {
            let allowed = match expected {
                "a map" => format!("a section, [{key}]"),
                other => in_words(other, value).to_owned(),
            };
            ExperimentError::Value { key, allowed, value: value.to_string() }
        }
        _ => ExperimentError::refused(&key, message),
    }
}

/// The allowed values, for the type that `serde` expected and the value that it found.
fn in_words<'a>(expected: &'a str, value: &Value) -> &'a str {
    match (expected, value) {
        ("u32", Value::Integer(0..)) => "at most 4294967295",
        ("u64", Value::String(text)) if text.parse::<u64>().is_ok() => "at most 9223372036854775807",
        ("u32" | "u64" | "usize", _) => "a non-negative integer",
        ("f64", _) => "a number",
        ("a string" | "path string", _) => "text in quotes",
        (other, _) => other,
    }
}

fn hint(key: &str, section: &str, keys: &[&str]) -> String {
    let found = nearest_name(key, keys).map(|known| format!("did you mean {}?", join(section, known)));
    found.unwrap_or_else(|| match section {
        "" => format!("known are {}", keys.join(", ")),
        section => format!("known in [{section}] are {}", keys.join(", ")),
    })
}

/// A question that suggests the most similar known name, if there is one: by edit distance, or with the given name as its
/// beginning.
pub(crate) fn nearest(name: &str, names: &[&str]) -> Option<String> {
    nearest_name(name, names).map(|known| format!("did you mean {known}?"))
}

fn nearest_name<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let lower = name.to_lowercase();
    let distances = names.iter().map(|known| (strsim::damerau_levenshtein(&lower, known), known));
    let (distance, known) = distances.min()?;
    let is_near = distance <= 1 + name.len() / 3;
    let longer = || names.iter().filter(|known| known.starts_with(&lower)).min_by_key(|known| known.len());
    let meant = if is_near { Some(known) } else { longer().filter(|_| name.len() > 2) };
    meant.copied()
}
