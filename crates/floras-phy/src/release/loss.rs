//! The privacy loss of double precision and the grid: a bound that is added to every stated `ε`.
//!
//! # The ideal mechanism
//!
//! `M*` releases `round_q(Σ g_k x_k + ν·n*)` with exact arithmetic and exact normal `n*`. Rounding to a grid that depends on `ν`
//! alone is post-processing, so that `M*` has exactly the curve that the accounting composes.
//!
//! # From the ideal mechanism to the implementation
//!
//! Two steps, with `u = 2⁻⁵³`, `η = 2⁻⁴⁹`, and `h = q/ν ∈ (1/64, 1/32]`.
//!
//! **1. Noise.** Couple the implementation's words with real uniforms that they are the first bits of. `normal` bounds the error
//! of a value by `11u·r`, where `r` is the exact pair's radius; the fused addition to the rest of the sum, which is at most
//! `q/2 ≤ ν/64`, adds `u·(r + 1/64)` (`grid`: everything else is exact). So a noisy value is off by at most `ν·η(1 + r)`. The
//! values of a pair fall into a cell, a square of side `h` in units of `ν`. The implementation's probability of a cell is at
//! most the exact probability of the cell widened by `w = η(1 + r)` on every side, and at least that of the cell narrowed by
//! `w`. The strip between has an area of at most `4wh(1 + w/h)`, and the density varies within it and the cell by a factor of at
//! most `exp(√2·h(r + √2·h))` (up to `w`). With `X = P(cell)/P*(cell) − 1`:
//!
//! ```text
//! |X| ≤ ρ(r) = (4/h)·η·(1 + r)·exp(√2·h(r + √2·h)),     √E[ρ²] ≤ 624·η        (largest at h = 1/64)
//! ```
//!
//! The log-likelihood ratio `L` of all `N` pairs, adaptively chosen rounds included, is a sum of `ln(1 + X)` with `E*[X] = 0`.
//! Under `M`, `E[e^{λL}] = E*[e^{(1+λ)L}] ≤ exp(N·λ(1 + λ)/2·E[ρ²]·e^{λ·max ρ})`; pairs with `r > 22`, where `ρ` is not
//! small enough, have a total probability below `2³⁹·e^{−242} < e^{−214}` and go to `δ`. With Chernoff's bound
//!
//! ```text
//! P[L > ε₁] ≤ e^{−200}     for     ε₁ = 1.01·624·η·√(2N·200) + N·(624η)²
//! ```
//!
//! The factor 1.01 covers `e^{λ·max ρ} < 1.001` and `(1 + λ)/λ`. The same holds for `−L` under `M*`.
//!
//! **2. Sum.** The mean that is used is the computed sum, which is off by at most `24u·Σ|g_k x_k|` in every value, hence by
//! `τ = 24u·Σ|g_k|·C/ν` in norm and units of `ν`. [`summation_is_covered`] requires `τ ≤ 2⁻³²`. Two Gaussians whose means
//! differ by `τ` in each of `T` adaptively chosen rounds have a loss of at most `ε₂ = τ√T·√(2·200) + Tτ²/2`, except with
//! probability `e^{−200}`.
//!
//! **Together.** Both steps are taken twice, for the data set and for its neighbour. If `M*` is (ε, δ)-private, then `M` is
//!
//! ```text
//! (ε + 2(ε₁ + ε₂),   e^{ε₁+ε₂}·δ + 5·e^{ε+2(ε₁+ε₂)}·e^{−200})-private
//! ```
//!
//! For at most 2⁴⁰ values in 2²⁰ rounds `2(ε₁ + ε₂) < 4.3·10⁻⁵`. [`FloatingPointLoss::inner_delta`] is the `δ` at which the ideal
//! mechanism has to be evaluated, for an `ε` of at most [`MAX_EPSILON`]. The likelihood ratios hold given the selected clients
//! and their channels. Hiding these is post-processing, so that the bound also holds for views that average over them.
//!
//! ChaCha20's words are taken as uniform: a view is a guarantee against an adversary who cannot break the cipher.

/// Maximum number of released values, over all rounds, for which a loss is stated: 2⁴⁰.
pub const MAX_VALUES: u64 = 1 << 40;
/// Maximum number of rounds: 2²⁰.
pub const MAX_ROUNDS: u64 = 1 << 20;
/// The loss holds for statements up to this `ε`; a larger one is not a useful guarantee.
pub const MAX_EPSILON: f64 = 150.0;

/// `η`: a noisy value is off by at most `ν·η(1 + r)`.
const NOISE_ERROR: f64 = 1.0 / 562_949_953_421_312.0;
/// `√E[ρ²]/η`, rounded up.
const CELL_FACTOR: f64 = 624.0;
/// `τ`: maximum error of the computed sum in norm, in units of `ν`.
const SUM_ERROR: f64 = 1.0 / 4_294_967_296.0;
/// Maximum error of a sum, in units of `u·Σ|g_k x_k|`.
const SUM_ROUNDINGS: f64 = 24.0;
/// `ln(1/δ')` of each step.
pub(crate) const LOG_FAILURE: f64 = 200.0;

/// The increase of `ε` and `δ` by floating-point arithmetic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FloatingPointLoss {
    /// The increase of `ε`, at least 0.
    pub epsilon: f64,
    /// The increase of `δ`, for an `ε` of at most [`MAX_EPSILON`].
    pub delta: f64,
}

impl FloatingPointLoss {
    /// The `δ` at which the ideal mechanism has to be evaluated for a statement at `delta`; `None` if `delta` is too small.
    pub fn inner_delta(self, delta: f64) -> Option<f64> {
        // e^{−x} ≥ 1 − x; the last factor covers rounding.
        let inner = (delta - self.delta) * (1.0 - self.epsilon) * (1.0 - 1e-12);
        (inner > 0.0).then_some(inner)
    }
}

/// The loss of at most `values` released values (up to [`MAX_VALUES`]) in at most [`MAX_ROUNDS`] rounds, rounded outward;
/// `None` for more values.
///
/// ```
/// use floras_phy::release::{MAX_VALUES, floating_point_loss};
///
/// let loss = floating_point_loss(MAX_VALUES).unwrap();
/// assert!(loss.epsilon < 4.3e-5 && loss.delta < 1e-20);
/// assert!(floating_point_loss(2 * MAX_VALUES).is_none());
/// ```
pub fn floating_point_loss(values: u64) -> Option<FloatingPointLoss> {
    if values > MAX_VALUES {
        return None;
    }
    let noise = noise_loss(values.div_ceil(2) as f64);
    let rounds = MAX_ROUNDS as f64;
    let sum = SUM_ERROR * (2.0 * rounds * LOG_FAILURE).sqrt() + rounds * SUM_ERROR * SUM_ERROR / 2.0;
    // The last factors cover the rounding of these few operations.
    let epsilon = 2.0 * (noise + sum) * (1.0 + 1e-9);
    let delta = 5.0 * (MAX_EPSILON - LOG_FAILURE).exp() * (1.0 + 1e-9);
    Some(FloatingPointLoss { epsilon, delta })
}

/// `ε₁`, the loss of step 1 for this number of pairs.
pub(crate) fn noise_loss(pairs: f64) -> f64 {
    let cell = CELL_FACTOR * NOISE_ERROR;
    1.01 * cell * (2.0 * pairs * LOG_FAILURE).sqrt() + pairs * cell * cell
}

/// Whether the rounding of a round's sum is within what [`floating_point_loss`] covers: the sum of this crate's kernel, or any
/// other whose error is at most `24u·Σ|g_k x_k|`.
///
/// # Arguments
/// * `gains`: gains `g_k` of the round.
/// * `noise_std`: standard deviation `ν` of the round's noise.
/// * `norm`: maximum norm `C` of an update.
pub fn summation_is_covered(gains: &[f64], noise_std: f64, norm: f64) -> bool {
    let magnitude: f64 = gains.iter().map(|gain| gain.abs()).sum();
    // An empty sum is exact.
    magnitude == 0.0
        || SUM_ROUNDINGS * (f64::EPSILON / 2.0) * magnitude * norm * (1.0 + 1e-9) <= SUM_ERROR * noise_std
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E[ρ²]/η²` by Simpson's rule, at both ends of what `h` can be.
    #[test]
    fn the_cell_factor_is_rounded_up() {
        let root_mean_square = |h: f64| {
            let at = |r: f64| {
                let rho = 4.0 / h * (1.0 + r) * (2.0_f64.sqrt() * h * (r + 2.0_f64.sqrt() * h)).exp();
                rho * rho * r * (-r * r / 2.0).exp()
            };
            let (steps, width) = (4000, 30.0 / 4000.0);
            let weight = |step: u32| if step.is_multiple_of(2) { 2.0 } else { 4.0 };
            (1..steps).map(|step| weight(step) * at(f64::from(step) * width)).sum::<f64>() * width / 3.0
        };
        let factors = [1.0 / 64.0, 1.0 / 48.0, 1.0 / 32.0].map(|h| root_mean_square(h).sqrt());
        assert!(factors[0] < CELL_FACTOR && factors[0] > 0.998 * CELL_FACTOR, "{factors:?}");
        assert!(factors[1] < factors[0] && factors[2] < factors[1]);
    }

    #[test]
    fn what_chernoffs_bound_takes_for_small_is_small() {
        let cell = CELL_FACTOR * NOISE_ERROR;
        let pairs = (MAX_VALUES / 2) as f64;
        let lambda = (2.0 * LOG_FAILURE / pairs).sqrt() / cell;
        let h: f64 = 1.0 / 32.0;
        let largest = 4.0 * 64.0 * NOISE_ERROR * 23.0 * (2.0_f64.sqrt() * h * (22.0 + 0.1)).exp();
        assert!((lambda * largest).exp() * (1.0 + 1.0 / lambda) < 1.01 * 1.01);
        assert!(pairs * (-22.0_f64 * 22.0 / 2.0).exp() < (-214.0_f64).exp());
    }

    #[test]
    fn the_loss_grows_with_values_but_slowly() {
        let epsilons =
            [0, 1 << 20, 1 << 30, 1 << 40].map(|values| floating_point_loss(values).unwrap().epsilon);
        assert!(epsilons.is_sorted_by(|a, b| a < b));
        assert!(epsilons[0] > 9.5e-6 && epsilons[2] < 1.1e-5 && epsilons[3] < 4.3e-5, "{epsilons:?}");
        assert_eq!(floating_point_loss(MAX_VALUES + 1), None);
    }

    #[test]
    fn the_inner_delta_leaves_room_for_the_loss() {
        let loss = floating_point_loss(MAX_VALUES).unwrap();
        for delta in [0.5, 1e-5, 1e-12] {
            let inner = loss.inner_delta(delta).unwrap();
            assert!(inner * loss.epsilon.exp() + loss.delta <= delta && inner > 0.9999 * delta);
        }
        assert_eq!(loss.inner_delta(1e-25), None);
    }

    #[test]
    fn sums_far_above_the_noise_are_refused() {
        assert!(summation_is_covered(&[1.0; 10_000], 1.0, 1.0));
        assert!(!summation_is_covered(&[1.0; 10_000], 0.1, 1.0));
        assert!(!summation_is_covered(&[1.0], 0.0, 1.0) && summation_is_covered(&[0.0], 0.0, 1.0));
        assert!(!summation_is_covered(&[f64::NAN], 1.0, 1.0));
    }
}
