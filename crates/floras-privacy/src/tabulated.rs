//! A curve that was tabulated once, for many compositions.

use crate::sampling::Curve;

/// A curve with its tables.
pub(crate) struct Tabulated<C> {
    inner: C,
}

impl<C: Curve> Tabulated<C> {
    pub(crate) fn new(inner: C) -> Self {
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &C {
        &self.inner
    }
}

impl<C: Curve> Curve for Tabulated<C> {
    fn upper(&self, epsilon: f64) -> f64 {
        self.inner.upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.inner.lower(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.inner.infinite()
    }

    fn composed(&self, rounds: u64) -> Option<crate::law::Law> {
        self.inner.composed(rounds)
    }

    fn tolerance(&self) -> f64 {
        self.inner.tolerance()
    }
}
