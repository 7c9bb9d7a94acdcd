//! Channel inversion: each admitted client divides by its channel, so that the air adds equal terms.
//!
//! A client with `|h_k|` below a threshold stays silent. The others send `√η·x_k/h_k` with power at most 1, hence
//! `√η ≤ |h_k|` for all of them, and the base station divides by `√η`:
//!
//! ```text
//! x̃ = Σ_{k admitted} x_k + n/√η
//! ```
//!
//! For privacy the admitted clients may add noise of their own before they divide: each of `m` adds `N(0, a²/m)`, so that the
//! sum contains `N(0, a²)` whatever the channels are, and `ν² = a² + σ²/η`. The base station must send them `m` besides `√η`.
//! The power of that noise is not counted against the limit, but in the [cost](crate::Cost).
//!
//! Clients divide by their estimates `ĥ_k` of their channels at the time of their pilots, and are admitted by them. Where the
//! estimates have an error, or the channel ages, client `k` arrives in block `b` of the payload with the complex amplitude
//! `√η·h_{k,b}/ĥ_k`, of which the base station takes the real part:
//!
//! ```text
//! g_{k,b} = Re(h_{k,b}/ĥ_k),     ν_b² = (a²/m)·Σ_k g_{k,b}² + σ²/η
//! ```
//!
//! # Citations
//! Zhu, Wang, Huang, *Broadband analog aggregation for low-latency federated edge learning*, IEEE TWC 19 (2020).

use floras_core::{Admission, Fidelity, NoiseReference, PowerRule, Snr};
use num_complex::Complex64;

use super::unspread::{ComplexBlock, UnspreadNoise, largest_mu};
use super::{PowerSplit, Signal, Uplink};
use crate::channels::{Channels, PayloadBlock};
use crate::chip::{ChipBlock, ChipLink};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require};
use crate::round::Round;

/// Settings of channel inversion.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelInversionSettings {
    /// The threshold at which clients are admitted.
    pub admission: Admission,
    /// The rule for the received power `η`.
    pub power: PowerRule,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
    /// `a`: standard deviation of the artificial noise in each parameter of the sum, shared equally by the admitted
    /// clients; 0 for none.
    pub artificial_noise_std: f64,
}

/// The uplink with channel inversion.
#[derive(Clone, Debug, PartialEq)]
pub struct ChannelInversion {
    settings: ChannelInversionSettings,
    noise: UnspreadNoise,
    /// A limit of `√η`; infinite without one.
    max_amplitude: f64,
    /// Noise that clients send out of their own power, if they do.
    split: Option<Split>,
}

/// Clients that split their power between update and noise.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    /// `r`: minimum power of a client's noise relative to that of its update.
    ratio: f64,
    policy: PowerSplit,
}

/// The admitted clients of a round and their common received amplitude.
struct Alignment {
    /// The clients' estimates `ĥ_k` of their channels.
    estimates: Vec<Complex64>,
    admitted: Vec<bool>,
    /// `√η`; `None` if no client is admitted.
    common_amplitude: Option<f64>,
}

impl ChannelInversion {
    /// Builds the uplink. A sequence length, an SNR or an artificial noise out of range is an error; so are an infinite standard
    /// deviation, and a threshold that clients [practically never reach](Channels::check_admission).
    pub fn new(settings: ChannelInversionSettings) -> Result<Self, UplinkError> {
        let artificial = settings.artificial_noise_std;
        let holds = artificial.is_finite() && artificial >= 0.0;
        require(holds, "the artificial noise's standard deviation", "finite and not negative", artificial)?;
        settings.channels.check_admission(settings.admission)?;
        let noise = UnspreadNoise::new(settings.noise, settings.length, settings.snr)?;
        Ok(Self { settings, noise, max_amplitude: f64::INFINITY, split: None })
    }

    /// The same uplink with a received amplitude `√η` of at most `σ/min_noise_std`, so that the receiver's noise in the sum has at least
    /// this standard deviation.
    pub(super) fn with_min_noise(self, min_noise_std: f64) -> Self {
        Self { max_amplitude: self.noise.std / min_noise_std, ..self }
    }

    /// The same uplink with clients whose noise has at least `ratio` times the power of their update, in place of artificial noise
    /// beside the power limit. A client at the limit sends `1/(1 + ratio)` of its power as its update, so that `√η` is smaller by the
    /// root of that.
    pub(super) fn with_split(self, ratio: f64, policy: PowerSplit) -> Self {
        Self { split: Some(Split { ratio, policy }), ..self }
    }

    /// `σ`: standard deviation of the receiver's noise in a symbol.
    pub(super) fn receiver_noise_std(&self) -> f64 {
        self.noise.std
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &ChannelInversionSettings {
        &self.settings
    }

    /// Standard deviation of the artificial noise that each admitted client adds: `a/√m`.
    fn share(&self, admitted: &[bool]) -> f64 {
        let count = admitted.iter().filter(|&&admitted| admitted).count().max(1);
        self.settings.artificial_noise_std / (count as f64).sqrt()
    }

    fn align(&self, round: &Round<'_>) -> Result<Alignment, UplinkError> {
        let threshold = self.settings.admission.amplitude();
        let estimates = self.settings.channels.draw_estimates(round)?;
        let amplitudes: Vec<f64> = estimates.iter().map(|h| h.norm()).collect();
        let weakest = amplitudes.iter().copied().filter(|&h| h >= threshold).min_by(f64::total_cmp);
        let admitted = amplitudes.iter().map(|&h| h >= threshold).collect();
        let common_amplitude = weakest.map(|weakest| {
            let reached = match self.settings.power {
                PowerRule::WorstAdmitted => weakest,
                PowerRule::FixedAtThreshold => threshold,
            };
            let of_update = self.split.map_or(1.0, |split| (1.0 + split.ratio).sqrt());
            (reached / of_update).min(self.max_amplitude)
        });
        Ok(Alignment { estimates, admitted, common_amplitude })
    }

    /// Whether every admitted client arrives with exactly its intended amplitude.
    fn is_exact(&self) -> bool {
        self.settings.channels.estimation_error_std() == 0.0 && !self.settings.channels.ages()
    }

    /// `h_{k,b}/ĥ_k` of the admitted clients, 0 of the others; `None` if all admitted have exactly 1.
    fn deviations(
        &self,
        round: &Round<'_>,
        alignment: &Alignment,
    ) -> Result<Option<Vec<ComplexBlock>>, UplinkError> {
        if self.is_exact() {
            return Ok(None);
        }
        let block = |block: PayloadBlock| ComplexBlock {
            parameters: block.parameters,
            gains: alignment.deviation(&block.channels),
        };
        Ok(Some(self.settings.channels.draw_payload(round)?.into_iter().map(block).collect()))
    }

    /// Standard deviation of the noise that every client adds to its update: 0 for clients that are not admitted.
    fn shares(&self, alignment: &Alignment) -> Vec<f64> {
        let share = self.share(&alignment.admitted);
        let clients = alignment.admitted.iter().zip(alignment.factors());
        clients
            .map(|(&admitted, factor)| match (admitted, self.split) {
                (false, _) => 0.0,
                (true, None) => share,
                (true, Some(Split { ratio, policy })) => match policy {
                    PowerSplit::Equal => ratio.sqrt(),
                    // All of the power 1 that the update leaves, at least the ratio up to rounding.
                    PowerSplit::Full => (1.0 / (factor * factor) - 1.0).max(ratio).sqrt(),
                },
            })
            .collect()
    }

    /// `μ_k` of a base station that keeps its samples of both quadratures, in the block where it is largest: a change of client
    /// `k`'s update by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        let alignment = self.align(round)?;
        let Some(blocks) = self.deviations(round, &alignment)? else {
            return Ok(self.realise(round)?.mu(sensitivity));
        };
        let noise_std = alignment.common_amplitude.map_or(0.0, |amplitude| self.noise.std / amplitude);
        Ok(largest_mu(&blocks, &self.shares(&alignment), noise_std, sensitivity))
    }
}

impl Alignment {
    /// `h_k/ĥ_k` of the admitted clients, 0 of the others.
    fn deviation(&self, channels: &[Complex64]) -> Vec<Complex64> {
        let gain = |(h, (estimate, &admitted)): (&Complex64, (&Complex64, &bool))| {
            if admitted { h / estimate } else { Complex64::ZERO }
        };
        channels.iter().zip(self.estimates.iter().zip(&self.admitted)).map(gain).collect()
    }

    /// The intended received amplitude of each client: `√η`, or 0 if it is not admitted.
    fn intended(&self) -> Vec<f64> {
        let amplitude = self.common_amplitude.unwrap_or(0.0);
        self.admitted.iter().map(|&admitted| amplitude * f64::from(admitted)).collect()
    }

    /// The received amplitude of each client, given these deviations.
    fn arriving(&self, deviation: &[Complex64]) -> Vec<f64> {
        let amplitude = self.common_amplitude.unwrap_or(0.0);
        deviation.iter().map(|gain| amplitude * gain.re).collect()
    }

    /// The factor by which each client multiplies its update: `√η/|ĥ_k|`, or 0 if it is not admitted.
    fn factors(&self) -> impl Iterator<Item = f64> {
        let arriving = self.common_amplitude.unwrap_or(0.0);
        let clients = self.estimates.iter().zip(&self.admitted);
        clients.map(move |(h, &admitted)| if admitted { arriving / h.norm() } else { 0.0 })
    }

    /// `1/√η`, or 0 if no client is admitted.
    fn scale(&self) -> f64 {
        self.common_amplitude.map_or(0.0, |amplitude| 1.0 / amplitude)
    }
}

impl Uplink for ChannelInversion {
    fn name(&self) -> &'static str {
        "channel-inversion"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let alignment = self.align(round)?;
        let deviations = self.deviations(round, &alignment)?;
        let shares = self.shares(&alignment);
        let Alignment { admitted, common_amplitude, .. } = alignment;
        // A round without any admitted client is not decoded: no signal and no noise.
        let Some(blocks) = deviations else {
            let gains = admitted.into_iter().map(f64::from).collect();
            let of_clients = match self.split {
                None => self.settings.artificial_noise_std,
                Some(_) => shares.iter().map(|share| share * share).sum::<f64>().sqrt(),
            };
            let of_round = |amplitude: f64| of_clients.hypot(self.noise.std / amplitude);
            return EffectiveChannel::new(gains, common_amplitude.map_or(0.0, of_round));
        };
        let of_receiver = common_amplitude.map_or(0.0, |amplitude| self.noise.std / amplitude);
        let block = |block: ComplexBlock| {
            let gains: Vec<f64> = block.gains.iter().map(|gain| gain.re).collect();
            let of_clients =
                gains.iter().zip(&shares).map(|(gain, share)| (gain * share).powi(2)).sum::<f64>().sqrt();
            let noise_std = of_receiver.hypot(of_clients);
            Block { parameters: block.parameters, gains, noise_std, cross_gains: Vec::new() }
        };
        EffectiveChannel::from_blocks(blocks.into_iter().map(block).collect())
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        let alignment = self.align(round)?;
        let payload = match self.deviations(round, &alignment)? {
            None => vec![ChipBlock { parameters: usize::MAX, amplitudes: alignment.intended() }],
            Some(blocks) => {
                let block = |block: ComplexBlock| ChipBlock {
                    parameters: block.parameters,
                    amplitudes: alignment.arriving(&block.gains),
                };
                blocks.into_iter().map(block).collect()
            }
        };
        self.noise.link(payload, alignment.scale())?.with_client_noise(self.shares(&alignment))
    }

    /// An admitted client multiplies by `√η/|ĥ_k|`. With artificial noise the base station sends the number of admitted clients
    /// to all.
    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let alignment = self.align(round)?;
        let factors: Vec<f64> = alignment.factors().collect();
        let own_noise_powers = match self.split {
            None => Vec::new(),
            Some(_) => {
                let shares = self.shares(&alignment).into_iter().zip(&factors);
                shares.map(|(share, factor)| (share * factor).powi(2)).collect()
            }
        };
        let mut transmission =
            Transmission::new(factors, self.noise.uses_per_parameter()).with_channel_knowledge();
        transmission.own_noise_powers = own_noise_powers;
        if self.settings.artificial_noise_std > 0.0 {
            transmission.added_noise_power = self.share(&alignment.admitted).powi(2);
            transmission.control_uses += 1;
        }
        Ok(Some(transmission.with_power_control(&self.settings.channels.sent_amplitudes(round))))
    }

    fn signal(&self, round: &Round<'_>, _: Fidelity) -> Result<Option<Signal>, UplinkError> {
        let (alignment, channels) = (self.align(round)?, self.settings.channels.draw(round)?);
        let amplitudes = match self.is_exact() {
            true => alignment.intended(),
            false => alignment.arriving(&alignment.deviation(&channels)),
        };
        Ok(Some(self.noise.signal(channels, amplitudes, alignment.scale())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::Trace;
    use floras_core::SnrConvention;

    const ROWS: &str =
        "round,client,real,imaginary\n0,0,0.3,0.4\n0,1,0,-2\n0,2,0.05,0\n1,0,0.01,0\n1,1,0,0\n";

    fn inversion(power: PowerRule, noise: NoiseReference, admission: Admission) -> ChannelInversion {
        ChannelInversion::new(ChannelInversionSettings {
            admission,
            power,
            noise,
            length: 25,
            channels: Trace::from_reader(ROWS.as_bytes()).unwrap().into(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
            artificial_noise_std: 0.0,
        })
        .unwrap()
    }

    fn with_artificial_noise(uplink: ChannelInversion, artificial_noise_std: f64) -> ChannelInversion {
        let settings = ChannelInversionSettings { artificial_noise_std, ..uplink.settings };
        ChannelInversion::new(settings).unwrap()
    }

    /// Channels |h| = 0.5, 2 and 0.05, σ = 0.1.
    fn realise(power: PowerRule, noise: NoiseReference, admission: Admission) -> EffectiveChannel {
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        inversion(power, noise, admission).realise(&round).unwrap()
    }

    #[test]
    fn a_client_below_the_threshold_stays_silent() {
        for admission in [Admission::at_amplitude(0.1).unwrap(), Admission::at_power(0.01).unwrap()] {
            let channel = realise(PowerRule::WorstAdmitted, NoiseReference::PerSymbol, admission);
            assert_eq!(channel.gains(), [1.0, 1.0, 0.0]);
        }
        let channel = realise(
            PowerRule::WorstAdmitted,
            NoiseReference::PerSymbol,
            Admission::at_power(0.0025).unwrap(),
        );
        assert_eq!(channel.gains(), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn the_noise_follows_power_rule_and_bandwidth() {
        let noise_of =
            |power, noise| realise(power, noise, Admission::at_amplitude(0.1).unwrap()).noise_std();
        let same = NoiseReference::SameBandwidth;
        assert!((noise_of(PowerRule::WorstAdmitted, NoiseReference::PerSymbol) - 0.2).abs() < 1e-12);
        assert!((noise_of(PowerRule::FixedAtThreshold, NoiseReference::PerSymbol) - 1.0).abs() < 1e-12);
        assert!((noise_of(PowerRule::WorstAdmitted, same) - 0.04).abs() < 1e-12);
    }

    #[test]
    fn a_round_without_admitted_clients_decodes_to_zero() {
        let uplink = inversion(
            PowerRule::WorstAdmitted,
            NoiseReference::PerSymbol,
            Admission::at_amplitude(0.1).unwrap(),
        );
        let uplink = with_artificial_noise(uplink, 3.0);
        let round = Round::new(1, 0, 2, &[0, 1]).unwrap();
        for channel in [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()] {
            assert_eq!(channel.gains(), [0.0, 0.0]);
            assert_eq!(channel.noise_std(), 0.0);
        }
    }

    /// |h| = 0.5 and 2 are admitted, 0.05 is not: σ/√η = 0.2 per symbol.
    #[test]
    fn artificial_noise_has_the_requested_power() {
        for (reference, of_channel) in
            [(NoiseReference::PerSymbol, 0.2), (NoiseReference::SameBandwidth, 0.04_f64)]
        {
            let uplink =
                inversion(PowerRule::WorstAdmitted, reference, Admission::at_amplitude(0.1).unwrap());
            let uplink = with_artificial_noise(uplink, 3.0);
            let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
            let channels =
                [uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap()];
            for channel in channels {
                assert!(channel.gains().iter().zip([1.0, 1.0, 0.0]).all(|(g, of)| (g - of).abs() < 1e-12));
                assert!((channel.noise_std() / 3_f64.hypot(of_channel) - 1.0).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let settings =
            inversion(PowerRule::default(), NoiseReference::default(), Admission::at_amplitude(1.0).unwrap())
                .settings;
        for artificial_noise_std in [-1.0, f64::NAN, f64::INFINITY] {
            let settings = ChannelInversionSettings { artificial_noise_std, ..settings.clone() };
            assert!(ChannelInversion::new(settings).is_err());
        }
    }
}
