//! How the clients of a simulated round learn their sequences.

use crate::named_choice;

/// How a round assigns sequences to clients. Both ways make all assignments equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// Drawn from the seed; clients hold no keys.
    #[default]
    Seed,
    /// The paper's protocol: one client distributes a group key, a beacon announces a slot, and both determine the permutation.
    Keyed,
}

named_choice!(
    Assignment,
    "assignment",
    [Seed => "seed", "drawn from the seed"],
    [Keyed => "keyed", "by group key, beacon and permutation"],
);
