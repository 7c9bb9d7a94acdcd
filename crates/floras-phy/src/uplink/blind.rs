//! Blind aggregation with several antennas: clients know no channel, and the base station knows only the sum of all channels.
//!
//! All clients send their updates at once, without any correction. Antenna `r` of `R` receives
//!
//! ```text
//! y_r = Σ_k h_{k,r}·x_k + n_r,     n_r with variance σ² in each of its two real dimensions
//! ```
//!
//! Before, all clients send one common pilot. From it the base station estimates the sum of their channels,
//! `ĥ_r = Σ_k h_{k,r} + e_r`, and combines the antennas with the conjugates:
//!
//! ```text
//! x̃ = (1/(R·q))·Re Σ_r conj(ĥ_r)·y_r
//! g_k = (1/(R·q))·Re Σ_r conj(ĥ_r)·h_{k,r},     ν = σ·‖ĥ‖/(R·q)
//! ```
//!
//! `e_r` has the variance `σ_p² = σ²/(a²·m)` in each dimension, for a [`Pilot`] of amplitude `a` that is sent `m` times. `q` is the mean of
//! `conj(Σ_j h_{j,r})·h_{k,r}`: 1 for channels of unit power with independent uniform phases, and the number of clients without fading.
//! So `E g_k = 1`. Under Rayleigh fading with `K` clients
//!
//! ```text
//! Var g_k = (1 + (K − 1 + 2σ_p²)/2)/R,     Cov(g_j, g_k) = 1/(2R),     E ν² = σ²·(K + 2σ_p²)/R
//! ```
//!
//! Fluctuations of the gains and noise vanish with `K/R`. With [two parameters in a complex symbol](ParametersPerSymbol::Two) the gain is the
//! complex number itself; its imaginary part, with mean 0 and variance `(K − 1 + 2σ_p²)/(2R)`, is the cross-talk of the two.
//!
//! # Citations
//! Amiri, Duman, Gündüz, Kulkarni, Poor, *Blind federated edge learning*, IEEE TWC 20 (2021), arXiv:2010.10030.

use floras_core::random::Purpose;
use floras_core::{Fading, Fidelity, Modulation, NoiseReference, ParametersPerSymbol, Pilot, Snr};
use rand_distr::{Distribution, StandardNormal};

use super::modulation::Arrivals;
use super::unspread::UnspreadNoise;
use super::{Signal, Uplink, cross_gain, gain};
use crate::channels::Channels;
use crate::chip::{ChipBlock, ChipLink};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::UplinkError;
use crate::round::Round;
use crate::sequences::SequenceSet;

/// Settings of blind aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct BlindSettings {
    /// `R`: number of receive antennas, from 1 to [`Modulation::MAX_ANTENNAS`].
    pub antennas: usize,
    /// Parameters per symbol: one in a real symbol, or two in a complex one.
    pub parameters_per_symbol: ParametersPerSymbol,
    /// Amplitude and repetitions of the common pilot.
    pub pilot: Pilot,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients: a distribution, with the same mean power for all clients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink without channel knowledge at the clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Blind {
    settings: BlindSettings,
    noise: UnspreadNoise,
}

/// What the base station learns from the pilot of a round. Real and imaginary parts of the antennas are adjacent.
struct Combiner {
    arrivals: Arrivals,
    /// `ĥ`: the estimated sum of all channels at each antenna.
    estimate: Vec<f64>,
    /// `ĥ/(R·q)`: what each antenna's symbols are multiplied by.
    weights: Vec<f64>,
}

impl Blind {
    /// Builds the uplink. Settings out of range are errors. So are channels from a trace, fixed channels and clients of unequal mean
    /// power, for which the scale of the sum is not defined.
    pub fn new(settings: BlindSettings) -> Result<Self, UplinkError> {
        Modulation::Complex.check_antennas(settings.antennas)?;
        if settings.channels.fading().is_none() || settings.channels.is_unequal() {
            return Err(UplinkError::UnknownMeanPower { channels: settings.channels.to_string() });
        }
        let noise = UnspreadNoise::new(settings.noise, settings.length, settings.snr)?;
        Ok(Self { settings, noise })
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &BlindSettings {
        &self.settings
    }

    /// `σ`: standard deviation of the receiver's noise in each real dimension of a symbol.
    pub fn receiver_noise_std(&self) -> f64 {
        self.noise.std
    }

    /// `σ_p`: standard deviation of the error of the estimated sum of the channels, in each real dimension of an antenna.
    pub fn pilot_noise_std(&self) -> f64 {
        self.noise.std * self.settings.pilot.noise_ratio()
    }

    /// `B`: two real dimensions for each antenna.
    fn branches(&self) -> usize {
        Modulation::Complex.branches(self.settings.antennas)
    }

    fn combiner(&self, round: &Round<'_>) -> Result<Combiner, UplinkError> {
        let BlindSettings { antennas, ref channels, .. } = self.settings;
        let arrivals = Arrivals::new(Modulation::Complex, antennas, channels, round)?;
        let mut pilot_noise = round.stream(Purpose::PILOT_NOISE);
        let std = self.pilot_noise_std();
        let noise = |_| -> f64 {
            let normal: f64 = StandardNormal.sample(&mut pilot_noise);
            std * normal
        };
        let mut estimate: Vec<f64> = (0..self.branches()).map(noise).collect();
        for amplitudes in arrivals.pilot.chunks(self.branches()) {
            estimate.iter_mut().zip(amplitudes).for_each(|(sum, h)| *sum += h);
        }
        let coherent = match channels.fading() {
            Some(Fading::None) => round.clients().len(),
            _ => 1,
        };
        let scale = (antennas * coherent) as f64;
        let weights = estimate.iter().map(|h| h / scale).collect();
        Ok(Combiner { arrivals, estimate, weights })
    }

    /// `μ_k` of a base station that keeps the samples of all antennas, in the block where it is largest: a change of client `k`'s update
    /// by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        let mut largest = vec![0.0_f64; round.clients().len()];
        for block in self.combiner(round)?.arrivals.into_payload() {
            for (largest, h) in largest.iter_mut().zip(block.amplitudes.chunks(self.branches())) {
                let norm = h.iter().map(|h| h * h).sum::<f64>().sqrt();
                *largest = largest.max(sensitivity * norm / self.noise.std);
            }
        }
        Ok(largest)
    }
}

impl Uplink for Blind {
    fn name(&self) -> &'static str {
        "blind"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let Combiner { arrivals, weights, .. } = self.combiner(round)?;
        let noise_std = self.noise.std * weights.iter().map(|w| w * w).sum::<f64>().sqrt();
        let block = |block: ChipBlock| {
            let clients = || block.amplitudes.chunks(self.branches());
            let cross_gains = match self.settings.parameters_per_symbol {
                ParametersPerSymbol::One => Vec::new(),
                ParametersPerSymbol::Two => clients().map(|h| cross_gain(h, &weights)).collect(),
            };
            let gains = clients().map(|h| gain(h, &weights)).collect();
            Block { parameters: block.parameters, gains, noise_std, cross_gains }
        };
        EffectiveChannel::from_blocks(arrivals.into_payload().into_iter().map(block).collect())
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        let Combiner { arrivals, weights, .. } = self.combiner(round)?;
        let set = SequenceSet::orthonormal(1, self.noise.uses_per_parameter())?;
        let mut projectors = Vec::with_capacity(weights.len() * set.length());
        for weight in weights {
            projectors.extend(set.spread(&[weight])?);
        }
        ChipLink::combining(
            self.branches(),
            self.settings.parameters_per_symbol,
            set,
            vec![0; round.clients().len()],
            arrivals.pilot.clone(),
            projectors,
            self.noise.std,
        )?
        .with_blocks(arrivals.into_payload())
    }

    /// Symbols are sent as they are. The only pilot is common to all clients.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let (clients, uses) = (round.clients().len(), self.noise.uses_per_parameter());
        let pilot = self.settings.pilot;
        let pilot_uses = uses as u64 * u64::from(pilot.repetitions());
        let transmission = Transmission {
            parameters_per_symbol: self.settings.parameters_per_symbol,
            pilot_uses,
            pilot_energy: clients as f64 * pilot.amplitude().powi(2) * pilot_uses as f64,
            ..Transmission::new(vec![1.0; clients], uses)
        };
        Ok(Some(transmission.with_power_control(&self.settings.channels.sent_amplitudes(round))))
    }

    /// The one estimate is that of the sum of all channels.
    fn signal(&self, round: &Round<'_>, _: Fidelity) -> Result<Option<Signal>, UplinkError> {
        let Combiner { arrivals, estimate, weights } = self.combiner(round)?;
        Ok(Some(Signal {
            branches: self.branches(),
            channels: arrivals.channels,
            amplitudes: arrivals.pilot,
            assigned: Vec::new(),
            estimates: estimate,
            weights,
            length: self.noise.uses_per_parameter(),
            symbol_noise_std: self.noise.std,
            pilot_noise_std: Some(self.pilot_noise_std()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Ageing, SnrConvention};
    use num_complex::Complex64;

    use super::*;
    use crate::cost::Cost;

    /// σ² = 0.1.
    fn settings(antennas: usize, parameters_per_symbol: ParametersPerSymbol) -> BlindSettings {
        BlindSettings {
            antennas,
            parameters_per_symbol,
            pilot: Pilot::new(2.0, 2).unwrap(),
            noise: NoiseReference::PerSymbol,
            length: 25,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(10.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn uplink(antennas: usize, packing: ParametersPerSymbol) -> Blind {
        Blind::new(settings(antennas, packing)).unwrap()
    }

    const CLIENTS: [u32; 5] = [3, 1, 4, 15, 9];

    /// The slow path: complex sums over antennas, from the recorded channels and the estimate.
    #[test]
    fn gains_are_complex_inner_products() {
        let uplink = uplink(3, ParametersPerSymbol::Two);
        let round = Round::new(7, 1, 2, &CLIENTS).unwrap();
        let signal = uplink.signal(&round, Fidelity::Symbol).unwrap().unwrap();
        let estimate: Vec<Complex64> =
            signal.estimates.chunks(2).map(|part| Complex64::new(part[0], part[1])).collect();
        let channels: Vec<&[Complex64]> = signal.channels.chunks(3).collect();
        for channel in [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()] {
            let block = &channel.blocks()[0];
            for (client, h) in channels.iter().enumerate() {
                let sum: Complex64 = h.iter().zip(&estimate).map(|(h, sum)| sum.conj() * h).sum();
                let expected = sum / 3.0;
                assert!((block.gains[client] - expected.re).abs() < 1e-12);
                assert!((block.cross_gains[client] - expected.im).abs() < 1e-12);
            }
            let norm = estimate.iter().map(|h| h.norm_sqr()).sum::<f64>().sqrt();
            assert!((channel.noise_std() - 0.1_f64.sqrt() * norm / 3.0).abs() < 1e-12);
        }
        // The estimate is the sum of the channels, up to the pilot's noise of √0.0125 in each dimension.
        for (antenna, estimate) in estimate.iter().enumerate() {
            let sum: Complex64 = channels.iter().map(|h| h[antenna]).sum();
            assert!((estimate - sum).norm() < 6.0 * 0.0125_f64.sqrt());
            assert!((estimate - sum).norm() > 0.0);
        }
    }

    /// 40,000 rounds of 5 clients with 4 antennas: `K − 1 + 2σ_p² = 4.025`. Five standard errors, a false alarm in 10⁵ over all numbers;
    /// a receiver that divided by `‖ĥ‖²` in place of `R`, or pilots without noise for `σ_p² = 0.5`, would differ by more.
    #[test]
    fn moments_of_gains_have_closed_forms() {
        for (pilot, error) in [((2.0, 2), 0.025), ((0.2, 1), 5.0)] {
            let settings = BlindSettings {
                pilot: Pilot::new(pilot.0, pilot.1).unwrap(),
                ..settings(4, ParametersPerSymbol::Two)
            };
            let uplink = Blind::new(settings).unwrap();
            let mut samples: [Vec<f64>; 5] = Default::default();
            for number in 1..=40_000 {
                let channel = uplink.realise(&Round::new(3, 0, number, &CLIENTS).unwrap()).unwrap();
                let block = &channel.blocks()[0];
                let (gain, cross) = (block.gains[1] - 1.0, block.cross_gains[1]);
                let values = [
                    gain,
                    gain * gain,
                    cross * cross,
                    gain * (block.gains[3] - 1.0),
                    block.noise_std.powi(2),
                ];
                samples.iter_mut().zip(values).for_each(|(samples, value)| samples.push(value));
            }
            let others = 4.0 + error;
            let noise = 0.1 * (5.0 + error) / 4.0;
            let expected = [0.0, (1.0 + others / 2.0) / 4.0, others / 8.0, 0.125, noise];
            for (place, (samples, expected)) in samples.iter().zip(expected).enumerate() {
                let count = samples.len() as f64;
                let mean = samples.iter().sum::<f64>() / count;
                let variance = samples.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
                let allowed = 5.0 * (variance / count).sqrt();
                assert!((mean - expected).abs() < allowed, "{place}: {mean}, not {expected} ± {allowed}");
            }
        }
    }

    #[test]
    fn more_antennas_approach_the_exact_sum() {
        let clients: Vec<u32> = (0..10).collect();
        let spread = |antennas| {
            let uplink = uplink(antennas, ParametersPerSymbol::One);
            let squares = (1..=500).flat_map(|number| {
                let channel = uplink.realise(&Round::new(3, 0, number, &clients).unwrap()).unwrap();
                channel.gains().iter().map(|gain| (gain - 1.0).powi(2)).collect::<Vec<f64>>()
            });
            squares.sum::<f64>() / 5000.0
        };
        // (1 + 4.5)/R, with a standard error of a few percent.
        assert!(
            (spread(64) * 64.0 / 5.5125 - 1.0).abs() < 0.2 && (spread(4) * 4.0 / 5.5125 - 1.0).abs() < 0.2
        );
    }

    /// All channels are 1: every client has the same gain, near 1, and antennas average the noise.
    #[test]
    fn clients_without_fading_arrive_in_phase() {
        let settings =
            BlindSettings { channels: Fading::None.into(), ..settings(16, ParametersPerSymbol::One) };
        let round = Round::new(7, 1, 2, &CLIENTS).unwrap();
        let channel = Blind::new(settings).unwrap().realise(&round).unwrap();
        assert!(channel.gains().iter().all(|gain| (gain - 1.0).abs() < 0.05 && gain == &channel.gains()[0]));
        assert!((channel.noise_std() / (0.1_f64 / 16.0).sqrt() - 1.0).abs() < 0.05);
    }

    /// Only the payload ages; the weights are those of the pilot.
    #[test]
    fn an_ageing_channel_has_blocks() {
        let ageing = Ageing::with_correlation(0.0).unwrap();
        let channels = Channels::from(Fading::Rayleigh).with_ageing(ageing, Some(4)).unwrap();
        let settings = BlindSettings { channels, ..settings(2, ParametersPerSymbol::Two) };
        let uplink = Blind::new(settings).unwrap();
        let round = Round::new(7, 1, 2, &CLIENTS).unwrap().with_parameters(10);
        let channel = uplink.realise(&round).unwrap();
        assert_eq!(channel.blocks().iter().map(|block| block.parameters).collect::<Vec<_>>(), [4, 4, 2]);
        assert_ne!(channel.blocks()[0].gains, channel.blocks()[1].gains);
        assert_eq!(channel.blocks()[0].noise_std, channel.blocks()[2].noise_std);
        let chip = uplink.link(&round).unwrap().effective().unwrap();
        for (symbol, chip) in channel.blocks().iter().zip(chip.blocks()) {
            assert!(symbol.gains.iter().zip(&chip.gains).all(|(a, b)| (a - b).abs() < 1e-12));
        }
    }

    /// Two pilots of amplitude 2 in 25 chips each, from 5 clients; 51 complex symbols.
    #[test]
    fn the_common_pilot_is_charged() {
        let settings =
            BlindSettings { noise: NoiseReference::SameBandwidth, ..settings(2, ParametersPerSymbol::Two) };
        let uplink = Blind::new(settings).unwrap();
        let sent = uplink.transmission(&Round::new(7, 1, 2, &CLIENTS).unwrap()).unwrap().unwrap();
        let cost = Cost::new(&sent, &[0.5; 5], 101).unwrap();
        assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (51 * 25, 50, 0));
        assert_eq!(cost.dynamic_range_db, Some(0.0));
        let payload = 5.0 * 0.5 * 101.0 * 25.0;
        assert!((cost.energy - (payload + 5.0 * 4.0 * 50.0)).abs() < 1e-6, "{}", cost.energy);
    }

    /// With `ĥ` known, `|⟨ĥ, h_k⟩|/‖ĥ‖ ≤ ‖h_k‖`: the decoded sum shows no more than the samples.
    #[test]
    fn raw_samples_show_at_least_the_sum() {
        for packing in [ParametersPerSymbol::One, ParametersPerSymbol::Two] {
            let uplink = uplink(4, packing);
            for number in 1..=200 {
                let round = Round::new(7, 1, number, &CLIENTS).unwrap();
                let [sum, raw] =
                    [uplink.realise(&round).unwrap().mu(2.0), uplink.raw_mu(&round, 2.0).unwrap()];
                assert!(sum.iter().zip(&raw).all(|(sum, raw)| *sum <= raw * (1.0 + 1e-12)));
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let sound = || settings(2, ParametersPerSymbol::One);
        for antennas in [0, Modulation::MAX_ANTENNAS + 1] {
            assert!(Blind::new(BlindSettings { antennas, ..sound() }).is_err());
        }
        assert!(Blind::new(BlindSettings { length: 0, ..sound() }).is_err());
        let channels = Channels::fixed(&[Complex64::ONE]).unwrap();
        assert!(matches!(
            Blind::new(BlindSettings { channels, ..sound() }),
            Err(UplinkError::UnknownMeanPower { .. })
        ));
    }
}
