//! The level at which a round is simulated.

use crate::named_choice;

/// The level at which a round is simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fidelity {
    /// One Gaussian for each parameter, from the effective channel.
    #[default]
    Symbol,
    /// Every chip on the air.
    Chip,
}

named_choice!(Fidelity, "fidelity", [Symbol => "symbol", "symbol level"], [Chip => "chip", "chip level"]);
