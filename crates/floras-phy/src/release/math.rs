//! Logarithm, sine and cosine in double precision, without a branch.
//!
//! The polynomials are those of fdlibm (Sun Microsystems 1993), whose approximation errors are below 2⁻⁵⁸. Every operation
//! is correctly rounded by the IEEE standard, fused multiply-adds included, so that all processors compute the same bits.
//! The errors below are in units of `u = 2⁻⁵³` and hold with rounding; tests compare with double-double arithmetic.

/// `−ln(2^k·(1 + f))` for an integer `k ≤ 0` and `√½ ≤ 1 + f < √2`, with a relative error of at most `2u`.
///
/// With `s = f/(2 + f)`: `ln(1 + f) = 2·atanh(s) = f − f²/2 + s·(f²/2 + R(s²))`.
#[inline(always)]
pub(super) fn minus_ln(k: f64, f: f64) -> f64 {
    // ln 2 = HIGH + LOW; k·HIGH is exact for |k| < 2²⁰.
    const LN_2_HIGH: f64 = 6.931_471_803_691_238e-1;
    const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
    const FIT: [f64; 7] = [
        6.666_666_666_666_735e-1,
        3.999_999_999_940_942e-1,
        2.857_142_874_366_239e-1,
        2.222_219_843_214_978_4e-1,
        1.818_357_216_161_805e-1,
        1.531_383_769_920_937_3e-1,
        1.479_819_860_511_658_6e-1,
    ];
    let s = f / (2.0 + f);
    let z = s * s;
    let rest = z * polynomial(&FIT, z);
    let half_square = 0.5 * f * f;
    let curve = half_square - s.mul_add(half_square + rest, k * LN_2_LOW);
    k.mul_add(-LN_2_HIGH, curve - f)
}

/// `sin r` on [−π/4, π/4], with an error of at most `u`.
#[inline(always)]
pub(super) fn sine(r: f64) -> f64 {
    const FIT: [f64; 6] = [
        -1.666_666_666_666_663_2e-1,
        8.333_333_333_322_49e-3,
        -1.984_126_982_985_795e-4,
        2.755_731_370_707_006_8e-6,
        -2.505_076_025_340_686_3e-8,
        1.589_690_995_211_55e-10,
    ];
    let z = r * r;
    (z * r).mul_add(polynomial(&FIT, z), r)
}

/// `cos r` on [−π/4, π/4], with an error of at most `u`.
#[inline(always)]
pub(super) fn cosine(r: f64) -> f64 {
    const FIT: [f64; 6] = [
        4.166_666_666_666_66e-2,
        -1.388_888_888_887_411e-3,
        2.480_158_728_947_673e-5,
        -2.755_731_435_139_066_3e-7,
        2.087_572_321_298_175e-9,
        -1.135_964_755_778_819_5e-11,
    ];
    let z = r * r;
    let half = 0.5 * z;
    let near = 1.0 - half;
    // The rounding error of `near`, and the rest of the series.
    near + (z * z).mul_add(polynomial(&FIT, z), (1.0 - near) - half)
}

/// Horner's rule, lowest coefficient first.
#[inline(always)]
fn polynomial<const TERMS: usize>(coefficients: &[f64; TERMS], x: f64) -> f64 {
    let mut value = coefficients[TERMS - 1];
    for coefficient in coefficients[..TERMS - 1].iter().rev() {
        value = value.mul_add(x, *coefficient);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::super::double_double::{DoubleDouble, LN_2, ln_1p, sine_cosine};
    use super::*;

    const U: f64 = f64::EPSILON / 2.0;

    #[test]
    fn the_logarithm_errs_by_two_units_at_most() {
        let mut worst = 0.0_f64;
        for step in 0..300_000 {
            let t = (f64::from(step) + 0.37) / 3e5;
            // Both sides of 1, also very near to it, and all exponents.
            let near = -(t * 80.0).exp2().recip() * 0.29;
            let over_all = 0.5_f64.sqrt() + t * (2.0_f64.sqrt() - 0.5_f64.sqrt()) - 1.0;
            for (k, f) in [(0.0, near), (0.0, over_all), (-1.0, over_all), (-f64::from(step % 200), over_all)]
            {
                if k == 0.0 && f >= 0.0 {
                    // A uniform value is below 1.
                    continue;
                }
                let exact = DoubleDouble::of(k).times(LN_2).add(ln_1p(DoubleDouble::of(f))).negated();
                worst = worst.max((exact.minus(minus_ln(k, f)) / exact.0).abs());
            }
        }
        assert!(worst <= 2.0 * U, "{} units", worst / U);
    }

    #[test]
    fn sine_and_cosine_err_by_one_unit() {
        let mut worst = 0.0_f64;
        for step in 0..300_000 {
            let r = ((f64::from(step) + 0.37) / 1.5e5 - 1.0) * std::f64::consts::FRAC_PI_4;
            let (sin, cos) = sine_cosine(DoubleDouble::of(r));
            worst = worst.max(sin.minus(sine(r)).abs()).max(cos.minus(cosine(r)).abs());
            assert!((sine(r) - libm::sin(r)).abs() <= 2.0 * U && (cosine(r) - libm::cos(r)).abs() <= 2.0 * U);
        }
        assert!(worst <= U, "{} units", worst / U);
    }
}
