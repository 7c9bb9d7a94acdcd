//! A curve that is dear to ask, in tables: once for many compositions.

use std::sync::OnceLock;

use crate::engine::compose::{MAX_EPSILON, WRINKLED};
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::sampling::Curve;
use crate::numerics::solve::first_at_most;
use crate::numerics::table::Table;

/// What is smaller than this counts as infinite loss.
const NOTHING: f64 = 1e-40;
/// Pieces of the tables of a curve with kinks are not shorter than this, relative to their end.
const SHORTEST: f64 = 0.1;
/// Tables of lower bounds, which have small jumps, are this good.
pub(crate) const TOLERANCE_BELOW: f64 = 1e-3;

/// A curve with tables of its bounds, which are made when a composition first asks for them. A single question goes to the
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

/// The curve as its tables have it.
struct Tables<C> {
    curve: C,
    extent: OnceLock<Extent>,
    upper: OnceLock<Table>,
    lower: OnceLock<Table>,
}

/// How far the tables reach.
#[derive(Clone, Copy)]
struct Extent {
    end: f64,
    /// What is too small to tabulate.
    nothing: f64,
    /// An upper bound on what lies beyond the end, which counts as infinite.
    beyond: f64,
}

impl<C: Curve> Tables<C> {
    fn extent(&self) -> Extent {
        *self.extent.get_or_init(|| {
            // What is given up at the far end is nothing beside what is infinite.
            let nothing = NOTHING.max(1e-6 * self.curve.infinite());
            let end = first_at_most(|epsilon| self.curve.upper(epsilon), nothing, 1.0, MAX_EPSILON, 0.01);
            match end {
                Some(end) => Extent { end: end.max(1e-12), nothing, beyond: nothing },
                // A tail that reaches further than any ε of use is infinite for all purposes.
                None => Extent { end: MAX_EPSILON, nothing, beyond: self.curve.upper(MAX_EPSILON) },
            }
        })
    }

    fn table(&self, f: impl Fn(f64) -> f64, tolerance: f64, side: Side) -> Table {
        let Extent { end, nothing, .. } = self.extent();
        let shortest = if tolerance > WRINKLED { SHORTEST } else { 0.0 };
        Table::new(|epsilon| f(epsilon).max(1e-3 * nothing), end, tolerance, shortest, side)
    }
}

impl<C: Curve> Curve for Tables<C> {
    /// To half the curve's own tolerance.
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
