//! `ideal`: the exact sum, as a reference.

use floras_phy::{Ideal, Uplink, UplinkError};
use floras_privacy::Account;
use serde::{Deserialize, Serialize};

use super::{ChannelKnowledge, Scheme, SchemeFile};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio};

/// The exact sum: no radio, no noise, no privacy.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdealScheme {}

impl SchemeFile for IdealScheme {
    const NAME: &'static str = "ideal";
    const LABEL: &'static str = "the exact sum";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        Ok(keys)
    }
}

impl Scheme for IdealScheme {
    fn build(&self, _: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(Ideal))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        context.without_guarantee("an ideal uplink has no noise, and gives no privacy")
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Nothing
    }

    fn summary(&self, _: u32) -> String {
        "an ideal uplink".to_owned()
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        "Without radio: the server gets the exact sum of all changes.".to_owned()
    }

    fn uses_radio(&self) -> bool {
        false
    }

    fn allows_weights(&self) -> bool {
        true
    }
}
