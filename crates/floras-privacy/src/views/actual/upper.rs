//! The cells of the actual view's upper bound.

use floras_core::Receiver;

use crate::engine::distribution::{COARSE_CELL, CellsBuilder, Side};
use crate::numerics::parallel::in_parallel;
use crate::views::actual::coefficients::{Coefficient, Coefficients};
use crate::views::actual::densities::grouped;
use crate::views::actual::{FAINT, FAINT_STEP, PARTS, add_gains};
use crate::views::divisors::CommonPanels;
use crate::views::gains::{self, Boundaries, LogBins};
use crate::views::noise::Noise;
use crate::views::pilot::{self, BEYOND_REACH};

impl Coefficients {
    /// The cells of the upper bound, with the noise of the others rounded down, and the size below which estimates count as equal.
    pub(super) fn cells_above(
        &self,
        receiver: Receiver,
        others: &Noise,
        sensitivity: f64,
    ) -> (CellsBuilder, f64) {
        let largest = self.seen.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Upper);
        cells.add_infinite(BEYOND_REACH + others.none);
        let step = gains::step(receiver);
        let small = pilot::small_estimate(receiver, others);
        let noise = LogBins::of_noise(others, step, Side::Upper);
        let groups: Vec<Coefficient> =
            grouped(&self.seen, |t| if t < FAINT { FAINT_STEP } else { step }).collect();
        let strongest = groups.last().map_or(FAINT, |group| group.mean.max(FAINT));
        let panels = CommonPanels::new(receiver, (0.0, strongest), small, step, Side::Upper);
        let boundaries = Boundaries::new(panels.range(), &noise);
        let gains = |t: f64| panels.divisors(t).gains(&noise, &boundaries, Side::Upper);
        // The density of an estimate's size for coefficient t is that for 0 times e^{−t²/2}·cosh(tτ). For all coefficients below a small
        // one, it is at most e^{t²/2} times that of the small one.
        let faint = gains(FAINT);
        let parts = in_parallel(PARTS, |part| {
            let mut cells = CellsBuilder::new(largest, COARSE_CELL, Side::Upper);
            for group in groups.iter().skip(part).step_by(PARTS.len()) {
                let own = (group.largest > FAINT).then(|| gains(group.mean));
                let factor = if own.is_some() { 1.0 } else { (FAINT * FAINT / 2.0).exp() };
                let amplitudes = [group.mean, group.least, group.largest].map(|t| sensitivity * t);
                add_gains(&mut cells, own.as_ref().unwrap_or(&faint), amplitudes, factor * group.mass);
            }
            cells
        });
        parts.iter().for_each(|part| cells.add_all(part));
        (cells, small)
    }
}
