//! Detection rates in theory, averaged over the distribution of the channel.
//!
//! ```text
//! pilot   P_fa = 2Q(τ),             P_d = E_t[Q(τ − t) + Q(τ + t)];   Rayleigh, real modulation: 2Q(τ/√(1 + 1/(2s²)))
//!         with a known sign: Q(τ),  P_d = E_t[Q(τ − t)]
//! energy  P_fa = P(χ²_d > τ),       P_d = E_t[P(χ'²_d(t²C²) > τ)]
//! ```

use floras_privacy::normal;
use statrs::distribution::{ContinuousCDF, Normal};

use super::chi_square;
use super::detector::{Payload, rule};
use super::distribution::ChannelDistribution;

/// Number of nodes per panel.
const NODES: usize = 6;

/// `E[f(|t|)]` with `t = h/s`, for a function that changes at `|t| ≈ 1`, or at `1/C` if that is less.
pub(super) fn expectation(
    distribution: &ChannelDistribution,
    noise_std: f64,
    norm: f64,
    f: impl Fn(f64) -> f64,
) -> f64 {
    let density = match distribution {
        ChannelDistribution::Points(points) => {
            return points.iter().map(|(h, weight)| weight * f(h.abs() / noise_std)).sum();
        }
        ChannelDistribution::Density(density) => density,
    };
    let (low, high) = density.range();
    let (low, high) = (low / noise_std, high / noise_std);
    let widest = (high - low) / 64.0;
    let rule = rule(NODES);
    let (mut from, mut sum) = (low, 0.0);
    let mut width = (0.05 / norm.max(1.0)).min(widest);
    while from < high {
        let to = (from + width).min(high);
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        for &(node, weight) in &rule {
            let t = middle + half * node;
            let (positive, negative) = density.at(t * noise_std);
            sum += half * weight * noise_std * (positive + negative) * f(t);
        }
        width = (1.15 * width).min(widest);
        from = to;
    }
    sum
}

/// Detections of `|ĥ|` at a rate of false alarms.
pub(super) fn pilot(distribution: &ChannelDistribution, noise_std: f64, false_alarms: f64) -> f64 {
    let threshold = -Normal::standard().inverse_cdf(0.5 * false_alarms);
    expectation(distribution, noise_std, 1.0, |t| normal::cdf(t - threshold) + normal::cdf(-t - threshold))
}

/// Detections of `ĥ` with its sign, for a distribution without negative coefficients.
pub(super) fn signed_pilot(distribution: &ChannelDistribution, noise_std: f64, false_alarms: f64) -> f64 {
    let threshold = -Normal::standard().inverse_cdf(false_alarms);
    expectation(distribution, noise_std, 1.0, |t| normal::cdf(t - threshold))
}

/// Detections of the energy at a rate of false alarms.
pub(super) fn energy(
    distribution: &ChannelDistribution,
    noise_std: f64,
    payload: Payload,
    false_alarms: f64,
) -> f64 {
    let Payload { dimensions, norm } = payload;
    let threshold = chi_square::threshold(false_alarms, dimensions);
    expectation(distribution, noise_std, norm, |t| {
        chi_square::tail(threshold, dimensions, (t * norm).powi(2))
    })
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, PhaseError, Receiver, Snr, SnrConvention};
    use floras_phy::SequenceSet;
    use floras_phy::{Floras, FlorasSettings};

    use super::super::draw::Scene;
    use super::*;

    #[test]
    fn pilots_under_rayleigh_have_a_closed_form() {
        let distribution = ChannelDistribution::new(Fading::Rayleigh, Modulation::Real);
        for noise_std in [0.001, 0.0177, 0.3, 2.0_f64] {
            for false_alarms in [1e-4, 1e-2, 0.3] {
                let threshold = -Normal::standard().inverse_cdf(0.5 * false_alarms);
                let spread = (1.0 + 0.5 / (noise_std * noise_std)).sqrt();
                let closed = 2.0 * normal::cdf(-threshold / spread);
                let found = pilot(&distribution, noise_std, false_alarms);
                assert!((found - closed).abs() < 2e-5, "s = {noise_std}: {found} and not {closed}");
            }
        }
    }

    /// Measured rates at the theory's thresholds. Each is binomial; 4.5 standard errors are exceeded once in 150,000 cases, and
    /// there are 84 rates. Standard errors are below 0.0025: a distribution off by 2% would show.
    #[test]
    fn measured_rates_are_those_of_the_theory() {
        let corrected = Modulation::PhaseCorrected(PhaseError::None);
        let scenes = [
            (Fading::Rayleigh, Modulation::Real, 20.0, 4010.0, 1.0),
            (Fading::Rayleigh, Modulation::Real, 0.0, 4010.0, 1.0),
            (Fading::Rayleigh, Modulation::Real, -10.0, 3.0, 2.0),
            (Fading::rician(4.0).unwrap(), Modulation::Real, 10.0, 100.0, 0.5),
            (Fading::nakagami(2.0).unwrap(), corrected, 0.0, 1.0, 1.0),
            (Fading::None, Modulation::Real, -20.0, 50.0, 3.0),
            (Fading::Rayleigh, Modulation::Real, 20.0, 4010.0, 63.32),
        ];
        for (fading, modulation, snr_db, dimensions, norm) in scenes {
            let settings = FlorasSettings {
                sequences: SequenceSet::walsh(25, 32).unwrap(),
                modulation,
                receiver: Receiver::Paper,
                channels: fading.into(),
                snr: Snr::new(snr_db, SnrConvention::Symbol).unwrap(),
                ..FlorasSettings::default()
            };
            let payload = Payload { dimensions, norm };
            let scene =
                Scene { floras: Floras::new(settings), clients: vec![(0..15).collect()], payload, seed: 11 };
            let distribution = ChannelDistribution::new(fading, modulation);
            let rounds = scene.draw(3000).unwrap();
            let s = scene.noise_std();
            for false_alarms in [1e-3, 1e-2, 0.1] {
                let magnitude = -Normal::standard().inverse_cdf(0.5 * false_alarms);
                let strength = chi_square::threshold(false_alarms, dimensions);
                let mut counts = [[0.0; 2]; 2];
                for round in &rounds {
                    for (place, seen) in round.seen.iter().enumerate() {
                        let side = usize::from(place < round.in_use);
                        counts[0][side] += f64::from(u8::from(seen.pilot.abs() > magnitude));
                        counts[1][side] += f64::from(u8::from(seen.energy > strength));
                    }
                }
                let detections =
                    [pilot(&distribution, s, false_alarms), energy(&distribution, s, payload, false_alarms)];
                for (counts, detections) in counts.iter().zip(detections) {
                    for (count, draws, probability) in
                        [(counts[0], 30_000.0, false_alarms), (counts[1], 45_000.0, detections)]
                    {
                        let error = (probability * (1.0 - probability) / draws).sqrt().max(1e-5);
                        let far = (count / draws - probability) / error;
                        assert!(
                            far.abs() < 4.5,
                            "{fading} at {snr_db} dB, d = {dimensions}: {count}, {probability}, {far}"
                        );
                    }
                }
            }
        }
    }
}
