//! Convolutions of masses on a grid, by FFT.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use pulp::{Arch, Simd, WithSimd};
use realfft::RealFftPlanner;
pub(crate) use realfft::num_complex::Complex64;

use crate::numerics::pool::{self, Pooled};

/// Plans are expensive to compute. All views, in separate threads, and all steps of a calibration use the same ones.
fn planner() -> MutexGuard<'static, RealFftPlanner<f64>> {
    static PLANNER: LazyLock<Mutex<RealFftPlanner<f64>>> =
        LazyLock::new(|| Mutex::new(RealFftPlanner::new()));
    PLANNER.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The real Fourier transform of some masses.
pub(crate) fn forward(masses: &mut [f64]) -> Pooled<Complex64> {
    let plan = planner().plan_fft_forward(masses.len());
    let mut spectrum = pool::COMPLEX.any(plan.complex_len());
    let mut scratch = pool::COMPLEX.any(plan.get_scratch_len());
    plan.process_with_scratch(masses, &mut spectrum, &mut scratch)
        .expect("the buffers have the planned lengths");
    spectrum
}

/// The `count` masses of a transform.
pub(crate) fn inverse(mut spectrum: Pooled<Complex64>, count: usize) -> Pooled<f64> {
    let plan = planner().plan_fft_inverse(count);
    // Two values are real by symmetry; their imaginary parts must be exactly 0.
    spectrum[0].im = 0.0;
    if count.is_multiple_of(2) {
        spectrum[count / 2].im = 0.0;
    }
    let mut masses = pool::REALS.any(count);
    let mut scratch = pool::COMPLEX.any(plan.get_scratch_len());
    plan.process_with_scratch(&mut spectrum, &mut masses, &mut scratch)
        .expect("the buffers have the planned lengths");
    let scale = 1.0 / count as f64;
    masses.iter_mut().for_each(|mass| *mass *= scale);
    masses
}

/// Squares below this are taken as 0, because subnormal numbers are slow.
const NEGLIGIBLE: f64 = 1e-100;

/// The product of two values of transforms.
pub(crate) fn product(one: Complex64, other: Complex64) -> Complex64 {
    let product = one * other;
    if product.norm_sqr() < NEGLIGIBLE { Complex64::default() } else { product }
}

/// Number of powers that are computed in parallel.
const LANES: usize = 8;

/// Replaces each value `z` by `z^n`, by squaring.
pub(crate) fn raise(values: &mut [Complex64], exponent: u64) {
    Arch::new().dispatch(Raise { values, exponent });
}

struct Raise<'a> {
    values: &'a mut [Complex64],
    exponent: u64,
}

/// Real and imaginary parts of several numbers.
#[derive(Clone, Copy)]
struct Lanes {
    re: [f64; LANES],
    im: [f64; LANES],
}

impl Lanes {
    #[inline(always)]
    fn times(&self, other: &Self) -> Self {
        let of = |f: fn(f64, f64, f64, f64) -> f64| {
            std::array::from_fn(|i| f(self.re[i], self.im[i], other.re[i], other.im[i]))
        };
        Self { re: of(|a, b, c, d| a * c - b * d), im: of(|a, b, c, d| a * d + b * c) }
    }

    /// The numbers with negligible values set to 0, and the largest squared magnitude.
    #[inline(always)]
    fn cleared(&self) -> (Self, f64) {
        let sizes: [f64; LANES] = std::array::from_fn(|i| self.re[i] * self.re[i] + self.im[i] * self.im[i]);
        let clear = |parts: &[f64; LANES]| {
            std::array::from_fn(|i| if sizes[i] < NEGLIGIBLE { 0.0 } else { parts[i] })
        };
        let cleared = Self { re: clear(&self.re), im: clear(&self.im) };
        (cleared, sizes.iter().fold(0.0_f64, |a, &b| a.max(b)))
    }
}

impl WithSimd for Raise<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        const ONE: Lanes = Lanes { re: [1.0; LANES], im: [0.0; LANES] };
        const ZERO: Lanes = Lanes { re: [0.0; LANES], im: [0.0; LANES] };
        for chunk in self.values.chunks_mut(LANES) {
            let mut bases = ZERO;
            for (i, value) in chunk.iter().enumerate() {
                (bases.re[i], bases.im[i]) = (value.re, value.im);
            }
            let mut results = ONE;
            let mut rest = self.exponent;
            loop {
                if rest % 2 == 1 {
                    results = results.times(&bases);
                }
                rest /= 2;
                if rest == 0 {
                    break;
                }
                let (cleared, largest) = bases.cleared();
                bases = cleared.times(&cleared);
                if largest < NEGLIGIBLE {
                    results = ZERO;
                    break;
                }
            }
            let (results, _) = results.cleared();
            for (i, value) in chunk.iter_mut().enumerate() {
                *value = Complex64::new(results.re[i], results.im[i]);
            }
        }
    }
}

/// The next length of the form `2^a` or `3·2^a`.
pub(crate) fn fast_length(count: usize) -> usize {
    let power = count.next_power_of_two().max(16);
    if count <= power / 4 * 3 { power / 4 * 3 } else { power }
}

/// The next length of the form `2^a`, `3·2^a` or `9·2^a`.
pub(crate) fn close_fast_length(count: usize) -> usize {
    let close = count.next_power_of_two().max(16) / 16 * 9;
    if count <= close { close } else { fast_length(count) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three throws of a die with faces 0, 1, 2: 1, 3, 6, 7, 6, 3, 1 of 27.
    #[test]
    fn a_power_of_the_transform_is_a_convolution() {
        let mut die = vec![1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let mut spectrum = forward(&mut die);
        raise(&mut spectrum, 3);
        let sum = inverse(spectrum, 8);
        for (mass, ways) in sum.iter().zip([1.0, 3.0, 6.0, 7.0, 6.0, 3.0, 1.0, 0.0]) {
            assert!((mass - ways / 27.0).abs() < 1e-15);
        }
    }

    #[test]
    fn lengths_are_fast_and_not_much_longer() {
        assert_eq!([1, 16, 17, 24, 25, 700].map(fast_length), [12, 16, 24, 24, 32, 768]);
        assert_eq!([16, 17, 19, 550, 700].map(close_fast_length), [16, 18, 24, 576, 768]);
    }
}
