//! The chi distribution with `B` degrees of freedom: the length of `B` independent standard normal numbers.
//!
//! ```text
//! P(R ≤ x) = P(B/2, z),     P(R > x) = Q(B/2, z),     z = x²/2
//! Q(½, z) = erfc(√z),     Q(1, z) = e^{−z},     Q(a + 1, z) = Q(a, z) + z^a·e^{−z}/Γ(a + 1)
//! P(a, z) = z^a·e^{−z}/Γ(a + 1)·Σ_n z^n/((a + 1)…(a + n))
//! ```
//!
//! All terms are positive, so that no digits are lost where either probability is small.

use std::f64::consts::{FRAC_2_SQRT_PI, SQRT_2};

/// The `a` that the recursion begins with, ½ or 1, and `z^a·e^{−z}/Γ(a + 1)` and `Q(a, z)` there.
fn start(freedom: u32, z: f64) -> (f64, f64, f64) {
    if freedom.is_multiple_of(2) {
        let tail = (-z).exp();
        (1.0, tail * z, tail)
    } else {
        // z^{1/2}·e^{−z}/Γ(3/2), with Γ(3/2) = √π/2.
        (0.5, z.sqrt() * (-z).exp() * FRAC_2_SQRT_PI, libm::erfc(z.sqrt()))
    }
}

/// `P(R > x)` for `freedom ≥ 1` and `x ≥ 0`.
pub(crate) fn beyond(freedom: u32, x: f64) -> f64 {
    let z = 0.5 * x * x;
    if freedom == 1 {
        return libm::erfc(x / SQRT_2);
    }
    let (mut a, mut term, mut tail) = start(freedom, z);
    while 2.0 * a < f64::from(freedom) {
        tail += term;
        a += 1.0;
        term *= z / a;
    }
    tail.min(1.0)
}

/// `P(R ≤ x)` for `freedom ≥ 1` and `x ≥ 0`.
pub(crate) fn within(freedom: u32, x: f64) -> f64 {
    let z = 0.5 * x * x;
    if freedom == 1 {
        return if x > 1.0 { 1.0 - libm::erfc(x / SQRT_2) } else { libm::erf(x / SQRT_2) };
    }
    let shape = 0.5 * f64::from(freedom);
    if z > shape + 1.0 {
        return 1.0 - beyond(freedom, x);
    }
    let (mut a, mut term, _) = start(freedom, z);
    while a < shape {
        a += 1.0;
        term *= z / a;
    }
    let mut sum = term;
    while term > 1e-18 * sum {
        a += 1.0;
        term *= z / a;
        sum += term;
    }
    sum.min(1.0)
}

/// The density of `R` at `x > 0`.
pub(crate) fn density(freedom: u32, x: f64) -> f64 {
    let shape = 0.5 * f64::from(freedom);
    let log = (2.0 * shape - 1.0) * x.ln() - 0.5 * x * x - (shape - 1.0) * 2_f64.ln() - libm::lgamma(shape);
    log.exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::quadrature::equal_panels;

    /// The integral of the density, from either end.
    #[test]
    fn probabilities_are_integrals_of_the_density() {
        for freedom in [1, 2, 3, 4, 7, 16, 128] {
            let spread = f64::from(freedom).sqrt();
            for x in [1e-3, 0.05, 0.7, 1.0, spread, spread + 2.0, spread + 7.0] {
                let mass = |from: f64, to: f64| -> f64 {
                    equal_panels(from, to, 400).iter().map(|&(x, w)| w * density(freedom, x)).sum()
                };
                let (below, above) = (mass(0.0, x), mass(x, x + 25.0));
                let [within, beyond] = [within(freedom, x), beyond(freedom, x)];
                assert!((within - below).abs() <= 1e-11 * below, "{freedom}, {x}: {within} and {below}");
                assert!((beyond - above).abs() <= 1e-11 * above, "{freedom}, {x}: {beyond} and {above}");
                assert!((within + beyond - 1.0).abs() < 1e-13);
            }
        }
    }
}
