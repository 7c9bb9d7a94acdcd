//! The neighbour relation of differential privacy.

use crate::named_choice;

/// The neighbour relation: which data sets differ by one client or item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Neighbours {
    /// One client (or item) has different data.
    #[default]
    ReplaceOne,
    /// One client (or item) is added or removed.
    AddRemove,
}

named_choice!(
    Neighbours,
    "neighbour relation",
    [ReplaceOne => "replace-one", "replace one"],
    [AddRemove => "add-remove", "add or remove one"],
);
