//! How updates are limited to the norm `C`.

use crate::named_choice;

/// How updates are limited to the norm `C`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Clipping {
    /// Each update on its own: longer updates are scaled down to norm `C`.
    #[default]
    Each,
    /// All updates together, as in the paper: centred, and scaled so that the longest has norm `C`. Means and scale are sent in
    /// plain text.
    Paper,
}

named_choice!(
    Clipping,
    "normalisation",
    [Each => "clip", "each update clipped on its own"],
    [Paper => "paper", "the paper's normalisation"],
);
