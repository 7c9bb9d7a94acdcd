//! `power-control`: clients send at so low a power that the receiver's noise protects them (Koda et al.; Liu and Simeone).
//!
//! All admitted clients arrive with the amplitude `c_t ≤ σ/ν_min`. A change of a client's update by `Δ` moves the samples of a round by at
//! most `c_t·Δ`, under noise of standard deviation `σ`: `μ_t ≤ c_t·Δ/σ ≤ Δ/ν_min` whatever the channels are. All clients arrive in phase,
//! so that the other quadrature is noise alone. `Δ` and `ν_min` are on the scale of what is sent.

use std::ops::RangeInclusive;

use floras_core::{Admission, Choice, NoiseReference, View};
use floras_phy::{LevelPolicy, PowerControl, PowerControlSettings, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::{
    ChannelKnowledge, NOT_KNOWN, NoiseKey, ONE_ANTENNA, SAMPLES_AND_CHANNELS, Scheme, SchemeFile, Trust,
    admits_always, check_admission, receiver_noise_adversary, receiver_noise_has_raw_samples,
    require_one_antenna, set_by_receiver_noise,
};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};
use crate::number::compact;

const MIN_NOISE: RangeInclusive<f64> = 1e-30..=1e30;

/// Channel inversion at a power that the receiver's noise covers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PowerControlScheme {
    /// `ν_min`, the minimum standard deviation of the receiver's noise in each parameter of the sum, in units of a sent symbol: from
    /// 1e-30 to 1e30.
    pub min_noise_std: f64,
    /// How the received amplitude of a round is set.
    pub policy: LevelPolicy,
    /// The weakest channel with which a client takes part, by amplitude `|h|` or power `|h|²`.
    pub admission: Admission,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
}

impl Default for PowerControlScheme {
    fn default() -> Self {
        Self {
            min_noise_std: 1.0,
            policy: LevelPolicy::default(),
            admission: Admission::default(),
            noise: NoiseReference::default(),
        }
    }
}

impl SchemeFile for PowerControlScheme {
    const NAME: &'static str = "power-control";
    const LABEL: &'static str = "power control for privacy";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.min_noise_std", Some(keys.min_noise_std), MIN_NOISE)?;
        Ok(keys)
    }
}

/// What the bound of a level that the base station announces assumes.
const REFUSED: &str = "clients refuse a level above σ/ν_min, although the base station can announce one";

impl PowerControlScheme {
    fn over(&self, radio: &Radio) -> Result<PowerControl, UplinkError> {
        let Self { min_noise_std, policy, admission, noise } = *self;
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        PowerControl::new(PowerControlSettings {
            min_noise_std,
            policy,
            admission,
            noise,
            length,
            channels,
            snr,
        })
    }
}

impl Scheme for PowerControlScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let (mut account, radio) = (context.account()?, context.radio());
        let uplink = self.over(radio)?;
        let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
        if radio.ages() || radio.channel_error > 0.0 {
            account.set(View::Actual, context.estimate()?);
            account.set(View::AnyChannel, Source::Nothing(NOT_KNOWN.to_owned()));
            let raw = context.estimate_by(&mut |round| uplink.raw_mu(round, sensitivity))?;
            account.set(View::RawSignal, raw.assuming([ONE_ANTENNA]));
            return Ok(account);
        }
        let bound = context.constant(sensitivity / uplink.least_noise_std());
        match self.policy {
            LevelPolicy::Fixed => {
                set_by_receiver_noise(&mut account, &bound, admits_always(radio, self.admission));
            }
            // Rounds with weak channels have a lower level than the bound counts.
            LevelPolicy::WaterFilling => {
                set_by_receiver_noise(&mut account, &bound.assuming([REFUSED]), false);
                account.set(View::Actual, context.estimate()?);
            }
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _: u32) -> String {
        format!("{} ({}) with noise of at least {}", Self::NAME, self.policy, compact(self.min_noise_std))
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Over the radio by channel inversion with power control: clients send at so low a power that the receiver's noise is at least \
             {:.3} as a standard deviation in each parameter of the sum ({}).",
            self.min_noise_std,
            self.policy.label()
        )
    }

    fn allows_weights(&self) -> bool {
        true
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_one_antenna(radio)?;
        if radio.snr_db.is_finite() {
            return check_admission(radio, self.admission);
        }
        let reason = "this scheme protects clients by the receiver's noise, and there is none at inf dB";
        Err(ExperimentError::refused("uplink.snr_db", reason))
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

    fn details(&self, _: u32) -> Vec<(&'static str, String)> {
        vec![
            ("minimum noise", self.min_noise_std.to_string()),
            ("policy", self.policy.label()),
            ("admission", self.admission.label()),
        ]
    }

    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "min_noise_std", range: MIN_NOISE, trust: Trust::Receiver })
    }
}
