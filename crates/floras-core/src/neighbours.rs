//! Neighbouring populations, which differential privacy has to make indistinguishable.

use crate::named_choice;

/// Which populations are neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One client (or item) has other data.
    #[default]
    ReplaceOne,
    /// One client (or item) more, or one less.
    AddRemove,
}

named_choice!(
    Neighbours,
    "neighbour relation",
    [ReplaceOne => "replace-one", "replace one"],
    [AddRemove => "add-remove", "add or remove one"],
);
