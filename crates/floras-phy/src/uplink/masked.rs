//! Masks on any uplink: clients add pairwise masks that cancel in the sum, and their own noise.
//!
//! Client `k` sends `u_k = x_k + z_k + m_k` ([`Masks`]). Given the gains, masks and noise are Gaussian and independent of the data,
//! so that they stay inside the effective channel:
//!
//! ```text
//! ν'² = ν² + σ_m²·(Σ_k g_k² − (Σ_k g_k)²/K) + σ_z²·Σ_k g_k²
//! ```
//!
//! The sums are over the clients that send, and `K` is the number of selected ones. With two parameters in a symbol the gains are complex,
//! and the squares are those of magnitudes. Masks cancel completely only if the gains are equal. The masks that a silent client shares
//! with the others remain in the sum.
//!
//! At the chip level clients send real masks, expanded from seeds as in [`crate::masks`]. The seeds are drawn from the round's streams
//! and are not secret.
//!
//! # Citations
//! Bonawitz et al., *Practical secure aggregation for privacy-preserving machine learning*, CCS 2017. Liao, Chen, Larsson,
//! *Over-the-air federated learning with privacy protection via correlated additive perturbations*, arXiv:2210.02235.

use std::borrow::Cow;

use floras_core::random::Purpose;
use floras_core::{Fidelity, Masks};
use rand::Rng;
use rayon::prelude::*;

use super::{Nonlinear, Received, Sent, Signal, Uplink};
use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require};
use crate::masks::{LocalNoise, MaskGrid, MaskSign, PairSeed, SlotMasks, mask_update};
use crate::memory::ClientMemory;
use crate::round::Round;
use crate::updates;

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
    /// The uplink `inner` with clients that mask their updates.
    pub fn new(inner: Box<dyn Uplink>, masks: Masks) -> Self {
        Self { inner, masks }
    }

    /// The masks and the clients' own noise.
    pub fn masks(&self) -> Masks {
        self.masks
    }

    /// Updates with the clients' own noise, without masks.
    fn with_noise_alone(&self, round: &Round<'_>, rows: &[&[f32]]) -> Vec<Vec<f32>> {
        let noisy = |(row, &client): (&&[f32], &u32)| {
            let mut sent = vec![0.0; row.len()];
            round.stream_name(Purpose::LOCAL_NOISE).client(client).normals().fill(0, &mut sent);
            for (noise, x) in sent.iter_mut().zip(*row) {
                *noise = x + self.masks.noise_std() as f32 * *noise;
            }
            sent
        };
        rows.par_iter().zip(round.clients()).map(noisy).collect()
    }
}

/// The masks of each client of a round, one for each other selected client. In a pair, the client with the smaller number draws the seed
/// and adds the mask, and the other one subtracts it. For each silent client, every other client adds a mask that is not subtracted.
fn pair_masks(round: &Round<'_>) -> Vec<SlotMasks> {
    let clients = round.clients();
    let mut order: Vec<usize> = (0..clients.len()).collect();
    order.sort_unstable_by_key(|&place| clients[place]);
    let silent = round.selected_count() - clients.len();
    let mut masks: Vec<Vec<(PairSeed, MaskSign)>> = clients.iter().map(|_| Vec::new()).collect();
    for (rank, &place) in order.iter().enumerate() {
        let mut stream = round.stream_of(Purpose::MASKS, clients[place]);
        let mut draw = || {
            let mut secret = [0; 32];
            stream.fill_bytes(&mut secret);
            secret
        };
        for &other in &order[rank + 1..] {
            let secret = draw();
            masks[place].push((PairSeed::from_bytes(secret), MaskSign::Plus));
            masks[other].push((PairSeed::from_bytes(secret), MaskSign::Minus));
        }
        masks[place].extend((0..silent).map(|_| (PairSeed::from_bytes(draw()), MaskSign::Plus)));
    }
    masks.into_iter().map(SlotMasks::simulated).collect()
}

/// `Σ_k |g_k|²` and `|Σ_k g_k|²` of a block.
fn gain_sums(block: &Block) -> (f64, f64) {
    let (sum, cross): (f64, f64) = (block.gains.iter().sum(), block.cross_gains.iter().sum());
    (block.squared_magnitudes(), sum * sum + cross * cross)
}

impl Uplink for Masked {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        self.with_added_noise(round, self.inner.realise(round)?)
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        self.inner.nonlinear().is_some().then_some(self)
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        self.inner.link(round)
    }

    fn sent(&self, round: &Round<'_>, updates: &[&[f32]]) -> Result<Option<Vec<Vec<f32>>>, UplinkError> {
        updates::check_shape(updates, round.clients().len())?;
        let changed = self.inner.sent(round, updates)?;
        let rows = match &changed {
            None => updates.to_vec(),
            Some(changed) => changed.iter().map(Vec::as_slice).collect(),
        };
        let selected = round.selected_count();
        if self.masks.mask_std() == 0.0 || selected < 2 {
            return Ok(Some(self.with_noise_alone(round, &rows)));
        }
        let grid = MaskGrid::new(
            u32::try_from(selected).unwrap_or(u32::MAX),
            self.masks.mask_std(),
            self.masks.noise_std(),
        )?;
        let sent = rows.iter().zip(pair_masks(round)).zip(round.clients()).map(|((row, masks), &client)| {
            let noise = LocalNoise::simulated(round.stream_name(Purpose::LOCAL_NOISE).client(client));
            let sent = mask_update(row, masks, &grid, noise)?;
            Ok(sent.into_iter().map(|value| grid.sent_value(value) as f32).collect())
        });
        sent.collect::<Result<Vec<Vec<f32>>, UplinkError>>().map(Some)
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

/// Clients add their own noise before a nonlinear scheme sends their updates. Masks would not cancel.
impl Nonlinear for Masked {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        memory: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let Some(nonlinear) = self.inner.nonlinear() else {
            return Err(UplinkError::NotLinear { scheme: self.name() });
        };
        let std = self.masks.mask_std();
        require(std == 0.0, "the masks' standard deviation", "0 unless the scheme is linear", std)?;
        let values: Vec<Cow<'_, [f32]>> = updates.iter().map(Sent::values).collect();
        let rows: Vec<&[f32]> = values.iter().map(AsRef::as_ref).collect();
        let noisy = self.with_noise_alone(round, &rows);
        let sent: Vec<Sent<'_>> = noisy.iter().map(|update| update.as_slice().into()).collect();
        nonlinear.receive(round, &sent, memory, decoded)
    }

    fn keeps_memory(&self) -> bool {
        self.inner.nonlinear().is_some_and(Nonlinear::keeps_memory)
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Modulation, ParametersPerSymbol, Receiver, Snr, SnrConvention};

    use super::*;
    use crate::sequences::SequenceSet;
    use crate::uplink::{Floras, FlorasSettings, Ideal, UnitPower, transmit};

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

    fn floras(snr_db: f64) -> Box<dyn Uplink> {
        Box::new(Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(8, 8).unwrap(),
            receiver: Receiver::Mmse,
            snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        }))
    }

    /// 40,000 values of variance ν'²: their mean square is within 4% of it, 5.6 standard deviations. A false alarm in 24 cases has a
    /// probability below 10⁻⁶. Without masks, or without the clients' noise, it would be more than 10% off.
    #[test]
    fn masks_have_the_symbol_levels_variance() {
        let (selected, silent): (Vec<u32>, Vec<u32>) = ((0..8).collect(), vec![1, 2, 4, 5, 6, 7]);
        for (mask_std, noise_std) in [(1.5, 1.0), (0.0, 0.7)] {
            let masks = Masks::new(mask_std, noise_std, 0).unwrap();
            for sending in [&selected, &silent] {
                for number in 1..=6 {
                    let uplink = Masked::new(floras(10.0), masks);
                    let round = Round::new(3, 0, number, sending).unwrap().with_selected(&selected).unwrap();
                    let zeros = vec![vec![0.0_f32; 40_000]; sending.len()];
                    let decoded = transmit(&uplink, &round, &zeros, Fidelity::Chip).unwrap();
                    let square: f64 = decoded.sum.iter().map(|&value| f64::from(value).powi(2)).sum();
                    let (expected, plain) = (
                        decoded.channel.noise_std().powi(2),
                        uplink.link(&round).unwrap().effective().unwrap().noise_std().powi(2),
                    );
                    let ratio = square / 40_000.0 / expected;
                    assert!((ratio - 1.0).abs() < 0.04, "{masks:?}, {} send: {ratio}", sending.len());
                    let square_sum: f64 = decoded.channel.gains().iter().map(|gain| gain * gain).sum();
                    let noise = noise_std * noise_std * square_sum;
                    assert!(noise > 0.1 * expected, "the test has no power for the noise");
                    let left = expected - noise - plain;
                    assert!(mask_std == 0.0 || left > 0.1 * expected, "the test has no power for masks");
                }
            }
        }
    }

    /// Equal gains cancel masks to the rounding of single precision.
    #[test]
    fn real_masks_cancel_in_an_exact_sum() {
        let uplink = Masked::new(Box::new(Ideal), Masks::new(1000.0, 0.01, 0).unwrap());
        let clients: Vec<u32> = vec![9, 3, 7, 1];
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let updates = updates::random_updates(4, 5000);
        let decoded = transmit(&uplink, &round, &updates, Fidelity::Chip).unwrap();
        let sum = |i: usize| updates.iter().map(|update| update[i]).sum::<f32>();
        for (i, value) in decoded.sum.iter().enumerate() {
            // 0.02 of noise, six standard deviations; four roundings of values up to 4000.
            assert!((value - sum(i)).abs() < 0.12 + 4.0 * 3e-4, "{i}: {value}");
        }
        let again = transmit(&uplink, &round, &updates, Fidelity::Chip).unwrap();
        assert_eq!(decoded, again);
    }

    /// 4% are 5.6 standard deviations, as above. Complex symbols with cross-talk, on two antennas.
    #[test]
    fn complex_symbols_have_the_same_variance() {
        let masks = Masks::new(1.5, 1.0, 0).unwrap();
        let settings = FlorasSettings {
            sequences: SequenceSet::walsh(8, 8).unwrap(),
            modulation: Modulation::Complex,
            antennas: 2,
            parameters_per_symbol: ParametersPerSymbol::Two,
            receiver: Receiver::Mmse,
            snr: Snr::new(0.0, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        };
        for unit in [false, true] {
            let inner: Box<dyn Uplink> = Box::new(Floras::new(settings.clone()));
            let inner = match unit {
                false => inner,
                true => Box::new(UnitPower::new(inner, 1.0, Some(masks)).unwrap()),
            };
            let uplink = Masked::new(inner, masks);
            let (selected, sending): (Vec<u32>, Vec<u32>) = ((0..8).collect(), (1..8).collect());
            for number in 1..=3 {
                let round = Round::new(3, 0, number, &sending).unwrap().with_selected(&selected).unwrap();
                let zeros = vec![vec![0.0_f32; 40_000]; sending.len()];
                let decoded = transmit(&uplink, &round, &zeros, Fidelity::Chip).unwrap();
                let square: f64 = decoded.sum.iter().map(|&value| f64::from(value).powi(2)).sum();
                let ratio = square / 40_000.0 / decoded.channel.noise_std().powi(2);
                assert!((ratio - 1.0).abs() < 0.04, "unit power {unit}: {ratio}");
                assert!(decoded.channel.blocks()[0].cross_gains.iter().any(|&cross| cross != 0.0));
            }
        }
    }

    #[test]
    fn unit_power_sends_masks_as_well() {
        let masks = Masks::new(3.0, 0.7, 0).unwrap();
        let uplink = Masked::new(Box::new(UnitPower::new(floras(0.0), 1.0, Some(masks)).unwrap()), masks);
        let clients: Vec<u32> = (0..8).collect();
        let round = Round::new(3, 0, 1, &clients).unwrap();
        let zeros = vec![vec![0.0_f32; 40_000]; 8];
        let decoded = transmit(&uplink, &round, &zeros, Fidelity::Chip).unwrap();
        let square: f64 = decoded.sum.iter().map(|&value| f64::from(value).powi(2)).sum();
        let ratio = square / 40_000.0 / decoded.channel.noise_std().powi(2);
        // 4% are 5.6 standard deviations.
        assert!((ratio - 1.0).abs() < 0.04, "{ratio}");
    }

    #[test]
    fn every_block_has_its_own_noise() {
        struct Blocks;
        impl Uplink for Blocks {
            fn name(&self) -> &'static str {
                "blocks"
            }

            fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
                let block = |gains: [f64; 2], cross_gains: &[f64]| Block {
                    parameters: 4,
                    gains: gains.to_vec(),
                    noise_std: 1.0,
                    cross_gains: cross_gains.to_vec(),
                };
                EffectiveChannel::from_blocks(vec![
                    block([1.0, 1.0], &[]),
                    block([2.0, 0.0], &[]),
                    block([1.0, 1.0], &[1.0, -1.0]),
                ])
            }
        }
        let uplink = Masked::new(Box::new(Blocks), Masks::new(2.0_f64.sqrt(), 1.0, 0).unwrap());
        let channel = uplink.realise(&Round::new(1, 0, 1, &[4, 5]).unwrap()).unwrap();
        let variances: Vec<f64> = channel.blocks().iter().map(|block| block.noise_std.powi(2)).collect();
        // 1 + 2·1 + 2·(2 − 4/2), 1 + 4·1 + 2·(4 − 4/2), and 1 + 4·1 + 2·(4 − (4 + 0)/2).
        let expected = [3.0, 9.0, 9.0];
        assert!(
            variances.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12),
            "{variances:?}"
        );
    }
}
