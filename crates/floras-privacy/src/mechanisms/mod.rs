//! Rounds that are not Gaussian mechanisms: votes by energy detection, coordinate by coordinate.

mod energy;

pub use energy::{Energies, EnergyVote};
