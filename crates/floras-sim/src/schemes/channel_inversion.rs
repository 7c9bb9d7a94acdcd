//! `channel-inversion`: every client inverts its own channel. It is the paper's baseline.
//!
//! Artificial noise of standard deviation `a` in the sum gives `μ ≤ Δ/a` over every channel, because the channel's noise is added
//! to it.
//!
//! This requires that all clients arrive with a gain of 1. If channels age, or clients know theirs with an error, only a client's
//! own share of the noise is certain to arrive with its update. That share is at least `a/√K`, so `μ ≤ Δ·√K/a`. The base station's
//! samples then have a component in the other quadrature, which the raw-signal view includes.

use std::ops::RangeInclusive;

use floras_core::{Admission, NoiseReference, PowerRule, View};
use floras_phy::{ChannelInversion, ChannelInversionSettings, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::{
    ChannelKnowledge, NoiseKey, ONE_ANTENNA, SAMPLES_AND_CHANNELS, Scheme, SchemeFile, Trust, admits_always,
    check_admission, require_one_antenna,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};

const ARTIFICIAL_NOISE: RangeInclusive<f64> = 0.0..=1e30;

/// Channel inversion at the clients.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelInversionScheme {
    /// The weakest channel with which a client takes part, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
    /// The rule for the received power `η` that all admitted clients share.
    pub power_rule: PowerRule,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
    /// Standard deviation of the noise that the clients add, in each parameter of the sum: from 0 to 1e30.
    pub artificial_noise_std: f64,
}

impl SchemeFile for ChannelInversionScheme {
    const NAME: &'static str = "channel-inversion";
    const LABEL: &'static str = "channel inversion";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.artificial_noise_std", Some(keys.artificial_noise_std), ARTIFICIAL_NOISE)?;
        Ok(keys)
    }
}

/// The assumption of bounds that count the noise of all clients.
const CORRECT: &str = "the coefficient that every client inverts is correct, although the base station can return another; with a \
     wrong one, only the client's own share of the noise hides its update (μ = Δ·√K/a)";

/// The other assumptions of these bounds.
const COUNTED: [&str; 2] = [
    "the base station reports the number of admitted clients, by which they share the noise, truthfully",
    ONE_ANTENNA,
];

/// Why the idealised view is no guarantee for clients with unequal gains.
const NOT_ALIGNED: &str = "it counts every client with a gain of 1, and over a channel that ages, or that clients know with an \
     error, gains differ; the any-channel view counts a client's own share of the noise alone";

impl ChannelInversionScheme {
    fn over(&self, radio: &Radio) -> Result<ChannelInversion, UplinkError> {
        let Self { admission, power_rule: power, noise, artificial_noise_std } = *self;
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        let settings =
            ChannelInversionSettings { admission, power, noise, length, channels, snr, artificial_noise_std };
        ChannelInversion::new(settings)
    }

    fn estimate_raw(&self, context: &AccountContext<'_>) -> Result<Source, SimError> {
        // On the scale of what is sent. Under unit power the scale is at most this one.
        let scale = context.sent_scale().unwrap_or(f64::INFINITY);
        let sent = Self { artificial_noise_std: self.artificial_noise_std * scale, ..*self };
        let uplink = sent.over(context.radio())?;
        context.estimate_by(&mut |round| uplink.raw_mu(round, scale * context.sensitivity()))
    }
}

impl Scheme for ChannelInversionScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// Clients that are not admitted leak nothing. Updates are not spread, so raw samples show no more than the sum, unless clients
    /// arrive out of phase.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let mut account = context.account()?;
        let estimate = context.estimate()?;
        account.set(View::Actual, estimate.clone());
        let radio = context.radio();
        let is_aligned = !radio.ages() && radio.channel_error == 0.0;
        let by_noise =
            |factor: f64| context.constant(factor * context.sensitivity() / self.artificial_noise_std);
        // Noise of the receiver, which the bounds do not count, hides more.
        let without_receiver = |source: Source| match radio.snr_db == f64::INFINITY {
            true => source,
            false => source.without_lower(),
        };
        match (self.artificial_noise_std > 0.0, is_aligned) {
            (true, _) if context.colluding() > 0 => {
                for view in [View::Idealised, View::AnyChannel, View::RawSignal] {
                    let reason = "colluding clients reveal their shares of the artificial noise".to_owned();
                    account.set(view, Source::Nothing(reason));
                }
            }
            (true, true) => {
                account.set(View::Idealised, by_noise(1.0));
                let bound = without_receiver(by_noise(1.0)).assuming([CORRECT]).assuming(COUNTED);
                let raw = match admits_always(radio, self.admission) {
                    true => bound.clone(),
                    // The bound counts clients that are not admitted, too.
                    false => bound.clone().without_lower(),
                };
                account.set(View::AnyChannel, bound);
                account.set(View::RawSignal, raw);
            }
            (true, false) => {
                account.set(View::Idealised, by_noise(1.0).with_caveat(NOT_ALIGNED));
                let own = by_noise(f64::from(context.clients().per_round).sqrt());
                account.set(View::AnyChannel, without_receiver(own));
                account.set(View::RawSignal, self.estimate_raw(context)?.assuming([ONE_ANTENNA]));
            }
            (false, is_aligned) => {
                let raw = if is_aligned { estimate } else { self.estimate_raw(context)? };
                account.set(View::RawSignal, raw.assuming([ONE_ANTENNA]));
                let reason = "this scheme has no bound for every channel".to_owned();
                account.set(View::AnyChannel, Source::Nothing(reason));
            }
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        match self.artificial_noise_std {
            0.0 => Self::NAME.to_owned(),
            noise_std => format!("{} with artificial noise of {noise_std}", Self::NAME),
        }
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        let noise = match self.artificial_noise_std {
            0.0 => String::new(),
            noise_std => format!(
                " Every client adds its share of artificial noise, {noise_std:.3} as a standard deviation in each parameter of \
                 the sum, which protects a single client."
            ),
        };
        format!(
            "Over the radio by channel inversion: every client knows its channel and undoes it before sending, so that all \
             arrive equally strong and the air adds them up.{noise}"
        )
    }

    fn allows_weights(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_one_antenna(radio)?;
        check_admission(radio, self.admission)
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        if self.artificial_noise_std == 0.0 {
            return None;
        }
        match view {
            View::Idealised => Some(
                "a receiver of the sum that adds no noise itself, if all clients add their share of the noise",
            ),
            View::AnyChannel | View::RawSignal => Some(
                "a base station that may know every channel and keeps its raw samples, if all clients add their share of the noise",
            ),
            View::Published | View::Actual => None,
        }
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (self.artificial_noise_std > 0.0 && view == View::AnyChannel).then_some(SAMPLES_AND_CHANNELS)
    }

    fn has_raw_samples(&self, view: View) -> bool {
        view == View::RawSignal || self.adversary(view).is_some()
    }

    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "artificial_noise_std", range: ARTIFICIAL_NOISE, trust: Trust::Clients })
    }
}
