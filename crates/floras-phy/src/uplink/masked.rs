//! Masks: clients add pairwise masks that cancel in the sum, and noise of their own, to what they send over any uplink.
//!
//! Client `k` sends `u_k = x_k + z_k + m_k` ([`Masks`]). Given the gains, masks and noise are Gaussian and independent of the data,
//! so that they stay inside the effective channel:
//!
//! ```text
//! ν'² = ν² + σ_m²·(Σ_k g_k² − (Σ_k g_k)²/K) + σ_z²·Σ_k g_k²
//! ```
//!
//! The sums are over the clients that send, and `K` is the number of selected ones. Masks cancel as well as the gains agree. A silent
//! client leaves the masks that it shares with the others in the sum.
//!
//! # Citations
//! Bonawitz et al., *Practical secure aggregation for privacy-preserving machine learning*, CCS 2017. Liao, Chen, Larsson,
//! *Over-the-air federated learning with privacy protection via correlated additive perturbations*, Allerton 2022.

use floras_core::{Fidelity, Masks};

use super::{Signal, Uplink};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::UplinkError;
use crate::round::Round;

/// An uplink whose clients mask their updates.
///
/// ```
/// use floras_core::Masks;
/// use floras_phy::{Ideal, Masked, Round, Uplink};
///
/// let uplink = Masked::new(Box::new(Ideal), Masks::new(10.0, 0.5, 0)?);
/// let clients = [0, 1, 2, 3];
/// let channel = uplink.realise(&Round::new(1, 0, 1, &clients)?)?;
/// // Equal gains cancel the masks; the noise of four clients is left.
/// assert!((channel.noise_std() - 1.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Masked {
    inner: Box<dyn Uplink>,
    masks: Masks,
}

impl Masked {
    /// The uplink `inner` with clients that mask what they send.
    pub fn new(inner: Box<dyn Uplink>, masks: Masks) -> Self {
        Self { inner, masks }
    }

    /// What clients add.
    pub fn masks(&self) -> Masks {
        self.masks
    }
}

/// `Σ_k |g_k|²` and `|Σ_k g_k|²` of a block.
fn gain_sums(block: &Block) -> (f64, f64) {
    let sum: f64 = block.gains.iter().sum();
    (block.gains.iter().map(|gain| gain * gain).sum(), sum * sum)
}

impl Uplink for Masked {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        self.with_added_noise(round, self.inner.realise(round)?)
    }

    fn with_added_noise(
        &self,
        round: &Round<'_>,
        channel: EffectiveChannel,
    ) -> Result<EffectiveChannel, UplinkError> {
        let selected = round.selected_count();
        self.inner.with_added_noise(round, channel)?.map_blocks(|block| {
            let (square_sum, sum_square) = gain_sums(&block);
            let added = self.masks.decoded_variance(square_sum, sum_square, selected);
            Block { noise_std: block.noise_std.hypot(added.sqrt()), ..block }
        })
    }

    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let Some(mut transmission) = self.inner.transmission(round)? else { return Ok(None) };
        transmission.added_noise_power += self.masks.symbol_power(round.selected_count());
        Ok(Some(transmission))
    }

    fn signal(&self, round: &Round<'_>, fidelity: Fidelity) -> Result<Option<Signal>, UplinkError> {
        self.inner.signal(round, fidelity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uplink::Ideal;

    /// `z_k` of K clients has K·σ_z² in the sum. A silent client leaves `K − 1` masks of σ_m²/K.
    #[test]
    fn a_silent_client_leaves_its_masks() {
        let uplink = Masked::new(Box::new(Ideal), Masks::new(3.0, 0.5, 0).unwrap());
        let selected: Vec<u32> = (0..10).collect();
        let noise = |sending: &[u32]| {
            let round = Round::new(1, 0, 1, sending).unwrap().with_selected(&selected).unwrap();
            uplink.realise(&round).unwrap().noise_std()
        };
        assert!((noise(&selected).powi(2) - 10.0 * 0.25).abs() < 1e-12);
        assert!((noise(&selected[1..]).powi(2) - (9.0 * 0.25 + 9.0 * 0.9)).abs() < 1e-12);
    }

    #[test]
    fn every_block_has_its_own_noise() {
        struct Blocks;
        impl Uplink for Blocks {
            fn name(&self) -> &'static str {
                "blocks"
            }

            fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
                let block = |gains: [f64; 2]| Block { parameters: 3, gains: gains.to_vec(), noise_std: 1.0 };
                EffectiveChannel::from_blocks(vec![block([1.0, 1.0]), block([2.0, 0.0])])
            }
        }
        let uplink = Masked::new(Box::new(Blocks), Masks::new(2.0_f64.sqrt(), 1.0, 0).unwrap());
        let channel = uplink.realise(&Round::new(1, 0, 1, &[4, 5]).unwrap()).unwrap();
        let variances: Vec<f64> = channel.blocks().iter().map(|block| block.noise_std.powi(2)).collect();
        // 1 + 2·1 + 2·(2 − 4/2), and 1 + 4·1 + 2·(4 − 4/2).
        assert!((variances[0] - 3.0).abs() < 1e-12 && (variances[1] - 9.0).abs() < 1e-12, "{variances:?}");
    }
}
