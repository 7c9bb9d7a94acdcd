//! `a-dsgd`: sparse updates with error feedback, random projection and message passing (Amiri and Gündüz).
//!
//! What a client sends in a round has at most the energy `s`, in units of a symbol of power 1, so that two transmissions differ by at most
//! `2√s`, and `μ ≤ 2·√(ρ₀·s)/σ` for everyone who sees the received samples. This holds for any data and any memory.

use std::ops::RangeInclusive;

use floras_core::{Admission, Choice, View};
use floras_phy::{ADsgd, ADsgdSettings, Amp, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::broadband_inversion::check_distribution;
use super::{
    BY_RECEIVER_NOISE, ChannelKnowledge, NO_NOISE, ONE_ANTENNA, SAMPLES_AND_CHANNELS, Scheme, SchemeFile,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

/// Range of the channel uses per parameter.
pub(super) const USES: RangeInclusive<f64> = 1e-3..=1.0;
/// Default channel uses per parameter.
pub(super) const DEFAULT_USES: f64 = 0.5;
const KEPT: RangeInclusive<f64> = 1e-3..=1.0;
const ITERATIONS: RangeInclusive<u32> = 1..=Amp::MAX_ITERATIONS;

/// Compressed analog updates with error feedback.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ADsgdScheme {
    /// `s/d`: channel uses per parameter, from 0.001 to 1.
    pub uses_per_parameter: f64,
    /// `q/s`: values that a client sends, per channel use, from 0.001 to 1.
    pub kept: f64,
    /// The maximum number of iterations of the recovery, from 1 to 100,000.
    pub iterations: u32,
    /// The weakest channel with which a client sends, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
}

impl Default for ADsgdScheme {
    fn default() -> Self {
        Self { uses_per_parameter: DEFAULT_USES, kept: 0.5, iterations: 30, admission: Admission::default() }
    }
}

impl SchemeFile for ADsgdScheme {
    const NAME: &'static str = "a-dsgd";
    const LABEL: &'static str = "compressed analog updates";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.uses_per_parameter", Some(keys.uses_per_parameter), USES)?;
        within("uplink.kept", Some(keys.kept), KEPT)?;
        within("uplink.iterations", Some(keys.iterations), ITERATIONS)?;
        Ok(keys)
    }
}

impl ADsgdScheme {
    fn over(&self, radio: &Radio) -> Result<ADsgd, UplinkError> {
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        let Self { uses_per_parameter, kept, iterations, admission } = *self;
        ADsgd::new(ADsgdSettings { uses_per_parameter, kept, iterations, admission, length, channels, snr })
    }
}

impl Scheme for ADsgdScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// The received samples are a Gaussian mechanism, whatever a client's data and memory are, and the decoded sum is computed from
    /// them. The clip norm has no effect.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let Some(parameters) = context.parameters() else {
            return context.without_guarantee("an uplink on its own does not know the number of parameters");
        };
        let mu = self.over(context.radio())?.mu(parameters);
        let mut account = context.account()?;
        for view in [View::Actual, View::AnyChannel, View::RawSignal] {
            let source = match mu.is_finite() {
                // Transmissions of clients with short updates are closer to each other than the bound.
                true => context.constant(mu).assuming(BY_RECEIVER_NOISE).without_lower(),
                false => Source::Nothing(NO_NOISE.to_owned()),
            };
            let source = if view == View::Actual { source } else { source.assuming([ONE_ANTENNA]) };
            account.set(view, source);
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        format!("{} with {} channel uses per parameter", Self::NAME, self.uses_per_parameter)
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio as compressed analog updates: every client with a channel that is strong enough ({}) inverts it, and sends a \
             random projection of the largest values of its update to {} channel uses per parameter. It keeps the others for later \
             rounds. The base station recovers the mean by message passing.",
            self.admission.label(),
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
        check_distribution(radio)?;
        check_known(radio)?;
        self.over(radio).map(|_| ()).map_err(|error| ExperimentError::refused("uplink.admission", error))
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("everyone who sees the recovered means"),
            View::AnyChannel | View::RawSignal => Some(
                "a base station that knows every channel and keeps its raw samples, with no less noise than stated",
            ),
            _ => None,
        }
    }

    fn has_raw_samples(&self, view: View) -> bool {
        matches!(view, View::AnyChannel | View::RawSignal)
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        match view {
            View::Actual => Some("recovered means"),
            View::AnyChannel | View::RawSignal => Some(SAMPLES_AND_CHANNELS),
            _ => None,
        }
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![
            ("channel uses per parameter, s/d", self.uses_per_parameter.to_string()),
            ("values per channel use, q/s", self.kept.to_string()),
            ("iterations", self.iterations.to_string()),
            ("admission", self.admission.label()),
        ]
    }
}

/// Rejects a radio over which clients do not know their channels exactly.
pub(super) fn check_known(radio: &Radio) -> Result<(), ExperimentError> {
    let refused = |key: &str, reason: &str| Err(ExperimentError::refused(key, reason));
    if radio.channel_error != 0.0 {
        return refused("uplink.channel_error", "clients of this scheme know their channels without error");
    }
    if radio.ages() {
        return refused("uplink.ageing", "channels of this scheme are constant over a round");
    }
    Ok(())
}
