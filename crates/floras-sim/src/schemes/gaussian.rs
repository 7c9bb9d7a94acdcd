//! `gaussian`: a trusted server adds Gaussian noise to the exact sum.
//!
//! `μ = Δ/ν` in every round, for any adversary that sees the sum.

use std::ops::RangeInclusive;

use floras_core::View;
use floras_phy::{CentralGaussian, Uplink, UplinkError};
use floras_privacy::Account;
use serde::{Deserialize, Serialize};

use super::{ChannelKnowledge, NoiseKey, Scheme, SchemeFile, Trust};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, within};
use crate::number::compact;

const NOISE: RangeInclusive<f64> = 1e-30..=1e30;

/// A trusted server that adds Gaussian noise to the exact sum.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct GaussianScheme {
    /// `ν`, standard deviation of the noise in each parameter of the sum: from 1e-30 to 1e30.
    pub noise_std: f64,
}

impl Default for GaussianScheme {
    fn default() -> Self {
        Self { noise_std: 1.0 }
    }
}

impl SchemeFile for GaussianScheme {
    const NAME: &'static str = "gaussian";
    const LABEL: &'static str = "central Gaussian noise";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.noise_std", Some(keys.noise_std), NOISE)?;
        Ok(keys)
    }
}

impl Scheme for GaussianScheme {
    fn build(&self, _: &Radio, _: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(CentralGaussian::new(self.noise_std)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let mut account = context.account()?;
        for view in [View::Actual, View::AnyChannel] {
            account.set(view, context.constant(context.sensitivity() / self.noise_std));
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Nothing
    }

    fn summary(&self, _: u32) -> String {
        format!("gaussian noise of {}", compact(self.noise_std))
    }

    fn description(&self, _: &Radio, _: u32) -> String {
        format!(
            "Without radio: a trusted server adds up all changes and Gaussian noise with standard deviation {}.",
            self.noise_std
        )
    }

    fn uses_radio(&self) -> bool {
        false
    }

    fn adversary(&self, view: View) -> Option<&'static str> {
        matches!(view, View::Actual | View::AnyChannel)
            .then_some("everyone who sees the noisy sum, but not the trusted server that adds the noise")
    }

    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        matches!(view, View::Actual | View::AnyChannel).then_some("noisy sums")
    }

    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "noise_std", range: NOISE, trust: Trust::BaseStation })
    }
}
