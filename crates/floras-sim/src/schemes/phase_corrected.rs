//! `phase-corrected`: phase correction without spreading (Sery and Cohen).

use floras_core::{NoiseReference, PhaseError, View};
use floras_phy::{PhaseCorrected, PhaseCorrectedSettings, Uplink, UplinkError};
use floras_privacy::{Account, Source};
use serde::{Deserialize, Serialize};

use super::{ChannelKnowledge, ONE_ANTENNA, Scheme, SchemeFile};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio};

/// Phase correction without spreading.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PhaseCorrectedScheme {
    /// The error of the clients' phase correction.
    pub phase_error: PhaseError,
    /// Noise relative to FLORAS: that of one symbol (`σ`), or that of the same bandwidth (`σ/√L`).
    pub noise: NoiseReference,
}

impl SchemeFile for PhaseCorrectedScheme {
    const NAME: &'static str = "phase-corrected";
    const LABEL: &'static str = "phase correction without spreading";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        Ok(keys)
    }
}

impl PhaseCorrectedScheme {
    fn over(&self, radio: &Radio) -> Result<PhaseCorrected, UplinkError> {
        let Self { phase_error, noise } = *self;
        let (length, channels, snr) = (radio.length, radio.channels()?, radio.snr()?);
        let settings = PhaseCorrectedSettings { phase_error, noise, length, channels, snr };
        PhaseCorrected::new(settings)
    }
}

impl Scheme for PhaseCorrectedScheme {
    fn build(&self, radio: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over(radio)?))
    }

    /// Updates are not spread, so raw samples show no more than the sum, unless the channel's phase changes between pilot and
    /// payload, or clients estimate it with an error. The samples then have a component in the other quadrature.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let mut account = context.account()?;
        let estimate = context.estimate()?;
        account.set(View::Actual, estimate.clone());
        let radio = context.radio();
        let in_phase = self.phase_error == PhaseError::None && radio.channel_error == 0.0 && !radio.ages();
        let raw = if !in_phase {
            let uplink = self.over(radio)?;
            let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
            context.estimate_by(&mut |round| uplink.raw_mu(round, sensitivity))?
        } else {
            estimate
        };
        account.set(View::RawSignal, raw.assuming([ONE_ANTENNA]));
        account
            .set(View::AnyChannel, Source::Nothing("this scheme has no bound for every channel".to_owned()));
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Phase
    }

    fn summary(&self, _: u32) -> String {
        Self::NAME.to_owned()
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        "Over the radio with corrected phase: every client turns its signal so that all arrive in step, and the air adds them \
         up."
            .to_owned()
    }

    fn allows_weights(&self) -> bool {
        true
    }
}
