//! A curve that is expensive to evaluate, in tables that many compositions share.

use std::sync::OnceLock;

use crate::engine::compose::{CONVEX_TOLERANCE, MAX_EPSILON};
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::sampling::Curve;
use crate::numerics::solve::first_at_most;
use crate::numerics::table::Table;

/// A `δ` below this is not tabulated; it counts as infinite loss.
const NEGLIGIBLE: f64 = 1e-40;
/// Minimum length of a piece in the table of a curve with kinks, relative to its end.
const SHORTEST: f64 = 0.1;
/// Tolerance of tables of lower bounds, which have small jumps.
pub(crate) const TOLERANCE_BELOW: f64 = 1e-3;

/// A curve with tables of its bounds, which are computed when a composition first needs them. A single evaluation uses the
/// curve itself.
pub(crate) struct Tabulated<C>(Tables<C>);

impl<C: Curve> Tabulated<C> {
    pub(crate) fn new(curve: C) -> Self {
        Self(Tables { curve, extent: OnceLock::new(), upper: OnceLock::new(), lower: OnceLock::new() })
    }
}

impl<C: Curve> Curve for Tabulated<C> {
    fn upper(&self, epsilon: f64) -> f64 {
        self.0.curve.upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.0.curve.lower(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.0.curve.infinite()
    }

    fn composed(&self, rounds: u64) -> Option<MuDistribution> {
        self.0.curve.composed(rounds)
    }

    fn tolerance(&self) -> f64 {
        self.0.curve.tolerance()
    }

    fn for_composition(&self, _least: f64) -> Option<&dyn Curve> {
        Some(&self.0)
    }
}

/// The curve as given by its tables.
struct Tables<C> {
    curve: C,
    extent: OnceLock<Extent>,
    upper: OnceLock<Table>,
    lower: OnceLock<Table>,
}

/// The range of the tables.
#[derive(Clone, Copy)]
struct Extent {
    end: f64,
    /// Values of `δ` below this are not tabulated.
    negligible: f64,
    /// An upper bound on `δ` beyond the end, which counts as infinite loss.
    beyond: f64,
}

impl<C: Curve> Tables<C> {
    fn extent(&self) -> Extent {
        *self.extent.get_or_init(|| {
            // The probability cut off at the far end is negligible relative to that of infinite losses.
            let negligible = NEGLIGIBLE.max(1e-6 * self.curve.infinite());
            let end = first_at_most(|epsilon| self.curve.upper(epsilon), negligible, 1.0, MAX_EPSILON, 0.01);
            match end {
                Some(end) => Extent { end: end.max(1e-12), negligible, beyond: negligible },
                // A tail beyond every useful ε counts as infinite.
                None => Extent { end: MAX_EPSILON, negligible, beyond: self.curve.upper(MAX_EPSILON) },
            }
        })
    }

    fn table(&self, f: impl Fn(f64) -> f64, tolerance: f64, side: Side) -> Table {
        let Extent { end, negligible, .. } = self.extent();
        let shortest = if tolerance > CONVEX_TOLERANCE { SHORTEST } else { 0.0 };
        Table::new(|epsilon| f(epsilon).max(1e-3 * negligible), end, tolerance, shortest, side)
    }
}

impl<C: Curve> Curve for Tables<C> {
    /// Interpolated to half the tolerance of the curve.
    fn upper(&self, epsilon: f64) -> f64 {
        let table = || self.table(|epsilon| self.curve.upper(epsilon), 0.5 * self.tolerance(), Side::Upper);
        self.upper.get_or_init(table).value(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        let table = || self.table(|epsilon| self.curve.lower(epsilon), TOLERANCE_BELOW, Side::Lower);
        self.lower.get_or_init(table).value(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.curve.infinite() + self.extent().beyond
    }

    fn tolerance(&self) -> f64 {
        self.curve.tolerance()
    }
}
