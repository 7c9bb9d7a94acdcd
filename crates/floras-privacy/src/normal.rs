//! The normal distribution where it is hard: far tails, and differences of nearly equal tails.
//!
//! `Φ(x) = ½ erfc(−x/√2)` with `erfc` from `libm` (a rounding or so off, in the tail too), and the Mills ratio
//! `M(x) = Φ(−x)/φ(x)`, which stays tame where both of its parts vanish.
//!
//! # Citations
//! Abramowitz, Stegun, *Handbook of Mathematical Functions*, 26.2.12 and 26.2.13: the expansion far out.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};

/// `ln √(2π)`.
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;
/// From here on, eight terms of the expansion are exact to a rounding; below, `erfc` is far from underflow.
const FAR: f64 = 25.0;

/// `φ(x)`, the density.
pub fn density(x: f64) -> f64 {
    log_density(x).exp()
}

/// `ln φ(x)`.
pub fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LN_SQRT_TAU
}

/// `Φ(x)`.
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `Φ(b) − Φ(a)` for `a ≤ b`, without cancellation of the larger tails.
pub(crate) fn between(a: f64, b: f64) -> f64 {
    if a > 0.0 { cdf(-a) - cdf(-b) } else { cdf(b) - cdf(a) }
}

/// `ln Φ(x)`, also where `Φ(x)` is too small for a double, or rounds to 1.
pub fn log_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-cdf(-x)).ln_1p()
    } else if x > -FAR {
        libm::erfc(-x * FRAC_1_SQRT_2).ln() - LN_2
    } else {
        log_density(x) + mills_ratio(-x).ln()
    }
}

/// `M(x) = Φ(−x)/φ(x)`. Decreasing; about `1/x` for large `x`.
pub fn mills_ratio(x: f64) -> f64 {
    if x < FAR { cdf(-x) / density(x) } else { expansion(x, 0) / x }
}

/// `1 − x·M(x) = −M'(x)`, about `1/x²` for large `x`.
pub(crate) fn mills_slope(x: f64) -> f64 {
    if x < FAR { 1.0 - x * mills_ratio(x) } else { expansion(x, 1) / (x * x) }
}

/// What follows the first `skip` terms of `x·M(x) = 1 − 1/x² + 3/x⁴ − 15/x⁶ + …`, relative to its first term.
fn expansion(x: f64, skip: u32) -> f64 {
    let inverse_square = 1.0 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for order in skip..skip + 8 {
        term *= -f64::from(2 * order + 1) * inverse_square;
        sum += term;
    }
    sum
}
