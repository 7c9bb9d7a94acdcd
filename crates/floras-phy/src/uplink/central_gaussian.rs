//! Central Gaussian noise: a trusted server adds noise to the exact sum (DP-FedAvg). The baseline for the cost of
//! privacy with a trusted server.
//!
//! # Citations
//! McMahan, Ramage, Talwar, Zhang, *Learning differentially private recurrent language models*, ICLR 2018.

use super::Uplink;
use super::unspread::repeat_link;
use crate::chip::ChipLink;
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::round::Round;

/// `x̃ = Σ_k x_k + N(0, noise_std²)` in every parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CentralGaussian {
    noise_std: f64,
}

impl CentralGaussian {
    /// Noise of a finite standard deviation on every parameter of the sum.
    pub fn new(noise_std: f64) -> Result<Self, UplinkError> {
        let holds = noise_std.is_finite() && noise_std >= 0.0;
        require(holds, "the central noise's standard deviation", "finite and not negative", noise_std)?;
        Ok(Self { noise_std })
    }
}

impl Uplink for CentralGaussian {
    fn name(&self) -> &'static str {
        "gaussian"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        EffectiveChannel::new(vec![1.0; round.clients().len()], self.noise_std)
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        repeat_link(1, vec![1.0; round.clients().len()], 1.0, self.noise_std)
    }
}
