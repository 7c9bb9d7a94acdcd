//! The experiment file: what is trained, on whose data, over which air, and how it is recorded.
//!
//! [`Settings`] are plain values, with the paper's IID task as their default. An [`Experiment`] is settings that were
//! checked, so that `K > M` or a clip norm of zero cannot reach a federation. Every key of the file has a default, is
//! checked on its own and against the others, and is written out in full into the run directory.

mod clients;
mod data;
mod error;
mod local;
mod model;
mod privacy;
mod record;
mod section;
mod uplink;
mod write;

use std::ops::RangeInclusive;

use floras_core::Clipping;
use floras_privacy::Margins;
use toml::{Table, Value};

pub use clients::{ClientSettings, Weights};
pub use data::{DataChoice, DataSettings};
pub use error::ExperimentError;
pub use local::LocalSettings;
pub use model::{ModelKind, ModelSettings};
pub(crate) use privacy::Precoded;
pub use privacy::{Budget, PrivacySettings};
pub use record::RecordSettings;
pub use uplink::{Air, FlorasScheme, Scheme, UplinkSettings};
pub(crate) use uplink::{read_modulation, uplink_keys};

pub(crate) use section::Section;
use write::{Entry, Write};

/// The version that is written into run directories.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that an experiment consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A short name, which also names the run directory.
    pub name: String,
    /// All randomness comes from here.
    pub seed: u64,
    /// Independent repetitions.
    pub trials: u32,
    /// `T`, learning rounds in a trial.
    pub rounds: u32,
    /// What is learned from.
    pub data: DataSettings,
    /// Who takes part.
    pub clients: ClientSettings,
    /// What is learned.
    pub model: ModelSettings,
    /// What a client does in a round.
    pub local: LocalSettings,
    /// How updates reach the base station.
    pub uplink: UplinkSettings,
    /// What limits a client's influence.
    pub privacy: PrivacySettings,
    /// What is measured, and when.
    pub record: RecordSettings,
}

impl Default for Settings {
    /// The paper's IID task.
    fn default() -> Self {
        match Self::read(&Table::new()) {
            Ok(settings) => settings,
            Err(error) => unreachable!("the defaults are valid: {error}"),
        }
    }
}

/// Settings that were checked.
///
/// ```
/// use floras_sim::{Experiment, Settings};
///
/// let mut settings = Settings::default();
/// settings.clients.per_round = 30;
/// let error = Experiment::new(settings).unwrap_err();
/// assert_eq!(error.to_string(), "clients.per_round: K = 30 clients a round cannot be chosen from M = 20 in all");
///
/// let experiment = Experiment::parse("a string", "rounds = 7\n[clients]\ntotal = 40")?;
/// assert_eq!(experiment.settings().clients.total, 40);
/// # Ok::<(), floras_sim::ExperimentError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    settings: Settings,
}

const TOP_KEYS: [&str; 12] = [
    "name", "seed", "trials", "rounds", "version", "data", "clients", "model", "local", "uplink", "privacy",
    "record",
];
/// Counts that have no narrower range.
const WHOLE: RangeInclusive<u64> = 1..=(u32::MAX as u64 - 1);
impl Experiment {
    /// Checks settings.
    pub fn new(settings: Settings) -> Result<Self, ExperimentError> {
        // One set of checks serves settings and files; and what a file cannot say could not be resumed.
        let given = Self { settings };
        let read = Self::parse("the settings", &given.to_toml())?;
        if read == given {
            return Ok(read);
        }
        Err(ExperimentError::refused("the settings", "they hold something that a file cannot say"))
    }

    /// Reads and checks an experiment from its text; `source_name` is for messages.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ExperimentError> {
        Self::from_table(&parse_toml(source_name, text)?)
    }

    /// Reads and checks an experiment from its table.
    pub fn from_table(table: &Table) -> Result<Self, ExperimentError> {
        let settings = Settings::read(table)?;
        settings.check()?;
        Ok(Self { settings })
    }

    /// The settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The whole experiment as a file, every setting spelled out.
    pub fn to_toml(&self) -> String {
        write::to_text(&self.entries())
    }

    /// Keys of a table that have no effect under the other settings, such as `uplink.snr_db` under `ideal`.
    pub fn without_effect(&self, table: &Table) -> Vec<String> {
        let used: Vec<String> = self.entries().iter().map(Entry::full_key).collect();
        let mut given = Vec::new();
        for (key, value) in table {
            match value {
                Value::Table(section) => given.extend(section.keys().map(|inner| format!("{key}.{inner}"))),
                _ => given.push(key.clone()),
            }
        }
        given.retain(|key| !used.contains(key));
        given
    }

    /// The first key in which two experiments differ, with both values.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        let (ours, theirs) = (self.entries(), other.entries());
        let value_in = |entries: &[Entry], key: &str| {
            let found = entries.iter().find(|entry| entry.full_key() == key);
            found.map_or("absent".to_owned(), |entry| entry.value.to_string())
        };
        let keys = ours.iter().chain(&theirs).map(Entry::full_key);
        keys.map(|key| Difference { ours: value_in(&ours, &key), theirs: value_in(&theirs, &key), key })
            .find(|difference| difference.ours != difference.theirs)
    }

    /// The version that wrote a run's experiment, if it is not ours: its runs may come to other numbers.
    pub(crate) fn version_difference(&self, text: &str) -> Result<Option<Difference>, String> {
        let table = text.parse::<Table>().map_err(|error| error.to_string())?;
        let theirs = table.get("version").and_then(Value::as_str);
        let theirs = theirs.ok_or("it has no version, which every run writes into it")?;
        let differ = theirs != VERSION;
        Ok(differ.then(|| Difference {
            key: "version".to_owned(),
            ours: VERSION.into(),
            theirs: theirs.into(),
        }))
    }

    fn entries(&self) -> Vec<Entry> {
        let mut out = Write::new();
        self.settings.write(&mut out);
        out.finish()
    }
}

/// A key in which two experiments differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, with its section.
    pub key: String,
    /// The value here, as TOML.
    pub ours: String,
    /// The value there.
    pub theirs: String,
}

/// Reads TOML; `source_name` is for messages.
pub fn parse_toml(source_name: &str, text: &str) -> Result<Table, ExperimentError> {
    text.parse::<Table>().map_err(|error| ExperimentError::Syntax {
        source_name: source_name.to_owned(),
        reason: error.to_string().trim_end().to_owned(),
    })
}

/// Applies `key=value`, as in `uplink.snr_db=10`. A value that is not TOML is taken as text, so that quotes may be left
/// out: `data.partition=iid`.
pub fn set(table: &mut Table, assignment: &str) -> Result<(), ExperimentError> {
    let wrong = || ExperimentError::Override { given: assignment.to_owned() };
    let (key, value) = assignment.split_once('=').ok_or_else(wrong)?;
    let (key, value) = (key.trim(), value.trim());
    if key.is_empty() || value.is_empty() {
        return Err(wrong());
    }
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| {
        let value = table.remove("value");
        // More than one key means that the text went on after the value.
        if table.is_empty() { value } else { None }
    });
    set_value(table, key, parsed.unwrap_or_else(|| Value::String(value.to_owned())))
}

/// Puts a value behind a key with its section.
pub fn set_value(table: &mut Table, key: &str, value: Value) -> Result<(), ExperimentError> {
    let (place, last) = match key.split_once('.') {
        None => (table, key),
        Some((section, last)) => {
            let section_table = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            let Value::Table(inner) = section_table else {
                let reason = format!("{section} is not a section, so there is no key {key}");
                return Err(ExperimentError::Refused { key: key.to_owned(), reason });
            };
            (inner, last)
        }
    };
    // The choice between epochs and steps is one choice: giving one takes the other's place.
    if key == "local.steps" {
        place.remove("epochs");
    } else if key == "local.epochs" {
        place.remove("steps");
    }
    if key == "privacy.clip" && value.as_str() == Some("none") {
        place.remove("normalise");
    }
    place.insert(last.to_owned(), value);
    Ok(())
}

impl Settings {
    fn read(table: &Table) -> Result<Self, ExperimentError> {
        if table.contains_key("sweep") {
            let reason = "a file with this section is a grid of experiments; run it with `floras sweep`";
            return Err(ExperimentError::refused("sweep", reason));
        }
        let top = Section::top(table, &TOP_KEYS)?;
        let name = top.text("name")?.unwrap_or("digits-iid");
        check_name(name)?;
        // The version of the file's writer is told, and not asked for.
        top.text("version")?;
        Ok(Self {
            name: name.to_owned(),
            seed: top.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(1),
            trials: top.whole("trials", 1..=1 << 16)?.unwrap_or(5) as u32,
            rounds: top.whole("rounds", WHOLE)?.unwrap_or(300) as u32,
            data: DataSettings::read(table)?,
            clients: ClientSettings::read(table)?,
            model: ModelSettings::read(table)?,
            local: LocalSettings::read(table)?,
            uplink: UplinkSettings::read(table)?,
            privacy: PrivacySettings::read(table)?,
            record: RecordSettings::read(table)?,
        })
    }

    fn write(&self, out: &mut Write) {
        out.key("name", self.name.as_str());
        out.key("version", VERSION);
        out.key("seed", self.seed);
        out.key("trials", self.trials);
        out.key("rounds", self.rounds);
        out.section("data");
        self.data.write(out);
        out.section("clients");
        self.clients.write(out);
        out.section("model");
        self.model.write(out);
        out.section("local");
        self.local.write(out);
        out.section("uplink");
        self.uplink.write(out);
        out.section("privacy");
        self.privacy.write(out);
        out.section("record");
        self.record.write(out);
    }

    /// What no key can be blamed for alone.
    fn check(&self) -> Result<(), ExperimentError> {
        let ClientSettings { total, per_round, weights } = self.clients;
        if per_round > total {
            let reason = format!("K = {per_round} clients a round cannot be chosen from M = {total} in all");
            return Err(ExperimentError::refused("clients.per_round", reason));
        }
        if let Scheme::Floras(FlorasScheme { sequences, .. }) = self.uplink.scheme
            && sequences < per_round as usize
        {
            let error = floras_phy::UplinkError::TooFewSequences { sequences, clients: per_round as usize };
            return Err(ExperimentError::refused("uplink.sequences", error));
        }
        self.check_margins()?;
        if weights == Weights::Samples
            && matches!(self.uplink.scheme, Scheme::Floras(_) | Scheme::Gaussian { .. })
        {
            let reason = format!(
                "the privacy statement of scheme \"{}\" needs clients that count the same; weights = \"samples\" goes \
                 with \"ideal\", \"channel-inversion\" and \"phase-corrected\"",
                self.uplink.scheme.name()
            );
            return Err(ExperimentError::refused("clients.weights", reason));
        }
        if self.privacy.normalise == Clipping::Paper && self.privacy.clip.is_none() {
            let reason = "\"paper\" scales the longest update to norm C, and needs privacy.clip";
            return Err(ExperimentError::refused("privacy.normalise", reason));
        }
        Ok(())
    }
}

impl Settings {
    /// Margins describe despreading, and fit the sequences.
    fn check_margins(&self) -> Result<(), ExperimentError> {
        let margins = self.privacy.margins;
        let Scheme::Floras(FlorasScheme { sequences, .. }) = self.uplink.scheme else {
            let default = Margins::default();
            let given = [
                ("privacy.pilot_noise", margins.pilot_noise != default.pilot_noise),
                ("privacy.channel_growth", margins.channel_growth != default.channel_growth),
                ("privacy.foreign_pilots", margins.foreign_pilots != default.foreign_pilots),
            ];
            let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
            return Err(ExperimentError::refused(key, "only scheme \"floras\" is accounted for with it"));
        };
        let unused = sequences as u64 - u64::from(self.clients.per_round);
        if margins.foreign_pilots > unused {
            let reason =
                format!("{} foreign pilots do not fit on {unused} unused sequences", margins.foreign_pilots);
            return Err(ExperimentError::refused("privacy.foreign_pilots", reason));
        }
        Ok(())
    }
}

/// A name becomes a folder.
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
