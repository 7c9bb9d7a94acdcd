//! The views: which adversary a privacy statement is about.

use crate::named_choice;

/// A model of the adversary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum View {
    /// The paper's theorems, as printed.
    Published,
    /// High SNR: the noise of the unused sequences, and nothing else.
    Idealised,
    /// The whole decoder, averaged over the channels.
    Actual,
    /// The worst over every channel that a client can have.
    AnyChannel,
    /// A base station that keeps its raw samples.
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
    /// The views with a bound of their own: all but the published one.
    pub const RIGOROUS: [Self; 4] = [Self::Idealised, Self::Actual, Self::AnyChannel, Self::RawSignal];

    /// The name of a field in JSON: the text form with underscores.
    pub fn field(self) -> String {
        self.name().replace('-', "_")
    }

    /// Who the adversary is.
    pub fn adversary(self) -> &'static str {
        match self {
            Self::Published => "anyone who sees the decoded sums, as the paper has it",
            Self::Idealised => "a base station with the decoded sums and the noise level, at high SNR",
            Self::Actual => "a base station with the decoded sums and all channel estimates",
            Self::AnyChannel => {
                "a base station with the decoded sums that knows, or even chooses, every channel"
            }
            Self::RawSignal => "a base station that keeps its raw samples and despreads them itself",
        }
    }
}
