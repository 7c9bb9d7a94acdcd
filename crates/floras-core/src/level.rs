//! The unit that differential privacy protects.

use crate::named_choice;

/// What has to stay hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// All data of a client.
    #[default]
    Client,
    /// One sample of a client.
    Item,
}

named_choice!(Level, "privacy level", [Client => "client", "client level"], [Item => "item", "item level"]);

/// How much of its data a client uses in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LocalWork {
    /// One step on one mini-batch.
    #[default]
    OneStep,
    /// Whole epochs, which use every sample.
    Epochs,
}

named_choice!(
    LocalWork,
    "local work",
    [OneStep => "one-step", "one step on one mini-batch"],
    [Epochs => "epochs", "epochs over all samples"],
);
