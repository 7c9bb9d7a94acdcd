//! One round under the noise of the unused sequences, exactly: spherical Cauchy noise of scale `γ` in `d` dimensions.
//!
//! The noise is `γ·n/|G|` with `n ~ N(0, I_d)` and one `G ~ N(0, 1)` for all coordinates; its density falls as
//! `(γ² + ‖x‖²)^{−(d+1)/2}`. Two neighbours lie at most `2C` apart. With `η = asinh(C/γ)`, no outcome has a loss above
//!
//! ```text
//! ε = (d + 1)·η                                                            (pure, δ = 0)
//! ```
//!
//! and with `k = e^{2ε/(d+1)}` the whole curve is
//!
//! ```text
//! δ(ε) = 2/π ∫ [1 − ½(k − 1)(coth η·cosh v − 1)]^{(d+1)/2} · sinh η / (1 + cosh²η·sinh²v) dv
//! ```
//!
//! over the `v ≥ 0` where the bracket is positive. In particular `δ(0) = (2/π)·atan(C/γ)`, for every `d`.
//!
//! # Derivation
//! The outcomes with a loss above `ε` form a ball `‖x − z₀e₁‖ ≤ R`. Along the first coordinate `x` let
//! `h = R² − (x − z₀)²`. Given `x`, the other `d − 1` coordinates stay in the ball with probability
//! `(h/(h + γ² + x²))^{(d−1)/2}`, because `‖x_⊥‖²/(γ² + x²)` is a ratio of a `χ²_{d−1}` and a `χ²_2`. For the neighbour at
//! `Δ = 2C` the same power is smaller by `k^{(d−1)/2}` on the whole ball, so `e^ε` cancels but for a factor `k`, and
//! `1/(γ² + x²) − k/(γ² + (x − Δ)²)` is positive and proportional to `h`: one integral without a subtraction. It is even in
//! `v = ln((C − x)/√(C² + γ²))`.
//!
//! # Citations
//! The distribution of the noise: paper, Lemma 1, for one coordinate. The curve for all of them is this project's own; the tests
//! compare it with two masses of a ball, with sampling, and with 60-digit arithmetic.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

use crate::error::{PrivacyError, require, require_delta, require_positive};
use crate::numerics::quadrature::panel;
use crate::numerics::solve::first_at_most;

/// The largest number of parameters.
pub const MAX_DIMENSION: u64 = 1_000_000_000_000;

/// At this many standard deviations, a Gaussian density is below 3·10⁻²⁰ of its maximum.
const FAR: f64 = 9.5;
/// A panel whose share of the integral is smaller than this is the last.
const NEGLIGIBLE: f64 = 1e-17;
/// For a larger width, the curve equals its value at 0 to all digits.
const WIDEST: f64 = 1e200;

/// The privacy loss of one round for a client whose update is clipped to `C`, under spherical Cauchy noise of scale `γ`.
///
/// ```
/// use floras_privacy::cauchy::CauchyRound;
///
/// let round = CauchyRound::new(1.0, 5.0, 4010)?;
/// assert!((round.epsilon(1e-5)? - 4.089_361).abs() < 1e-6);
/// assert!((round.pure_epsilon() - 796.95).abs() < 0.01);
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CauchyRound {
    /// `d + 1`.
    degree: f64,
    /// `sinh η = C/γ`.
    sinh: f64,
    /// The hyperbolic cosine of `η`, `√(1 + C²/γ²)`.
    cosh: f64,
}

impl CauchyRound {
    /// A round with clip norm `C`, noise of scale `γ`, and `d` parameters.
    pub fn new(clip: f64, gamma: f64, dimension: u64) -> Result<Self, PrivacyError> {
        let sinh = clip_ratio(clip, gamma)?;
        let holds = (1..=MAX_DIMENSION).contains(&dimension);
        require(holds, "the number of parameters", "between 1 and 1e12", dimension as f64)?;
        Ok(Self { degree: dimension as f64 + 1.0, sinh, cosh: sinh.hypot(1.0) })
    }

    /// The largest loss of any outcome, `(d + 1)·asinh(C/γ)`.
    pub fn pure_epsilon(self) -> f64 {
        self.degree * libm::asinh(self.sinh)
    }

    /// `δ(ε)`, for any real `ε`.
    pub fn delta(self, epsilon: f64) -> f64 {
        if epsilon < 0.0 {
            return -epsilon.exp_m1() + epsilon.exp() * self.delta(-epsilon);
        }
        if epsilon >= self.pure_epsilon() {
            return 0.0;
        }
        // With sinh(v/2) = √width·sin θ the bracket is top·cos²θ, and smooth at both ends.
        let growth = (2.0 * epsilon / self.degree).exp_m1();
        let log_top = self.log_top(epsilon, growth);
        let width = log_top.exp() * (self.sinh / self.cosh) / growth;
        if width >= WIDEST {
            return FRAC_2_PI * self.sinh.atan();
        }
        let integrand = |theta: f64| {
            let sine_square = theta.sin().powi(2);
            let y = width * sine_square;
            let bell = (0.5 * (self.degree + 1.0) * (-sine_square).ln_1p()).exp();
            bell / ((1.0 + y).sqrt() * (1.0 + 4.0 * self.cosh * self.cosh * y * (1.0 + y)))
        };
        let last = FRAC_PI_2.min(FAR / (self.degree + 1.0).sqrt());
        let first = (0.5 / (self.cosh * width.sqrt())).min(last / 8.0);
        let top = (0.5 * self.degree * log_top).exp();
        let scale = 2.0 * FRAC_2_PI * self.sinh * width.sqrt() * top;
        (scale * doubling_panels(integrand, first, last)).min(1.0)
    }

    /// The smallest `ε` with `δ(ε) ≤ δ`.
    pub fn epsilon(self, delta: f64) -> Result<f64, PrivacyError> {
        require_delta(delta)?;
        let most = self.pure_epsilon();
        let guess = (4.0 * self.sinh * (1.0 / delta).ln().sqrt()).min(0.5 * most);
        Ok(first_at_most(|epsilon| self.delta(epsilon), delta, guess, most, 1e-13).unwrap_or(most))
    }

    /// The logarithm of the bracket at `v = 0`, that is `1 − (k − 1)/(e^{2η} − 1)`, where `growth = k − 1`.
    fn log_top(self, epsilon: f64, growth: f64) -> f64 {
        let share = growth / (2.0 * self.sinh * (self.sinh + self.cosh));
        if share < 0.5 {
            return (-share).ln_1p();
        }
        let left = 2.0 * (self.pure_epsilon() - epsilon) / self.degree;
        (-(-left).exp_m1() * (self.sinh + self.cosh) / (2.0 * self.sinh)).ln()
    }
}

/// `C/γ`, both in range.
pub(crate) fn clip_ratio(clip: f64, gamma: f64) -> Result<f64, PrivacyError> {
    if gamma == 0.0 {
        return Err(PrivacyError::NoUnusedSequences);
    }
    require_positive("the clip norm", clip)?;
    require_positive("gamma", gamma)?;
    Ok(clip / gamma)
}

/// `∫₀^last` of a decreasing function that is smooth on the scale `first` at 0, and on the scale `x` at `x`.
fn doubling_panels(f: impl Fn(f64) -> f64, first: f64, last: f64) -> f64 {
    let integral = |from: f64, to: f64| panel(from, to).map(|(x, weight)| weight * f(x)).sum::<f64>();
    let mut sum = integral(0.0, first);
    let mut from = first;
    while from < last {
        let to = (2.0 * from).min(last);
        let part = integral(from, to);
        sum += part;
        if part <= NEGLIGIBLE * sum {
            break;
        }
        from = to;
    }
    sum
}

#[cfg(test)]
mod tests {
    use std::f64::consts::PI;

    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::numerics::gaussian;
    use crate::numerics::quadrature::{equal_panels, panels};

    fn round(clip: f64, gamma: f64, dimension: u64) -> CauchyRound {
        CauchyRound::new(clip, gamma, dimension).unwrap()
    }

    /// The ball of all outcomes with a loss above `ε`: its two centres' distances from the noise's centre under either
    /// neighbour, each with `z² − R²`, and `R²`.
    fn ball(epsilon: f64, clip: f64, gamma: f64, dimension: u64) -> ([(f64, f64); 2], f64) {
        let (delta, growth) = (2.0 * clip, (2.0 * epsilon / (dimension as f64 + 1.0)).exp_m1());
        let near = (delta / growth, gamma * gamma - delta * delta / growth);
        let far = (delta / growth + delta, gamma * gamma + (1.0 + growth) * delta * delta / growth);
        ([near, far], (1.0 + growth) * (delta / growth).powi(2) - gamma * gamma)
    }

    /// `P(‖γn/|G| − z·e₁‖ ≤ R)`: a quadratic form in `(n₁, G)` against a `χ²_{d−1}`, in polar coordinates.
    fn mass(difference: f64, radius_square: f64, gamma: f64, dimension: u64) -> f64 {
        let (trace, product) = (gamma * gamma + difference, gamma * gamma * radius_square);
        let root = (trace * trace + 4.0 * product).sqrt();
        let larger = 0.5 * (trace.abs() + root);
        let (plus, minus) = if trace > 0.0 { (larger, product / larger) } else { (product / larger, larger) };
        let end = (minus / plus).sqrt().atan();
        let points: Vec<f64> =
            [0.0].into_iter().chain((0..=60).map(|i| end * 0.5_f64.powi(60 - i))).collect();
        let rest = points.iter().rev().map(|x| end - x);
        let points: Vec<f64> = points.iter().map(|x| 0.5 * x).chain(rest.map(|x| 0.5 * (end + x))).collect();
        let stays = |angle: f64| {
            let w = ((minus * angle.cos().powi(2) - plus * angle.sin().powi(2)) / (gamma * gamma)).max(0.0);
            (w / (1.0 + w)).powf(0.5 * (dimension as f64 - 1.0))
        };
        FRAC_2_PI * panels(&points).into_iter().map(|(angle, weight)| weight * stays(angle)).sum::<f64>()
    }

    #[test]
    fn the_curve_is_a_difference_of_ball_masses() {
        for (dimension, epsilon) in
            [(1, 0.3), (2, 0.5), (3, 0.02), (5, 1.1), (10, 1.5), (30, 2.0), (1000, 0.5), (4010, 3.0)]
        {
            let ([(_, near), (_, far)], square) = ball(epsilon, 1.0, 5.0, dimension);
            let near = mass(near, square, 5.0, dimension);
            let difference = near - epsilon.exp() * mass(far, square, 5.0, dimension);
            let delta = round(1.0, 5.0, dimension).delta(epsilon);
            assert!((difference - delta).abs() < 1e-12 * near, "d = {dimension}: {difference} and {delta}");
        }
    }

    /// In one dimension the ball is an interval, and its mass a difference of two arcs.
    #[test]
    fn one_dimension_has_the_scalar_cauchy_curve() {
        for (clip, gamma, share) in [(1.0_f64, 5.0_f64, 0.2_f64), (1.0, 5.0, 0.9), (3.0, 1.0, 0.5)] {
            let round = round(clip, gamma, 1);
            let epsilon = share * round.pure_epsilon();
            let (delta, k) = (2.0 * clip, epsilon.exp());
            let (centre, radius) =
                (-delta / (k - 1.0), (k * (delta / (k - 1.0)).powi(2) - gamma * gamma).sqrt());
            let interval =
                |shift: f64| [radius, -radius].map(|side| ((centre + side - shift) / gamma).atan() / PI);
            let (here, there) = (interval(0.0), interval(delta));
            let expected = here[0] - here[1] - k * (there[0] - there[1]);
            assert!((round.delta(epsilon) / expected - 1.0).abs() < 1e-9);
        }
    }

    /// From 60-digit arithmetic, by the difference of two masses of a ball.
    #[test]
    fn the_curve_agrees_with_long_arithmetic() {
        for (clip, gamma, dimension, epsilon, expected) in [
            (1.0, 5.0, 1, 0.39, 3.624_122_900_840_58e-4),
            (1.0, 5.0, 2, 0.001, 0.125_229_851_896_768),
            (1.0, 5.0, 5, 1.15, 1.186_356_969_781_66e-6),
            (1.0, 5.0, 100, 6.0, 8.860_462_460_806_15e-9),
            (1.0, 5.0, 10_000_000, 4.0, 1.247_040_265_570_79e-5),
            (1.0, 5.0, 10_000_000, 16.0, 1.394_107_213_408_37e-16),
            (1.0, 1.0, 4010, 60.0, 3.701_223_161_077_68e-7),
            (1.0, 1e6, 1, 1.5e-6, 7.600_427_210_695_75e-8),
            (1.0, 1e6, 4010, 1e-5, 2.008_816_822_196_75e-9),
            (1.0, 1e6, 10_000_000, 3e-5, 5.891_210_825_136_86e-14),
            (6.33, 10.0, 4010, 20.0, 1.699_115_957_380_24e-5),
            (30.0, 1.0, 3, 10.0, 0.662_875_346_228_194),
            (1000.0, 1.0, 10, 60.0, 0.690_617_129_749_319),
            (0.001, 1e6, 1000, 1e-9, 3.222_204_122_439_46e-10),
            (1.0, 1.0, 10_000_000, 1e-7, 0.499_999_975_000_013),
        ] {
            let error = round(clip, gamma, dimension).delta(epsilon) / expected - 1.0;
            assert!(error.abs() < 1e-11, "C = {clip}, γ = {gamma}, d = {dimension}: off by {error:e}");
        }
    }

    /// `E[δ_G(ε; 2(C/γ)|G|)]`: an adversary that sees very many coordinates can estimate `|G|` from them.
    #[test]
    fn many_dimensions_reveal_the_noise_scale() {
        for (clip, gamma, epsilon) in [(1.0, 5.0, 4.102_587), (1.0, 5.0, 0.1), (1.0, 50.0, 0.2)] {
            let known: f64 = equal_panels(0.0, 14.0, 200)
                .into_iter()
                .map(|(g, weight)| {
                    2.0 * weight
                        * crate::numerics::normal::density(g)
                        * gaussian::delta(epsilon, 2.0 * clip / gamma * g)
                })
                .sum();
            let mut before = 0.0;
            for power in 0..=9 {
                let delta = round(clip, gamma, 10_u64.pow(power)).delta(epsilon);
                assert!(before <= delta && delta < known * (1.0 + 1e-10), "d = 1e{power}");
                before = delta;
            }
            assert!((before / known - 1.0).abs() < 1e-6, "{before} and {known}");
        }
    }

    /// 400,000 rounds, a deviation of 5 standard errors: a false alarm in 1.7 million. The samples distinguish `d` from
    /// `2d`, and from the single coordinate of the published bound.
    #[test]
    fn sampled_rounds_follow_the_curve_and_its_ball() {
        const ROUNDS: usize = 400_000;
        let (clip, gamma) = (1.0, 1.0);
        for (dimension, epsilon) in [(2_u64, 0.6), (5, 1.0), (20, 2.0)] {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(41 + dimension);
            let mut normal = || -> f64 { StandardNormal.sample(&mut generator) };
            let losses: Vec<f64> = (0..ROUNDS)
                .map(|_| {
                    let scale = gamma / normal().abs();
                    let first = scale * normal();
                    let rest: f64 = (1..dimension).map(|_| (scale * normal()).powi(2)).sum();
                    let here = gamma * gamma + rest + first * first;
                    let there = gamma * gamma + rest + (first - 2.0 * clip).powi(2);
                    0.5 * (dimension as f64 + 1.0) * (there / here).ln()
                })
                .collect();
            let deviation = |value: &dyn Fn(f64) -> f64, expected: f64| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for &loss in &losses {
                    sum += value(loss);
                    squares += value(loss).powi(2);
                }
                let (count, mean) = (ROUNDS as f64, sum / ROUNDS as f64);
                (mean - expected) / ((squares / count - mean * mean) / count).sqrt()
            };
            let ([(_, near), _], square) = ball(epsilon, clip, gamma, dimension);
            let beyond = deviation(&|loss| f64::from(loss > epsilon), mass(near, square, gamma, dimension));
            assert!(beyond.abs() < 5.0, "d = {dimension}: the ball is off by {beyond}");
            let hockey_stick = |loss: f64| -(epsilon - loss).min(0.0).exp_m1();
            let curve = |dimension| deviation(&hockey_stick, round(clip, gamma, dimension).delta(epsilon));
            let right = curve(dimension);
            assert!(right.abs() < 5.0, "d = {dimension}: off by {right}");
            for wrong in [1, 2 * dimension] {
                assert!(curve(wrong).abs() > 5.0, "d = {dimension} passes for {wrong}");
            }
        }
    }

    #[test]
    fn the_curve_ends_at_the_pure_bound() {
        for (clip, gamma, dimension) in
            [(1.0, 5.0, 1), (1.0, 1e6, 4010), (1e30, 1e-30, 3), (1e-30, 1e30, 100)]
        {
            let round = round(clip, gamma, dimension);
            let start = FRAC_2_PI * (clip / gamma).atan();
            for epsilon in [0.0, 1e-300, 1e-14 * round.pure_epsilon()] {
                assert!((round.delta(epsilon) / start - 1.0).abs() < 1e-9, "{clip} {gamma} {dimension}");
            }
            assert_eq!(round.delta(round.pure_epsilon()), 0.0);
            assert!(round.delta(round.pure_epsilon() * (1.0 - 1e-9)) >= 0.0);
        }
        let scalar = round(1.0, 5.0, 1).pure_epsilon();
        assert!((scalar - 2.0 * 0.2_f64.asinh()).abs() < 1e-15);
    }

    #[test]
    fn a_round_out_of_range_is_refused() {
        assert_eq!(CauchyRound::new(1.0, 0.0, 1), Err(PrivacyError::NoUnusedSequences));
        for (clip, gamma, dimension) in
            [(0.0, 1.0, 1), (1.0, -1.0, 1), (f64::NAN, 1.0, 1), (1.0, f64::INFINITY, 1), (1.0, 1.0, 0)]
        {
            let refused = CauchyRound::new(clip, gamma, dimension);
            assert!(matches!(refused, Err(PrivacyError::OutOfRange { .. })), "{clip} {gamma} {dimension}");
        }
        for delta in [0.0, 1.0, -1.0, f64::NAN] {
            assert!(round(1.0, 1.0, 1).epsilon(delta).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_curve_is_monotone_in_every_parameter(
            log_clip in -3.0_f64..3.0,
            log_gamma in 0.0_f64..6.0,
            log_dimension in 0.0_f64..7.0,
            share in 0.0_f64..1.0,
            step in 1e-3_f64..1.0,
        ) {
            let (clip, gamma) = (10_f64.powf(log_clip), 10_f64.powf(log_gamma));
            let dimension = 10_f64.powf(log_dimension) as u64;
            let here = round(clip, gamma, dimension);
            let epsilon = share * here.pure_epsilon().min(30.0 * clip / gamma);
            let delta = here.delta(epsilon);
            let slack = 1e-12 * delta;
            prop_assert!((0.0..=1.0).contains(&delta));
            prop_assert!(here.delta(epsilon * (1.0 + step)) <= delta + slack);
            prop_assert!(round(clip, gamma * (1.0 + step), dimension).delta(epsilon) <= delta + slack);
            prop_assert!(round(clip * (1.0 + step), gamma, dimension).delta(epsilon) >= delta - slack);
            prop_assert!(round(clip, gamma, dimension + 1).delta(epsilon) >= delta - slack);
            prop_assert!((here.delta(-epsilon) - (1.0 - (-epsilon).exp() * (1.0 - delta))).abs() < 1e-14);
        }

        #[test]
        fn the_inverse_is_on_the_conservative_side(
            log_clip in -3.0_f64..2.0,
            log_gamma in 0.0_f64..6.0,
            log_dimension in 0.0_f64..7.0,
            log_delta in -15.0_f64..-0.31,
        ) {
            let delta = 10_f64.powf(log_delta);
            let round = round(10_f64.powf(log_clip), 10_f64.powf(log_gamma), 10_f64.powf(log_dimension) as u64);
            let epsilon = round.epsilon(delta).unwrap();
            prop_assert!(round.delta(epsilon) <= delta);
            prop_assert!(epsilon == 0.0 || round.delta(epsilon * (1.0 - 1e-9)) > delta);
            prop_assert!(round.epsilon(0.5 * delta).unwrap() >= epsilon);
        }

        #[test]
        fn valid_input_never_yields_nan(
            log_clip in -30.0_f64..30.0,
            log_gamma in -30.0_f64..30.0,
            dimension in 1_u64..1_000_000_000_000,
            log_delta in -29.9_f64..-1e-9,
            epsilon in -1e3_f64..1e6,
        ) {
            let round = round(10_f64.powf(log_clip), 10_f64.powf(log_gamma), dimension);
            prop_assert!((0.0..=1.0).contains(&round.delta(epsilon)));
            let epsilon = round.epsilon(10_f64.powf(log_delta)).unwrap();
            prop_assert!((0.0..=round.pure_epsilon()).contains(&epsilon));
        }
    }
}
