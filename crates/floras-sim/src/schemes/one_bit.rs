//! `one-bit`: a majority vote of signs over inverted channels (Zhu, Du, Gündüz, Huang).

use floras_core::{Admission, Choice, NoiseReference, View};
use floras_phy::{BroadbandInversionSettings, OneBit, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::broadband_inversion::{BroadbandInversionScheme, SUBCARRIERS, check_distribution};
use super::fsk_vote::{DEFAULT_STEP, STEP};
use super::{
    BOTH_DIMENSIONS, BY_RECEIVER_NOISE, ChannelKnowledge, INDEPENDENT_SUBCARRIERS, NO_NOISE,
    SAMPLES_AND_CHANNELS, Scheme, SchemeFile, admits_always, receiver_noise_adversary,
    receiver_noise_has_raw_samples, set_by_receiver_noise,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

/// A majority vote of signs.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct OneBitScheme {
    /// Number of subcarriers, from 1 to 4096.
    pub subcarriers: usize,
    /// The weakest channel with which a client uses a subcarrier, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
    /// Magnitude of the mean update in every parameter: from 1e-30 to 1e30.
    pub step: f64,
}

impl Default for OneBitScheme {
    fn default() -> Self {
        let BroadbandInversionScheme { subcarriers, admission, .. } = BroadbandInversionScheme::default();
        Self { subcarriers, admission, step: DEFAULT_STEP }
    }
}

impl SchemeFile for OneBitScheme {
    const NAME: &'static str = "one-bit";
    const LABEL: &'static str = "majority vote of signs";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.subcarriers", Some(keys.subcarriers), SUBCARRIERS)?;
        within("uplink.step", Some(keys.step), STEP)?;
        Ok(keys)
    }
}

impl OneBitScheme {
    fn over(&self, radio: &Radio) -> Result<OneBit, UplinkError> {
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        let Self { subcarriers, admission, step } = *self;
        let noise = NoiseReference::PerSymbol;
        OneBit::new(BroadbandInversionSettings { admission, subcarriers, noise, length, channels, snr }, step)
    }
}

impl Scheme for OneBitScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// All signs of a client may change, each by 2 votes: the samples are a Gaussian mechanism. The votes are computed from them and
    /// show less, so that the number is an upper bound for them. The clip norm has no effect.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let Some(parameters) = context.parameters() else {
            return context.without_guarantee("an uplink on its own does not know the number of parameters");
        };
        let mu = self.over(context.radio())?.mu(parameters);
        let mut account = context.account()?;
        if mu.is_infinite() {
            for view in [View::Actual, View::AnyChannel, View::RawSignal] {
                account.set(view, Source::Nothing(NO_NOISE.to_owned()));
            }
            return Ok(account);
        }
        let bound = context.constant(mu);
        set_by_receiver_noise(&mut account, &bound, admits_always(context.radio(), self.admission));
        account.set(View::Actual, bound.assuming(BY_RECEIVER_NOISE).without_lower());
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        format!("{} with steps of {}", Self::NAME, self.step)
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio by a majority vote of signs: every client inverts its channel on each of {} subcarriers where that is strong \
             enough ({}) and sends the signs of its update, two per symbol. The base station takes the sign of the sum, and the mean \
             update has the magnitude {} in every parameter.",
            self.subcarriers,
            self.admission.label(),
            self.step
        )
    }

    fn is_linear(&self) -> bool {
        false
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        let refused = |key: &str, reason: &str| Err(ExperimentError::refused(key, reason));
        check_distribution(radio)?;
        if radio.channel_error != 0.0 {
            return refused(
                "uplink.channel_error",
                "clients of this scheme know their channels without error",
            );
        }
        if radio.ages() {
            return refused("uplink.ageing", "channels of this scheme are constant over a round");
        }
        self.over(radio).map(|_| ()).map_err(|error| ExperimentError::refused("uplink.admission", error))
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("everyone who sees the votes"),
            _ => receiver_noise_adversary(view),
        }
    }

    fn has_raw_samples(&self, view: View) -> bool {
        receiver_noise_has_raw_samples(view)
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("votes"),
            View::AnyChannel => Some(SAMPLES_AND_CHANNELS),
            _ => None,
        }
    }

    fn remarks(&self) -> Vec<&'static str> {
        vec![
            BOTH_DIMENSIONS,
            INDEPENDENT_SUBCARRIERS,
            "zeros of an update count as positive votes, which matters if clients hold few samples",
        ]
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![("subcarriers, M", self.subcarriers.to_string()), ("admission", self.admission.label())]
    }
}
