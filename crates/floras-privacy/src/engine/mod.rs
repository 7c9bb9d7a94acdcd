//! The composition engine: from a curve of one round, `δ₁(ε)`, to bounds on `ε` after many rounds.
//!
//! A view supplies a distribution of `μ` ([`distribution`]) or a curve ([`sampling`]). Sampling changes it, `loss` turns it into a
//! distribution of privacy losses, and [`compose`] adds up many rounds: `prepared`, `tilt` and `window` are its parts.

pub(crate) mod chords;
pub(crate) mod compose;
pub(crate) mod distribution;
pub(crate) mod loss;
pub(crate) mod prepared;
pub(crate) mod sampling;
pub(crate) mod tabulated;
pub(crate) mod tilt;
pub(crate) mod window;
