//! The section `[uplink]`: the scheme, its own keys, the radio, and the decoder.

use floras_core::{Fidelity, Receiver, TransmitPower, list};
use floras_phy::Uplink;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::error::ExperimentError;
use super::file::{deserialize_section, nearest, unknown_key};
use super::number_or_none::NumberOrNone;
use super::radio::Radio;
use crate::schemes::{self, ChannelKnowledge, FlorasScheme, SchemeChoice, SchemeFile as _};

/// Everything between the clients' updates and the decoded sum.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkSettings {
    /// The scheme, with its own settings.
    pub scheme: SchemeChoice,
    /// The radio; its defaults for schemes that use none.
    pub radio: Radio,
    /// Whether symbols are simulated by the effective channel of a block, or every chip is.
    pub fidelity: Fidelity,
    /// `B`: decoded values are clamped to `±B`, from 1e-30 to 1e30; absent means that they are not.
    pub truncate: Option<f64>,
}

/// The default receiver of an experiment: clipped at twice the noise of an estimate. An uplink without training has the paper's
/// receiver as its default. The noise of that receiver is unbounded, and training with it would fail.
fn default_receiver() -> Receiver {
    Receiver::clipped(2.0).expect("2 is a valid level")
}

impl Default for UplinkSettings {
    fn default() -> Self {
        Self {
            scheme: FlorasScheme { receiver: default_receiver(), ..FlorasScheme::default() }.into(),
            radio: Radio::default(),
            fidelity: Fidelity::default(),
            truncate: None,
        }
    }
}

/// The keys that every scheme has.
#[derive(Default, Deserialize, Serialize)]
#[serde(default)]
struct CommonKeys {
    fidelity: Fidelity,
    truncate: NumberOrNone,
}

/// The keys that every scheme has, besides its own: the first one is written before its own, the others after.
pub(crate) const RESERVED: [&str; 13] = [
    "scheme",
    "length",
    "fading",
    "snr_db",
    "snr_convention",
    "ageing",
    "coherence",
    "channel_error",
    "path_loss",
    "power",
    "antennas",
    "fidelity",
    "truncate",
];

impl UplinkSettings {
    /// Reads and checks the section of an experiment, whose default receiver bounds the noise.
    pub(super) fn of_experiment(section: &Table) -> Result<Self, ExperimentError> {
        let is_floras = match section.get("scheme") {
            None => true,
            Some(scheme) => scheme.as_str() == Some(FlorasScheme::NAME),
        };
        if !is_floras || section.contains_key("receiver") {
            return Self::from_table(section);
        }
        let mut section = section.clone();
        section.insert("receiver".to_owned(), Value::String(default_receiver().to_string()));
        Self::from_table(&section)
    }

    /// Reads and checks the section. Keys that the scheme does not use are checked all the same.
    pub(crate) fn from_table(section: &Table) -> Result<Self, ExperimentError> {
        let [first, others @ ..] = RESERVED;
        let known: Vec<&str> = [first].into_iter().chain(schemes::keys()).chain(others).collect();
        if let Some(unknown) = section.keys().find(|key| !known.contains(&key.as_str())) {
            return Err(unknown_key(unknown, "uplink", &known));
        }
        let common: CommonKeys = deserialize_section("uplink", section)?;
        let radio: Radio = deserialize_section("uplink", section)?;
        schemes::read_all(section)?;
        radio.check()?;
        common.truncate.within("uplink.truncate", 1e-30..=1e30)?;
        let scheme = read_scheme(section)?;
        let mut radio = if scheme.uses_radio() { radio } else { Radio::default() };
        if !radio.ages() {
            radio.coherence = None;
        }
        if scheme.uses_radio() {
            scheme.check_radio(&radio)?;
            check_packing(&scheme, section)?;
        }
        if scheme.channel_knowledge() == ChannelKnowledge::Nothing {
            // Clients do not use their channels, so the key has no effect.
            radio.channel_error = 0.0;
        }
        Ok(Self { scheme, radio, fidelity: common.fidelity, truncate: common.truncate.0 })
    }

    /// The section with every key that has an effect.
    pub(crate) fn to_table(&self) -> Table {
        let written = "settings of the uplink are numbers, texts and choices";
        let mut table = Table::new();
        table.insert("scheme".to_owned(), Value::String(self.scheme.name().to_owned()));
        table.extend(self.scheme.keys().clone());
        if self.scheme.uses_radio() {
            table.extend(Table::try_from(&self.radio).expect(written));
        }
        let common = CommonKeys { fidelity: self.fidelity, truncate: NumberOrNone(self.truncate) };
        table.extend(Table::try_from(common).expect(written));
        table
    }

    /// The radio, for schemes that use one.
    pub fn radio(&self) -> Option<&Radio> {
        self.scheme.uses_radio().then_some(&self.radio)
    }

    /// The power at which clients send; a scheme without radio has no symbols to scale.
    pub fn power(&self) -> TransmitPower {
        self.radio().map_or(TransmitPower::Unscaled, |radio| radio.power)
    }

    /// A short description for one line of text.
    pub fn summary(&self, per_round: u32) -> String {
        let scheme = self.scheme.summary(per_round);
        match self.radio() {
            None => scheme,
            Some(radio) => format!("{scheme} over {}", radio.summary()),
        }
    }

    /// How the updates reach the base station, in sentences.
    pub fn description(&self, per_round: u32) -> String {
        let scheme = self.scheme.description(&self.radio, per_round);
        match self.radio() {
            None => scheme,
            Some(radio) => format!("{scheme} {}", radio.description()),
        }
    }

    /// The scheme's uplink, for updates that are sent as they are. Sequences of some families are drawn from the seed.
    pub fn build(&self, seed: u64) -> Result<Box<dyn Uplink>, ExperimentError> {
        self.scheme.build(&self.radio, seed).map_err(|error| ExperimentError::refused("uplink", error))
    }
}

/// Rejects two parameters per symbol for a scheme that does not read the key.
fn check_packing(scheme: &SchemeChoice, section: &Table) -> Result<(), ExperimentError> {
    let asked = section.get("parameters_per_symbol").and_then(Value::as_integer);
    let sent = scheme.parameters_per_symbol().get() as i64;
    if asked.is_none_or(|number| number == sent) {
        return Ok(());
    }
    let reason = format!("scheme \"{}\" sends one parameter in a symbol", scheme.name());
    Err(ExperimentError::refused("uplink.parameters_per_symbol", reason))
}

fn read_scheme(section: &Table) -> Result<SchemeChoice, ExperimentError> {
    let name = section.get("scheme");
    let found = match name {
        None => schemes::find(None),
        Some(Value::String(name)) => schemes::find(Some(name)),
        Some(_) => None,
    };
    let Some(entry) = found else {
        let names: Vec<&str> = schemes::all().iter().map(|entry| entry.name()).collect();
        let value = name.map_or_else(String::new, ToString::to_string);
        let (key, allowed) = ("uplink.scheme".to_owned(), list(&names));
        return Err(match name.and_then(Value::as_str).and_then(|name| nearest(name, &names)) {
            Some(hint) => ExperimentError::Misspelt { key, allowed, value, hint },
            None => ExperimentError::Value { key, allowed, value },
        });
    };
    entry.read(section)
}
