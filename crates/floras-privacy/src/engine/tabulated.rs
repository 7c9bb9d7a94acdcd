//! A curve that is expensive to evaluate, in tables that many compositions share.

use std::sync::{Arc, OnceLock};

use crate::engine::compose::{CONVEX_TOLERANCE, MAX_EPSILON};
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::sampling::Curve;
use crate::numerics::solve::first_at_most;
use crate::numerics::table::Table;

/// Smallest `δ` of tables; a composition uses the first that is small enough. A `δ` below it counts as infinite loss.
pub(crate) const SMALLEST: [f64; 3] = [1e-18, 1e-25, 1e-40];
/// The smallest `δ` of a table, relative to the largest probability that a composition may neglect.
const SMALL_ENOUGH: f64 = 0.1;
/// Minimum length of a piece in the table of a curve with kinks, relative to its end.
const SHORTEST: f64 = 0.1;
/// Tolerance of tables of lower bounds, which have small jumps.
pub(crate) const TOLERANCE_BELOW: f64 = 1e-3;

/// A curve with tables of its bounds, which are computed when a composition first needs them. A single evaluation uses the
/// curve itself.
pub(crate) struct Tabulated<C> {
    curve: Arc<C>,
    /// The tables down to each of [`SMALLEST`].
    tables: [Tables<C>; SMALLEST.len()],
}

impl<C: Curve> Tabulated<C> {
    pub(crate) fn new(curve: C) -> Self {
        let curve = Arc::new(curve);
        let tables = SMALLEST.map(|smallest| Tables {
            curve: curve.clone(),
            smallest,
            extent: OnceLock::new(),
            upper: OnceLock::new(),
            lower: OnceLock::new(),
        });
        Self { curve, tables }
    }
}

/// The index in [`SMALLEST`] for a composition that may neglect a probability of `least`.
pub(crate) fn level(least: f64) -> usize {
    let enough = SMALLEST.iter().position(|&smallest| smallest <= SMALL_ENOUGH * least);
    enough.unwrap_or(SMALLEST.len() - 1)
}

impl<C: Curve> Curve for Tabulated<C> {
    fn upper(&self, epsilon: f64) -> f64 {
        self.curve.upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.curve.lower(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.curve.infinite()
    }

    fn composed(&self, rounds: u64) -> Option<MuDistribution> {
        self.curve.composed(rounds)
    }

    fn tolerance(&self) -> f64 {
        self.curve.tolerance()
    }

    fn for_composition(&self, least: f64) -> Option<&dyn Curve> {
        Some(&self.tables[level(least)])
    }
}

/// The curve as given by its tables.
struct Tables<C> {
    curve: Arc<C>,
    /// Smaller values of `δ` count as infinite loss.
    smallest: f64,
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
            let negligible = self.smallest.max(1e-6 * self.curve.infinite());
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
