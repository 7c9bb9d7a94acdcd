//! Several real branches: the views compared with samples of the mechanism itself.
//!
//! Pilot noise and channels are drawn as vectors, the weights are `(τ/‖τ‖)·w(‖τ‖)`, and `δ` is the mean of `δ_G(ε; μ)`. No formula
//! of the accounting is used. A comparison allows 5 standard errors: one false alarm in 1.7 million. Seeds are fixed.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::{Fading, Modulation};
use floras_privacy::{
    Account, AnyChannel, Coefficients, Composition, Curve, MuDistribution, PrivacyError, Receiver, Sampling,
    Setting, Source, View, gaussian, idealised, idealised_of_branches,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

/// Twice the clip norm, which is 1.
const SENSITIVITY: f64 = 2.0;
const ERRORS: f64 = 5.0;

struct Sampler(Xoshiro256PlusPlus);

impl Sampler {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn normals(&mut self, count: u32) -> Vec<f64> {
        (0..count).map(|_| self.0.sample(StandardNormal)).collect()
    }

    /// `w(‖e‖)²` of an unused sequence, or of another client with channels of this deviation.
    fn noise_of(&mut self, receiver: Receiver, branches: u32, channel_std: f64) -> f64 {
        let scale = (1.0 + channel_std * channel_std).sqrt();
        receiver.weight(scale * length(&self.normals(branches)), 1.0).powi(2)
    }

    /// `μ` of a client with this channel, given the noise `others` of the other sequences.
    fn mu(&mut self, receiver: Receiver, channel: &[f64], others: f64) -> f64 {
        let noise = self.normals(channel.len() as u32);
        let estimate: Vec<f64> = channel.iter().zip(noise).map(|(h, e)| h + e).collect();
        let size = length(&estimate);
        let weight = receiver.weight(size, 1.0);
        let gain: f64 = channel.iter().zip(&estimate).map(|(h, tau)| h * tau / size * weight).sum();
        SENSITIVITY * gain.abs() / (weight * weight + others).sqrt()
    }
}

fn length(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The mean of `δ_G` over draws of `μ`, with its standard error.
fn sampled(draws: usize, epsilon: f64, mut mu: impl FnMut() -> f64) -> (f64, f64) {
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..draws {
        let delta = gaussian::delta(epsilon, mu());
        sum += delta;
        squares += delta * delta;
    }
    let (count, mean) = (draws as f64, sum / draws as f64);
    // Rounding must not make the variance negative if all draws are equal; the rounding of the sum is added.
    (mean, ((squares / count - mean * mean).max(0.0) / count).sqrt() + 1e-9 * mean)
}

fn receivers() -> [Receiver; 3] {
    [Receiver::clipped(1.0).unwrap(), Receiver::Mmse, Receiver::regularised(3.0).unwrap()]
}

/// The bounds are within a few percent of each other, so a `δ` that is off by 5% fails.
#[test]
fn idealised_distributions_follow_samples() {
    let mut sampler = Sampler::new(41);
    for branches in [2, 4] {
        for (receiver, unused) in receivers().into_iter().flat_map(|receiver| [(receiver, 3), (receiver, 20)])
        {
            let distribution = idealised_of_branches(receiver, branches, unused, SENSITIVITY).unwrap();
            let typical = sampler.noise_of(receiver, branches, 0.0) * unused as f64;
            let epsilon = (SENSITIVITY / typical.sqrt()).clamp(0.2, 20.0);
            let (mean, error) = sampled(100_000, epsilon, || {
                let noise: f64 = (0..unused).map(|_| sampler.noise_of(receiver, branches, 0.0)).sum();
                SENSITIVITY / noise.sqrt()
            });
            let (lower, upper) = (distribution.delta_lower(epsilon), distribution.delta_upper(epsilon));
            let case = format!(
                "B = {branches}, {receiver}, γ = {unused}, ε = {epsilon}: {mean} ± {error}, {lower} to {upper}"
            );
            assert!(mean - ERRORS * error <= upper && mean + ERRORS * error >= lower, "{case}");
            assert!(upper < 1.05 * lower && error < 0.05 * mean, "{case}");
        }
    }
}

/// The paper's weights: the closed form of one unused sequence, `μ = Δ·R`, and samples of more.
#[test]
fn idealised_paper_receiver_is_a_t_distribution() {
    let mut sampler = Sampler::new(42);
    for branches in [2, 4, 8] {
        let closed = idealised_of_branches(Receiver::Paper, branches, 1, SENSITIVITY).unwrap();
        assert_eq!(closed, MuDistribution::Chi { scale: SENSITIVITY, rounds: branches.into() });
        // Clipping at 0.01 changes at most one R in 20,000, and only reduces the noise.
        let clipped = Receiver::clipped(0.01).unwrap();
        let almost = idealised_of_branches(clipped, branches, 1, SENSITIVITY).unwrap();
        for epsilon in [1.0, 8.0, 30.0] {
            let [exact, near] = [&closed, &almost].map(|distribution| distribution.delta_upper(epsilon));
            assert!(near >= exact * (1.0 - 1e-9) && near <= 1.02 * exact, "{branches}: {near} and {exact}");
        }
        for unused in [2, 10] {
            let distribution = idealised_of_branches(Receiver::Paper, branches, unused, SENSITIVITY).unwrap();
            let epsilon = 0.5 * SENSITIVITY * f64::from(branches).sqrt();
            let (mean, error) = sampled(100_000, epsilon, || {
                let noise: f64 = (0..unused).map(|_| sampler.noise_of(Receiver::Paper, branches, 0.0)).sum();
                SENSITIVITY / noise.sqrt()
            });
            let upper = distribution.delta_upper(epsilon);
            let case = format!("B = {branches}, γ = {unused}: {mean} ± {error}, {upper}");
            assert!(mean - ERRORS * error <= upper && upper <= 1.05 * mean + ERRORS * error, "{case}");
        }
    }
    // One branch keeps its own closed form.
    assert_eq!(
        idealised_of_branches(Receiver::Paper, 1, 4, 2.0).unwrap(),
        idealised(Receiver::Paper, 4, 2.0).unwrap()
    );
}

/// No channel, however long, leaks more than the bound; a strong client leaks what the idealised view states.
#[test]
fn any_channel_bounds_every_sampled_channel() {
    let mut sampler = Sampler::new(43);
    for (branches, receiver) in [2, 8].into_iter().flat_map(|branches| {
        [Receiver::Paper].into_iter().chain(receivers()).map(move |receiver| (branches, receiver))
    }) {
        let unused = 10;
        let curve = AnyChannel::of_branches(receiver, branches, unused, SENSITIVITY).unwrap();
        for t in [0.5, 2.0, 4.0, 8.0, 1000.0] {
            let mut channel = vec![0.0; branches as usize];
            channel[0] = 0.6 * t;
            channel[1] = -0.8 * t;
            for epsilon in [1.0, 4.0] {
                let (mean, error) = sampled(20_000, epsilon, || {
                    let others = (0..unused).map(|_| sampler.noise_of(receiver, branches, 0.0)).sum();
                    sampler.mu(receiver, &channel, others)
                });
                let upper = curve.upper(epsilon);
                assert!(
                    mean - ERRORS * error <= upper,
                    "B = {branches}, {receiver}, t = {t}: {mean}, {upper}"
                );
                if t == 1000.0 {
                    assert!(mean + ERRORS * error >= curve.lower(epsilon), "B = {branches}, {receiver}");
                }
            }
        }
    }
}

/// K = 20 clients under Rayleigh fading, 10 dB, `s = σ/√32`.
#[test]
fn actual_bound_is_above_samples() {
    let mut sampler = Sampler::new(44);
    let s = 0.1_f64.sqrt() / 32_f64.sqrt();
    for (modulation, antennas) in [(Modulation::Real, 2), (Modulation::Complex, 1), (Modulation::Complex, 4)]
    {
        let channel = Coefficients::of_antennas(Fading::Rayleigh, modulation, antennas, s).unwrap().unwrap();
        let (branches, std) = (channel.branches(), 0.5_f64.sqrt() / s);
        for (receiver, unused) in [Receiver::Paper]
            .into_iter()
            .chain(receivers())
            .flat_map(|receiver| [(receiver, 0), (receiver, 10)])
        {
            let bound = channel.actual(receiver, 20, unused, SENSITIVITY).unwrap();
            let epsilon = match unused {
                0 => 30.0,
                _ => 4.0,
            };
            let (mean, error) = sampled(50_000, epsilon, || {
                let unused: f64 = (0..unused).map(|_| sampler.noise_of(receiver, branches, 0.0)).sum();
                let used: f64 = (0..19).map(|_| sampler.noise_of(receiver, branches, std)).sum();
                let own: Vec<f64> = sampler.normals(branches).iter().map(|x| std * x).collect();
                sampler.mu(receiver, &own, unused + used)
            });
            let upper = bound.delta_upper(epsilon);
            let case =
                format!("{modulation}, R = {antennas}, {receiver}, γ = {unused}: {mean} ± {error}, {upper}");
            assert!(mean - ERRORS * error <= upper, "{case}");
            // Loose if a client may fade, and tight with eight branches.
            let slack = if antennas == 4 { 1.15 } else { 20.0 };
            assert!(upper <= slack * mean, "{case}");
        }
    }
}

/// `μ = Δ·‖h‖/s` over both branches of all antennas: `‖h‖²` is a sum of `R` powers. The curve is accurate to a few per mille.
#[test]
fn raw_samples_of_all_antennas_follow_samples() {
    let mut sampler = Sampler::new(45);
    for (fading, antennas) in [("rayleigh", 2), ("rayleigh", 4), ("nakagami=2", 2), ("none", 3)] {
        let fading: Fading = fading.parse().unwrap();
        let channel = Coefficients::of_antennas(fading, Modulation::Complex, antennas, 1.0).unwrap().unwrap();
        let curve = channel.raw_signal(SENSITIVITY).unwrap();
        let epsilon = 3.0;
        let (mean, error) = sampled(200_000, epsilon, || {
            let power: f64 = match fading {
                Fading::None => antennas as f64,
                // A gamma variable of shape 2 and mean 1 is a sum of four squares of variance 1/4 each.
                Fading::Nakagami(_) => sampler.normals(4 * antennas as u32).iter().map(|x| x * x / 4.0).sum(),
                _ => sampler.normals(2 * antennas as u32).iter().map(|x| x * x / 2.0).sum(),
            };
            SENSITIVITY * power.sqrt()
        });
        let (lower, upper) = (curve.delta_lower(epsilon), curve.delta_upper(epsilon));
        let case = format!("{fading}, R = {antennas}: {mean} ± {error}, {lower} to {upper}");
        assert!(mean - ERRORS * error <= upper * (1.0 + 1e-9) && mean + ERRORS * error >= lower, "{case}");
        assert!(upper <= 1.005 * lower && error < 0.01 * mean, "{case}");
    }
    let rician = Fading::rician(3.0).unwrap();
    assert_eq!(Coefficients::of_antennas(rician, Modulation::Complex, 2, 1.0), Ok(None));
    assert_eq!(
        Coefficients::of_antennas(rician, Modulation::Real, 1, 1.0).unwrap().unwrap(),
        Coefficients::of(rician, Modulation::Real, 1.0).unwrap()
    );
}

fn setting(branches: u32, antennas: usize) -> Setting {
    let channel = Coefficients::of_antennas(Fading::Rayleigh, Modulation::Complex, antennas, 0.02).unwrap();
    Setting { receiver: Receiver::clipped(1.0).unwrap(), branches, channel, ..Setting::default() }
}

#[test]
fn every_rigorous_view_counts_the_branches() {
    let epsilon = |antennas: usize, view: View| {
        let Source::Curve { curve, .. } = setting(2 * antennas as u32, antennas).source(view).unwrap() else {
            panic!("{view} of {antennas} antennas has no curve");
        };
        let composition = Composition::new(curve.as_ref(), Sampling::Everyone, 1).unwrap();
        composition.epsilon(1e-5).unwrap().upper
    };
    // More branches reduce the noise of unused sequences, and show more of the channel.
    for view in View::RIGOROUS {
        let [one, four] = [1, 4].map(|antennas| epsilon(antennas, view));
        assert!(one < four, "{view}: {one} and {four}");
    }
}

#[test]
fn branches_must_fit_the_channel() {
    assert!(setting(2, 1).source(View::Idealised).is_ok());
    let error = |wrong: Setting| Account::of(&wrong).err().unwrap();
    assert!(matches!(error(setting(4, 1)), PrivacyError::Inconsistent { .. }));
    for branches in [0, 200] {
        assert!(matches!(error(setting(branches, 1)), PrivacyError::OutOfRange { .. }));
    }
}
