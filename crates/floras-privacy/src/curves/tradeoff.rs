//! The trade-off function of a view (f-DP): the smallest type II error `β` of a test with type I error `α`.
//!
//! A curve `δ(ε)` is the same statement as the trade-off function
//!
//! ```text
//! f(α) = sup_{ε ≥ 0} max(0, 1 − δ(ε) − e^ε·α, e^{−ε}·(1 − δ(ε) − α))
//! ```
//!
//! which is convex, decreasing and at most `1 − α`. Both an upper bound on `δ` and a supremum over finitely many `ε` make
//! `f` smaller. So the result is a valid lower bound.
//!
//! # Citations
//! Dong, Roth, Su, *Gaussian differential privacy*, J. R. Stat. Soc. B 84, 2022, proposition 6 and equation 3.

use crate::curves::delta::DeltaCurve;

/// Number of `ε` between 0 and the curve's end; each gives one line.
const LINES: usize = 600;
/// Small type I errors that a plot shows in addition to equal steps.
const SMALL_ERRORS: [f64; 5] = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2];

/// A lower bound on the trade-off function: the largest of some straight lines.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeOff {
    /// `ε` and `1 − δ(ε)` of each line.
    lines: Vec<(f64, f64)>,
}

impl TradeOff {
    /// The trade-off function of a curve.
    pub fn new(curve: &DeltaCurve<'_>) -> Self {
        Self::from_curve(|epsilon| curve.delta(epsilon), curve.end())
    }

    /// The trade-off function of any `δ(ε)`, which is evaluated for `ε` between 0 and `end`.
    pub fn from_curve(delta: impl Fn(f64) -> f64, end: f64) -> Self {
        // Denser towards 0, where the curvature is largest.
        let epsilon = |i: usize| end * (i as f64 / (LINES - 1) as f64).powf(1.5);
        Self { lines: (0..LINES).map(epsilon).map(|epsilon| (epsilon, 1.0 - delta(epsilon))).collect() }
    }

    /// `f(α)` for `α` between 0 and 1.
    pub fn type_two_error(&self, type_one_error: f64) -> f64 {
        let of_line = |&(epsilon, kept): &(f64, f64)| {
            let steep = kept - epsilon.exp() * type_one_error;
            let flat = (-epsilon).exp() * (kept - type_one_error);
            steep.max(flat)
        };
        self.lines.iter().map(of_line).fold(0.0, f64::max)
    }

    /// Type I errors to show: equal steps from 0 to 1, and some small ones.
    pub fn type_one_errors(count: usize) -> Vec<f64> {
        let last = count.max(2) - 1;
        let equal = (0..=last).map(|i| i as f64 / last as f64);
        let mut errors: Vec<f64> = equal.chain(SMALL_ERRORS).collect();
        errors.sort_by(f64::total_cmp);
        errors.dedup();
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{gaussian, normal};

    /// `Φ⁻¹(p)` by bisection.
    fn quantile(p: f64) -> f64 {
        let (mut lower, mut upper) = (-40.0, 40.0);
        for _ in 0..200 {
            let middle = 0.5 * (lower + upper);
            if normal::cdf(middle) < p { lower = middle } else { upper = middle }
        }
        0.5 * (lower + upper)
    }

    fn gaussian_trade_off(mu: f64) -> TradeOff {
        TradeOff::from_curve(|epsilon| gaussian::delta(epsilon, mu), gaussian::epsilon(1e-12, mu).unwrap())
    }

    #[test]
    fn a_gaussian_has_its_closed_form() {
        for mu in [0.1, 1.0, 3.0] {
            let trade_off = gaussian_trade_off(mu);
            for alpha in [1e-6, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99] {
                let exact = normal::cdf(-quantile(alpha) - mu);
                let found = trade_off.type_two_error(alpha);
                assert!(found <= exact + 1e-12, "μ = {mu}, α = {alpha}: {found} above {exact}");
                assert!(found >= exact - 1e-4, "μ = {mu}, α = {alpha}: {found} below {exact}");
            }
        }
    }

    #[test]
    fn it_is_convex_decreasing_and_below_the_diagonal() {
        let trade_off = gaussian_trade_off(1.0);
        let values: Vec<f64> = (0..=100).map(|i| trade_off.type_two_error(f64::from(i) / 100.0)).collect();
        assert!((values[0] - 1.0).abs() < 1e-9 && values[100] == 0.0);
        for i in 1..100 {
            assert!(values[i] <= values[i - 1] && values[i] <= 1.0 - i as f64 / 100.0);
            assert!(values[i - 1] + values[i + 1] >= 2.0 * values[i] - 1e-12, "not convex at {i}");
        }
    }

    #[test]
    fn a_mechanism_without_noise_allows_perfect_tests() {
        let trade_off = TradeOff::from_curve(|_| 1.0, 5.0);
        assert_eq!(trade_off.type_two_error(0.0), 0.0);
    }
}
