//! `d-dsgd`: the digital twin of `a-dsgd`, at the rate of the capacity (Amiri and Gündüz).
//!
//! The base station decodes what every client sends. Without noise nothing is private; noise of the clients is that of the section
//! `[masks]`.

use floras_phy::{DDsgd, DDsgdSettings, Uplink, UplinkError};
use floras_privacy::Account;
use serde::{Deserialize, Serialize};

use super::a_dsgd::{DEFAULT_USES, USES, check_known};
use super::{ChannelKnowledge, SHARED_USES, Scheme, SchemeFile, require_one_antenna};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

/// Quantised sparse updates with error feedback.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DDsgdScheme {
    /// `s/d`: channel uses per parameter, from 0.001 to 1.
    pub uses_per_parameter: f64,
}

impl Default for DDsgdScheme {
    fn default() -> Self {
        Self { uses_per_parameter: DEFAULT_USES }
    }
}

impl SchemeFile for DDsgdScheme {
    const NAME: &'static str = "d-dsgd";
    const LABEL: &'static str = "quantised sparse updates";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.uses_per_parameter", Some(keys.uses_per_parameter), USES)?;
        Ok(keys)
    }
}

impl Scheme for DDsgdScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        let uses_per_parameter = self.uses_per_parameter;
        Ok(Box::new(DDsgd::new(DDsgdSettings { uses_per_parameter, length, channels, snr })?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        context.without_guarantee("the base station decodes what every client sends, without an error")
    }

    /// Its coefficient sets the client's rate.
    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        format!("{} with {} channel uses per parameter", Self::NAME, self.uses_per_parameter)
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio digitally, with {} channel uses per parameter for all clients together: in its own share, every client sends \
             one value and the places where its update is largest, as many as the capacity of its channel allows. It keeps the rest for \
             later rounds.",
            self.uses_per_parameter
        )
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn reveals_participation(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_one_antenna(radio)?;
        check_known(radio)
    }

    fn remarks(&self) -> Vec<&'static str> {
        vec![SHARED_USES, "a client sends nothing if its share of the channel uses has no room for one value"]
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![("channel uses per parameter, s/d", self.uses_per_parameter.to_string())]
    }
}
