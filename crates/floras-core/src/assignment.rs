//! How the clients of a simulated round learn their sequences.

use crate::named_choice;

/// What decides which client uses which sequence. Both have the same distribution: all assignments are equally likely.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Assignment {
    /// A draw from the seed. No client has a key.
    #[default]
    Seed,
    /// The paper's protocol: a group key that one client deals, a beacon with a slot, and the permutation that follows from both.
    Keyed,
}

named_choice!(
    Assignment,
    "assignment",
    [Seed => "seed", "drawn from the seed"],
    [Keyed => "keyed", "by group key, beacon and permutation"],
);
