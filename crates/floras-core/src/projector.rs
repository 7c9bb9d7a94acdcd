//! How the base station scales its projector when sequences overlap.

use crate::named_choice;

/// The scale of the projector `v` for sequences that overlap. Orthonormal sets always have the printed one.
///
/// With overlapping sequences the estimates `ĥ_j = a_jᵀy_s` of all `N` sequences carry the clients' pilots, and
/// `vᵀy_s = Σ_j w(ĥ_j)·ĥ_j`, which is `N` for the paper's weights. So `Σ_k g_k = N − vᵀn_s`: the decoded sum is `N/K` times
/// too large. The base station knows `K` and `vᵀy_s`, and divides by `vᵀy_s/K`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Projector {
    /// `v·K/(vᵀy_s)`: the mean gain is 1 up to noise.
    #[default]
    Normalised,
    /// `v` as the paper prints it: the mean gain is `N/K`.
    Printed,
}

named_choice!(
    Projector,
    "projector",
    [Normalised => "normalised", "normalised to a mean gain of 1"],
    [Printed => "printed", "as printed"],
);
