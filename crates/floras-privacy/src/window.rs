//! The sum of all losses on a window of a grid, under a tilted measure: where the bounds are read off.
//!
//! The masses of a round are tilted by `e^{θl}`, folded into the window, and raised to the power of its kind's number of
//! rounds by FFT; the kinds' transforms are multiplied, transformed back and tilted back. What is infinite, what lies above
//! the window and what the transform rounds is added to the upper bound and taken off the lower one.

use crate::compose::MAX_EPSILON;
use crate::error::PrivacyError;
use crate::fourier::{self, Complex64, fast_length};
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
    /// The same below, if it is not certain that as little lies there as it was planned.
    pub(crate) bottom_theta: Option<f64>,
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
    /// `K(θ) − θ·reference`.
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
    /// `ln` of what lies below the window, and is folded into it, under the tilted measure.
    log_below: f64,
    /// What was cut off all rounds' losses.
    pub(crate) cut_off: f64,
}

impl Composed {
    /// The sum over some rounds of each kind, whose losses are on a grid of a common step.
    pub(crate) fn new(
        kinds: impl Iterator<Item = (LossDistribution, u64)>,
        step: f64,
        window: Window,
    ) -> Self {
        let theta = window.theta;
        let count = fast_length(((window.below + window.above) / step).ceil() as usize + 2);
        let mut all = AllKinds::new(count);
        for (round, rounds) in kinds {
            all.add(&round, rounds, window);
        }
        let (mut tilted, peak) = transformed_back(std::mem::take(&mut all.spectrum), count);
        let start = (all.mean - window.below / step).floor() as i64;
        tilted.rotate_left(start.rem_euclid(count as i64) as usize);
        let size: f64 = tilted.iter().map(|f| f * f).sum();
        // Rounding errors of a transform are as good as independent: no point gets more than a few times its share. The
        // error of a kind's transform counts once for each of its rounds.
        let digits = 8.0 * f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        let of_kinds: f64 = all.spreads.iter().map(|&(rounds, spread)| rounds * peak * spread).sum();
        let (bottom, top) = (step * start as f64, step * (start + count as i64) as f64);
        let above_window = (all.top_moment - window.top_theta * top).exp();
        let below_window = window.bottom_theta.map_or(-BEYOND, |bottom_theta| {
            all.bottom_moment - all.log_moment + (theta - bottom_theta) * bottom
        });
        let reference = step * all.mean.round();
        let mut composed = Self {
            step,
            start,
            rounds: all.rounds,
            theta,
            log_scale: all.log_moment - theta * reference,
            reference,
            above: Vec::new(),
            above_other: Vec::new(),
            sound_from: 0,
            rounding: digits * (of_kinds + size.sqrt()),
            beyond: -all.log_finite.exp_m1() + above_window,
            log_below: below_window.max(-BEYOND),
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
        let point = (epsilon / self.step).floor() as i64 + 1 - self.start;
        // What lies below the window is folded into its top, where it counts for too little.
        if point < self.sound_from as i64 {
            return None;
        }
        let point = (point as usize).min(self.above.len() - 1);
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
        let folded = (self.log_scale - self.theta * (epsilon - self.reference) + self.log_below).exp();
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
        let epsilon = first_at_most(|epsilon| self.delta_upper(epsilon), delta, guess, MAX_EPSILON, 1e-10);
        epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON })
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

/// What all rounds of all kinds come to.
struct AllKinds {
    /// The product of the tilted losses' transforms, each to the power of its rounds.
    spectrum: Vec<Complex64>,
    /// Points in the window.
    count: usize,
    /// `T`.
    rounds: f64,
    /// The tilted mean, in steps.
    mean: f64,
    /// `K(θ)`, and the same at the tilts for the window's ends.
    log_moment: f64,
    top_moment: f64,
    bottom_moment: f64,
    /// `ln Π (1 − p_i)^{T_i}`, where `p_i` is infinite.
    log_finite: f64,
    /// The rounds of each kind, and the root of the sum of its squared masses.
    spreads: Vec<(f64, f64)>,
}

impl AllKinds {
    fn new(count: usize) -> Self {
        Self {
            spectrum: Vec::new(),
            count,
            rounds: 0.0,
            mean: 0.0,
            log_moment: 0.0,
            top_moment: 0.0,
            bottom_moment: 0.0,
            log_finite: 0.0,
            spreads: Vec::new(),
        }
    }

    fn add(&mut self, round: &LossDistribution, rounds: u64, window: Window) {
        let times = rounds as f64;
        let log_moment = log_moment(round, window.theta);
        let mut tilted = vec![0.0; self.count];
        let (mut spread, mut mean) = (0.0, 0.0);
        for (index, &mass) in (round.first..).zip(&round.masses) {
            if mass > 0.0 {
                let weight = mass * (window.theta * round.step * index as f64 - log_moment).exp();
                tilted[index.rem_euclid(self.count as i64) as usize] += weight;
                spread += weight * weight;
                mean += weight * index as f64;
            }
        }
        self.rounds += times;
        self.mean += times * mean;
        self.log_moment += times * log_moment;
        self.top_moment += times * self::log_moment(round, window.top_theta);
        if let Some(bottom_theta) = window.bottom_theta {
            self.bottom_moment += times * self::log_moment(round, bottom_theta);
        }
        self.log_finite += times * (-round.infinite.min(1.0)).ln_1p();
        self.spreads.push((times, spread.sqrt().min(1.0)));
        self.multiply(fourier::forward(&mut tilted), rounds);
    }

    /// Multiplies the spectrum by the power of another.
    fn multiply(&mut self, mut other: Vec<Complex64>, rounds: u64) {
        other.iter_mut().for_each(|value| *value = fourier::power(*value, rounds));
        if self.spectrum.is_empty() {
            self.spectrum = other;
            return;
        }
        for (value, other) in self.spectrum.iter_mut().zip(other) {
            *value = fourier::product(*value, other);
        }
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

/// The masses of a spectrum, and its mean magnitude, which no mass exceeds.
fn transformed_back(spectrum: Vec<Complex64>, count: usize) -> (Vec<f64>, f64) {
    let mut magnitudes = 0.0;
    for value in &spectrum {
        magnitudes += 2.0 * value.norm_sqr().sqrt();
    }
    (fourier::inverse(spectrum, count), magnitudes / count as f64)
}
