//! Bessel functions of the energy detector: `₀F₁` in the log domain, and ratios of neighbouring orders.
//!
//! The density of a non-central `χ²_d` over that of the central one is `e^{−λ/2}·₀F₁(; d/2; λT/4)`, and with `ν = a − 1`
//!
//! ```text
//! ₀F₁(; a; x) = Γ(ν+1)·(2/z)^ν·I_ν(z),      z = 2√x
//! ```
//!
//! For large orders Debye's expansion holds uniformly in `z`; with `r = √(1 + (z/ν)²)`
//!
//! ```text
//! ln ₀F₁ = ν·[r − 1 − ln((1 + r)/2)] − ½ ln r + ln(Σ u_k(1/r)/ν^k) − ln(Σ u_k(1)/ν^k)
//! ```
//!
//! where the last term is `ln Γ(ν+1)` by the same expansion, so that the value at 0 is exact. Small orders follow by `F(a−1) =
//! F(a) + x/(a(a−1))·F(a+1)`, in which all terms are positive.
//!
//! # Citations
//! NIST Digital Library of Mathematical Functions, 10.41.3 (Debye's expansion) and 16.3.5 (neighbouring functions). Amos,
//! *Computation of modified Bessel functions and their ratios*, Math. Comp. 28, 1974 (bounds of ratios, and their recursion).

/// From this order five terms of Debye's expansion are accurate to about 1e-9.
const LARGE: f64 = 30.0;

/// `ln ₀F₁(; a; x)` for `a ≥ ½` and `x ≥ 0`.
pub(super) fn log_0f1(a: f64, x: f64) -> f64 {
    if x < 1e-9 * a {
        // The next term of the series is below 1e-18·a.
        return x / a;
    }
    let steps = (LARGE + 1.0 - a).ceil().max(0.0);
    let mut order = a + steps;
    let mut log = log_0f1_of_large_order(order, x);
    if steps == 0.0 {
        return log;
    }
    // F(order + 1)/F(order)
    let mut next = (log_0f1_of_large_order(order + 1.0, x) - log).exp();
    while order > a + 0.5 {
        let previous = 1.0 + x / (order * (order - 1.0)) * next;
        log += previous.ln();
        next = 1.0 / previous;
        order -= 1.0;
    }
    log
}

fn log_0f1_of_large_order(a: f64, x: f64) -> f64 {
    let order = a - 1.0;
    let square = 4.0 * x / (order * order);
    let root = (1.0 + square).sqrt();
    let beyond = square / (1.0 + root);
    order * (beyond - (0.5 * beyond).ln_1p()) - 0.5 * root.ln()
        + (debye(1.0 / root, order) / debye(1.0, order)).ln()
}

/// The first five terms of Debye's expansion, `Σ_{k≤4} u_k(p)/ν^k`.
fn debye(p: f64, order: f64) -> f64 {
    let q = p * p;
    let terms = [
        p * (3.0 - 5.0 * q) / 24.0,
        q * (81.0 + q * (-462.0 + 385.0 * q)) / 1152.0,
        p * q * (30375.0 + q * (-369603.0 + q * (765765.0 - 425425.0 * q))) / 414720.0,
        q * q * (4465125.0 + q * (-94121676.0 + q * (349922430.0 + q * (-446185740.0 + 185910725.0 * q))))
            / 39813120.0,
    ];
    1.0 + terms.iter().rev().fold(0.0, |sum, term| (sum + term) / order)
}

/// `I_a(z)/I_{a−1}(z)` for `a ≥ ½`, from an estimate at a higher order and the downward recursion, which reduces its error.
/// Accurate to about 1e-6, enough to locate a peak.
pub(super) fn ratio(a: f64, z: f64) -> f64 {
    const STEPS: u32 = 12;
    let upper = a + f64::from(STEPS);
    // Between Amos's bounds, and accurate to second order in 1/z, where the recursion does not help.
    let mut ratio = z / (upper - 0.5 + (upper * upper - 0.25 + z * z).sqrt());
    for step in (0..STEPS).rev() {
        ratio = z / (2.0 * (a + f64::from(step)) + z * ratio);
    }
    ratio
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mpmath` 1.4 with 60 digits: `log(hyp0f1(a, x))`.
    #[test]
    fn logarithms_agree_with_mpmath() {
        let known = KNOWN_LOGS;
        for (a, x, log) in known {
            let found = log_0f1(a, x);
            assert!((found - log).abs() < 2e-9 * log.max(1.0), "a = {a}, x = {x}: {found} and not {log}");
        }
    }

    /// `mpmath` 1.4 with 60 digits: `besseli(a, z)/besseli(a − 1, z)`.
    #[test]
    fn the_ratio_is_that_of_mpmath() {
        for (a, z, ratio) in KNOWN_RATIOS {
            let found = super::ratio(a, z);
            assert!((found / ratio - 1.0).abs() < 1e-5, "a = {a}, z = {z}: {found} and not {ratio}");
        }
    }

    #[test]
    fn one_dimension_is_a_hyperbolic_cosine() {
        // ₀F₁(; ½; x) = cosh(2√x).
        for x in [1e-12, 1e-3, 1.0, 40.0, 1e4_f64] {
            let z = 2.0 * x.sqrt();
            let expected = z - 2.0_f64.ln() + (-2.0 * z).exp().ln_1p();
            assert!((log_0f1(0.5, x) - expected).abs() < 1e-8 * expected.max(1e-3));
        }
    }

    const KNOWN_LOGS: [(f64, f64, f64); 11] = [
        (0.5, 3.0, 2.77193371461693),
        (1.0, 0.25, 0.235914358507179),
        (1.5, 100.0, 16.3111205458861),
        (5.0, 0.001, 0.000199996666793645),
        (5.0, 100000.0, 608.451530157768),
        (20.5, 7.0, 0.338805256354755),
        (50.0, 10000.0, 109.357283609877),
        (2005.0, 0.5, 0.000249376543102829),
        (2005.0, 2200000.0, 911.123117463451),
        (2005.0, 10000000000.0, 190147.968369475),
        (500000.0, 1000000000.0, 1996.02118262656),
    ];

    const KNOWN_RATIOS: [(f64, f64, f64); 7] = [
        (0.5, 0.3, 0.291312612451591),
        (1.0, 0.0001, 4.99999999375e-5),
        (1.0, 2.0, 0.697774657964008),
        (2.0, 300.0, 0.995004180616669),
        (40.0, 10.0, 0.123149232359377),
        (2005.0, 3000.0, 0.53447529883262),
        (2005.0, 1000000.0, 0.997997508007867),
    ];
}
