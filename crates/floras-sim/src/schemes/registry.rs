//! The table of schemes.

use std::any::TypeId;
use std::sync::{PoisonError, RwLock};

use toml::Table;

use super::fields::field_names;
use super::{
    ADsgdScheme, ArtificialNoiseScheme, BlindScheme, BroadbandInversionScheme, ChannelInversionScheme,
    CotafScheme, DDsgdScheme, DigitalScheme, FlorasScheme, FskVoteScheme, GaussianScheme, IdealScheme,
    OneBitScheme, PhaseCorrectedScheme, PowerControlScheme, SchemeChoice, SchemeFile,
};
use crate::experiment::{ExperimentError, RESERVED, deserialize_section};

/// The schemes of this crate; the first is the default.
const BUILT_IN: &[SchemeEntry] = &[
    SchemeEntry::of::<FlorasScheme>(),
    SchemeEntry::of::<ChannelInversionScheme>(),
    SchemeEntry::of::<PhaseCorrectedScheme>(),
    SchemeEntry::of::<BroadbandInversionScheme>(),
    SchemeEntry::of::<PowerControlScheme>(),
    SchemeEntry::of::<ArtificialNoiseScheme>(),
    SchemeEntry::of::<BlindScheme>(),
    SchemeEntry::of::<CotafScheme>(),
    SchemeEntry::of::<OneBitScheme>(),
    SchemeEntry::of::<FskVoteScheme>(),
    SchemeEntry::of::<ADsgdScheme>(),
    SchemeEntry::of::<DDsgdScheme>(),
    SchemeEntry::of::<DigitalScheme>(),
    SchemeEntry::of::<IdealScheme>(),
    SchemeEntry::of::<GaussianScheme>(),
];

/// The schemes that [`register`] has added.
static ADDED: RwLock<Vec<SchemeEntry>> = RwLock::new(Vec::new());

/// An entry of the table of schemes.
#[derive(Clone, Copy, Debug)]
pub struct SchemeEntry {
    name: &'static str,
    label: &'static str,
    type_id: fn() -> TypeId,
    keys: fn() -> &'static [&'static str],
    read: fn(&Table) -> Result<SchemeChoice, ExperimentError>,
}

impl SchemeEntry {
    const fn of<S: SchemeFile>() -> Self {
        Self {
            name: S::NAME,
            label: S::LABEL,
            type_id: TypeId::of::<S>,
            keys: field_names::<S::Keys>,
            read: read::<S>,
        }
    }

    /// The name in the experiment file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// A short label for tables and figures.
    pub fn label(&self) -> &'static str {
        self.label
    }

    /// The scheme's own keys in `[uplink]`.
    pub fn keys(&self) -> &'static [&'static str] {
        (self.keys)()
    }

    /// The scheme with the keys that a section has.
    pub(crate) fn read(&self, section: &Table) -> Result<SchemeChoice, ExperimentError> {
        let own = section.iter().filter(|(key, _)| self.keys().contains(&key.as_str()));
        (self.read)(&own.map(|(key, value)| (key.clone(), value.clone())).collect())
    }
}

fn read<S: SchemeFile>(own: &Table) -> Result<SchemeChoice, ExperimentError> {
    Ok(SchemeChoice::new(S::read(deserialize_section("uplink", own)?)?))
}

/// All schemes that an experiment can name, in the order in which they are listed.
pub fn all() -> Vec<SchemeEntry> {
    let added = ADDED.read().unwrap_or_else(PoisonError::into_inner);
    BUILT_IN.iter().chain(added.iter()).copied().collect()
}

/// Adds a scheme of another crate for the rest of the process; experiments that are read afterwards can name it.
///
/// A name that is taken by another scheme, and a key that every scheme has, are refused. Adding the same scheme again has no effect.
pub fn register<S: SchemeFile>() -> Result<(), ExperimentError> {
    let entry = SchemeEntry::of::<S>();
    if let Some(key) = entry.keys().iter().find(|key| RESERVED.contains(key)) {
        let reason = format!("scheme \"{}\" cannot have it: the key belongs to every scheme", entry.name);
        return Err(ExperimentError::refused(&format!("uplink.{key}"), reason));
    }
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = BUILT_IN.iter().chain(added.iter()).find(|known| known.name == entry.name) {
        if (known.type_id)() == (entry.type_id)() {
            return Ok(());
        }
        return Err(ExperimentError::refused(
            "uplink.scheme",
            format!("there is another scheme \"{}\"", entry.name),
        ));
    }
    added.push(entry);
    Ok(())
}

/// The scheme of a name; the default one without a name.
pub(crate) fn find(name: Option<&str>) -> Option<SchemeEntry> {
    let name = name.unwrap_or(BUILT_IN[0].name);
    all().into_iter().find(|entry| entry.name == name)
}

/// The keys of all schemes, each once.
pub(crate) fn keys() -> Vec<&'static str> {
    let mut keys: Vec<&str> = Vec::new();
    for key in all().iter().flat_map(|entry| entry.keys()) {
        if !keys.contains(key) {
            keys.push(key);
        }
    }
    keys
}

/// Checks the keys of every scheme, including those that are not chosen.
pub(crate) fn read_all(section: &Table) -> Result<(), ExperimentError> {
    all().iter().try_for_each(|entry| entry.read(section).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use floras_phy::{Ideal, Uplink, UplinkError};
    use floras_privacy::Account;
    use serde::{Deserialize, Serialize};

    use super::*;
    use crate::schemes::{ChannelKnowledge, Scheme};
    use crate::{AccountContext, Radio, SimError};

    macro_rules! scheme {
        ($name:ident, $text:literal, $key:ident) => {
            #[derive(Debug, Default, Deserialize, Serialize)]
            #[serde(default)]
            struct $name {
                $key: f64,
            }

            impl SchemeFile for $name {
                const NAME: &'static str = $text;
                const LABEL: &'static str = $text;
                type Keys = Self;

                fn read(keys: Self) -> Result<Self, ExperimentError> {
                    Ok(keys)
                }
            }

            impl Scheme for $name {
                fn build(&self, _: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
                    Ok(Box::new(Ideal))
                }

                fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
                    context.without_guarantee("a test")
                }

                fn channel_knowledge(&self) -> ChannelKnowledge {
                    ChannelKnowledge::Nothing
                }

                fn summary(&self, _: u32) -> String {
                    $text.to_owned()
                }

                fn description(&self, _: &Radio, _: u32) -> String {
                    $text.to_owned()
                }
            }
        };
    }

    scheme!(Added, "test-added", test_key);
    scheme!(SameName, "test-added", other_key);
    scheme!(BuiltInName, "ideal", other_key);
    scheme!(ReservedKey, "test-reserved", snr_db);

    #[test]
    fn names_and_keys_that_are_taken_are_refused() {
        register::<Added>().unwrap();
        register::<Added>().unwrap();
        assert_eq!(all().iter().filter(|entry| entry.name() == "test-added").count(), 1);
        for refused in [register::<SameName>(), register::<BuiltInName>()] {
            assert!(refused.unwrap_err().to_string().starts_with("uplink.scheme: there is another scheme"));
        }
        let error = register::<ReservedKey>().unwrap_err().to_string();
        assert_eq!(
            error,
            "uplink.snr_db: scheme \"test-reserved\" cannot have it: the key belongs to every scheme"
        );
    }
}
