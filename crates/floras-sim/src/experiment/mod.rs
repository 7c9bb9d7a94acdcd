//! The experiment file: the data, the clients, the model, the uplink, and the recording.
//!
//! [`Settings`] are plain values. Their default is a task that learns: clipped updates and the clipped receiver. An
//! [`Experiment`] is validated settings, so `K > M` or a clip norm of zero cannot reach a federation. An [`ExperimentBuilder`]
//! builds one from presets, files and changes. Every key of the file has a default, and is checked on its own and together with
//! the others. The run directory contains the file with all keys.

mod builder;
mod clients;
mod data;
mod error;
mod file;
mod local;
mod masks;
mod model;
mod number_or_none;
mod privacy;
mod radio;
mod record;
mod uplink;

use floras_core::{Clipping, Fidelity, Masks, TransmitPower, list};
use floras_learn::LocalSgd;
use floras_phy::{Aggregation, Masked, Noise, UnitPower, Uplink, unit_scale};
use floras_privacy::Margins;
use serde::{Serialize, Serializer};
use toml::{Table, Value};

pub use builder::ExperimentBuilder;
pub use clients::{ClientSettings, Weights};
pub use data::{DataChoice, DataSettings};
pub use error::{ExperimentError, within};
use file::{SettingsFile, entries, to_text};
pub(crate) use file::{deserialize, deserialize_section, nearest};
pub use local::LocalSettings;
pub(crate) use masks::MasksFile;
pub use model::{ModelKind, ModelSettings};
pub(crate) use privacy::PrivacyFile;
pub use privacy::PrivacySettings;
pub use radio::Radio;
pub(crate) use radio::{SIZES, is_default};
pub use record::RecordSettings;
pub(crate) use uplink::RESERVED;
pub use uplink::UplinkSettings;

use crate::schemes::{self, SchemeChoice, SchemeEntry};

/// The name of an experiment that has none.
const DEFAULT_NAME: &str = "experiment";

/// The version that is written into run directories.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Everything that an experiment consists of.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A short name, which also names the run directory.
    pub name: String,
    /// Seed of all randomness, at most 2^63 − 1.
    pub seed: u64,
    /// Number of independent trials, from 1 to 65536.
    pub trials: u32,
    /// Number of learning rounds `T` per trial, at least 1.
    pub rounds: u32,
    /// The data set, and its partition among the clients.
    pub data: DataSettings,
    /// Numbers of clients, their weights and dropouts.
    pub clients: ClientSettings,
    /// The model and its penalty.
    pub model: ModelSettings,
    /// A client's training in a round.
    pub local: LocalSettings,
    /// The scheme and the radio that carry the updates.
    pub uplink: UplinkSettings,
    /// Clipping, the parameters of the privacy statements, and the budget.
    pub privacy: PrivacySettings,
    /// Masks and noise that clients add to their updates; absent means none.
    pub masks: Option<Masks>,
    /// Which measurements are recorded, and in which rounds.
    pub record: RecordSettings,
}

impl Default for Settings {
    /// The paper's IID task with clipped updates, the clipped receiver and a higher rate, so that it learns.
    fn default() -> Self {
        Self {
            name: DEFAULT_NAME.to_owned(),
            seed: 1,
            trials: 5,
            rounds: 300,
            data: DataSettings::default(),
            clients: ClientSettings::default(),
            model: ModelSettings::default(),
            local: LocalSettings::default(),
            uplink: UplinkSettings::default(),
            privacy: PrivacySettings::default(),
            masks: None,
            record: RecordSettings::default(),
        }
    }
}

/// Settings that were validated.
///
/// ```
/// use floras_sim::{Experiment, Settings};
///
/// let mut settings = Settings::default();
/// settings.clients.per_round = 30;
/// let error = Experiment::new(settings).unwrap_err();
/// assert_eq!(error.to_string(), "clients.per_round: K = 30 clients per round cannot be chosen from M = 20 in all");
///
/// let experiment = Experiment::parse("a string", "rounds = 7\n[clients]\ntotal = 40")?;
/// assert_eq!(experiment.settings().clients.total, 40);
/// # Ok::<(), floras_sim::ExperimentError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    settings: Settings,
}

impl Experiment {
    /// Validates settings. An error names the key and what is allowed.
    pub fn new(settings: Settings) -> Result<Self, ExperimentError> {
        let file = SettingsFile::from(&settings);
        file.check()?;
        settings.check()?;
        if Settings::try_from(file)? == settings {
            return Ok(Self { settings });
        }
        // A run with settings that a file cannot represent could not be resumed.
        Err(ExperimentError::refused("the settings", "they cannot be represented in an experiment file"))
    }

    /// Reads and checks an experiment from its text; `source_name` is for messages.
    pub fn parse(source_name: &str, text: &str) -> Result<Self, ExperimentError> {
        ExperimentBuilder::parse(source_name, text)?.build()
    }

    pub(crate) fn from_table(table: &Table) -> Result<Self, ExperimentError> {
        let settings = Settings::try_from(SettingsFile::read(table)?)?;
        settings.check()?;
        Ok(Self { settings })
    }

    /// All settings, with defaults filled in; every number is in its range.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The text of an experiment file with all settings.
    pub fn to_toml(&self) -> String {
        to_text(&self.to_table())
    }

    /// The experiment as a TOML table.
    pub(crate) fn to_table(&self) -> Table {
        SettingsFile::from(&self.settings).to_table()
    }

    /// All settings that have an effect: keys with their sections, and values as TOML.
    pub fn entries(&self) -> Vec<(String, String)> {
        entries(&self.to_table()).into_iter().map(|(key, value)| (key, value.to_string())).collect()
    }

    /// The first key in which two experiments differ, with both values.
    pub fn difference(&self, other: &Self) -> Option<Difference> {
        Difference::first(&entries(&self.to_table()), &entries(&other.to_table()))
    }

    /// The version that a run has written into its experiment's file.
    pub(crate) fn version_in(text: &str) -> Option<String> {
        let table = text.parse::<Table>().ok()?;
        table.get("version").and_then(Value::as_str).map(str::to_owned)
    }
}

impl Serialize for Experiment {
    /// Every setting, as in the file.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        SettingsFile::from(&self.settings).serialize(serializer)
    }
}

/// A key in which two experiments or uplinks differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The key, with its section.
    pub key: String,
    /// The value here, as TOML.
    pub ours: String,
    /// The value of the other one, as TOML.
    pub theirs: String,
}

impl Difference {
    /// The first key whose values differ; a key that is missing has the value `absent`.
    pub(crate) fn first<K: ToString, V: ToString>(ours: &[(K, V)], theirs: &[(K, V)]) -> Option<Self> {
        let value_in = |entries: &[(K, V)], key: &str| {
            let found = entries.iter().find(|(known, _)| known.to_string() == key);
            found.map_or("absent".to_owned(), |(_, value)| value.to_string())
        };
        let keys = ours.iter().chain(theirs).map(|(key, _)| key.to_string());
        keys.map(|key| Self { ours: value_in(ours, &key), theirs: value_in(theirs, &key), key })
            .find(|difference| difference.ours != difference.theirs)
    }
}

impl Settings {
    /// Checks that settings are consistent with each other.
    fn check(&self) -> Result<(), ExperimentError> {
        let ClientSettings { total, per_round, weights, .. } = self.clients;
        if per_round > total {
            let reason =
                format!("K = {per_round} clients per round cannot be chosen from M = {total} in all");
            return Err(ExperimentError::refused("clients.per_round", reason));
        }
        if let Some(sequences) = self.uplink.scheme.sequences()
            && sequences < per_round as usize
        {
            let error = floras_phy::UplinkError::TooFewSequences { sequences, clients: per_round as usize };
            return Err(ExperimentError::refused("uplink.sequences", error));
        }
        self.check_margins()?;
        self.check_masks()?;
        self.check_power()?;
        self.check_linear()?;
        self.record.check_rounds(self.rounds)?;
        if weights == Weights::Samples && !self.uplink.scheme.allows_weights() {
            let reason = format!(
                "the privacy statement of scheme \"{}\" requires equal weights; weights = \"samples\" is available with {}",
                self.uplink.scheme.name(),
                names_of(|scheme| scheme.allows_weights(), "and")
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
    /// Checks that margins are given only for a scheme that despreads, and fit its sequences.
    fn check_margins(&self) -> Result<(), ExperimentError> {
        let margins = self.privacy.margins;
        let Some(sequences) = self.uplink.scheme.sequences() else {
            let default = Margins::default();
            let given = [
                ("privacy.pilot_noise", margins.pilot_noise != default.pilot_noise),
                ("privacy.channel_growth", margins.channel_growth != default.channel_growth),
                ("privacy.foreign_pilots", margins.foreign_pilots != default.foreign_pilots),
            ];
            let Some((key, _)) = given.into_iter().find(|(_, is_given)| *is_given) else { return Ok(()) };
            let spreading = names_of(|scheme| scheme.sequences().is_some(), "or");
            return Err(ExperimentError::refused(
                key,
                format!("only scheme {spreading} is accounted for with it"),
            ));
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

impl Settings {
    /// The steps of a round around the uplink: clipping, the simulation's noise, and clamping. Norms are measured.
    pub fn aggregation(&self) -> Aggregation {
        Aggregation {
            clip: self.privacy.clip,
            clipping: self.privacy.normalise,
            fidelity: self.uplink.fidelity,
            truncate: self.uplink.truncate,
            noise: Noise::Simulated,
            measure_norms: true,
            keep_decoded: false,
        }
    }

    /// `β`, the factor by which clients multiply updates of `parameters = d` parameters before sending: 1 unless they send at unit
    /// power; `None` at unit power without a clip norm. Artificial noise of channel inversion, which makes `β` smaller, is not
    /// included.
    pub fn sent_scale(&self, parameters: usize) -> Option<f64> {
        if self.uplink.power() == TransmitPower::Unscaled {
            return Some(1.0);
        }
        let packing = self.uplink.scheme.parameters_per_symbol();
        let clients = self.clients.per_round as usize;
        Some(unit_scale(self.privacy.clip?, parameters, packing, 0.0, self.masks, clients))
    }

    /// Builds the uplink: the scheme, scaled to the transmit power, with the masks and the noise of the clients. Sequences of some
    /// families are drawn from the seed.
    pub fn build_uplink(&self, seed: u64) -> Result<Box<dyn Uplink>, ExperimentError> {
        self.with_masks(self.uplink.build(seed)?)
    }

    /// Scales an uplink, which replaces the scheme's, to the transmit power, and adds the masks and the noise of the clients.
    pub fn with_masks(&self, uplink: Box<dyn Uplink>) -> Result<Box<dyn Uplink>, ExperimentError> {
        let uplink = self.at_power(uplink)?;
        Ok(match self.masks {
            None => uplink,
            Some(masks) => Box::new(Masked::new(uplink, masks)),
        })
    }

    /// Scales an uplink, which replaces the scheme's, to the transmit power. Masks affect only the power.
    pub fn at_power(&self, uplink: Box<dyn Uplink>) -> Result<Box<dyn Uplink>, ExperimentError> {
        let (TransmitPower::Unit, Some(clip)) = (self.uplink.power(), self.privacy.clip) else {
            return Ok(uplink);
        };
        let scaled = UnitPower::new(uplink, clip, self.masks);
        Ok(Box::new(scaled.map_err(|error| ExperimentError::refused("uplink.power", error))?))
    }

    /// Whether the channel of a round, or the account, depends on the number of parameters.
    pub(crate) fn needs_parameters(&self) -> bool {
        self.uplink.radio().is_some_and(Radio::needs_parameters)
            || self.uplink.power() == TransmitPower::Unit
            || self.uplink.scheme.needs_parameters()
    }

    /// Checks that unit power, which refers to an update of norm `C`, comes with a clip norm.
    fn check_power(&self) -> Result<(), ExperimentError> {
        if self.uplink.power() == TransmitPower::Unscaled || self.privacy.clip.is_some() {
            return Ok(());
        }
        Err(ExperimentError::Value {
            key: "uplink.power".to_owned(),
            allowed: "\"unscaled\" unless privacy.clip bounds the updates".to_owned(),
            value: "\"unit\"".to_owned(),
        })
    }

    /// Checks that a scheme that is not linear comes with settings that it can use.
    fn check_linear(&self) -> Result<(), ExperimentError> {
        let UplinkSettings { scheme, fidelity, .. } = &self.uplink;
        if scheme.is_linear() {
            return Ok(());
        }
        let refused = |key: &str, allowed: &str, value: String| {
            let allowed = format!("{allowed} with scheme \"{}\", which is not linear", scheme.name());
            Err(ExperimentError::Value { key: key.to_owned(), allowed, value })
        };
        if *fidelity == Fidelity::Chip {
            return refused("uplink.fidelity", "\"symbol\"", "\"chip\"".to_owned());
        }
        if self.uplink.power() == TransmitPower::Unit {
            return refused("uplink.power", "\"unscaled\"", "\"unit\"".to_owned());
        }
        if self.privacy.normalise == Clipping::Paper {
            return refused("privacy.normalise", "\"clip\"", "\"paper\"".to_owned());
        }
        match self.masks.map_or(0.0, Masks::mask_std) {
            0.0 => Ok(()),
            std => refused("masks.mask_std", "0", std.to_string()),
        }
    }

    /// A short description of scheme, radio, masks and noise, for one line of text.
    pub fn uplink_summary(&self) -> String {
        let mut summary = self.uplink.summary(self.clients.per_round);
        if self.uplink.power() == TransmitPower::Unit {
            summary.push_str(", at unit power");
        }
        if let Some(masks) = self.masks {
            match masks.mask_std() {
                0.0 => summary.push_str(&format!(", local noise {}", masks.noise_std())),
                std => summary.push_str(&format!(", masks {std}, local noise {}", masks.noise_std())),
            }
        }
        summary
    }

    /// Local training with the changes of the data.
    pub fn sgd(&self) -> LocalSgd {
        self.local.sgd.with_augmentation(self.data.augmentation)
    }

    /// Notes for the user about these settings.
    pub fn notes(&self) -> Vec<String> {
        self.uplink.scheme.notes(self)
    }
}

/// The names of the schemes for which something holds by default, in quotes.
fn names_of(holds: impl Fn(&SchemeChoice) -> bool, last: &str) -> String {
    let default = |entry: &SchemeEntry| entry.read(&Table::new()).ok().filter(|scheme| holds(scheme));
    let entries = schemes::all();
    let names = entries.iter().filter_map(default);
    let names: Vec<String> = names.map(|scheme| format!("\"{}\"", scheme.name())).collect();
    list(&names).replace(" or ", &format!(" {last} "))
}
