//! Views: the adversary that a privacy statement covers.

use crate::named_choice;

/// A model of the adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// The paper's theorems, as printed.
    Published,
    /// High SNR: only the noise of the unused sequences.
    Idealised,
    /// The complete decoder, averaged over the channels.
    Actual,
    /// The worst case over all channels of a client.
    AnyChannel,
    /// A base station that stores its raw samples.
    RawSignal,
}

named_choice!(
    View,
    "view",
    [Published => "published", "published"],
    [Idealised => "idealised", "idealised"],
    [Actual => "actual", "actual channel"],
    [AnyChannel => "any-channel", "any channel"],
    [RawSignal => "raw-signal", "raw signal"],
);

impl View {
    /// The views with a proven bound: all but the published one.
    pub const RIGOROUS: [Self; 4] = [Self::Idealised, Self::Actual, Self::AnyChannel, Self::RawSignal];

    /// The order of every privacy table: the strongest adversary first, the published formula last.
    pub const BY_ADVERSARY: [Self; 5] =
        [Self::RawSignal, Self::AnyChannel, Self::Actual, Self::Idealised, Self::Published];

    /// The JSON field: the text form with underscores.
    pub fn field(self) -> String {
        self.name().replace('-', "_")
    }

    /// What the adversary sees, in at most 20 characters for the column of a table.
    pub fn adversary_sees(self) -> &'static str {
        match self {
            Self::Published => "decoded sums",
            Self::Idealised => "sums at high SNR",
            Self::Actual => "sums, estimates",
            Self::AnyChannel => "sums, all channels",
            Self::RawSignal => "raw samples",
        }
    }

    /// A noun phrase for the adversary, for sentences such as "against …".
    pub fn adversary(self) -> &'static str {
        match self {
            Self::Published => "an adversary with the decoded sums, by the formula of the paper",
            Self::Idealised => "a base station with the decoded sums and the noise level, at high SNR",
            Self::Actual => "a base station with the decoded sums and all channel estimates",
            Self::AnyChannel => {
                "a base station with the decoded sums that knows, or even chooses, every channel"
            }
            Self::RawSignal => "a base station that keeps its raw samples and despreads them itself",
        }
    }
}
