//! Tails of the central and the non-central chi-square distribution.
//!
//! ```text
//! P(χ'²_d(λ) > x) = Σ_j e^{−λ/2}(λ/2)^j/j! · Q(d/2 + j, x/2),     Q(a+1, y) = Q(a, y) + y^a e^{−y}/Γ(a+1)
//! ```
//!
//! Summed outwards from the largest Poisson weight, so that one incomplete gamma function is enough. Where the tail is 0 or 1
//! to double precision, Birgé's bounds detect it first: otherwise a strong client would need millions of terms.
//!
//! # Citations
//! Birgé, *An alternative point of view on Lepski's method*, 2001, lemma 8.1: with probability at least `1 − e^{−u}` each,
//! `χ'² ≤ d + λ + 2√((d+2λ)u) + 2u` and `χ'² ≥ d + λ − 2√((d+2λ)u)`.

use statrs::function::gamma::{checked_gamma_ur, ln_gamma};

/// `e^{−u}` is negligible relative to 1.
const NEGLIGIBLE: f64 = 40.0;

/// `P(χ'²_d(λ) > x)`.
pub(super) fn tail(x: f64, dimensions: f64, noncentrality: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let mean = dimensions + noncentrality;
    let far = 2.0 * ((dimensions + 2.0 * noncentrality) * NEGLIGIBLE).sqrt();
    if x < mean - far {
        return 1.0;
    }
    if x > mean + far + 2.0 * NEGLIGIBLE {
        return 0.0;
    }
    mixture(0.5 * x, 0.5 * dimensions, 0.5 * noncentrality).clamp(0.0, 1.0)
}

fn mixture(y: f64, half_dimensions: f64, rate: f64) -> f64 {
    let middle = rate.floor();
    let shape = half_dimensions + middle;
    let Ok(upper_gamma) = checked_gamma_ur(shape, y) else { return f64::NAN };
    if rate == 0.0 {
        return upper_gamma;
    }
    let weight = (middle * rate.ln() - rate - ln_gamma(middle + 1.0)).exp();
    let step = (shape * y.ln() - y - ln_gamma(shape + 1.0)).exp();
    let reach = 10.0 * rate.sqrt() + 40.0;
    let mut sum = weight * upper_gamma;
    let (mut up, mut up_weight, mut up_step) = (upper_gamma, weight, step);
    let mut j = middle;
    while j < middle + reach {
        up += up_step;
        j += 1.0;
        up_step *= y / (half_dimensions + j);
        up_weight *= rate / j;
        sum += up_weight * up;
    }
    let (mut down, mut down_weight, mut down_step) = (upper_gamma, weight, step);
    j = middle;
    while j > 0.0 && j > middle - reach {
        down_step *= (half_dimensions + j) / y;
        down -= down_step;
        down_weight *= j / rate;
        j -= 1.0;
        sum += down_weight * down;
    }
    sum
}

/// The `x` that a central `χ²_d` exceeds with this probability.
pub(super) fn threshold(probability: f64, dimensions: f64) -> f64 {
    let (mut low, mut high) = (0.0, dimensions + 2.0 * (dimensions * NEGLIGIBLE).sqrt() + 2.0 * NEGLIGIBLE);
    while high - low > 1e-12 * high {
        let middle = 0.5 * (low + high);
        if middle == low || middle == high {
            break;
        }
        if tail(middle, dimensions, 0.0) > probability { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy 1.17: `scipy.stats.ncx2.sf(x, d, lambda)`, and `chi2.sf(x, d)` without non-centrality.
    #[test]
    fn tails_are_those_of_scipy() {
        let known = [
            (1.0, 0.5, 2.0, 0.25669748785582136),
            (4.0, 3.0, 12.0, 0.13130656423439574),
            (50.0, 20.0, 95.0, 0.04044992755034635),
            (4010.0, 200.0, 4300.0, 0.1687817148834086),
            (4010.0, 2000.0, 5800.0, 0.9526423008544941),
            (4010.0, 300.0, 4000.0, 0.9995191601302575),
            (1e6, 5000.0, 1.004e6, 0.7590841659032324),
            (4010.0, 0.0, 4220.0, 0.01037157920346153),
        ];
        for (dimensions, noncentrality, x, expected) in known {
            let found = tail(x, dimensions, noncentrality);
            assert!((found - expected).abs() < 1e-8, "d = {dimensions}: {found} and not {expected}");
        }
    }

    #[test]
    fn far_tails_are_zero_or_one() {
        assert_eq!(tail(1.0, 100.0, 1e9), 1.0);
        assert_eq!(tail(1e9, 100.0, 5.0), 0.0);
        assert_eq!(tail(-1.0, 3.0, 0.0), 1.0);
        // Where the shortcut ends, the sum continues.
        let (dimensions, noncentrality) = (10.0, 2000.0_f64);
        let edge =
            dimensions + noncentrality - 2.0 * ((dimensions + 2.0 * noncentrality) * NEGLIGIBLE).sqrt();
        assert!((tail(edge + 1e-6, dimensions, noncentrality) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn thresholds_have_the_requested_probability() {
        for dimensions in [1.0, 2.0, 40.0, 4010.0, 1e6] {
            for probability in [1e-6, 1e-2, 0.3, 0.99] {
                let found = tail(threshold(probability, dimensions), dimensions, 0.0);
                assert!(
                    (found / probability - 1.0).abs() < 1e-6,
                    "d = {dimensions}, probability {probability}: {found}"
                );
            }
        }
    }
}
