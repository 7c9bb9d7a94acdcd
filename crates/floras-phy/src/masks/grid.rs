//! The public grids of a masked round.
//!
//! Masks and updates are added on a **fine** grid, in integers of 64 bits: no sum is rounded, so that masks cancel exactly.
//! With `σ_p = σ_m/√K`,
//!
//! ```text
//! q = the largest power of two that is at most max(σ_p, σ_z)·2⁻⁴⁷
//! ```
//!
//! The noisy value is rounded to the **coarse** grid of [`grid_step`](crate::release::grid_step), `Q ∈ (σ_z/64, σ_z/32]`, as in every
//! release, and then sent. Both steps depend on public numbers alone.

use crate::error::{UplinkError, require};
use crate::release::Grid;

/// Maximum number of clients in a masked round, 2²⁰: sums then stay more than 30 standard deviations below 2⁶³ steps.
pub const MAX_MASKED_CLIENTS: u32 = 1 << 20;

/// Maximum magnitude of an update's values, in fine steps: 2⁶¹.
const MAX_STEPS: f64 = 2_305_843_009_213_693_952.0;

/// Standard deviations of a masked round, and the grids that they imply.
///
/// ```
/// use floras_phy::masks::MaskGrid;
///
/// let grid = MaskGrid::new(100, 20.0, 1.0)?;
/// assert_eq!(grid.pair_std(), 2.0);
/// assert_eq!(grid.fine_step(), 2.0_f64.powi(-46));
/// assert_eq!(grid.sent_step(), 1.0 / 32.0);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MaskGrid {
    clients: u32,
    noise_std: f64,
    pair_std: f64,
    fine_step: f64,
    coarse: Grid,
}

impl MaskGrid {
    /// The grids of a round.
    ///
    /// # Arguments
    /// * `clients`: `K`, from 2 to [`MAX_MASKED_CLIENTS`].
    /// * `mask_std`: `σ_m`, standard deviation of a client's mask up to the factor `√(1 − 1/K)`, in units of the update; greater than
    ///   0, at most `2²⁰·σ_z`.
    /// * `noise_std`: `σ_z`, standard deviation of a client's own noise in units of the update, from 2⁻⁵⁰⁰ to 2⁵⁰⁰.
    pub fn new(clients: u32, mask_std: f64, noise_std: f64) -> Result<Self, UplinkError> {
        require(
            (2..=MAX_MASKED_CLIENTS).contains(&clients),
            "the number of clients in a masked round",
            "from 2 to 1048576",
            clients.into(),
        )?;
        let coarse = Grid::new(noise_std)?;
        require(
            mask_std > 0.0 && mask_std <= 1_048_576.0 * noise_std,
            "the standard deviation of a mask",
            "greater than 0 and at most 2^20 times that of the client's own noise",
            mask_std,
        )?;
        let pair_std = mask_std / f64::from(clients).sqrt();
        const EXPONENT: u64 = 0x7ff0_0000_0000_0000;
        const TWO_TO_47: f64 = 140_737_488_355_328.0;
        let power_of_two = f64::from_bits(pair_std.max(noise_std).to_bits() & EXPONENT);
        Ok(Self { clients, noise_std, pair_std, fine_step: power_of_two / TWO_TO_47, coarse })
    }

    /// Number of clients `K` in the round, from 2 to [`MAX_MASKED_CLIENTS`].
    pub fn clients(&self) -> u32 {
        self.clients
    }

    /// Standard deviation `σ_z` of a client's own noise, in units of the update.
    pub fn noise_std(&self) -> f64 {
        self.noise_std
    }

    /// Standard deviation of a pair's mask, `σ_p = σ_m/√K`, in units of the update.
    pub fn pair_std(&self) -> f64 {
        self.pair_std
    }

    /// `q`, the step of the grid on which masks and updates are added, in units of the update.
    pub fn fine_step(&self) -> f64 {
        self.fine_step
    }

    /// `Q`, the step of the grid of sent values, in units of the update.
    pub fn sent_step(&self) -> f64 {
        self.coarse.step()
    }

    /// Converts a sent integer to units of the update.
    pub fn sent_value(&self, sent: i64) -> f64 {
        sent as f64 * self.sent_step()
    }

    /// Adds an update to `values`, in units of [`fine_step`](Self::fine_step).
    ///
    /// Values are rounded **toward zero**, so that the norm of the update does not increase.
    pub fn add_update(&self, update: &[f32], values: &mut [i64]) -> Result<(), UplinkError> {
        crate::error::require_count("places for the masked values", update.len(), values.len())?;
        let per_step = 1.0 / self.fine_step;
        for (parameter, (value, &x)) in values.iter_mut().zip(update).enumerate() {
            if !x.is_finite() {
                return Err(UplinkError::NotFinite { index: 0, parameter, value: x });
            }
            let steps = f64::from(x) * per_step;
            if steps.abs() >= MAX_STEPS {
                let limit = MAX_STEPS * self.fine_step;
                return Err(UplinkError::BeyondMaskGrid { parameter, value: x, limit });
            }
            *value = value.wrapping_add(steps as i64);
        }
        Ok(())
    }

    /// `σ_p/q`, the standard deviation of a pair's mask in fine steps: at most 2⁴⁸.
    pub(super) fn mask_scale(&self) -> f64 {
        self.pair_std / self.fine_step
    }

    /// The integer that is sent for a value on the fine grid: the value with the noise `σ_z·normal`, rounded to the coarse grid.
    #[inline(always)]
    pub(super) fn send(&self, value: i64, normal: f64, shift: u32) -> i64 {
        // The nearest coarse step is subtracted in integers, so that the rest is exact in double precision.
        let near = value.wrapping_add(1 << (shift - 1)) >> shift;
        let rest = value.wrapping_sub(near << shift) as f64 * self.fine_step;
        let noisy = self.coarse.release(rest, normal) / self.coarse.step();
        near.wrapping_add(noisy as i64)
    }

    /// `log2(Q/q)`, from 22 to 42.
    pub(super) fn shift(&self) -> u32 {
        let exponent = |power_of_two: f64| (power_of_two.to_bits() >> 52) as u32;
        exponent(self.coarse.step()) - exponent(self.fine_step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fine_step_is_a_power_of_two() {
        for (clients, mask_std, noise_std) in
            [(2, 1.0, 1.0), (20, 7.3, 0.31), (1000, 1e-3, 5.0), (10_000, 3e5, 1.1)]
        {
            let grid = MaskGrid::new(clients, mask_std, noise_std).unwrap();
            let largest = grid.pair_std().max(noise_std) * 2.0_f64.powi(-47);
            assert_eq!(grid.fine_step().log2().fract(), 0.0);
            assert!(grid.fine_step() <= largest && grid.fine_step() > largest / 2.0);
            assert_eq!(grid.fine_step() * f64::from(grid.shift()).exp2(), grid.sent_step());
            assert!((22..=42).contains(&grid.shift()), "{}", grid.shift());
        }
    }

    #[test]
    fn the_shift_keeps_its_range_at_the_ends() {
        let most = MaskGrid::new(2, 0.1, 1.999).unwrap();
        let least = MaskGrid::new(2, 1_048_576.0 * 1.42, 1.42).unwrap();
        assert_eq!((most.shift(), least.shift()), (42, 22));
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for (clients, mask_std, noise_std, named) in [
            (1, 1.0, 1.0, "clients"),
            (MAX_MASKED_CLIENTS + 1, 1.0, 1.0, "clients"),
            (20, 0.0, 1.0, "mask"),
            (20, -1.0, 1.0, "mask"),
            (20, f64::NAN, 1.0, "mask"),
            (20, 2e6, 1.0, "mask"),
            (20, 1.0, 0.0, "noise"),
            (20, 1.0, f64::INFINITY, "noise"),
        ] {
            let error = MaskGrid::new(clients, mask_std, noise_std).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn an_update_is_rounded_toward_zero() {
        let grid = MaskGrid::new(20, 1e6, 1.0).unwrap();
        let update = [1e-9_f32, -1e-9, 0.7, -0.7, 0.0];
        let mut values = [10; 5];
        grid.add_update(&update, &mut values).unwrap();
        for (&value, &x) in values.iter().zip(&update) {
            let rounded = (value - 10) as f64 * grid.fine_step();
            assert!(rounded.abs() <= f64::from(x.abs()) && rounded * f64::from(x) >= 0.0);
            assert!((f64::from(x) - rounded).abs() < grid.fine_step());
        }
    }

    #[test]
    fn values_beyond_the_grid_are_refused() {
        let grid = MaskGrid::new(20, 1.0, 1.0).unwrap();
        let mut values = [0; 2];
        let error = grid.add_update(&[0.0, 1e6], &mut values).unwrap_err();
        assert_eq!(
            error.to_string(),
            "parameter 1 of the update is 1000000; with masks it must be below 16384 in magnitude"
        );
        assert!(grid.add_update(&[0.0, f32::NAN], &mut values).is_err());
        assert!(grid.add_update(&[0.0], &mut values).is_err());
    }

    #[test]
    fn what_is_sent_is_the_nearest_coarse_step() {
        for (mask_std, noise_std) in [(20.0, 1.0), (1e5, 0.7), (1.0, 3.3)] {
            let grid = MaskGrid::new(100, mask_std, noise_std).unwrap();
            for index in 0..10_000_i64 {
                let value = (index - 5000) * 123_456_789_012_345;
                let normal = (index % 97) as f64 * 0.1 - 4.8;
                let sent = grid.sent_value(grid.send(value, normal, grid.shift()));
                let exact = value as f64 * grid.fine_step() + noise_std * normal;
                assert!((sent - exact).abs() <= grid.sent_step() / 2.0 * (1.0 + 1e-6), "{sent} {exact}");
            }
        }
    }
}
