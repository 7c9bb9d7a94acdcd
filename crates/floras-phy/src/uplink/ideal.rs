//! The ideal uplink: the exact sum. The baseline for the cost of the radio.

use super::Uplink;
use super::unspread::repeat_link;
use crate::chip::ChipLink;
use crate::effective::EffectiveChannel;
use crate::error::UplinkError;
use crate::round::Round;

/// The exact sum `x̃ = Σ_k x_k` of the updates, without radio and without noise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ideal;

impl Uplink for Ideal {
    fn name(&self) -> &'static str {
        "ideal"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        EffectiveChannel::new(vec![1.0; round.clients().len()], 0.0)
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        repeat_link(1, vec![1.0; round.clients().len()], 1.0, 0.0)
    }
}
