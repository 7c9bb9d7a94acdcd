//! The noise of schemes without spreading, in a comparison with FLORAS.

use crate::named_choice;

/// The noise of a scheme without spreading, when compared with FLORAS, which spends `L` chips per symbol.
///
/// The paper compares per symbol. With the same bandwidth the scheme may repeat its symbol `L` times, and the noise
/// falls by `√L`: the comparison that spends equal resources. Report both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoiseReference {
    /// One channel use per parameter: noise `σ`.
    #[default]
    PerSymbol,
    /// As many chips per parameter as FLORAS spends: noise `σ/√L`.
    SameBandwidth,
}

named_choice!(
    NoiseReference,
    "noise reference",
    [PerSymbol => "per-symbol", "noise per symbol"],
    [SameBandwidth => "same-bandwidth", "noise over the same bandwidth"],
);
