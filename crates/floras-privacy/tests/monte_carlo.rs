//! Samples of the mechanism itself: channels, pilot and noise are drawn, and the decoder's weights are computed from them. An
//! adversary that sees the output and knows the channels computes the likelihood ratio. No formula of the accounting is used.
//!
//! A difference of `Δ` between two neighbours' sums is received as `g_k·Δ` along one direction, under noise of standard deviation `ν`
//! in every direction. Along all other directions the two sums are equal. So one coordinate is drawn, and the loss of an outcome `x`
//! is the logarithm of the ratio of the two densities.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::cauchy::CauchyRound;
use floras_privacy::published::{self, PublishedRound, Weight};
use floras_privacy::{Coefficients, Composition, Curve, Receiver, Sampling, idealised};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

/// Twice the clip norm, which is 1.
const SENSITIVITY: f64 = 2.0;
/// Number of standard errors: one false alarm in 30,000 per comparison.
const ERRORS: f64 = 4.0;

struct Sampler(Xoshiro256PlusPlus);

impl Sampler {
    fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    fn normal(&mut self) -> f64 {
        self.0.sample(StandardNormal)
    }

    /// `ln p(x)/p'(x)` of an outcome under `p`, for a difference that is received with a gain.
    fn loss(&mut self, gain: f64, noise: f64) -> f64 {
        let (here, there) = (0.0, gain * SENSITIVITY);
        let x = here + noise * self.normal();
        ((x - there).powi(2) - (x - here).powi(2)) / (2.0 * noise * noise)
    }

    /// High SNR: the gain is 1, and the unused sequences' despread noise is divided by their pilots' noise.
    fn idealised_loss(&mut self, receiver: Receiver, unused: usize) -> f64 {
        let square: f64 = (0..unused).map(|_| receiver.weight(self.normal(), 1.0).powi(2)).sum();
        self.loss(1.0, square.sqrt())
    }

    /// Rayleigh fading under real modulation, `h ~ N(0, ½)`; the pilot adds despread noise of deviation `s` to each sequence.
    fn actual_loss(&mut self, receiver: Receiver, used: usize, unused: usize, s: f64) -> f64 {
        let mut square = 0.0;
        let mut gain = 0.0;
        for sequence in 0..used + unused {
            let h = if sequence < used { 0.5_f64.sqrt() * self.normal() } else { 0.0 };
            let weight = receiver.weight(h / s + self.normal(), 1.0) / s;
            square += (s * weight).powi(2);
            if sequence == 0 {
                gain = h.abs() * weight;
            }
        }
        self.loss(gain, square.sqrt())
    }
}

/// `E[(1 − e^{ε − L})₊]` with its standard error, for several `ε` at once.
fn estimates<const N: usize>(
    draws: usize,
    epsilons: [f64; N],
    mut loss: impl FnMut() -> f64,
) -> [(f64, f64); N] {
    let mut sums = [(0.0, 0.0); N];
    for _ in 0..draws {
        let loss = loss();
        for ((sum, squares), epsilon) in sums.iter_mut().zip(epsilons) {
            let value = -(epsilon - loss).min(0.0).exp_m1();
            *sum += value;
            *squares += value * value;
        }
    }
    let count = draws as f64;
    sums.map(|(sum, squares)| (sum / count, ((squares / count - (sum / count).powi(2)) / count).sqrt()))
}

/// Asserts that samples are within 4 standard errors of the bounds: not above the upper one, and not below the lower one.
#[track_caller]
fn agree<const N: usize>(curve: &dyn Curve, rounds: u64, epsilons: [f64; N], found: [(f64, f64); N]) {
    let composition = Composition::new(curve, Sampling::Everyone, rounds).unwrap();
    for (epsilon, (mean, error)) in epsilons.into_iter().zip(found) {
        let bounds = composition.delta(epsilon).unwrap();
        let case = format!("T = {rounds}, ε = {epsilon}: {mean:e} ± {error:e}, {bounds:?}");
        assert!(mean - ERRORS * error <= bounds.upper, "{case}");
        assert!(mean + ERRORS * error >= bounds.lower, "{case}");
        assert!(error < 0.1 * mean, "the estimate is precise: {case}");
    }
}

fn published_epsilon(gamma: u64, rounds: u64) -> f64 {
    let round = PublishedRound::new(Weight::client(1.0).unwrap(), 1.0, gamma as f64).unwrap();
    round.epsilon(published::PublishedComposition::Renyi, rounds, 1e-5).unwrap().as_printed()
}

/// At the published `ε`, the paper states `δ = 1e-5`. The true `δ` is 1e-4 to 1e-3, so the standard error of a million plain draws is
/// at most a tenth of it. The published number fails by 4 standard errors.
#[test]
fn idealised_samples_violate_only_the_published_bound() {
    for (unused, rounds, draws) in [(5, 1, 1_000_000), (10, 1, 1_000_000), (5, 10, 1_000_000)] {
        let printed = published_epsilon(unused, rounds);
        let epsilons = [0.2 * printed, printed];
        let mut sampler = Sampler::new(31 + rounds);
        let found = estimates(draws, epsilons, || {
            (0..rounds).map(|_| sampler.idealised_loss(Receiver::Paper, unused as usize)).sum()
        });
        agree(&idealised(Receiver::Paper, unused, SENSITIVITY).unwrap(), rounds, epsilons, found);
        let (delta, error) = found[1];
        assert!(
            delta - ERRORS * error > 1e-5,
            "γ = {unused}, T = {rounds}: {delta:e} ± {error:e} at ε = {printed}"
        );
    }
}

#[test]
fn samples_of_the_clipped_projector_keep_its_bound() {
    for (receiver, unused, rounds, epsilons) in [
        (Receiver::clipped(1.0).unwrap(), 10, 1, [0.3, 1.5]),
        (Receiver::clipped(1.0).unwrap(), 10, 10, [2.0, 7.0]),
        (Receiver::Mmse, 10, 1, [1.0, 5.0]),
    ] {
        let mut sampler = Sampler::new(32);
        let draws = 1_000_000 / rounds as usize * 2;
        let found = estimates(draws, epsilons, || {
            (0..rounds).map(|_| sampler.idealised_loss(receiver, unused as usize)).sum()
        });
        agree(&idealised(receiver, unused, SENSITIVITY).unwrap(), rounds, epsilons, found);
    }
}

/// K = 20, γ = 10, 20 dB, `L = N`: at `δ` = 1e-5 the bound is 14.0, and the high-SNR formula's 1.72 is violated.
#[test]
fn actual_samples_violate_only_the_high_snr_bound() {
    let (used, unused) = (20, 10);
    let s = 0.1 / f64::from(used + unused).sqrt();
    let channel = Coefficients::normal(s, 0.5_f64.sqrt()).unwrap();
    for (receiver, rounds, epsilons, draws) in [
        (Receiver::Paper, 1, [0.3, 1.7227], 1_000_000),
        (Receiver::Paper, 10, [1.0, 4.0], 200_000),
        (Receiver::clipped(1.0).unwrap(), 1, [0.5, 2.0], 1_000_000),
    ] {
        let distribution = channel.actual(receiver, used as u64, unused as u64, SENSITIVITY).unwrap();
        let mut sampler = Sampler::new(33 + rounds);
        let found = estimates(draws, epsilons, || {
            (0..rounds).map(|_| sampler.actual_loss(receiver, used as usize, unused as usize, s)).sum()
        });
        agree(&distribution, rounds, epsilons, found);
        if (receiver, rounds) == (Receiver::Paper, 1) {
            let (delta, error) = found[1];
            assert!(delta - ERRORS * error > 1e-5, "{delta:e} ± {error:e} where high SNR promises 1e-5");
        }
    }
}

/// 30 coordinates with common denominators, and the loss of their joint density, `(d+1)/2·ln` of the ratio of
/// `γ² + ‖x − ·‖²`: the view of an adversary without the channels. 4 standard errors of half a million draws.
#[test]
fn samples_of_thirty_coordinates_follow_the_exact_curve() {
    let (gamma, dimension) = (5, 30);
    let mut sampler = Sampler::new(34);
    let epsilons = [0.1, 0.6, 1.5];
    let found = estimates(500_000, epsilons, || {
        let pilots: [f64; 5] = std::array::from_fn(|_| sampler.normal());
        // Given the denominators the sum over sequences is normal, with the same deviation in every coordinate.
        let deviation = pilots.map(|pilot| 1.0 / (pilot * pilot)).iter().sum::<f64>().sqrt();
        let mut outcome = || deviation * sampler.normal();
        let first = outcome();
        let rest: f64 = (1..dimension).map(|_| outcome().powi(2)).sum();
        let square = |at: f64| f64::from(gamma * gamma) + (first - at).powi(2) + rest;
        0.5 * f64::from(dimension + 1) * (square(SENSITIVITY) / square(0.0)).ln()
    });
    let round = CauchyRound::new(1.0, f64::from(gamma), dimension as u64).unwrap();
    for (epsilon, (mean, error)) in epsilons.into_iter().zip(found) {
        let delta = round.delta(epsilon);
        assert!((mean - delta).abs() < ERRORS * error, "ε = {epsilon}: {mean:e} ± {error:e}, not {delta:e}");
        assert!(error < 0.05 * mean, "the estimate is precise: {mean:e} ± {error:e}");
    }
}
