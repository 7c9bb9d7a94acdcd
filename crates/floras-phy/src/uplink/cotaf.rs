//! COTAF: time-varying precoding, by which the longest update of a round is sent at full power.
//!
//! Clients invert their channels, and all multiply by the same `√p_t`:
//!
//! ```text
//! p_t = d/max_k ‖x_k‖²,     x̃ = Σ_{k admitted} (K/K_t)·x_k + n·σ/(√p_t·θ)·K/K_t
//! ```
//!
//! with `K_t` admitted clients, those with `|h_k| ≥ θ`. The mean power of a client's symbols is at most 1. As training converges, updates
//! become shorter and `p_t` grows, so that the noise in the model shrinks at the same pace.
//!
//! The paper takes the expectation of `‖x_k‖²` over the samples' order, which clients estimate before training; here it is the largest
//! squared norm of the round itself. The base station and the clients must know `p_t`, which depends on the data.
//!
//! # Citations
//! Sery, Shlezinger, Cohen, Eldar, *Over-the-air federated learning from heterogeneous data*, IEEE TSP 69 (2021), arXiv:2009.12787.

use floras_core::random::Purpose;
use floras_core::{Admission, Snr};
use rayon::prelude::*;

use super::nonlinear::{Nonlinear, Received};
use super::{Sent, Uplink};
use crate::channels::Channels;
use crate::cost::{Cost, Transmission};
use crate::effective::EffectiveChannel;
use crate::error::{UplinkError, require};
use crate::memory::ClientMemory;
use crate::precode::Scale;
use crate::round::Round;
use crate::sequences::check_sizes;

/// Settings of COTAF.
#[derive(Clone, Debug, PartialEq)]
pub struct CotafSettings {
    /// The threshold at which clients are admitted.
    pub admission: Admission,
    /// Sequence length `L` to which the SNR refers, from 1 to 2²⁴.
    pub length: usize,
    /// Source of the channel coefficients, which clients know without error.
    pub channels: Channels,
    /// Signal-to-noise ratio, with the noise power that it refers to.
    pub snr: Snr,
}

/// The uplink with time-varying precoding.
#[derive(Clone, Debug, PartialEq)]
pub struct Cotaf {
    settings: CotafSettings,
    noise_std: f64,
}

impl Cotaf {
    /// Builds the uplink. A sequence length out of range is an error; so are channels that age or that clients know with an error, and a
    /// threshold that clients [practically never reach](Channels::check_admission).
    pub fn new(settings: CotafSettings) -> Result<Self, UplinkError> {
        check_sizes(1, settings.length)?;
        settings.channels.check_admission(settings.admission)?;
        let error = settings.channels.estimation_error_std();
        require(error == 0.0, "the error of a client's channel estimate", "0 for COTAF", error)?;
        require(!settings.channels.ages(), "the ageing of channels", "none for COTAF", 1.0)?;
        let noise_std = settings.snr.symbol_noise_std(settings.length);
        Ok(Self { settings, noise_std })
    }

    /// `μ` of a round with `parameters` parameters, over every channel: `2·√d·θ/σ`. It treats `p_t` as a constant, although `p_t` depends
    /// on the data.
    pub fn mu(&self, parameters: usize) -> f64 {
        2.0 * (parameters as f64).sqrt() * self.settings.admission.amplitude() / self.noise_std
    }
}

impl Uplink for Cotaf {
    fn name(&self) -> &'static str {
        "cotaf"
    }

    fn realise(&self, _: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        Err(UplinkError::NotLinear { scheme: self.name() })
    }

    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        Some(self)
    }
}

impl Nonlinear for Cotaf {
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        _: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError> {
        let threshold = self.settings.admission.amplitude();
        let channels = self.settings.channels.draw(round)?;
        let norms: Vec<f64> = updates.par_iter().map(Sent::norm).collect();
        let parameters = decoded.len();
        let mean_square = |norm: &f64| norm * norm / parameters as f64;
        let largest = norms.iter().map(mean_square).fold(0.0, f64::max);
        // Without any update there is nothing to scale, and nothing is sent.
        let scale = if largest > 0.0 { 1.0 / largest.sqrt() } else { 0.0 };
        let admitted: Vec<bool> = channels.iter().map(|h| h.norm() >= threshold).collect();
        let count = admitted.iter().filter(|&&admitted| admitted).count();
        let share = if count == 0 { 0.0 } else { admitted.len() as f64 / count as f64 };
        let noise_std = if scale > 0.0 { self.noise_std * share / (scale * threshold) } else { 0.0 };
        let gains = admitted.iter().map(|&admitted| share * f64::from(admitted)).collect();
        let channel = EffectiveChannel::new(gains, noise_std)?;
        let (rows, scales): (Vec<&[f32]>, Vec<Scale>) =
            updates.iter().map(|sent| (sent.update(), sent.scale())).unzip();
        channel.add_into(0, &rows, &scales, Some(round.stream_name(Purpose::PAYLOAD_NOISE)), decoded)?;
        let factors = channels
            .iter()
            .zip(&admitted)
            .map(|(h, &sent)| if sent { scale * threshold / h.norm() } else { 0.0 });
        let mut transmission = Transmission::new(factors.collect(), 1).with_channel_knowledge();
        // Each client reports the norm of its update, and the base station returns the largest.
        transmission.control_uses += updates.len() as u64 + 1;
        let squares: Vec<f64> = norms.iter().map(mean_square).collect();
        let mut cost = Cost::new(&transmission, &squares, parameters)?;
        cost.energy += updates.len() as f64;
        Ok(Received { channel: Some(channel), cost: Some(cost) })
    }
}

#[cfg(test)]
mod tests {
    use floras_core::SnrConvention;
    use num_complex::Complex64;

    use super::*;
    use crate::aggregation::Aggregation;

    const PARAMETERS: usize = 20_000;

    fn cotaf(amplitudes: &[f64]) -> Cotaf {
        let coefficients: Vec<Complex64> =
            amplitudes.iter().map(|&amplitude| Complex64::from_polar(amplitude, 1.0)).collect();
        Cotaf::new(CotafSettings {
            admission: Admission::at_amplitude(0.5).unwrap(),
            length: 32,
            channels: Channels::fixed(&coefficients).unwrap(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        })
        .unwrap()
    }

    /// The sample variance of 20,000 values has a relative standard error of 1%; the test allows five.
    #[test]
    fn noise_shrinks_with_the_longest_update() {
        let uplink = cotaf(&[0.5, 2.0, 0.4]);
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        for length in [3.0, 1e-3_f32] {
            let updates = [vec![length; PARAMETERS], vec![-0.5 * length; PARAMETERS], vec![0.0; PARAMETERS]];
            let aggregate = Aggregation::default().run(&uplink, round, &updates).unwrap();
            let channel = aggregate.channel.clone().unwrap();
            assert_eq!(channel.gains(), [1.5, 1.5, 0.0]);
            // σ = 0.1, θ = 0.5, √p_t = 1/length, and 2 of 3 clients are admitted.
            let expected = 0.1 / 0.5 * f64::from(length) * 1.5;
            assert!((channel.noise_std() / expected - 1.0).abs() < 1e-6);
            let residual = aggregate.sum.iter().map(|x| f64::from(*x) - 0.75 * f64::from(length));
            let variance = residual.map(|x| x * x).sum::<f64>() / PARAMETERS as f64;
            assert!((variance / expected.powi(2) - 1.0).abs() < 0.05);
            // A client of the largest norm is replaced by its negative.
            let mu = channel.mu(2.0 * f64::from(length) * (PARAMETERS as f64).sqrt());
            assert!((mu[0] / uplink.mu(PARAMETERS) - 1.0).abs() < 1e-6, "{mu:?}");
        }
    }

    #[test]
    fn no_client_sends_above_unit_power() {
        let uplink = cotaf(&[0.5, 2.0, 0.4]);
        let round = Round::new(1, 0, 1, &[0, 1, 2]).unwrap();
        let updates = [vec![3.0; 100], vec![1.0; 100], vec![9.0; 100]];
        let aggregate = Aggregation::default().run(&uplink, round, &updates).unwrap();
        let cost = aggregate.cost(&uplink, &round).unwrap().unwrap();
        // The longest update is that of the client that stays silent.
        assert!((cost.power_peak - 1.0 / 9.0).abs() < 1e-9);
        assert_eq!((cost.payload_uses, cost.pilot_uses, cost.control_uses), (100, 3, 7));
        let silent = Aggregation::default().run(&cotaf(&[0.1]), round, &updates).unwrap();
        assert!(silent.sum.iter().all(|&x| x == 0.0));
        let zero = Aggregation::default().run(&uplink, round, &[[0.0; 4]; 3]).unwrap();
        assert_eq!((zero.sum, zero.channel.unwrap().noise_std()), (vec![0.0; 4], 0.0));
    }

    #[test]
    fn channels_that_age_are_refused() {
        let sound = cotaf(&[1.0]).settings;
        let channels = Channels::from(floras_core::Fading::Rayleigh);
        let erring = channels.with_estimation_error(0.1).unwrap();
        assert!(Cotaf::new(CotafSettings { channels: erring, ..sound.clone() }).is_err());
        assert!(Cotaf::new(CotafSettings { length: 0, ..sound }).is_err());
    }
}
