//! Builds an experiment from a preset, a file or the defaults, changes keys, and validates the result.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use floras_core::View;
use serde::Serialize;
use toml::{Table, Value};

use super::error::ExperimentError;
use super::file::{SECTIONS, entries, to_text};
use super::{Experiment, PrivacySettings, VERSION};
use crate::presets::{PRESETS, Preset};
use crate::source::SourceError;
use crate::sweep::Sweep;

/// Maximum size of an experiment file in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Builds an [`Experiment`]. Keys that are not set have their defaults.
///
/// ```
/// use floras_sim::ExperimentBuilder;
///
/// let experiment = ExperimentBuilder::preset("quick")?.set("uplink.snr_db", "10")?.rounds(10).build()?;
/// assert_eq!(experiment.settings().rounds, 10);
/// let error = ExperimentBuilder::new().set("uplink.snrdb", "10")?.build().unwrap_err();
/// assert_eq!(error.to_string(), "there is no key uplink.snrdb; did you mean uplink.snr_db?");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentBuilder {
    table: Table,
}

impl ExperimentBuilder {
    /// Begins with the defaults, [`Settings::default`](super::Settings::default).
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder with the settings of a preset, by its name as in `floras presets`.
    pub fn preset(name: &str) -> Result<Self, SourceError> {
        let no_preset = || SourceError::NoSuchExperiment { source_name: name.to_owned() };
        let preset = Preset::find(name).ok_or_else(no_preset)?;
        Ok(Self::parse(preset.name, preset.text)?)
    }

    /// Begins with a preset, or else with a file; with the default preset if nothing is given.
    pub fn open(source: Option<&str>) -> Result<Self, SourceError> {
        let source = source.unwrap_or(PRESETS[0].name);
        if Preset::find(source).is_some() {
            return Self::preset(source);
        }
        match Self::file(Path::new(source)) {
            Err(SourceError::NoSuchFile { .. }) => {
                Err(SourceError::NoSuchExperiment { source_name: source.to_owned() })
            }
            read => read,
        }
    }

    /// Begins with a file of at most 1 MiB.
    pub fn file(path: &Path) -> Result<Self, SourceError> {
        let unreadable = |reason: String| SourceError::Unreadable { path: path.to_path_buf(), reason };
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => SourceError::NoSuchFile { path: path.to_path_buf() },
            _ => unreadable(error.to_string()),
        })?;
        let mut text = String::new();
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(unreadable("an experiment has at most 1 MiB".to_owned()));
        }
        Ok(Self::parse(&path.display().to_string(), &text)?)
    }

    /// Begins with the text of a file; `source_name` is for messages.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ExperimentError> {
        let table = text.parse::<Table>().map_err(|error| ExperimentError::Syntax {
            source_name: source_name.to_owned(),
            reason: error.to_string().trim_end().to_owned(),
        })?;
        Ok(Self { table })
    }

    /// Begins with sections from another format, such as a map of maps.
    pub fn from_sections(sections: impl Serialize) -> Result<Self, ExperimentError> {
        let table =
            Table::try_from(sections).map_err(|error| ExperimentError::refused("the settings", error))?;
        Ok(Self { table })
    }

    /// Sets a key, as in `uplink.snr_db`, to a value in TOML. A value that is not TOML is taken as text, so that quotes may be
    /// left out: `rician=3`.
    pub fn set(self, key: &str, value: &str) -> Result<Self, ExperimentError> {
        self.set_value(key, parse_value(value))
    }

    /// Varies a key over several values, as in `uplink.snr_db=0,10,20`, which makes a sweep. Each value is read as by
    /// [`set`](Self::set); commas within brackets, braces and quotes do not separate values. The key replaces the same key of the
    /// section `[sweep]`, and varies faster than all keys before it.
    ///
    /// ```
    /// use floras_sim::ExperimentBuilder;
    ///
    /// let builder = ExperimentBuilder::new().vary("uplink.receiver={ clipped = 2 },mmse")?;
    /// assert_eq!(builder.build_sweep()?.points().len(), 2);
    /// # Ok::<(), floras_sim::ExperimentError>(())
    /// ```
    pub fn vary(self, assignment: &str) -> Result<Self, ExperimentError> {
        let wrong = || ExperimentError::Variation { given: assignment.to_owned() };
        let (key, values) = assignment.split_once('=').ok_or_else(wrong)?;
        let (key, values) = (key.trim(), split_values(values));
        if key.is_empty() || values.iter().any(|value| value.is_empty()) {
            return Err(wrong());
        }
        let mut values: Vec<Value> = values.into_iter().map(parse_value).collect();
        // No key takes a list, so that one list in brackets is the list of values.
        if let [Value::Array(list)] = &mut values[..] {
            values = std::mem::take(list);
        }
        self.vary_values(key, values)
    }

    /// Lets a key take several numbers, texts, choices or tables, as [`vary`](Self::vary) does.
    pub fn vary_to(
        self,
        key: &str,
        values: impl IntoIterator<Item = impl Serialize>,
    ) -> Result<Self, ExperimentError> {
        let values = values.into_iter().map(Value::try_from).collect::<Result<_, _>>();
        let values = values.map_err(|error| ExperimentError::refused(key, error))?;
        self.vary_values(key, values)
    }

    fn vary_values(mut self, key: &str, values: Vec<Value>) -> Result<Self, ExperimentError> {
        let grid = self.table.entry("sweep").or_insert_with(|| Value::Table(Table::new()));
        let Value::Table(grid) = grid else {
            return Err(ExperimentError::refused("sweep", "it must be a section, [sweep]"));
        };
        if let Some((section, last)) = key.split_once('.')
            && let Some(Value::Table(inner)) = grid.get_mut(section)
        {
            inner.remove(last);
        }
        // Last in the table: it varies fastest.
        grid.remove(key);
        grid.insert(key.to_owned(), Value::Array(values));
        Ok(self)
    }

    /// Sets a key by an assignment, as in `uplink.snr_db=10`.
    pub fn assign(self, assignment: &str) -> Result<Self, ExperimentError> {
        let parts = assignment.split_once('=').map(|(key, value)| (key.trim(), value.trim()));
        match parts {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => self.set(key, value),
            _ => Err(ExperimentError::Assignment { given: assignment.to_owned() }),
        }
    }

    /// Sets a key to a number, a text, a choice or a table.
    pub fn set_to(self, key: &str, value: impl Serialize) -> Result<Self, ExperimentError> {
        let value = Value::try_from(value).map_err(|error| ExperimentError::refused(key, error))?;
        self.set_value(key, value)
    }

    pub(crate) fn set_value(mut self, key: &str, value: Value) -> Result<Self, ExperimentError> {
        let (place, last) = match key.split_once('.') {
            None => (&mut self.table, key),
            Some((section, last)) => {
                let section_table = self.table.entry(section).or_insert_with(|| Value::Table(Table::new()));
                let Value::Table(inner) = section_table else {
                    let reason = format!("{section} is not a section, so there is no key {key}");
                    return Err(ExperimentError::refused(key, reason));
                };
                (inner, last)
            }
        };
        // Epochs and steps exclude each other: setting one removes the other.
        if key == "local.steps" {
            place.remove("epochs");
        } else if key == "local.epochs" {
            place.remove("steps");
        }
        if key == "privacy.clip" && value.as_str() == Some("none") {
            place.remove("normalise");
        }
        place.insert(last.to_owned(), value);
        Ok(self)
    }

    /// Sets `T`, the rounds of a trial.
    pub fn rounds(self, rounds: u32) -> Self {
        self.insert("rounds", Value::Integer(rounds.into()))
    }

    /// Sets the number of independent trials.
    pub fn trials(self, trials: u32) -> Self {
        self.insert("trials", Value::Integer(trials.into()))
    }

    /// Sets the seed, at most 2^63 − 1.
    pub fn seed(self, seed: u64) -> Self {
        // TOML has no larger integers; the checks refuse the text.
        let value = i64::try_from(seed).map_or_else(|_| Value::String(seed.to_string()), Value::Integer);
        self.insert("seed", value)
    }

    fn insert(mut self, key: &str, value: Value) -> Self {
        self.table.insert(key.to_owned(), value);
        self
    }

    /// Validates the experiment. The error about an unknown key without a section names the section that has such a key.
    pub fn build(&self) -> Result<Experiment, ExperimentError> {
        Experiment::from_table(&self.table).map_err(|error| match error {
            ExperimentError::UnknownKey { key, hint } => {
                let hint = key_in_section(&key).map_or(hint, |known| format!("did you mean {known}?"));
                ExperimentError::UnknownKey { key, hint }
            }
            other => other,
        })
    }

    /// The keys that were set, as a file.
    pub fn to_toml(&self) -> String {
        to_text(&self.table)
    }

    /// The view that is quoted if no other is asked for: `privacy.view`, or its default.
    pub fn quoted_view(&self) -> View {
        let given = self.get("privacy.view").and_then(|view| view.parse().ok());
        given.unwrap_or_else(|| PrivacySettings::default_view(self.table.contains_key("masks")))
    }

    /// Whether there is a section `[sweep]`: then it is a grid of experiments.
    pub fn is_sweep(&self) -> bool {
        self.table.contains_key("sweep")
    }

    /// Checks all experiments of a grid.
    pub fn build_sweep(&self) -> Result<Sweep, ExperimentError> {
        Sweep::from_builder(self)
    }

    /// Keys that were set and have no effect in an experiment that was built from them, such as `uplink.snr_db` under `ideal`.
    pub fn unused_keys(&self, experiment: &Experiment) -> Vec<String> {
        let written = experiment.to_table();
        let used: Vec<String> = entries(&written).into_iter().map(|(key, _)| key).collect();
        let given = entries(&self.table).into_iter().map(|(key, _)| key);
        given.filter(|key| !used.contains(key)).collect()
    }

    /// Without the keys that have no effect.
    pub(crate) fn without_unused(mut self) -> Result<Self, ExperimentError> {
        let experiment = self.clone().build()?;
        for key in self.unused_keys(&experiment) {
            let (section, last) = key.split_once('.').unwrap_or(("", &key));
            let table = if section.is_empty() { Some(&mut self.table) } else { self.section_mut(section) };
            table.map(|table| table.remove(last));
        }
        Ok(self)
    }

    fn section_mut(&mut self, section: &str) -> Option<&mut Table> {
        self.table.get_mut(section).and_then(Value::as_table_mut)
    }

    /// Notes for the user about an experiment that was built from this, before it runs.
    pub fn notes(&self, experiment: &Experiment) -> Vec<String> {
        let mut notes = Vec::new();
        let unused = self.unused_keys(experiment);
        if !unused.is_empty() {
            notes.push(format!(
                "without effect under the other settings, and left out: {}",
                unused.join(", ")
            ));
        }
        if let Some(version) = self.table.get("version").and_then(Value::as_str)
            && version != VERSION
        {
            notes.push(format!("the experiment was written by version {version}; this is {VERSION}"));
        }
        notes.extend(experiment.settings().notes());
        notes
    }

    /// The value that was given for a key, as text without quotes; `None` if it has its default.
    pub fn get(&self, key: &str) -> Option<String> {
        let value = match key.split_once('.') {
            None => self.table.get(key),
            Some((section, last)) => self.table.get(section)?.get(last),
        };
        value.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<Value> {
        self.table.remove(key)
    }
}

/// A key with the first section that has it, for a key without a section.
fn key_in_section(key: &str) -> Option<String> {
    if key.contains('.') {
        return None;
    }
    SECTIONS.iter().map(|section| format!("{section}.{key}")).find(|candidate| {
        // Any other error than an unknown key means that the section has the key.
        let builder = ExperimentBuilder::new().set(candidate, "true");
        let built = builder.and_then(|builder| Experiment::from_table(&builder.table));
        !matches!(built, Err(ExperimentError::UnknownKey { key, .. }) if key == *candidate)
    })
}

/// A value in TOML, or else the text itself.
fn parse_value(text: &str) -> Value {
    let parsed = format!("value = {text}").parse::<Table>().ok().and_then(|mut table| {
        let value = table.remove("value");
        // More than one key means that the text continues after the value.
        if table.is_empty() { value } else { None }
    });
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// The parts of a list between commas that are outside of brackets, braces and quotes.
fn split_values(list: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_i32, None);
    let mut is_escaped = false;
    for (place, letter) in list.char_indices() {
        match (quote, letter) {
            (Some('"'), '\\') if !is_escaped => {
                is_escaped = true;
                continue;
            }
            (Some(open), _) if letter == open && !is_escaped => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(list[start..place].trim());
                start = place + 1;
            }
            _ => {}
        }
        is_escaped = false;
    }
    parts.push(list[start..].trim());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_without_section_are_found() {
        let message = |key: &str| {
            let builder = ExperimentBuilder::new().set(key, "3").unwrap();
            builder.build().unwrap_err().to_string()
        };
        assert_eq!(message("snr_db"), "there is no key snr_db; did you mean uplink.snr_db?");
        assert_eq!(message("noise_std"), "there is no key noise_std; did you mean uplink.noise_std?");
        assert_eq!(message("colluding"), "there is no key colluding; did you mean masks.colluding?");
        assert_eq!(message("uplink.snr"), "there is no key uplink.snr; did you mean uplink.snr_db?");
        assert_eq!(message("round"), "there is no key round; did you mean rounds?");
    }

    #[test]
    fn commas_inside_brackets_and_quotes_stay() {
        assert_eq!(split_values("0, 10,20"), ["0", "10", "20"]);
        assert_eq!(split_values("{ a = 1, b = 2 },c"), ["{ a = 1, b = 2 }", "c"]);
        assert_eq!(split_values(r#""a,\",b",'c,d',[1,2]"#), [r#""a,\",b""#, "'c,d'", "[1,2]"]);
        assert_eq!(split_values("1,"), ["1", ""]);
    }

    #[test]
    fn varied_keys_replace_those_of_the_file() {
        let text = "[sweep]\nuplink.snr_db = [0.0]\nuplink.sequences = [20, 25]";
        let builder = ExperimentBuilder::parse("a test", text).unwrap();
        let builder = builder.vary("rounds=1,2").unwrap().vary("uplink.snr_db=5,10,15").unwrap();
        let sweep = builder.build_sweep().unwrap();
        assert_eq!(sweep.keys().collect::<Vec<_>>(), ["uplink.sequences", "rounds", "uplink.snr_db"]);
        assert_eq!(sweep.points()[1].values, ["20", "1", "10"]);
        assert_eq!(sweep.points().len(), 12);
    }

    #[test]
    fn varied_values_are_read_like_settings() {
        let vary = |text: &str| ExperimentBuilder::new().vary(text);
        let sweep = vary("uplink.receiver=clipped=2,{ mmse = 0.5 },paper").unwrap().build_sweep().unwrap();
        let text: Vec<String> = sweep.points().iter().map(|point| point.experiment.to_toml()).collect();
        let one =
            |value: &str| ExperimentBuilder::new().set("uplink.receiver", value).unwrap().build().unwrap();
        assert_eq!(text, ["clipped=2", "mmse=0.5", "paper"].map(|value| one(value).to_toml()));
        assert_eq!(vary("seed=[1, 2, 3]").unwrap().build_sweep().unwrap().points().len(), 3);
        for wrong in ["rounds", "=1,2", "rounds=", "rounds=1,,2"] {
            assert!(vary(wrong).unwrap_err().to_string().contains("key=a,b,c"), "{wrong}");
        }
    }
}
