//! The public grid that a noisy sum is rounded to.

use crate::error::{UplinkError, require};

/// The step of the grid for noise of standard deviation `ν`: the largest power of two that is at most `ν/32`.
///
/// It depends on `ν` alone, which the adversary is assumed to know. Rounding adds at most `step²/12 ≤ ν²/12288` to the
/// variance of the noise, less than a part in 12,000.
///
/// # Arguments
/// * `noise_std`: `ν`, from 2⁻⁵⁰⁰ to 2⁵⁰⁰.
pub fn grid_step(noise_std: f64) -> Result<f64, UplinkError> {
    let range = 2.0_f64.powi(-500)..=2.0_f64.powi(500);
    require(
        range.contains(&noise_std),
        "noise that is fit for release",
        "between 2^-500 and 2^500",
        noise_std,
    )?;
    const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
    Ok(f64::from_bits(noise_std.to_bits() & EXPONENT) / 32.0)
}

/// `sum + ν·n` rounded to the grid.
///
/// The grid point next to the sum is subtracted before the noise is added, and added again after rounding. Both steps are
/// exact, so that the sum's own magnitude costs no precision. Where the result is too large for all its digits, it is
/// rounded as an integer, which is post-processing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Grid {
    noise_std: f64,
    step: f64,
    per_step: f64,
}

impl Grid {
    pub(crate) fn new(noise_std: f64) -> Result<Self, UplinkError> {
        let step = grid_step(noise_std)?;
        Ok(Self { noise_std, step, per_step: 1.0 / step })
    }

    /// Distance between neighbouring points of the grid: a power of two.
    pub(crate) fn step(self) -> f64 {
        self.step
    }

    #[inline(always)]
    pub(crate) fn release(self, sum: f64, normal: f64) -> f64 {
        let near = (sum * self.per_step).round_ties_even();
        let rest = near.mul_add(-self.step, sum);
        let noisy = normal.mul_add(self.noise_std, rest);
        (near + (noisy * self.per_step).round_ties_even()) * self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_is_a_power_of_two_below() {
        for noise_std in [1e-9, 0.3, 1.0, 4.12, 31.9, 1e7] {
            let step = grid_step(noise_std).unwrap();
            assert_eq!(step.log2().fract(), 0.0);
            assert!(step <= noise_std / 32.0 && step > noise_std / 64.0);
        }
        assert_eq!(grid_step(1.0).unwrap(), 1.0 / 32.0);
        assert!(grid_step(0.0).is_err() && grid_step(1e-200).is_err() && grid_step(f64::NAN).is_err());
    }

    #[test]
    fn results_are_the_nearest_grid_points() {
        let grid = Grid::new(4.12).unwrap();
        for index in 0..10_000 {
            let (sum, normal) = (f64::from(index) * 0.377 - 1500.0, f64::from(index % 97) * 0.1 - 4.8);
            let released = grid.release(sum, normal);
            assert_eq!(released % grid.step, 0.0);
            assert!((released - (sum + 4.12 * normal)).abs() <= grid.step / 2.0 + 1e-9);
        }
    }

    /// Near 2⁴⁰ double precision has too few digits for the noise, and a plain sum would lose them.
    #[test]
    fn a_large_sum_keeps_the_noises_digits() {
        let grid = Grid::new(1.0).unwrap();
        let far = 2.0_f64.powi(40);
        for index in 0..1000 {
            let normal = f64::from(index) * 0.0071 - 3.0;
            assert_eq!(grid.release(far, normal) - far, grid.release(0.0, normal));
        }
        assert!(grid.release(f64::INFINITY, 0.0).is_nan() && grid.release(f64::NAN, 0.0).is_nan());
    }
}
