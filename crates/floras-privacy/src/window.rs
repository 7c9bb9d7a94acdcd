//! The sum of all losses on a window of a grid, under a tilted measure: where the bounds are read off.
//!
//! The masses of one round are tilted by `e^{θl}`, folded into the window, raised to the power `T` by FFT, and tilted back.
//! What is infinite, what lies above the window and what the transform rounds is added to the upper bound and taken off the
//! lower one.

use crate::compose::{MOST_EPSILON, at_least_once};
use crate::error::PrivacyError;
use crate::fourier::{self, fast_length};
use crate::loss::{LossDistribution, log_sum_exp};
use crate::solve::first_at_most;

/// No `δ` below this is told from 0.
pub(crate) const LEAST_DELTA: f64 = 1e-200;
/// `−ln` of what may lie above the window relative to `δ`, and below it under the tilted measure.
pub(crate) const BEYOND: f64 = 25.0;
/// The share of `δ` that the lower bound spends on unlucky rounding.
const UNLUCKY: f64 = 1e-3;

/// Which part of the sum's distribution is looked at, and under which measure.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) theta: f64,
    /// The tilt with which Chernoff's bound is tightest above the window.
    pub(crate) top_theta: f64,
    /// How far the window reaches below and above the tilted mean.
    pub(crate) below: f64,
    pub(crate) above: f64,
}

/// The sum of all losses, on a window of a grid, under a tilted measure.
pub(crate) struct Composed {
    step: f64,
    start: i64,
    rounds: f64,
    theta: f64,
    /// `T·K(θ) − θ·reference`.
    log_scale: f64,
    reference: f64,
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference)}`.
    above: Vec<f64>,
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference) − (S_i − S_j)}`.
    above_other: Vec<f64>,
    /// The first point whose sums could be formed.
    sound_from: usize,
    /// How far a tilted mass may be off.
    rounding: f64,
    /// What is infinite or above the window.
    beyond: f64,
    /// What was cut off all rounds' losses.
    pub(crate) cut_off: f64,
}

impl Composed {
    pub(crate) fn new(round: &LossDistribution, rounds: u64, window: Window) -> Self {
        let (step, theta) = (round.step, window.theta);
        let count = fast_length(((window.below + window.above) / step).ceil() as usize + 2);
        let log_moment = log_moment(round, theta);
        let mut tilted = vec![0.0; count];
        let (mut spread, mut mean) = (0.0, 0.0);
        for (index, &mass) in (round.first..).zip(&round.masses) {
            if mass > 0.0 {
                let weight = mass * (theta * step * index as f64 - log_moment).exp();
                tilted[index.rem_euclid(count as i64) as usize] += weight;
                spread += weight * weight;
                mean += weight * index as f64;
            }
        }
        let start = (rounds as f64 * mean - window.below / step).floor() as i64;
        let peak = power_of_transform(&mut tilted, rounds);
        tilted.rotate_left(start.rem_euclid(count as i64) as usize);
        let size: f64 = tilted.iter().map(|f| f * f).sum();
        // Rounding errors of a transform are as good as independent: no point gets more than a few times its share.
        let digits = 8.0 * f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        let rounding = digits * (rounds as f64 * peak * spread.sqrt().min(1.0) + size.sqrt());
        let top = step * (start + count as i64) as f64;
        let top_moment = self::log_moment(round, window.top_theta);
        let above_window = (rounds as f64 * top_moment - window.top_theta * top).exp();
        let reference = step * (rounds as f64 * mean).round();
        let mut composed = Self {
            step,
            start,
            rounds: rounds as f64,
            theta,
            log_scale: rounds as f64 * log_moment - theta * reference,
            reference,
            above: Vec::new(),
            above_other: Vec::new(),
            sound_from: 0,
            rounding,
            beyond: at_least_once(round.infinite, rounds) + above_window,
            cut_off: 0.0,
        };
        composed.add_up(&tilted);
        composed
    }

    fn loss(&self, point: usize) -> f64 {
        self.step * (self.start + point as i64) as f64
    }

    fn add_up(&mut self, tilted: &[f64]) {
        self.above = vec![0.0; tilted.len() + 1];
        self.above_other = vec![0.0; tilted.len() + 1];
        // Factors from one point to the next, set right every so often: an exponential for each point takes longer.
        const BLOCK: usize = 64;
        let (ratio, other_ratio) = ((self.theta * self.step).exp(), (-self.step).exp());
        let mut untilt = 0.0;
        for (done, point) in (0..tilted.len()).rev().enumerate() {
            if done.is_multiple_of(BLOCK) {
                let distance = self.loss(point) - self.reference;
                untilt = (-self.theta * distance).exp();
                if untilt.is_nan() || untilt > 1e200 {
                    self.sound_from = point + 1;
                    break;
                }
            }
            let mass = tilted[point].max(0.0) * untilt;
            self.above[point] = self.above[point + 1] + mass;
            self.above_other[point] = self.above_other[point + 1] * other_ratio + mass;
            untilt *= ratio;
        }
    }

    /// `δ(ε)` by what is in the window, and how far rounding may have moved it; `None` below the window.
    fn in_window(&self, epsilon: f64) -> Option<(f64, f64)> {
        let point = ((epsilon / self.step).floor() as i64 + 1 - self.start).max(0) as usize;
        if point < self.sound_from {
            return None;
        }
        let point = point.min(self.above.len() - 1);
        let distance = epsilon - self.reference;
        // The exponent is between −step and 0: a larger one could overflow where the sum is too small for a double.
        let kept = self.above[point] - (epsilon - self.loss(point)).min(0.0).exp() * self.above_other[point];
        let scale = self.log_scale.exp();
        let points = (1.0 / -(-self.theta * self.step).exp_m1()).min(self.above.len() as f64);
        let error = self.rounding * points * (-self.theta * distance).exp();
        Some((scale * kept.max(0.0), scale * error))
    }

    /// Never too small.
    pub(crate) fn delta_upper(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 1.0 };
        (kept + error + self.beyond).min(1.0)
    }

    /// Never too large, but for the rounding of losses to the grid.
    fn delta_before_rounding(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 0.0 };
        let folded = (self.log_scale - self.theta * (epsilon - self.reference) - BEYOND).exp();
        (kept - error - self.beyond - self.cut_off - folded).max(0.0)
    }

    /// What rounding to the grid can add to the sum of all losses, but with a chance of `η`.
    fn rounding_of_losses(&self, unlucky: f64) -> f64 {
        let (h, rounds) = (self.step, self.rounds);
        rounds * h * h / 8.0 + h * (0.5 * rounds * (1.0 / unlucky).ln()).sqrt()
    }

    /// Never too large.
    pub(crate) fn delta_lower(&self, epsilon: f64) -> f64 {
        let unlucky = (UNLUCKY * self.delta_upper(epsilon)).max(LEAST_DELTA);
        (self.delta_before_rounding(epsilon + self.rounding_of_losses(unlucky)) - unlucky).max(0.0)
    }

    pub(crate) fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        let guess = self.reference.max(self.step);
        let epsilon = first_at_most(|epsilon| self.delta_upper(epsilon), delta, guess, MOST_EPSILON, 1e-10);
        epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MOST_EPSILON })
    }

    pub(crate) fn epsilon_lower(&self, delta: f64) -> f64 {
        let unlucky = UNLUCKY * delta;
        let is_above = |epsilon: f64| self.delta_before_rounding(epsilon) > delta + unlucky;
        // From the upper bound downwards, as far as the window is sound.
        let mut upper = self.epsilon_upper(delta).unwrap_or(0.0);
        let mut width = self.rounding_of_losses(unlucky).max(1e-6 * upper);
        let mut lower = upper;
        while !is_above(lower) {
            if lower <= 0.0 {
                return 0.0;
            }
            (upper, lower) = (lower, (lower - width).max(0.0));
            width *= 2.0;
        }
        for _ in 0..60 {
            let middle = 0.5 * (lower + upper);
            if is_above(middle) { lower = middle } else { upper = middle }
        }
        (lower - self.rounding_of_losses(unlucky)).max(0.0)
    }
}

/// `ln Σ m e^{θl}` of what is finite.
fn log_moment(round: &LossDistribution, theta: f64) -> f64 {
    let terms = (round.first..).zip(&round.masses).filter(|&(_, &mass)| mass > 0.0);
    let exponent = |index: i64| theta * round.step * index as f64;
    let sum: f64 = terms.clone().map(|(index, mass)| mass * exponent(index).exp()).sum();
    if sum.is_finite() && sum > 0.0 {
        return sum.ln();
    }
    log_sum_exp(terms.map(|(index, mass)| mass.ln() + exponent(index)))
}

/// Replaces masses by their cyclic convolution with themselves, `rounds` times. Returns the mean magnitude of the result's
/// transform, which no mass of the result exceeds.
fn power_of_transform(masses: &mut Vec<f64>, rounds: u64) -> f64 {
    let mut spectrum = fourier::forward(masses);
    let mut magnitudes = 0.0;
    for value in &mut spectrum {
        *value = fourier::power(*value, rounds);
        magnitudes += 2.0 * value.norm_sqr().sqrt();
    }
    let count = masses.len();
    *masses = fourier::inverse(spectrum, count);
    magnitudes / count as f64
}
