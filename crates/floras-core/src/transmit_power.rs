//! The transmit power of updates.

use crate::named_choice;

/// How clients scale their updates before sending.
///
/// Under [`Unit`](Self::Unit) all clients multiply by the public constant `β`, and the base station divides by it. The mean
/// square of a symbol is then at most 1, to which the SNR refers:
///
/// ```text
/// β = 1/√P,     P = C²/d + σ_m²·(1 − 1/K) + σ_z²
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TransmitPower {
    /// Updates are sent unchanged. The default.
    #[default]
    Unscaled,
    /// Updates are scaled to symbols of unit power.
    Unit,
}

named_choice!(
    TransmitPower,
    "transmit power",
    [Unscaled => "unscaled", "updates as they are"],
    [Unit => "unit", "updates scaled to unit power"],
);
