//! The noise of the unused sequences after the base station has clamped its decoded values to `[−B, B]`.
//!
//! With `n ~ Cauchy(0, γ)`, `s` the clean sum of one coordinate and `Q(x) = P(n > x) = ½ − atan(x/γ)/π`, the error of
//! clamping is `e = clamp(s + n) − s`. It equals `n` inside, and `B − s` or `−B − s` at the two ends, so that
//!
//! ```text
//! E[e²] = (2γB − γ²A)/π + (B−s)²·Q(B−s) + (B+s)²·Q(B+s),      A = atan((B−s)/γ) + atan((B+s)/γ)
//! E[e]  = (γ/2π)·ln[(γ²+(B−s)²)/(γ²+(B+s)²)] + (B−s)·Q(B−s) − (B+s)·Q(B+s)
//! ```
//!
//! for **every** `s`, including those beyond `B`, where the sum itself is clamped.
//!
//! **The worst sum.** Let `m(s) = E[e²]` and `g(x) = d/dx [x·Q(x)] = Q(x) − γx/(π(x²+γ²))`, which falls from 1 to 0.
//! Then `m'(s) = 2[(B+s)Q(B+s) − (B−s)Q(B−s)] > 0` for `s > 0`. As a function of `q = s²` its slope is the mean of
//! `g(B−x) + g(B+x)` over `0 ≤ x ≤ s`, and that sum grows with `x` from `2g(B)` to 1. So `m` grows with `|s|`, is
//! convex in `s²`, and `m(s) ≤ m(0) + s²`. The clients' updates have norm `C` at most, so `Σ_i s_i² ≤ (K·C)²`, and a
//! convex function on that simplex is largest in a corner: all of the sum in one coordinate,
//!
//! ```text
//! E‖e‖² ≤ (d−1)·m(0) + m(K·C)            with equality for the sum (K·C, 0, …, 0)
//! ```
//!
//! The bias `β(s) = E[e]` has `β(0) = 0`, `β' = −(Q(B−s) + Q(B+s))`: its size grows with `|s|`, is convex in `|s|`,
//! and so `β²` is convex in `s²` and `‖E e‖ ≤ |β(K·C)|` by the same corner. Neither result needs the coordinates to
//! be independent, which they are not: all of them share one set of pilot samples.
//!
//! The paper prints another quantity; [`Truncation::printed`] gives the reasons.

use std::f64::consts::PI;

use thiserror::Error;

/// A number outside the range of the formulas.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("{name} must be {allowed}, not {value}")]
pub struct TheoryError {
    /// The quantity out of range, by its symbol in the paper.
    pub name: &'static str,
    /// Allowed range, for the message.
    pub allowed: &'static str,
    /// The rejected value.
    pub value: f64,
}

/// Cauchy noise of scale `γ` that is clamped to `[−B, B]` together with the sum.
///
/// ```
/// use floras_paper::theory::Truncation;
///
/// let truncation = Truncation::new(100.0, 100.0)?;
/// assert_eq!(truncation.printed(1.0).round(), 2652.0);
/// assert!(truncation.second_moment(0.0) > 2.2 * 2652.0);
/// # Ok::<(), floras_paper::theory::TheoryError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Truncation {
    gamma: f64,
    bound: f64,
}

impl Truncation {
    /// Noise of scale `γ ≥ 0` clamped to `±B`.
    pub fn new(gamma: f64, bound: f64) -> Result<Self, TheoryError> {
        if !(0.0..=1e15).contains(&gamma) {
            return Err(TheoryError { name: "γ", allowed: "between 0 and 1e15", value: gamma });
        }
        if !(1e-30..=1e30).contains(&bound) {
            return Err(TheoryError { name: "B", allowed: "between 1e-30 and 1e30", value: bound });
        }
        Ok(Self { gamma, bound })
    }

    /// Scale `γ` of the Cauchy noise, from 0 to 1e15.
    pub fn gamma(self) -> f64 {
        self.gamma
    }

    /// Clamp bound `B`, from 1e-30 to 1e30.
    pub fn bound(self) -> f64 {
        self.bound
    }

    /// `Q(x) = P(n > x)`, without cancellation for large `x`.
    fn tail(self, x: f64) -> f64 {
        self.gamma.atan2(x) / PI
    }

    /// `A`, `π` times the probability that nothing is clamped.
    fn angle(self, sum: f64) -> f64 {
        let Self { gamma, bound } = self;
        (bound - sum).atan2(gamma) + (bound + sum).atan2(gamma)
    }

    /// `E[(clamp(s + n) − s)²]` for the clean sum `s` of one coordinate.
    pub fn second_moment(self, sum: f64) -> f64 {
        let Self { gamma, bound } = self;
        let (above, below) = (bound - sum, bound + sum);
        if gamma == 0.0 {
            return (sum.abs() - bound).max(0.0).powi(2);
        }
        let inside = gamma * (2.0 * bound - gamma * self.angle(sum)) / PI;
        let ends = above * above * self.tail(above) + below * below * self.tail(below);
        // Rounding alone can make the inner part negative, if γ is much larger than B.
        inside.max(0.0) + ends
    }

    /// `E[clamp(s + n)] − s`: clamping pulls every sum towards 0.
    pub fn bias(self, sum: f64) -> f64 {
        let Self { gamma, bound } = self;
        if gamma == 0.0 {
            return sum.clamp(-bound, bound) - sum;
        }
        let (above, below) = (bound - sum.abs(), bound + sum.abs());
        let ratio = -4.0 * bound * sum.abs() / (gamma * gamma + below * below);
        let inside = gamma / (2.0 * PI) * ratio.ln_1p();
        let size = inside + above * self.tail(above) - below * self.tail(below);
        size.min(0.0) * sum.signum()
    }

    /// `E[n² | −B ≤ s + n ≤ B] = 2γB/A − γ²`, the second moment that the paper uses: that of the distribution conditioned on
    /// no clamping, which differs from clamping. `None` if the sum is beyond `±B`, where the paper has no formula.
    pub fn conditioned_second_moment(self, sum: f64) -> Option<f64> {
        let Self { gamma, bound } = self;
        if sum.abs() > bound {
            return None;
        }
        if gamma == 0.0 {
            return Some(0.0);
        }
        Some((gamma * (2.0 * bound / self.angle(sum) - gamma)).max(0.0))
    }

    /// `D(γ)` as printed in Theorem 4, in units of `C²`; 0 in the limit `γ → 0`.
    ///
    /// It replaces `A` of the conditioned distribution by `2·atan((B+C)/γ)`, which is larger than `A` for every sum. So the
    /// printed `≤` has the wrong direction. It is negative beyond about `γ² = (B+C)³/(3C)`.
    pub fn printed(self, clip: f64) -> f64 {
        let Self { gamma, bound } = self;
        if gamma == 0.0 {
            return 0.0;
        }
        let angle = ((bound + clip) / gamma).atan();
        gamma * gamma / (clip * clip * angle) * (bound / gamma - angle)
    }

    /// The `γ` at which the printed `D(γ)` is largest, for this `B`.
    pub fn printed_peak(self, clip: f64) -> f64 {
        let beyond = ((self.bound + clip).powi(3) / clip).sqrt();
        let value = |gamma: f64| Self { gamma, ..self }.printed(clip);
        let (mut low, mut high) = (0.0, beyond);
        for _ in 0..200 {
            let third = (high - low) / 3.0;
            if value(low + third) < value(high - third) {
                low += third;
            } else {
                high -= third;
            }
        }
        0.5 * (low + high)
    }

    /// The largest `E‖clamp(s + n) − s‖²` over all sums of norm at most `sum_norm = K·C`, in `dimensions = d`
    /// coordinates.
    pub fn largest_error(self, sum_norm: f64, dimensions: f64) -> f64 {
        (dimensions - 1.0) * self.second_moment(0.0) + self.second_moment(sum_norm)
    }

    /// The largest `‖E[clamp(s + n)] − s‖` over all sums of norm at most `sum_norm = K·C`, in any number of
    /// coordinates.
    pub fn largest_bias(self, sum_norm: f64) -> f64 {
        self.bias(sum_norm).abs()
    }
}
