//! `fsk-vote`: a majority vote by energy detection, without any channel knowledge (Şahin).

use std::ops::RangeInclusive;

use floras_core::{ChannelSource, Fading, View};
use floras_phy::{FskVote, FskVoteSettings, Uplink, UplinkError};
use floras_privacy::{Account, Curve, Energies, EnergyVote, PrivacyError, Source};
use serde::{Deserialize, Serialize};

use super::{ChannelKnowledge, Scheme, SchemeFile};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

/// Range of the step of a vote.
pub(super) const STEP: RangeInclusive<f64> = 1e-30..=1e30;
/// Default step: the root mean square of an update of norm 1 with 10,000 parameters.
pub(super) const DEFAULT_STEP: f64 = 0.01;
/// What the bounds of both views assume.
const CHANNELS: &str = "Rayleigh channels of equal mean power that are independent between clients, tones, parameters and rounds";
/// What only the bound on energies assumes.
const UNKNOWN: [&str; 2] = [
    "the base station does not know the channels, and its noise is at least the stated one",
    "the base station, and anyone it works with, receives with one antenna",
];

/// A majority vote by energy detection.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FskVoteScheme {
    /// Magnitude of the mean update in every parameter: from 1e-30 to 1e30.
    pub step: f64,
}

impl Default for FskVoteScheme {
    fn default() -> Self {
        Self { step: DEFAULT_STEP }
    }
}

impl SchemeFile for FskVoteScheme {
    const NAME: &'static str = "fsk-vote";
    const LABEL: &'static str = "majority vote by energy detection";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.step", Some(keys.step), STEP)?;
        Ok(keys)
    }
}

impl FskVoteScheme {
    fn over(&self, radio: &Radio) -> Result<FskVote, UplinkError> {
        FskVote::new(FskVoteSettings { step: self.step, length: radio.length, snr: radio.snr()? })
    }
}

/// The source of a curve of each parameter, or the reason why there is none.
fn each_parameter<C: Curve + 'static>(
    context: &AccountContext<'_>,
    curve: Result<C, PrivacyError>,
) -> Source {
    match (context.parameters(), curve) {
        (Some(parameters), Ok(curve)) => Source::of(curve).in_parts(parameters as u64),
        (None, _) => {
            Source::Nothing("an uplink on its own does not know the number of parameters".to_owned())
        }
        (_, Err(reason)) => Source::Nothing(reason.to_string()),
    }
}

impl Scheme for FskVoteScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// Votes and energies have curves of their own: see [`floras_privacy::EnergyVote`]. The clip norm has no effect, because only
    /// signs are sent.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let noise = self.over(context.radio())?.noise_energy();
        // A client may be the only one that is not silent.
        let voters = if context.has_silent() { 1 } else { context.clients().per_round.into() };
        let mut account = context.account()?;
        let votes = each_parameter(context, EnergyVote::new(FskVote::ENERGY, noise, voters));
        account.set(View::Actual, votes.assuming([CHANNELS]));
        let energies = each_parameter(context, Energies::new(FskVote::ENERGY, noise, voters));
        account.set(View::RawSignal, energies.assuming([CHANNELS]).assuming(UNKNOWN));
        let reason =
            "an adversary who knows the channels, which need not fade, can distinguish the signs of a client";
        account.set(View::AnyChannel, Source::Nothing(reason.to_owned()));
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Nothing
    }

    fn summary(&self, _: u32) -> String {
        format!("{} with steps of {}", Self::NAME, self.step)
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio by a majority vote: every client sends on one of two tones per parameter, by the sign of its update. The \
             base station compares the energies of the tones, and the mean update has the magnitude {} in every parameter. \
             No client knows its channel.",
            self.step
        )
    }

    fn remarks(&self) -> Vec<&'static str> {
        vec!["channels are independent between parameters"]
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        let refused = |key: &str, reason: &str| Err(ExperimentError::refused(key, reason));
        if radio.antennas != 1 {
            return refused("uplink.antennas", "this scheme receives with 1 antenna: give 1");
        }
        if radio.fading != ChannelSource::Fading(Fading::Rayleigh) {
            return refused(
                "uplink.fading",
                "the votes of this scheme are those of Rayleigh channels: give \"rayleigh\"",
            );
        }
        if radio.ages() || radio.coherence.is_some() {
            let key = if radio.coherence.is_some() { "uplink.coherence" } else { "uplink.ageing" };
            return refused(
                key,
                "the votes of this scheme are those of channels that are independent between parameters",
            );
        }
        if radio.channel_error > 0.0 {
            return refused(
                "uplink.channel_error",
                "clients of this scheme do not estimate their channels: give 0",
            );
        }
        if radio.is_unequal() {
            return refused(
                "uplink.path_loss",
                "the votes of this scheme are those of clients with equal mean power",
            );
        }
        Ok(())
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("everyone who sees the votes"),
            View::RawSignal => {
                Some("a base station that keeps the energies of all tones, and knows no channel")
            }
            _ => None,
        }
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("votes"),
            View::RawSignal => Some("energies of all tones"),
            _ => None,
        }
    }
}
