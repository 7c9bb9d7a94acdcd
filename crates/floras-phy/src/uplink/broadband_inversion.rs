//! Broadband analog aggregation: truncated channel inversion on every subcarrier.
//!
//! The `d` parameters are divided into `M` blocks, one for each subcarrier. Client `k` has an independent channel `h_k[m]` on each. It
//! stays silent where its channel is weak, and otherwise inverts it:
//!
//! ```text
//! p_k[m] = √ρ₀/h_k[m]  if |h_k[m]|² ≥ g_th,  else 0,        ρ₀ = 1/E[1/|h|²; |h|² ≥ g_th]
//! ```
//!
//! so that a unit symbol is sent at the mean power 1. Under Rayleigh fading `ρ₀ = 1/E₁(g_th)` with the exponential integral
//! `E₁(x) = ∫_x^∞ e^{−t}/t dt`, and a client is admitted to a block with probability `e^{−g_th}`. The received amplitude `√ρ₀` is a
//! constant. With `K` clients in the round, of which `K_m` are admitted to block `m`, the base station scales the block by
//! `K/(K_m·√ρ₀)`:
//!
//! ```text
//! g_{k,m} = K/K_m if admitted, else 0,        ν_m = (σ/√ρ₀)·K/K_m
//! ```
//!
//! A block to which no client is admitted is not decoded: gains and noise are 0. The ratio `g/ν = √ρ₀/σ` is the same for all admitted
//! clients, in all blocks, whatever the channels are.
//!
//! Clients divide by their estimates `ĥ_k[m]` at the time of their pilots, and are admitted by them. Where the estimates have an error,
//! or the channel ages, the gain has the factor `Re(h_k[m]/ĥ_k[m])`. A channel that ages in several blocks of time has `M` blocks in
//! each of them.
//!
//! # Citations
//! Zhu, Wang, Huang, *Broadband analog aggregation for low-latency federated edge learning*, IEEE TWC 19 (2020), arXiv:1812.11494. The
//! paper divides its power `P₀` over the subcarriers; here a power is that of one channel use.

use floras_core::{Admission, Fading, NoiseReference, Snr};
use num_complex::Complex64;

use super::Uplink;
use super::unspread::{ComplexBlock, UnspreadNoise, largest_mu};
use crate::channels::{Channels, PayloadBlock, mean_above};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require};
use crate::round::Round;

/// Largest number of coefficients in a round: clients times subcarriers.
const MAX_COEFFICIENTS: usize = 1 << 24;

/// Settings of broadband analog aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct BroadbandInversionSettings {
    /// The threshold `g_th` at which a client is admitted to a subcarrier.
    pub admission: Admission,
    /// `M`: number of subcarriers, from 1 to [`BroadbandInversion::MAX_SUBCARRIERS`].
    pub subcarriers: usize,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients: a distribution, with the same mean power for all clients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with truncated inversion on every subcarrier.
#[derive(Clone, Debug, PartialEq)]
pub struct BroadbandInversion {
    settings: BroadbandInversionSettings,
    noise: UnspreadNoise,
    /// `√ρ₀`: the amplitude at which a unit symbol of every admitted client arrives.
    amplitude: f64,
}

/// The clients' estimates of their channels, and which subcarriers they use. Client `k` on subcarrier `m` is at `k·M + m`.
struct Admitted {
    estimates: Vec<Complex64>,
    is_admitted: Vec<bool>,
}

/// A block of consecutive parameters on one subcarrier.
struct Part {
    subcarrier: usize,
    parameters: usize,
    /// `h_k/ĥ_k` of the admitted clients, 0 of the others.
    deviations: Vec<Complex64>,
}

impl BroadbandInversion {
    /// The largest number of subcarriers.
    pub const MAX_SUBCARRIERS: usize = 4096;

    /// Builds the uplink. Settings out of range are errors. So are channels from a trace, fixed channels and clients of unequal mean
    /// power, for which `ρ₀` is not defined, and a threshold that no channel reaches.
    pub fn new(settings: BroadbandInversionSettings) -> Result<Self, UplinkError> {
        let subcarriers = settings.subcarriers;
        let holds = (1..=Self::MAX_SUBCARRIERS).contains(&subcarriers);
        require(holds, "the number of subcarriers", "between 1 and 4096", subcarriers as f64)?;
        let Some(fading) = settings.channels.fading().filter(|_| !settings.channels.is_unequal()) else {
            return Err(UplinkError::UnknownMeanPower { channels: settings.channels.to_string() });
        };
        let threshold = settings.admission.amplitude();
        let inverse_power = mean_inverse_power(fading, threshold);
        settings.channels.check_admission(settings.admission)?;
        let noise = UnspreadNoise::new(settings.noise, settings.length, settings.snr)?;
        Ok(Self { settings, noise, amplitude: inverse_power.powf(-0.5) })
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &BroadbandInversionSettings {
        &self.settings
    }

    /// `σ/√ρ₀`: standard deviation of the receiver's noise over the amplitude at which every admitted client arrives. A change of a
    /// client's update by `Δ` changes the received signal by at most `Δ` over this number of standard deviations, if clients know
    /// their channels.
    pub fn noise_over_amplitude(&self) -> f64 {
        self.noise.std / self.amplitude
    }

    fn admit(&self, round: &Round<'_>) -> Result<Admitted, UplinkError> {
        let (clients, subcarriers) = (round.clients().len(), self.settings.subcarriers);
        let holds = clients <= MAX_COEFFICIENTS / subcarriers;
        require(holds, "the number of clients times subcarriers", "at most 16777216", clients as f64)?;
        let threshold = self.settings.admission.amplitude();
        let estimates = self.settings.channels.draw_estimates_at(round, subcarriers)?;
        let is_admitted = estimates.iter().map(|h| h.norm() >= threshold).collect();
        Ok(Admitted { estimates, is_admitted })
    }

    /// The blocks of the payload. Without a number of parameters, every subcarrier has one.
    fn parts(&self, round: &Round<'_>, admitted: &Admitted) -> Result<Vec<Part>, UplinkError> {
        let (channels, subcarriers) = (&self.settings.channels, self.settings.subcarriers);
        let is_exact = channels.estimation_error_std() == 0.0 && !channels.ages();
        let payload = match is_exact {
            true => vec![PayloadBlock { parameters: usize::MAX, channels: admitted.estimates.clone() }],
            false => channels.draw_payload_at(round, subcarriers)?,
        };
        let mut parts = Vec::new();
        for block in payload {
            let parameters = match (block.parameters, round.parameters()) {
                (usize::MAX, Some(parameters)) => parameters.max(1),
                (usize::MAX, None) if subcarriers == 1 => usize::MAX,
                (usize::MAX, None) => subcarriers,
                (parameters, _) => parameters,
            };
            let count = subcarriers.min(parameters);
            let share = |m: usize| parameters / count + usize::from(m < parameters % count);
            parts.extend((0..count).map(|subcarrier| {
                let places = (subcarrier..admitted.estimates.len()).step_by(subcarriers);
                let deviation = |at: usize| match (admitted.is_admitted[at], is_exact) {
                    (false, _) => Complex64::ZERO,
                    (true, true) => Complex64::ONE,
                    (true, false) => block.channels[at] / admitted.estimates[at],
                };
                let deviations = places.map(deviation).collect();
                Part { subcarrier, parameters: share(subcarrier), deviations }
            }));
        }
        Ok(parts)
    }

    /// `μ_k` of a base station that keeps its samples of both quadratures, in the block where it is largest: a change of client `k`'s
    /// update by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        let parts = self.parts(round, &self.admit(round)?)?;
        let block = |part: Part| ComplexBlock { parameters: part.parameters, gains: part.deviations };
        let blocks: Vec<ComplexBlock> = parts.into_iter().map(block).collect();
        let silent = vec![0.0; round.clients().len()];
        Ok(largest_mu(&blocks, &silent, self.noise_over_amplitude(), sensitivity))
    }
}

impl Admitted {
    /// `K_m`: number of clients on a subcarrier.
    fn count(&self, subcarrier: usize, subcarriers: usize) -> usize {
        self.is_admitted.iter().skip(subcarrier).step_by(subcarriers).filter(|&&admitted| admitted).count()
    }
}

impl Uplink for BroadbandInversion {
    fn name(&self) -> &'static str {
        "broadband-inversion"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let admitted = self.admit(round)?;
        let clients = round.clients().len() as f64;
        let block = |part: Part| {
            let count = admitted.count(part.subcarrier, self.settings.subcarriers);
            let scale = if count == 0 { 0.0 } else { clients / count as f64 };
            Block {
                parameters: part.parameters,
                gains: part.deviations.iter().map(|deviation| scale * deviation.re).collect(),
                noise_std: scale * self.noise_over_amplitude(),
                cross_gains: Vec::new(),
            }
        };
        let parts = self.parts(round, &admitted)?;
        EffectiveChannel::from_blocks(parts.into_iter().map(block).collect())
    }

    /// A client's factor is the root mean square of `√ρ₀/|ĥ_k[m]|` over the subcarriers that the payload uses, with 0 where it is
    /// silent. Every client sends a pilot on every subcarrier, and receives a coefficient for each.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let (admitted, subcarriers) = (self.admit(round)?, self.settings.subcarriers);
        let used = round.parameters().map_or(subcarriers, |parameters| subcarriers.min(parameters.max(1)));
        let clients = admitted.estimates.chunks(subcarriers).zip(admitted.is_admitted.chunks(subcarriers));
        let factor = |(estimates, is_admitted): (&[Complex64], &[bool])| {
            let subcarriers = estimates.iter().zip(is_admitted).take(used);
            let powers = subcarriers.filter(|(_, admitted)| **admitted).map(|(h, _)| 1.0 / h.norm_sqr());
            self.amplitude * (powers.sum::<f64>() / used as f64).sqrt()
        };
        let factors = clients.map(factor).collect();
        let mut transmission =
            Transmission::new(factors, self.noise.uses_per_parameter()).with_channel_knowledge();
        transmission.pilot_uses *= subcarriers as u64;
        transmission.pilot_energy *= subcarriers as f64;
        transmission.control_uses *= subcarriers as u64;
        Ok(Some(transmission.with_power_control(&self.settings.channels.sent_amplitudes(round))))
    }
}

/// `E[1/|h|²; |h| ≥ threshold]` for a positive threshold: the mean power of a client that inverts its channel.
fn mean_inverse_power(fading: Fading, threshold: f64) -> f64 {
    mean_above(fading, threshold, |amplitude| amplitude.powi(-2))
}

#[cfg(test)]
mod tests {
    use floras_core::{Ageing, SnrConvention};

    use super::*;
    use crate::cost::Cost;

    fn settings(subcarriers: usize, power: f64) -> BroadbandInversionSettings {
        BroadbandInversionSettings {
            admission: Admission::at_power(power).unwrap(),
            subcarriers,
            noise: NoiseReference::PerSymbol,
            length: 25,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        }
    }

    fn uplink(subcarriers: usize, power: f64) -> BroadbandInversion {
        BroadbandInversion::new(settings(subcarriers, power)).unwrap()
    }

    /// Values of `E₁` from Abramowitz and Stegun, table 5.1, and of its series at 1e-4. With `m = 2`, `|h|²` has the density
    /// `4x·e^{−2x}` and the mean is `2e^{−2g}`.
    #[test]
    fn the_mean_power_has_its_closed_form() {
        let rayleigh = |power: f64| mean_inverse_power(Fading::Rayleigh, power.sqrt());
        for (power, expected) in [(1e-4, 8.633224704569), (0.1, 1.822923958419), (1.0, 0.219383934396)] {
            assert!((rayleigh(power) / expected - 1.0).abs() < 1e-9, "{power}");
        }
        let nakagami = mean_inverse_power(Fading::nakagami(2.0).unwrap(), 0.3_f64.sqrt());
        assert!((nakagami / (2.0 * (-0.6_f64).exp()) - 1.0).abs() < 1e-9);
        let rician = mean_inverse_power(Fading::rician(0.0).unwrap(), 0.1_f64.sqrt());
        assert!((rician / rayleigh(0.1) - 1.0).abs() < 1e-9);
        assert!((mean_inverse_power(Fading::rician(1e6).unwrap(), 0.5) - 1.0).abs() < 1e-5);
        assert_eq!([0.5, 1.0, 1.5].map(|h| mean_inverse_power(Fading::None, h)), [1.0, 1.0, 0.0]);
    }

    /// 200,000 channels: the share has a standard error of 0.00066, the power one of 0.0024 (`E[1/|h|⁴; |h|² ≥ 0.1] = e^{−0.1}/0.1 − E₁(0.1) = 7.2`).
    /// Five of them are a false alarm in 10⁶. A power without truncation would be infinite, and one with `e^{−g}` in place of `E₁` twice
    /// as large.
    #[test]
    fn admission_and_power_are_those_stated() {
        let clients: Vec<u32> = (0..25_000).collect();
        let uplink = uplink(8, 0.1);
        let round = Round::new(1, 0, 1, &clients).unwrap();
        let admitted = uplink.admit(&round).unwrap();
        let count = admitted.is_admitted.iter().filter(|&&admitted| admitted).count() as f64;
        assert!((count / 200_000.0 - (-0.1_f64).exp()).abs() < 0.0033, "{count}");
        let sent = uplink.transmission(&round).unwrap().unwrap();
        let cost = Cost::new(&sent, &vec![1.0; clients.len()], 800).unwrap();
        assert!((cost.power_mean - 1.0).abs() < 0.0121, "{}", cost.power_mean);
        assert_eq!((cost.pilot_uses, cost.control_uses, cost.payload_uses), (200_000, 200_000, 800));
    }

    /// 21 parameters on 4 subcarriers: blocks of 6, 5, 5 and 5 with their own admitted clients.
    #[test]
    fn gains_and_noise_follow_each_block() {
        let clients = [4, 7, 9];
        let uplink = uplink(4, 0.5);
        let unequal = (1..=20).filter(|&number| {
            let round = Round::new(1, 0, number, &clients).unwrap().with_parameters(21);
            let channels = Channels::from(Fading::Rayleigh).draw_antennas(&round, 4).unwrap();
            let effective = uplink.realise(&round).unwrap();
            let lengths: Vec<usize> = effective.blocks().iter().map(|block| block.parameters).collect();
            assert_eq!(lengths, [6, 5, 5, 5]);
            for (block, channels) in effective.blocks().iter().zip(&channels) {
                let admitted: Vec<bool> = channels.iter().map(|h| h.norm_sqr() >= 0.5).collect();
                let count = admitted.iter().filter(|&&admitted| admitted).count();
                let scale = if count == 0 { 0.0 } else { 3.0 / count as f64 };
                let expected: Vec<f64> =
                    admitted.iter().map(|&admitted| scale * f64::from(admitted)).collect();
                assert_eq!(block.gains, expected);
                // E₁(0.5) = 0.559773595 and σ = 0.1.
                let noise_std = scale * 0.1 * 0.559773595_f64.sqrt();
                assert!((block.noise_std - noise_std).abs() < 1e-9);
            }
            let counts = |block: &Block| block.gains.iter().filter(|&&gain| gain > 0.0).count();
            counts(&effective.blocks()[0]) != counts(&effective.blocks()[1])
        });
        assert!(unequal.count() > 2, "blocks have different clients");
    }

    #[test]
    fn every_admitted_client_leaks_the_same() {
        let clients: Vec<u32> = (0..5).collect();
        let uplink = uplink(8, 0.5);
        let bound = 2.0 / uplink.noise_over_amplitude();
        for number in 1..=50 {
            let round = Round::new(1, 0, number, &clients).unwrap();
            let (sum, raw) = (uplink.realise(&round).unwrap().mu(2.0), uplink.raw_mu(&round, 2.0).unwrap());
            for mu in sum.into_iter().chain(raw) {
                assert!(mu == 0.0 || (mu / bound - 1.0).abs() < 1e-12, "{mu} and {bound}");
            }
        }
    }

    /// With an error, gains are Re(h/ĥ)·K/K_m, and both quadratures reveal more than the sum.
    #[test]
    fn estimation_errors_change_the_gains() {
        let clients: Vec<u32> = (0..20).collect();
        let channels = Channels::from(Fading::Rayleigh).with_estimation_error(0.3).unwrap();
        let erring = BroadbandInversion::new(BroadbandInversionSettings {
            channels: channels.clone(),
            ..settings(2, 0.1)
        });
        let erring = erring.unwrap();
        let round = Round::new(1, 0, 1, &clients).unwrap().with_parameters(10);
        let (exact, known) =
            (channels.draw_at(&round, 2).unwrap(), channels.draw_estimates_at(&round, 2).unwrap());
        let effective = erring.realise(&round).unwrap();
        for (m, block) in effective.blocks().iter().enumerate() {
            let admitted = known.iter().skip(m).step_by(2).filter(|h| h.norm_sqr() >= 0.1).count();
            for (k, gain) in block.gains.iter().enumerate() {
                let (h, estimate) = (exact[2 * k + m], known[2 * k + m]);
                let expected = match estimate.norm_sqr() >= 0.1 {
                    true => (h / estimate).re * 20.0 / admitted as f64,
                    false => 0.0,
                };
                assert!((gain - expected).abs() < 1e-12);
            }
        }
        let (sum, raw) = (effective.mu(1.0), erring.raw_mu(&round, 1.0).unwrap());
        assert!(sum.iter().zip(&raw).all(|(sum, raw)| *sum <= raw * (1.0 + 1e-12)));
        assert!(sum.iter().zip(&raw).any(|(sum, raw)| 1.01 * sum < *raw));
    }

    /// Two blocks of time, with both subcarriers in each.
    #[test]
    fn an_ageing_channel_has_blocks_of_time() {
        let ageing = "correlation=0.9".parse::<Ageing>().unwrap();
        let channels = Channels::from(Fading::Rayleigh).with_ageing(ageing, Some(6)).unwrap();
        let aged = BroadbandInversion::new(BroadbandInversionSettings { channels, ..settings(2, 0.1) });
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap().with_parameters(9);
        let effective = aged.unwrap().realise(&round).unwrap();
        let lengths: Vec<usize> = effective.blocks().iter().map(|block| block.parameters).collect();
        assert_eq!(lengths, [3, 3, 2, 1]);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        for subcarriers in [0, 4097] {
            assert!(BroadbandInversion::new(settings(subcarriers, 0.1)).is_err());
        }
        assert!(BroadbandInversion::new(settings(8, 1e6)).is_err(), "no channel is that strong");
        let trace = crate::Trace::from_reader("round,client,real,imaginary\n0,0,1,0\n".as_bytes()).unwrap();
        let error = BroadbandInversion::new(BroadbandInversionSettings {
            channels: trace.into(),
            ..settings(1, 0.1)
        });
        assert!(matches!(error, Err(UplinkError::UnknownMeanPower { .. })));
    }
}
