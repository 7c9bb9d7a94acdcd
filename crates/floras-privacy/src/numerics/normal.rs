//! The normal distribution where it is hard: far tails, and differences of nearly equal tails.
//!
//! `Φ(x) = ½ erfc(−x/√2)` with `erfc` from `libm`, which is accurate to about one rounding also in the tail, and the Mills
//! ratio `M(x) = Φ(−x)/φ(x)`, which stays moderate where both of its parts vanish.
//!
//! The Mills ratio is computed from a table of Taylor series, because curves evaluate it more often than any other function.
//! With `J_k(x) = ∫ t^k/k!·e^{−t²/2 − xt} dt` over `t ≥ 0`, the series is
//!
//! ```text
//! M(x + d) = Σ_k J_k(x)·(−d)^k,     J_{k−2} = k·J_k + x·J_{k−1},     J_{−1} = 1
//! ```
//!
//! # Citations
//! Abramowitz, Stegun, *Handbook of Mathematical Functions*, 26.2.12 and 26.2.13: the expansion far out. Gautschi, *Recursive
//! computation of the repeated integrals of the error function*, Math. Comp. 15, 1961: the `J_k` by downward recurrence.

use std::f64::consts::{FRAC_1_SQRT_2, LN_2};
use std::sync::LazyLock;

/// The constant `ln √(2π)`.
const LN_SQRT_TAU: f64 = 0.918_938_533_204_672_8;
/// From this `x` on, eight terms of the expansion are exact to a rounding; below, `erfc` is far from underflow.
const EXPANSION_FROM: f64 = 25.0;

/// From this `|x|` on, the density is 0 as a double.
const DENSITY_IS_ZERO: f64 = 39.0;

/// `φ(x)`, the density.
pub fn density(x: f64) -> f64 {
    // The exponential would also be 0, but an underflow is slow.
    if x.abs() > DENSITY_IS_ZERO { 0.0 } else { log_density(x).exp() }
}

/// Logarithm of the standard normal density, `ln φ(x)`.
pub fn log_density(x: f64) -> f64 {
    -0.5 * x * x - LN_SQRT_TAU
}

/// The standard normal distribution function, `Φ(x)`.
pub fn cdf(x: f64) -> f64 {
    0.5 * libm::erfc(-x * FRAC_1_SQRT_2)
}

/// `Φ(−x)` for `x ≥ 0`, faster than [`cdf`].
pub(crate) fn tail(x: f64) -> f64 {
    density(x) * mills_ratio(x)
}

/// `Φ(b) − Φ(a)` for `a ≤ b`, without cancellation of the larger tails.
pub(crate) fn between(a: f64, b: f64) -> f64 {
    if a > 0.0 { cdf(-a) - cdf(-b) } else { cdf(b) - cdf(a) }
}

/// `ln Φ(x)`, also where `Φ(x)` is too small for a double, or rounds to 1.
pub fn log_cdf(x: f64) -> f64 {
    if x > 0.0 {
        (-cdf(-x)).ln_1p()
    } else if x > -EXPANSION_FROM {
        libm::erfc(-x * FRAC_1_SQRT_2).ln() - LN_2
    } else {
        log_density(x) + mills_ratio(-x).ln()
    }
}

/// `M(x) = Φ(−x)/φ(x)`. Decreasing; about `1/x` for large `x`.
pub fn mills_ratio(x: f64) -> f64 {
    if x >= EXPANSION_FROM {
        expansion(x, 0) / x
    } else if x > TABLE_START {
        let (series, d) = series_at(x);
        series.iter().rev().fold(0.0, |sum, coefficient| sum * d + coefficient)
    } else {
        cdf(-x) / density(x)
    }
}

/// `1 − x·M(x) = −M'(x)`, about `1/x²` for large `x`.
pub(crate) fn mills_slope(x: f64) -> f64 {
    if x >= EXPANSION_FROM {
        expansion(x, 1) / (x * x)
    } else if x > TABLE_START {
        let (series, d) = series_at(x);
        // The derivative of the series, which avoids cancellation.
        let powers = (1..TERMS).rev();
        -powers.fold(0.0, |sum, power| sum * d + power as f64 * series[power])
    } else {
        1.0 - x * mills_ratio(x)
    }
}

/// Number of terms of a series: the first omitted one is below 1e-16 of the sum.
const TERMS: usize = 9;
/// Number of series per unit of `x`.
const PER_UNIT: f64 = 16.0;
/// Start of the table, half a step below 0, where the first series is centred.
const TABLE_START: f64 = -0.5 / PER_UNIT;

/// The series whose centre is nearest to `x`, and the distance from it. `x` lies between [`TABLE_START`] and [`EXPANSION_FROM`].
fn series_at(x: f64) -> (&'static [f64; TERMS], f64) {
    static SERIES: LazyLock<Vec<[f64; TERMS]>> = LazyLock::new(|| {
        let count = (EXPANSION_FROM * PER_UNIT) as usize + 1;
        (0..count).map(|index| mills_series(index as f64 / PER_UNIT)).collect()
    });
    let index = (x * PER_UNIT + 0.5) as usize;
    (&SERIES[index], x - index as f64 / PER_UNIT)
}

/// Coefficients of `M(x + d)` in powers of `d`: `(−1)^k·J_k(x)`.
fn mills_series(x: f64) -> [f64; TERMS] {
    /// From this `x` on, the recurrence runs downwards: upwards, each coefficient is a difference that loses digits, more
    /// with larger `x`.
    const DOWNWARDS_FROM: f64 = 1.5;
    /// First index of the downward recurrence, from which its start value has no effect.
    const BEGIN: usize = 300;
    let mut integrals = [0.0; TERMS];
    if x < DOWNWARDS_FROM {
        let (mut before, mut here) = (1.0, cdf(-x) / density(x));
        for (k, integral) in integrals.iter_mut().enumerate() {
            *integral = here;
            (before, here) = (here, (before - x * here) / (k as f64 + 1.0));
        }
    } else {
        // J_k and J_{k−1} up to a common factor, which follows from J_{−1} = 1.
        let (mut after, mut here) = (0.0, 1e-200);
        for k in (0..=BEGIN).rev() {
            let before = (k as f64 + 1.0) * after + x * here;
            if k < TERMS {
                integrals[k] = here;
            }
            (after, here) = (here, before);
        }
        integrals.iter_mut().for_each(|integral| *integral /= here);
    }
    std::array::from_fn(|k| if k % 2 == 0 { integrals[k] } else { -integrals[k] })
}

/// The remainder after the first `skip` terms of `x·M(x) = 1 − 1/x² + 3/x⁴ − 15/x⁶ + …`, relative to the first omitted term.
fn expansion(x: f64, skip: u32) -> f64 {
    let inverse_square = 1.0 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for order in skip..skip + 8 {
        term *= -f64::from(2 * order + 1) * inverse_square;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with `erfc`, whose own error and that of the density grow with `x²`: relative error below 1e-13 within ±10.
    #[test]
    fn the_mills_ratio_table_agrees_with_erfc() {
        for i in -320..=320_000 {
            let x = f64::from(i) / 32_000.0;
            let exact = 0.5 * libm::erfc(x * FRAC_1_SQRT_2) / density(x);
            assert!((mills_ratio(x) / exact - 1.0).abs() < 1e-13, "at {x}: {}", mills_ratio(x) / exact - 1.0);
        }
    }

    /// Compared with a central difference: relative error below 1e-7.
    #[test]
    fn the_mills_ratio_slope_is_its_derivative() {
        for i in 0..2600 {
            let x = f64::from(i) * 0.01 + 0.003;
            let (above, below) = (mills_ratio(x + 1e-4), mills_ratio(x - 1e-4));
            let difference = (below - above) / 2e-4;
            assert!((mills_slope(x) / difference - 1.0).abs() < 1e-7, "at {x}: {}", mills_slope(x));
        }
    }

    /// At the boundaries between series and formulas, both sides agree to a few roundings.
    #[test]
    fn the_pieces_of_the_mills_ratio_join() {
        let ends = (0..400).map(|i| (f64::from(i) + 0.5) / PER_UNIT).chain([TABLE_START, EXPANSION_FROM]);
        for end in ends {
            let (below, above) = (end - 1e-14, end + 1e-14);
            for f in [mills_ratio, mills_slope] {
                assert!((f(below) / f(above) - 1.0).abs() < 1e-13, "at {end}: {} and {}", f(below), f(above));
            }
        }
    }
}
