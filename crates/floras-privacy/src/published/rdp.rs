//! The Rényi form of the idealised round: noise of the unused sequences alone, its scale known to the adversary.
//!
//! Given `|G|` a round is Gaussian with `μ = a·|G|`, `a = 2C/γ`, in any dimension. Averaged over `G`, a round has at order
//! `α` the divergence
//!
//! ```text
//! ε(α) = −ln(1 − α(α − 1)a²) / (2(α − 1))     while α(α − 1)a² < 1, and ∞ from α_max = ½ + √(¼ + 1/a²) on
//! ```
//!
//! and `T` adaptive rounds have `T·ε(α)`. At any `α` this becomes an `(ε, δ)`, by either [`Conversion`]. The best order is
//! found by search, since both are quasi-convex in `α`. The result is a valid bound. It is looser than the exact curve,
//! and useful where Rényi divergences are added up.
//!
//! # Citations
//! Mironov, *Rényi differential privacy*, CSF 2017, proposition 3. Balle, Barthe, Gaboardi, Hsu, Sato, *Hypothesis testing
//! interpretations and Rényi differential privacy*, AISTATS 2020, theorem 21. Canonne, Kamath, Steinke, *The discrete
//! Gaussian for differential privacy*, NeurIPS 2020, proposition 12.

use crate::error::{PrivacyError, require, require_delta, require_rounds};
use crate::published::cauchy::clip_ratio;

/// The conversion of a divergence at order `α` to an `(ε, δ)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// `ε(α) + ln(1/δ)/(α − 1)` (Mironov 2017).
    Classical,
    /// `ε(α) + ln((α − 1)/α) − (ln δ + ln α)/(α − 1)`: never worse (Balle et al. 2020; Canonne et al. 2020).
    #[default]
    Improved,
}

impl Conversion {
    /// Converts a divergence at order `1 + x`.
    fn apply(self, divergence: f64, x: f64, log_delta: f64) -> f64 {
        match self {
            Self::Classical => divergence - log_delta / x,
            Self::Improved => divergence + (x / (1.0 + x)).ln() - (log_delta + x.ln_1p()) / x,
        }
    }
}

/// An `ε` and the order that yields it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtOrder {
    /// `ε`, at least 0.
    pub epsilon: f64,
    /// The order `α`, above 1.
    pub order: f64,
}

/// The Rényi divergence of one idealised round.
///
/// ```
/// use floras_privacy::rdp::{Conversion, RenyiRound};
///
/// let best = RenyiRound::new(1.0, 5.0)?.epsilon(10, 1e-5, Conversion::Improved)?;
/// assert!((best.epsilon - 9.536_046_735).abs() < 1e-8);
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RenyiRound {
    /// `a = 2C/γ`.
    a: f64,
    /// `α_max − 1`, which loses no digits if `α_max` is close to 1.
    most: f64,
}

impl RenyiRound {
    /// A round with clip norm `C` and `γ` unused sequences.
    pub fn new(clip: f64, gamma: f64) -> Result<Self, PrivacyError> {
        let a = 2.0 * clip_ratio(clip, gamma)?;
        let square = (1.0 / a).powi(2);
        Ok(Self { a, most: square / (0.5 + (0.25 + square).sqrt()) })
    }

    /// `α_max`: from this order on, the divergence is infinite.
    pub fn largest_order(self) -> f64 {
        1.0 + self.most
    }

    /// `ε(α)` of one round, for an order above 1.
    pub fn divergence(self, order: f64) -> Result<f64, PrivacyError> {
        require(order > 1.0, "the order", "above 1", order)?;
        let x = order - 1.0;
        let spent = x * order * self.a * self.a;
        Ok(if spent < 1.0 { -(-spent).ln_1p() / (2.0 * x) } else { f64::INFINITY })
    }

    /// `ε` of `rounds` rounds at `δ`, at the best order.
    pub fn epsilon(self, rounds: u64, delta: f64, conversion: Conversion) -> Result<AtOrder, PrivacyError> {
        require_rounds(rounds)?;
        require_delta(delta)?;
        // x = α − 1 and its distance from α_max − 1, both without subtraction.
        let order = |y: f64| (self.most / (1.0 + (-y).exp()), self.most / (1.0 + y.exp()));
        let at = |y: f64| {
            let (x, left) = order(y);
            conversion.apply(rounds as f64 * self.half_log(x, left) / x, x, delta.ln())
        };
        let y = lowest(at, -60.0, 40.0);
        Ok(AtOrder { epsilon: at(y).max(0.0), order: 1.0 + order(y).0 })
    }

    /// `−½ ln(1 − x(1 + x)a²)`, where `left = (α_max − 1) − x`.
    fn half_log(self, x: f64, left: f64) -> f64 {
        let spent = x * (1.0 + x) * self.a * self.a;
        if spent < 0.5 {
            -0.5 * (-spent).ln_1p()
        } else {
            -0.5 * (self.a * left * (self.a * (1.0 + self.most + x))).ln()
        }
    }
}

/// The minimiser of a function with a single minimum, by golden section.
fn lowest(f: impl Fn(f64) -> f64, mut from: f64, mut to: f64) -> f64 {
    let golden = 0.5 * (5_f64.sqrt() - 1.0);
    let inner = |from: f64, to: f64| (to - golden * (to - from), from + golden * (to - from));
    let (mut left, mut right) = inner(from, to);
    let (mut at_left, mut at_right) = (f(left), f(right));
    while to - from > 1e-9 {
        if at_left <= at_right {
            to = right;
            (right, at_right) = (left, at_left);
            left = inner(from, to).0;
            at_left = f(left);
        } else {
            from = left;
            (left, at_left) = (right, at_right);
            right = inner(from, to).1;
            at_right = f(right);
        }
    }
    0.5 * (from + to)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::numerics::quadrature::equal_panels;

    fn round(clip: f64, gamma: f64) -> RenyiRound {
        RenyiRound::new(clip, gamma).unwrap()
    }

    const BOTH: [Conversion; 2] = [Conversion::Classical, Conversion::Improved];

    /// A Gaussian with `μ` has `E[e^{(α−1)·loss}] = e^{α(α−1)μ²/2}`; here `μ = a|G|`.
    #[test]
    fn the_divergence_is_the_average_of_gaussian_ones() {
        for (gamma, order) in [(5.0, 2.0), (5.0, 2.5), (50.0, 10.0), (1.0, 1.1)] {
            let a: f64 = 2.0 / gamma;
            let moment: f64 = equal_panels(-40.0, 40.0, 800)
                .into_iter()
                .map(|(g, weight)| {
                    let log_moment = 0.5 * order * (order - 1.0) * a * a * g * g;
                    weight * (log_moment + crate::numerics::normal::log_density(g)).exp()
                })
                .sum();
            let divergence = round(1.0, gamma).divergence(order).unwrap();
            assert!((divergence / (moment.ln() / (order - 1.0)) - 1.0).abs() < 1e-12, "γ = {gamma}");
        }
    }

    #[test]
    fn the_divergence_is_infinite_from_the_largest_order() {
        for gamma in [0.1, 5.0, 50.0, 1e6] {
            let round = round(1.0, gamma);
            let x = round.largest_order() - 1.0;
            assert!(round.divergence(1.0 + 0.999_999 * x).unwrap().is_finite());
            assert_eq!(round.divergence(1.0 + 1.000_001 * x).unwrap(), f64::INFINITY);
            assert_eq!(round.divergence(f64::INFINITY).unwrap(), f64::INFINITY);
        }
    }

    #[test]
    fn input_out_of_range_is_refused() {
        assert_eq!(RenyiRound::new(1.0, 0.0), Err(PrivacyError::NoUnusedSequences));
        assert!(RenyiRound::new(f64::NAN, 1.0).is_err());
        for order in [1.0, 0.5, -1.0, f64::NAN] {
            assert!(round(1.0, 5.0).divergence(order).is_err());
        }
        for (rounds, delta) in [(0, 1e-5), (u64::MAX, 1e-5), (1, 0.0), (1, 1.0), (1, f64::NAN)] {
            assert!(round(1.0, 5.0).epsilon(rounds, delta, Conversion::Improved).is_err());
        }
    }

    proptest! {
        /// A hundred orders on either side are not better.
        #[test]
        fn no_other_order_is_better(
            log_gamma in -1.0_f64..6.0,
            log_rounds in 0.0_f64..9.0,
            log_delta in -15.0_f64..-0.1,
        ) {
            let (rounds, delta) = (10_f64.powf(log_rounds) as u64, 10_f64.powf(log_delta));
            let round = round(1.0, 10_f64.powf(log_gamma));
            for conversion in BOTH {
                let best = round.epsilon(rounds, delta, conversion).unwrap();
                for step in 0..200 {
                    let x = round.most / (1.0 + (0.4 * f64::from(100 - step)).exp());
                    let divergence = rounds as f64 * round.half_log(x, round.most - x) / x;
                    let other = conversion.apply(divergence, x, delta.ln());
                    prop_assert!(best.epsilon <= other.max(0.0) * (1.0 + 1e-9) + 1e-12, "{other} at {x}");
                }
            }
        }

        #[test]
        fn epsilon_is_monotone_in_every_parameter(
            log_clip in -3.0_f64..3.0,
            log_gamma in 0.0_f64..6.0,
            rounds in 1_u64..1_000_000,
            log_delta in -15.0_f64..-0.1,
            step in 1e-3_f64..1.0,
        ) {
            let (clip, gamma) = (10_f64.powf(log_clip), 10_f64.powf(log_gamma));
            let delta = 10_f64.powf(log_delta);
            for conversion in BOTH {
                let epsilon = |clip, gamma, rounds, delta| {
                    round(clip, gamma).epsilon(rounds, delta, conversion).unwrap().epsilon
                };
                let here = epsilon(clip, gamma, rounds, delta);
                let slack = 1e-10 * here + 1e-12;
                prop_assert!(epsilon(clip, gamma, rounds + 1, delta) >= here - slack);
                prop_assert!(epsilon(clip * (1.0 + step), gamma, rounds, delta) >= here - slack);
                prop_assert!(epsilon(clip, gamma * (1.0 + step), rounds, delta) <= here + slack);
                prop_assert!(epsilon(clip, gamma, rounds, delta * (1.0 - 0.5 * step)) >= here - slack);
            }
        }

        #[test]
        fn valid_input_never_yields_nan(
            log_clip in -30.0_f64..30.0,
            log_gamma in -30.0_f64..30.0,
            rounds in 1_u64..1_000_000_000,
            log_delta in -29.9_f64..-1e-12,
        ) {
            let round = round(10_f64.powf(log_clip), 10_f64.powf(log_gamma));
            let [classical, improved] =
                BOTH.map(|conversion| round.epsilon(rounds, 10_f64.powf(log_delta), conversion).unwrap());
            for best in [classical, improved] {
                prop_assert!(best.epsilon.is_finite() && best.epsilon >= 0.0);
                prop_assert!(best.order >= 1.0 && best.order <= round.largest_order());
            }
            prop_assert!(improved.epsilon <= classical.epsilon * (1.0 + 1e-12) + 1e-14);
        }
    }
}
