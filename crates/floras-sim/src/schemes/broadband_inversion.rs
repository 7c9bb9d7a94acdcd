//! `broadband-inversion`: truncated channel inversion on every subcarrier (Zhu, Wang and Huang).
//!
//! A client that knows its channels arrives at the amplitude `√ρ₀` on every subcarrier to which it is admitted, and at 0 on the
//! others. A change `δ` of its update, with `‖δ‖ ≤ Δ`, moves the samples of block `m` by at most `√ρ₀·‖δ_m‖`, and the squares of these
//! norms add up to at most `ρ₀·Δ²`. The receiver's noise has the standard deviation `σ` in every sample. So `μ ≤ Δ·√ρ₀/σ` whatever the
//! channels are. The decoded sum follows from the samples, and all clients arrive in phase, so that the other quadrature is noise alone.

use std::ops::RangeInclusive;

use floras_core::{Admission, Choice, NoiseReference, View};
use floras_phy::{BroadbandInversion, BroadbandInversionSettings, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::{
    ChannelKnowledge, INDEPENDENT_SUBCARRIERS, NO_NOISE, NOT_KNOWN, ONE_ANTENNA, SAMPLES_AND_CHANNELS,
    Scheme, SchemeFile, admits_always, receiver_noise_adversary, receiver_noise_has_raw_samples,
    require_equal_channels, require_one_antenna, set_by_receiver_noise,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

/// Range of the number of subcarriers.
pub(super) const SUBCARRIERS: RangeInclusive<usize> = 1..=BroadbandInversion::MAX_SUBCARRIERS;

/// Truncated channel inversion on every subcarrier.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BroadbandInversionScheme {
    /// `M`, number of subcarriers, each with channels and a block of parameters of its own: from 1 to 4096.
    pub subcarriers: usize,
    /// The weakest channel with which a client uses a subcarrier, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
}

impl Default for BroadbandInversionScheme {
    fn default() -> Self {
        Self { subcarriers: 8, admission: Admission::default(), noise: NoiseReference::default() }
    }
}

impl SchemeFile for BroadbandInversionScheme {
    const NAME: &'static str = "broadband-inversion";
    const LABEL: &'static str = "broadband analog aggregation";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.subcarriers", Some(keys.subcarriers), SUBCARRIERS)?;
        Ok(keys)
    }
}

impl BroadbandInversionScheme {
    fn over(&self, radio: &Radio) -> Result<BroadbandInversion, UplinkError> {
        let Self { subcarriers, admission, noise } = *self;
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        BroadbandInversion::new(BroadbandInversionSettings {
            admission,
            subcarriers,
            noise,
            length,
            channels,
            snr,
        })
    }
}

impl Scheme for BroadbandInversionScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let (mut account, radio) = (context.account()?, context.radio());
        let uplink = self.over(radio)?;
        let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
        let noise_std = uplink.noise_over_amplitude();
        if noise_std == 0.0 {
            for view in [View::Actual, View::AnyChannel, View::RawSignal] {
                account.set(view, Source::Nothing(NO_NOISE.to_owned()));
            }
        } else if radio.ages() || radio.channel_error > 0.0 {
            account.set(View::Actual, context.estimate()?);
            account.set(View::AnyChannel, Source::Nothing(NOT_KNOWN.to_owned()));
            let raw = context.estimate_by(&mut |round| uplink.raw_mu(round, sensitivity))?;
            account.set(View::RawSignal, raw.assuming([ONE_ANTENNA]));
        } else {
            let bound = context.constant(sensitivity / noise_std);
            set_by_receiver_noise(&mut account, &bound, admits_always(radio, self.admission));
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        match self.subcarriers {
            1 => format!("{} on 1 subcarrier", Self::NAME),
            many => format!("{} on {many} subcarriers", Self::NAME),
        }
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio by broadband analog aggregation: the parameters are divided over {} subcarriers; on each, a client \
             with a strong enough channel ({}) inverts it, and the others stay silent.",
            self.subcarriers,
            self.admission.label()
        )
    }

    fn allows_weights(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        check_distribution(radio)?;
        self.over(radio).map(|_| ()).map_err(|error| ExperimentError::refused("uplink.admission", error))
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        receiver_noise_adversary(view)
    }

    fn has_raw_samples(&self, view: View) -> bool {
        receiver_noise_has_raw_samples(view)
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (view == View::AnyChannel).then_some(SAMPLES_AND_CHANNELS)
    }

    fn remarks(&self) -> Vec<&'static str> {
        vec![INDEPENDENT_SUBCARRIERS]
    }

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![("subcarriers, M", self.subcarriers.to_string()), ("admission", self.admission.label())]
    }
}

/// Rejects a radio of several antennas, and one whose channels have no known distribution that is the same for all clients.
pub(super) fn check_distribution(radio: &Radio) -> Result<(), ExperimentError> {
    require_one_antenna(radio)?;
    require_equal_channels(radio)
}
