//! The cells of the actual view's lower bound.
//!
//! Noise and divisors are rounded up. One distribution of the estimate represents all coefficients of a cell `t₀ ≤ t ≤ t₁` with the mean
//! `m`:
//!
//! 1. *For faint ones*, `φ(τ − t) + φ(τ + t) = 2φ(τ)·e^{−t²/2}·cosh(tτ) ≥ 2φ(τ)·e^{−t₁²/2}`.
//! 2. *Given the estimate* `τ`, by Jensen's inequality for `ln φ`, `E_t[φ(τ − t)] ≥ φ(τ − m)·e^{−V/2}` with `V = (m − t₀)(t₁ − m)`, which
//!    is at least the variance of `t`. The mean of `t` under these weights moves by their tilt `|τ − m|` times a variance of at most
//!    `(t₁ − t₀)²/4`.
//! 3. *Given the pilot's noise* `e`, for strong ones, `t·g(t + e)` is between `t/m` and `(1 + e/m)/(1 + e/t)` times `m·g(m + e)`: from 1
//!    on, `u(τ)` rises and `u(τ)/τ` falls.

use floras_core::Receiver;

use crate::engine::distribution::{COARSE_CELL, CellsBuilder, Side};
use crate::numerics::parallel::in_parallel;
use crate::views::actual::coefficients::{Coefficient, Coefficients};
use crate::views::actual::densities::{NARROW, grouped};
use crate::views::actual::{FAINT, FAINT_STEP, PARTS, add_gains};
use crate::views::divisors::CommonPanels;
use crate::views::gains::{self, Boundaries, LogBins, STEP};
use crate::views::noise::Noise;
use crate::views::pilot::REACH;

/// From this coefficient on, the pilot's noise is relatively small, and no estimate is below 1.
pub(super) const STRONG: f64 = 20.0;

impl Coefficients {
    /// The cells of the lower bound, with the noise of the others rounded up.
    pub(super) fn cells_below(
        &self,
        receiver: Receiver,
        others: &Noise,
        small: f64,
        sensitivity: f64,
    ) -> CellsBuilder {
        let largest = self.narrow.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Lower);
        cells.add_exception(others.none);
        if others.cells().is_empty() {
            return cells;
        }
        let step = gains::step(Receiver::Paper);
        let noise = LogBins::of_noise(others, step, Side::Lower);
        // A coefficient that may be 0 counts as 0.
        let groups: Vec<Shared> = narrow_groups(&self.narrow)
            .filter(|group| group.least > 0.0)
            .map(|group| Shared::of(&group))
            .collect();
        let strongest = groups.iter().map(|group| group.channel).fold(0.0, f64::max);
        let panels = CommonPanels::new(receiver, (0.0, strongest), small, step, Side::Lower);
        let boundaries = Boundaries::new(panels.range(), &noise);
        let gains = |t: f64| panels.divisors(t).gains(&noise, &boundaries, Side::Lower);
        let faint = gains(0.0);
        let parts = in_parallel(PARTS, |part| {
            let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Lower);
            for group in groups.iter().skip(part).step_by(PARTS.len()) {
                let own = (group.channel > 0.0).then(|| gains(group.channel));
                let amplitudes = [group.mean, group.least, group.largest].map(|t| sensitivity * t);
                add_gains(&mut cells, own.as_ref().unwrap_or(&faint), amplitudes, group.mass);
            }
            cells
        });
        parts.iter().for_each(|part| cells.add_all(part));
        cells
    }
}

/// Coefficients `t₀ ≤ t ≤ t₁` that share one distribution of the estimate, for a lower bound.
pub(super) struct Shared {
    /// The channel whose estimate is used.
    pub(super) channel: f64,
    pub(super) mass: f64,
    /// The value used for `t` as a factor of that channel's gains.
    least: f64,
    largest: f64,
    mean: f64,
}

impl Shared {
    pub(super) fn of(group: &Coefficient) -> Self {
        let Coefficient { mass, least, largest, mean } = *group;
        if largest <= FAINT || least == 0.0 {
            return Self {
                channel: 0.0,
                mass: mass * (-0.5 * largest * largest).exp(),
                least,
                largest,
                mean,
            };
        }
        if least < STRONG {
            let half = 0.5 * (largest - least);
            let most = (largest - mean).max(mean - least);
            // The tilt, and a factor between e^{−most²/2} and 1.
            let moved = REACH * half * half + most * (0.5 * most * most).exp_m1();
            let lost = 0.5 * (mean - least) * (largest - mean);
            return Self {
                channel: mean,
                mass: mass * (-lost.max(0.0)).exp(),
                least,
                largest,
                mean: (mean - moved).max(least),
            };
        }
        let ratio = |t: f64, e: f64| (1.0 + e / mean) / (1.0 + e / t);
        let low = (least / mean).min(ratio(largest, -REACH)).min(ratio(least, REACH));
        let high = (largest / mean).max(ratio(least, -REACH)).max(ratio(largest, REACH));
        Self { channel: mean, mass, least: low * mean, largest: high * mean, mean: low * mean }
    }
}

/// Coefficients in cells whose width suits [`Shared`]: narrower for stronger coefficients.
pub(super) fn narrow_groups(coefficients: &[Coefficient]) -> impl Iterator<Item = Coefficient> {
    grouped(coefficients, |t| match t {
        _ if t < FAINT => FAINT_STEP,
        _ if t < 0.5 => 2.0 * STEP,
        _ if t < 2.0 => STEP,
        _ => NARROW,
    })
}
