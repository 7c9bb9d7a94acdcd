//! How updates are brought to the norm `C`.

use crate::named_choice;

/// How updates are brought to the norm `C`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clipping {
    /// Each on its own: longer updates are scaled down to the norm `C`.
    #[default]
    Each,
    /// All together, as in the paper: centred, and scaled so that the longest has the norm `C`. Means and scale are sent in
    /// the clear.
    Paper,
}

named_choice!(
    Clipping,
    "normalisation",
    [Each => "clip", "each update clipped on its own"],
    [Paper => "paper", "the paper's normalisation"],
);
