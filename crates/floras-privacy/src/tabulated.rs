//! A curve that was tabulated once, for many compositions.

use crate::compose::MOST_EPSILON;
use crate::law::Side;
use crate::sampling::Curve;
use crate::solve::first_at_most;
use crate::table::Table;

/// What is smaller than this counts as infinite loss.
const NOTHING: f64 = 1e-40;
/// Pieces of the tables are not shorter than this, relative to their end.
const SHORTEST: f64 = 0.3;
/// The lower bound matters less.
const TOLERANCE_BELOW: f64 = 1e-4;

/// Both bounds of a curve, in tables.
pub(crate) struct Tabulated {
    upper: Table,
    lower: Table,
    infinite: f64,
    tolerance: f64,
}

impl Tabulated {
    /// Tabulates a curve, the upper bound to half its own tolerance.
    pub(crate) fn new(curve: &dyn Curve) -> Self {
        // What is given up at the far end is nothing beside what is infinite.
        let nothing = NOTHING.max(1e-6 * curve.infinite());
        let end = first_at_most(|epsilon| curve.upper(epsilon), nothing, 1.0, MOST_EPSILON, 0.01);
        // A tail that reaches further than any ε of use is infinite for all purposes.
        let (end, beyond) = match end {
            Some(end) => (end.max(1e-12), nothing),
            None => (MOST_EPSILON, curve.upper(MOST_EPSILON)),
        };
        let upper = |epsilon: f64| curve.upper(epsilon).max(1e-3 * nothing);
        let lower = |epsilon: f64| curve.lower(epsilon).max(1e-3 * nothing);
        Self {
            upper: Table::new(upper, end, 0.5 * curve.tolerance(), SHORTEST, Side::Upper),
            lower: Table::new(lower, end, TOLERANCE_BELOW, SHORTEST, Side::Lower),
            infinite: curve.infinite() + beyond,
            tolerance: curve.tolerance(),
        }
    }
}

impl Curve for Tabulated {
    fn upper(&self, epsilon: f64) -> f64 {
        self.upper.value(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.lower.value(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.infinite
    }

    fn is_rounded(&self) -> bool {
        true
    }

    fn tolerance(&self) -> f64 {
        self.tolerance
    }
}
