//! The sum of all losses on a window of a grid, under a tilted measure. The bounds are computed from it.
//!
//! The masses of a round are tilted by `e^{θl}`, folded into the window, and raised to the power of its kind's number of
//! rounds by FFT. The kinds' transforms are multiplied, transformed back and tilted back. Infinite losses, losses above the
//! window and the rounding error of the transform are added to the upper bound and subtracted from the lower one.

use crate::engine::compose::MAX_EPSILON;
use crate::engine::loss::{LossDistribution, log_sum_exp};
use crate::error::PrivacyError;
use crate::numerics::fourier::{self, Complex64, fast_length};
use crate::numerics::pool::{self, Pooled};
use crate::numerics::solve::first_at_most;

/// Below this value, a `δ` is not distinguished from 0.
pub(crate) const MIN_DELTA: f64 = 1e-200;
/// `−ln` of the probability that may be above the window, relative to `δ`, and below it under the tilted measure.
pub(crate) const BEYOND: f64 = 18.0;
/// Exponentials of neighbouring points are computed by multiplication, and exactly after each block.
const BLOCK: usize = 16;
/// Partial sums are stored once per this many points.
const SUMS: usize = 64;
/// Maximum shares of `δ` for the rounding error and for the mass folded into the window, if a tilt is to be accepted.
const ROUNDED: f64 = 1e-6;
const FOLDED: f64 = 1e-3;
/// The share of `δ` that the lower bound spends on an improbable rounding of losses.
const FAILURE_SHARE: f64 = 1e-3;

/// A part of the sum's distribution, and the measure that it is computed under.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) theta: f64,
    /// The tilt with which Chernoff's bound is tightest above the window.
    pub(crate) top_theta: f64,
    /// The tilt with which Chernoff's bound is tightest below the window.
    pub(crate) bottom_theta: f64,
    /// Distances from the tilted mean to the lower and to the upper end of the window.
    pub(crate) below: f64,
    pub(crate) above: f64,
}

/// Sums over all points at and above point `j`.
#[derive(Clone, Copy, Default)]
struct Sums {
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference)}`.
    above: f64,
    /// `Σ_{i≥j} f_i e^{−θ(S_i − reference) − (S_i − S_j)}`.
    other: f64,
}

/// The sum of all losses, on a window of a grid, under a tilted measure.
pub(crate) struct Composed {
    step: f64,
    start: i64,
    rounds: f64,
    theta: f64,
    /// `e^{θh}` and `e^{−h}`, for steps downwards.
    ratio: f64,
    other_ratio: f64,
    /// `K(θ) − θ·reference`.
    log_scale: f64,
    reference: f64,
    /// `f`, the tilted masses. The transform is cyclic, so the first point of the window is in the middle.
    tilted: Pooled<f64>,
    /// Sums at and above every 64th point.
    sums: Vec<Sums>,
    /// The first point at which the sums did not overflow.
    valid_from: usize,
    /// Maximum rounding error of a tilted mass.
    rounding: f64,
    /// Probability of an infinite loss or of a sum above the window.
    beyond: f64,
    /// `ln` of the mass below the window under the tilted measure, which is folded into the window.
    log_below: f64,
    /// Probability that was cut off the losses of all rounds.
    pub(crate) cut_off: f64,
}

impl Composed {
    /// The sum over some rounds of each kind, whose losses have a common grid step.
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
        let spectrum = all.spectrum.take().expect("there is at least one kind of round");
        let (tilted, peak) = transformed_back(spectrum, count);
        let start = (all.mean - window.below / step).floor() as i64;
        let size: f64 = tilted.chunks(64).map(|masses| masses.iter().map(|f| f * f).sum::<f64>()).sum();
        // Rounding errors of a transform are nearly independent: no point gets more than a few times its share. The error of
        // a kind's transform counts once per round of that kind.
        let digits = 8.0 * f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        let of_kinds: f64 = all.spreads.iter().map(|&(rounds, spread)| rounds * peak * spread).sum();
        let (bottom, top) = (step * start as f64, step * (start + count as i64) as f64);
        let above_window = (all.top_moment - window.top_theta * top).exp();
        let below_window = all.bottom_moment - all.log_moment + (theta - window.bottom_theta) * bottom;
        let reference = step * all.mean.round();
        let mut composed = Self {
            step,
            start,
            rounds: all.rounds,
            theta,
            ratio: (theta * step).exp(),
            other_ratio: (-step).exp(),
            log_scale: all.log_moment - theta * reference,
            reference,
            tilted,
            sums: Vec::new(),
            valid_from: 0,
            rounding: digits * (of_kinds + size.sqrt()),
            beyond: -all.log_finite.exp_m1() + above_window,
            log_below: below_window.max(-BEYOND),
            cut_off: 0.0,
        };
        composed.add_up();
        composed
    }

    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    fn loss(&self, point: usize) -> f64 {
        self.step * (self.start + point as i64) as f64
    }

    /// Adds up from the top to the lowest point without overflow, and stores the sums at every 64th point.
    fn add_up(&mut self) {
        let count = self.tilted.len();
        self.sums = vec![Sums::default(); count / SUMS + 2];
        let mut sums = Sums::default();
        for block in (0..=count / SUMS).rev() {
            let (from, to) = (block * SUMS, ((block + 1) * SUMS).min(count));
            match self.add(sums, from, to) {
                Some(more) => sums = more,
                None => {
                    self.valid_from = to;
                    break;
                }
            }
            self.sums[block] = sums;
        }
    }

    /// Adds the points from `from` to below `to`, at most one block, to the sums above them; `None` on overflow.
    fn add(&self, mut sums: Sums, from: usize, to: usize) -> Option<Sums> {
        if to <= from {
            return Some(sums);
        }
        // Factors from one point to the next are faster than an exponential per point.
        let (ratio, other_ratio) = (self.ratio, self.other_ratio);
        let mut untilt = (-self.theta * (self.loss(to - 1) - self.reference)).exp();
        if untilt.is_nan() || untilt > 1e200 {
            return None;
        }
        let count = self.tilted.len();
        let mut slot = (self.start + to as i64).rem_euclid(count as i64) as usize;
        for _ in from..to {
            slot = if slot == 0 { count - 1 } else { slot - 1 };
            let mass = self.tilted[slot].max(0.0) * untilt;
            sums = Sums { above: sums.above + mass, other: sums.other * other_ratio + mass };
            untilt *= ratio;
        }
        Some(sums)
    }

    /// The sums at and above a point; `None` below the lowest point without overflow.
    fn sums_from(&self, point: usize) -> Option<Sums> {
        let block = point.div_ceil(SUMS);
        self.add(self.sums[block], point, (block * SUMS).min(self.tilted.len()))
    }

    /// `δ(ε)` from the masses in the window, and its rounding error; `None` below the window.
    fn in_window(&self, epsilon: f64) -> Option<(f64, f64)> {
        // A lower bound that is nowhere positive has a step of 0.
        let point = ((epsilon / self.step).floor() as i64).saturating_add(1).saturating_sub(self.start);
        // Mass below the window is folded into its top, where it counts for too little.
        if point < self.valid_from as i64 {
            return None;
        }
        let point = (point as usize).min(self.tilted.len());
        let sums = self.sums_from(point)?;
        let distance = epsilon - self.reference;
        // The exponent is between −step and 0. A larger one could overflow where the sum is too small for a double.
        let kept = sums.above - (epsilon - self.loss(point)).min(0.0).exp() * sums.other;
        let scale = self.log_scale.exp();
        let points = (1.0 / -(-self.theta * self.step).exp_m1()).min(self.tilted.len() as f64);
        let error = self.rounding * points * (-self.theta * distance).exp();
        Some((scale * kept.max(0.0), scale * error))
    }

    /// An upper bound on `δ`.
    pub(crate) fn delta_upper(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 1.0 };
        (kept + error + self.beyond).min(1.0)
    }

    /// A lower bound on `δ`, apart from the rounding of losses to the grid.
    fn delta_before_rounding(&self, epsilon: f64) -> f64 {
        let Some((kept, error)) = self.in_window(epsilon) else { return 0.0 };
        (kept - error - self.beyond - self.cut_off - self.folded(epsilon)).max(0.0)
    }

    /// The amount that rounding to the grid can add to the sum of all losses, except with probability `failure`.
    fn rounding_of_losses(&self, failure: f64) -> f64 {
        let (h, rounds) = (self.step, self.rounds);
        rounds * h * h / 8.0 + h * per_step(rounds, failure.ln())
    }

    /// A lower bound on `δ`.
    pub(crate) fn delta_lower(&self, epsilon: f64) -> f64 {
        let failure = (FAILURE_SHARE * self.delta_upper(epsilon)).max(MIN_DELTA);
        (self.delta_before_rounding(epsilon + self.rounding_of_losses(failure)) - failure).max(0.0)
    }

    pub(crate) fn epsilon_upper(&self, delta: f64) -> Result<f64, PrivacyError> {
        let guess = self.reference.max(self.step);
        let epsilon = first_at_most(|epsilon| self.delta_upper(epsilon), delta, guess, MAX_EPSILON, 1e-10);
        epsilon.ok_or(PrivacyError::EpsilonOutOfReach { most: MAX_EPSILON })
    }

    /// Whether the tilt suits a `δ`: both the rounding error of the transform and the mass folded into the window are
    /// negligible there.
    pub(crate) fn resolves(&self, delta: f64) -> bool {
        let Ok(epsilon) = self.epsilon_upper(delta) else { return false };
        let Some((_, error)) = self.in_window(epsilon) else { return false };
        // A jump at the lowest point without overflow hides the ε at which the curve reaches δ.
        let is_hidden = epsilon > 0.0 && self.delta_upper(epsilon) < 0.1 * delta;
        !is_hidden && error <= ROUNDED * delta && self.folded(epsilon) <= FOLDED * delta
    }

    /// An upper bound on the effect of mass that is folded into the window from below, at an `ε`.
    fn folded(&self, epsilon: f64) -> f64 {
        (self.log_scale - self.theta * (epsilon - self.reference) + self.log_below).exp()
    }

    pub(crate) fn epsilon_lower(&self, delta: f64) -> f64 {
        let failure = FAILURE_SHARE * delta;
        let is_above = |epsilon: f64| self.delta_before_rounding(epsilon) > delta + failure;
        // The search goes downwards from the upper bound, as far as the sums are valid.
        let mut upper = self.epsilon_upper(delta).unwrap_or(0.0);
        let mut width = self.rounding_of_losses(failure).max(1e-6 * upper);
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
        (lower - self.rounding_of_losses(failure)).max(0.0)
    }
}

/// Number of steps by which the rounding of all losses may exceed its mean, except with probability `e^{log_failure}`.
fn per_step(rounds: f64, log_failure: f64) -> f64 {
    (-0.5 * rounds * log_failure).sqrt()
}

/// The step for which the rounding of losses reduces the lower bound by about `gap`, at a `δ`.
pub(crate) fn step_within(gap: f64, rounds: f64, log_delta: f64) -> f64 {
    gap.max(0.0) / per_step(rounds, FAILURE_SHARE.ln() + log_delta)
}

/// The sum of all rounds of all kinds.
struct AllKinds {
    /// The product of the transforms of the tilted losses, each to the power of its number of rounds.
    spectrum: Option<Pooled<Complex64>>,
    /// Points in the window.
    count: usize,
    /// Total number of rounds of all kinds, `T`.
    rounds: f64,
    /// The tilted mean, in steps.
    mean: f64,
    /// `K(θ)`, and the same at the tilts for the window's ends.
    log_moment: f64,
    top_moment: f64,
    bottom_moment: f64,
    /// `ln Π (1 − p_i)^{T_i}`, with `p_i` the probability of an infinite loss.
    log_finite: f64,
    /// The rounds of each kind, and the root of the sum of its squared masses.
    spreads: Vec<(f64, f64)>,
}

impl AllKinds {
    fn new(count: usize) -> Self {
        Self {
            spectrum: None,
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
        let mut tilted = pool::REALS.zeros(self.count);
        let (mut spread, mut mean) = (0.0, 0.0);
        let exponential = |index: i64| (window.theta * round.step * index as f64 - log_moment).exp();
        let ratio = (window.theta * round.step).exp();
        let mut slot = round.first.rem_euclid(self.count as i64) as usize;
        for (block, masses) in round.masses.chunks(BLOCK).enumerate() {
            let start = round.first + (block * BLOCK) as i64;
            let mut factor = exponential(start);
            // If the exponential leaves the range of a double within a block, each value is computed by itself.
            let is_in_range = factor > 1e-200 && exponential(start + BLOCK as i64) > 1e-200;
            for (index, &mass) in (start..).zip(masses) {
                if mass > 0.0 {
                    let weight = mass * if is_in_range { factor } else { exponential(index) };
                    tilted[slot] += weight;
                    spread += weight * weight;
                    mean += weight * index as f64;
                }
                factor *= ratio;
                slot += 1;
                if slot == self.count {
                    slot = 0;
                }
            }
        }
        self.rounds += times;
        self.mean += times * mean;
        self.log_moment += times * log_moment;
        self.top_moment += times * self::log_moment(round, window.top_theta);
        self.bottom_moment += times * self::log_moment(round, window.bottom_theta);
        self.log_finite += times * (-round.infinite.min(1.0)).ln_1p();
        self.spreads.push((times, spread.sqrt().min(1.0)));
        self.multiply(fourier::forward(&mut tilted), rounds);
    }

    /// Multiplies the spectrum by a power of another spectrum.
    fn multiply(&mut self, mut other: Pooled<Complex64>, rounds: u64) {
        fourier::raise(&mut other, rounds);
        let Some(spectrum) = &mut self.spectrum else {
            self.spectrum = Some(other);
            return;
        };
        for (value, other) in spectrum.iter_mut().zip(other.iter()) {
            *value = fourier::product(*value, *other);
        }
    }
}

/// `ln Σ m e^{θl}` over the finite losses.
fn log_moment(round: &LossDistribution, theta: f64) -> f64 {
    let exponent = |index: i64| theta * round.step * index as f64;
    let ratio = (theta * round.step).exp();
    let of_block = |(block, masses): (usize, &[f64])| {
        let mut factor = exponent(round.first + (block * BLOCK) as i64).exp();
        let mut sum = 0.0;
        for mass in masses {
            sum += mass * factor;
            factor *= ratio;
        }
        sum
    };
    // Within a block, factors must stay in the range of a double.
    if (theta * round.step).abs() * (BLOCK as f64) < 100.0 {
        let sum: f64 = round.masses.chunks(BLOCK).enumerate().map(of_block).sum();
        if sum.is_finite() && sum > 1e-200 {
            return sum.ln();
        }
    }
    let terms = (round.first..).zip(&round.masses).filter(|&(_, &mass)| mass > 0.0);
    log_sum_exp(terms.map(|(index, mass)| mass.ln() + exponent(index)))
}

/// The masses of a spectrum, and its mean magnitude, which bounds every mass.
fn transformed_back(spectrum: Pooled<Complex64>, count: usize) -> (Pooled<f64>, f64) {
    // Several sums in parallel, because a sum in order is slow.
    let mut magnitudes = [0.0; 8];
    for values in spectrum.chunks(8) {
        for (magnitude, value) in magnitudes.iter_mut().zip(values) {
            *magnitude += value.norm_sqr().sqrt();
        }
    }
    (fourier::inverse(spectrum, count), 2.0 * magnitudes.iter().sum::<f64>() / count as f64)
}
