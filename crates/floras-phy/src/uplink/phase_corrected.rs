//! Aggregation with phase correction and without spreading: each client rotates its symbol by its channel's phase.
//!
//! The air adds `Σ_k |h_k|·x_k`, and the base station, which knows the distribution of fading, divides by `E|h|`:
//!
//! ```text
//! x̃ = Σ_k (|h_k|·cos(error_k)/E|h|)·x_k + n/E|h|
//! ```
//!
//! Gains have mean 1 (with perfect phases) and the spread of the fading. A client rotates by the phase of its estimate `ĥ` of
//! the channel at the time of its pilot; with [ageing](Channels::with_ageing) block `b` arrives as `Re(h_b·e^{−j·arg ĥ})`.
//!
//! # Citations
//! Sery, Cohen, *On analog gradient descent learning over multiple access fading channels*, IEEE TSP 68 (2020).

use floras_core::{Fidelity, Modulation, NoiseReference, PhaseError, Snr};

use super::modulation::{Arrivals, rotations};
use super::unspread::{ComplexBlock, UnspreadNoise, largest_mu};
use super::{Signal, Uplink};
use crate::channels::Channels;
use crate::chip::{ChipBlock, ChipLink};
use crate::cost::Transmission;
use crate::effective::{Block, EffectiveChannel};
use crate::error::{UplinkError, require};
use crate::round::Round;

/// Settings of phase-corrected aggregation.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseCorrectedSettings {
    /// Residual error of the phase correction.
    pub phase_error: PhaseError,
    /// The noise in a comparison with FLORAS: per symbol, or over the same bandwidth.
    pub noise: NoiseReference,
    /// Sequence length `L` of the FLORAS system for comparison, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The phase-corrected uplink without spreading.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseCorrected {
    settings: PhaseCorrectedSettings,
    noise: UnspreadNoise,
    mean_amplitude: f64,
}

impl PhaseCorrected {
    /// Builds the uplink. A sequence length or an SNR out of range is an error; so are channels whose mean amplitude is not positive
    /// and finite.
    pub fn new(settings: PhaseCorrectedSettings) -> Result<Self, UplinkError> {
        let noise = UnspreadNoise::new(settings.noise, settings.length, settings.snr)?;
        let mean_amplitude = settings.channels.mean_amplitude();
        let holds = mean_amplitude > 0.0 && mean_amplitude.is_finite();
        require(holds, "the mean amplitude of the channels", "positive and finite", mean_amplitude)?;
        Ok(Self { settings, noise, mean_amplitude })
    }

    /// The settings of the uplink.
    pub fn settings(&self) -> &PhaseCorrectedSettings {
        &self.settings
    }

    fn arrivals(&self, round: &Round<'_>) -> Result<Arrivals, UplinkError> {
        let modulation = Modulation::PhaseCorrected(self.settings.phase_error);
        Arrivals::new(modulation, 1, &self.settings.channels, round)
    }

    /// `μ_k` of a base station that keeps its samples of both quadratures, in the block where it is largest: a change of client
    /// `k`'s update by `sensitivity` in norm changes the samples by at most `μ_k` standard deviations of their noise.
    pub fn raw_mu(&self, round: &Round<'_>, sensitivity: f64) -> Result<Vec<f64>, UplinkError> {
        let channels = &self.settings.channels;
        let rotations = rotations(self.settings.phase_error, &channels.draw_estimates(round)?, round);
        let blocks = channels.draw_payload(round)?.into_iter().map(|block| {
            let gains =
                block.channels.iter().zip(&rotations).map(|(h, rotation)| h * rotation / self.mean_amplitude);
            ComplexBlock { parameters: block.parameters, gains: gains.collect() }
        });
        let silent = vec![0.0; round.clients().len()];
        Ok(largest_mu(
            &blocks.collect::<Vec<_>>(),
            &silent,
            self.noise.std / self.mean_amplitude,
            sensitivity,
        ))
    }
}

impl Uplink for PhaseCorrected {
    fn name(&self) -> &'static str {
        "phase-corrected"
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let block = |block: ChipBlock| Block {
            parameters: block.parameters,
            gains: block.amplitudes.iter().map(|h| h / self.mean_amplitude).collect(),
            noise_std: self.noise.std / self.mean_amplitude,
            cross_gains: Vec::new(),
        };
        EffectiveChannel::from_blocks(self.arrivals(round)?.into_payload().into_iter().map(block).collect())
    }

    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        self.noise.link(self.arrivals(round)?.into_payload(), 1.0 / self.mean_amplitude)
    }

    fn transmission(&self, round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        let factors = vec![1.0; round.clients().len()];
        let transmission = Transmission::new(factors, self.noise.uses_per_parameter());
        let sent = self.settings.channels.sent_amplitudes(round);
        Ok(Some(transmission.with_channel_knowledge().with_power_control(&sent)))
    }

    fn signal(&self, round: &Round<'_>, _: Fidelity) -> Result<Option<Signal>, UplinkError> {
        let Arrivals { channels, pilot, .. } = self.arrivals(round)?;
        Ok(Some(self.noise.signal(channels, pilot, 1.0 / self.mean_amplitude)))
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, SnrConvention};

    use super::*;

    #[test]
    fn gains_are_rayleigh_amplitudes_with_mean_one() {
        let clients: Vec<u32> = (0..100_000).collect();
        let snr = Snr::new(0.0, SnrConvention::Symbol).unwrap();
        let uplink = PhaseCorrected::new(PhaseCorrectedSettings {
            phase_error: PhaseError::None,
            noise: NoiseReference::PerSymbol,
            length: 32,
            channels: Fading::Rayleigh.into(),
            snr,
        })
        .unwrap();
        let channel = uplink.realise(&Round::new(1, 0, 1, &clients).unwrap()).unwrap();
        let count = clients.len() as f64;
        let mean = channel.gains().iter().sum::<f64>() / count;
        let variance = channel.gains().iter().map(|g| (g - mean).powi(2)).sum::<f64>() / count;
        // Var|h|/E|h|² = 4/π − 1; standard errors are 0.0017 and 0.0015.
        assert!((mean - 1.0).abs() < 0.009, "{mean}");
        assert!((variance - (4.0 / std::f64::consts::PI - 1.0)).abs() < 0.008, "{variance}");
        assert!((channel.noise_std() - 2.0 / std::f64::consts::PI.sqrt()).abs() < 1e-12);
    }

    #[test]
    fn settings_out_of_range_are_refused() {
        let sound = PhaseCorrectedSettings {
            phase_error: PhaseError::None,
            noise: NoiseReference::PerSymbol,
            length: 32,
            channels: Fading::Rayleigh.into(),
            snr: Snr::NOISELESS,
        };
        assert!(PhaseCorrected::new(PhaseCorrectedSettings { length: 0, ..sound.clone() }).is_err());
        let silence = crate::Trace::from_reader("round,client,real,imaginary\n0,0,0,0\n".as_bytes()).unwrap();
        assert!(PhaseCorrected::new(PhaseCorrectedSettings { channels: silence.into(), ..sound }).is_err());
    }
}
