//! The settings of an [`AirInterface`] as one flat table: the keys of `[uplink]` and `[privacy]`, `clients`, and `masks` with the keys of
//! `[masks]`.

use std::fmt;

use serde::Serialize;
use toml::{Table, Value};

use super::AirInterface;
use crate::error::SimError;
use crate::experiment::{
    Difference, ExperimentError, MasksFile, PrivacyFile, Settings, UplinkSettings, deserialize_section,
    nearest,
};

/// The keys of `[privacy]` that an [`AirInterface`] has; a budget belongs to a run.
const PRIVACY_KEYS: [&str; 6] =
    ["clip", "normalise", "delta", "pilot_noise", "channel_growth", "foreign_pilots"];

/// The key of the section `[masks]`.
const MASKS: &str = "masks";

/// Every setting of an [`AirInterface`] that has an effect, as keys with values.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AirDescription(Table);

impl AirDescription {
    pub(super) fn new(settings: &Settings, clients: Option<u32>) -> Result<Self, SimError> {
        let mut keys = Table::new();
        if let Some(clients) = clients {
            keys.insert("clients".to_owned(), Value::Integer(clients.into()));
        }
        keys.extend(settings.uplink.to_table());
        let privacy = Table::try_from(PrivacyFile::from(settings.privacy))
            .map_err(|error| ExperimentError::refused("the settings", error))?;
        keys.extend(privacy.into_iter().filter(|(key, _)| PRIVACY_KEYS.contains(&key.as_str())));
        if let Some(masks) = settings.masks {
            let masks = Value::try_from(masks).map_err(|error| ExperimentError::refused("masks", error))?;
            keys.insert(MASKS.to_owned(), masks);
        }
        Ok(Self(keys))
    }

    /// The first key in which two descriptions differ, with both values.
    pub(super) fn difference(&self, other: &Self) -> Option<Difference> {
        let [ours, theirs] = [self, other].map(|keys| keys.entries().collect::<Vec<_>>());
        Difference::first(&ours, &theirs)
    }

    /// Each key with its value as TOML.
    pub fn entries(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.to_string()))
    }
}

impl fmt::Display for AirDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AirInterface {
    /// [`new`](Self::new) with the keys of both sections in one table, as in `{ sequences = 25, clip = 1.0 }`.
    pub fn from_keys(keys: impl Serialize, clients: Option<u32>) -> Result<Self, SimError> {
        let mut keys =
            Table::try_from(keys).map_err(|error| ExperimentError::refused("the settings", error))?;
        let masks = match keys.remove(MASKS) {
            None => None,
            Some(Value::Table(masks)) => Some(deserialize_section::<MasksFile>(MASKS, &masks)?.masks()?),
            Some(other) => {
                let allowed = "a table with noise_std, mask_std and colluding".to_owned();
                return Err(ExperimentError::Value {
                    key: MASKS.to_owned(),
                    allowed,
                    value: other.to_string(),
                }
                .into());
            }
        };
        let (privacy, uplink): (Table, Table) =
            keys.into_iter().partition(|(key, _)| PRIVACY_KEYS.contains(&key.as_str()));
        let uplink = UplinkSettings::from_table(&uplink).map_err(without_section)?;
        let privacy: PrivacyFile = deserialize_section("privacy", &privacy)?;
        privacy.check()?;
        Self::new(uplink, privacy.settings_of_uplink(masks.is_some()), masks, clients)
    }
}

/// Removes the section from an unknown key: the table has no sections.
fn without_section(error: ExperimentError) -> ExperimentError {
    match error {
        ExperimentError::UnknownKey { key, hint } => {
            let key = key.rsplit('.').next().unwrap_or(&key).to_owned();
            let hint = hint.replace("did you mean uplink.", "did you mean ");
            ExperimentError::UnknownKey { hint: nearest(&key, &PRIVACY_KEYS).unwrap_or(hint), key }
        }
        other => other,
    }
}
