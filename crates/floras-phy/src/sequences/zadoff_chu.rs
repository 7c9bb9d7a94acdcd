//! Zadoff–Chu sequences on real chips.
//!
//! `z[n] = e^{−iπn(n+1)/P}`, for odd `P`, is the sequence of root 1. Its `P` cyclic shifts `z_k[n] = z[n+k]` are orthogonal:
//! `⟨z_i, z_j⟩ = P·δᵢⱼ`. A complex chip is two real ones, in-phase and quadrature, so that a sequence has `L = 2P` chips:
//!
//! ```text
//! a_k = (Re z_k, Im z_k)/√P,      a_iᵀa_j = Re⟨z_i, z_j⟩/P = δᵢⱼ
//! ```
//!
//! A real symbol on `z_k` that arrives over the complex channel `h` is despread to `Re(h·⟨z_j, z_k⟩)/P = Re(h)·δⱼₖ`, as in
//! the model of real chips.
//!
//! D. C. Chu, "Polyphase codes with good periodic correlation properties", IEEE Trans. Inf. Theory 18(4), 1972.

use std::f64::consts::PI;

/// The allowed lengths, in words.
pub(super) const LENGTHS: &str = "twice an odd number of";

/// `P`, the number of complex chips; `None` if `length` is not twice an odd number.
pub(super) fn period(length: usize) -> Option<usize> {
    (length % 4 == 2).then_some(length / 2)
}

/// `Re z[n]/√P` for all `n`, and then `Im z[n]/√P`.
pub(super) fn parts(period: usize) -> Vec<f64> {
    let size = 1.0 / (period as f64).sqrt();
    // n(n+1) modulo 2P has the same angle, and no large argument.
    let angle = |n: usize| PI * (n * (n + 1) % (2 * period)) as f64 / period as f64;
    let real = (0..period).map(|n| size * angle(n).cos());
    real.chain((0..period).map(|n| -size * angle(n).sin())).collect()
}

/// `a_k[l]` from [`parts`].
pub(super) fn chip(parts: &[f64], sequence: usize, chip: usize) -> f64 {
    let period = parts.len() / 2;
    let place = (chip % period + sequence) % period;
    parts[if chip < period { place } else { period + place }]
}

#[cfg(test)]
mod tests {
    use num_complex::Complex64;

    use super::*;

    /// Complex orthogonality is more than that of the real chips: a channel may rotate the phase.
    #[test]
    fn shifts_are_orthogonal_over_a_complex_channel() {
        for period in [1, 3, 9, 31] {
            let parts = parts(period);
            let z = |k: usize, n: usize| Complex64::new(chip(&parts, k, n), chip(&parts, k, period + n));
            for i in 0..period {
                for j in 0..period {
                    let product: Complex64 = (0..period).map(|n| z(i, n).conj() * z(j, n)).sum();
                    assert!((product - f64::from(i == j)).norm() < 1e-12, "P = {period}: {product}");
                }
            }
        }
    }

    #[test]
    fn chips_are_those_of_the_formula() {
        let (period, parts) = (7, parts(7));
        for n in 0..period {
            let shifted = (n + 3) % period;
            let z = Complex64::from_polar(1.0, -PI * (shifted * (shifted + 1)) as f64 / 7.0) / 7_f64.sqrt();
            assert!((chip(&parts, 3, n) - z.re).abs() < 1e-14);
            assert!((chip(&parts, 3, period + n) - z.im).abs() < 1e-14);
        }
    }
}
