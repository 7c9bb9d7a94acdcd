//! What a scheme requires of clients, and whom they trust.

use std::ops::RangeInclusive;

use floras_core::named_choice;

/// What a client must know about its own channel before it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKnowledge {
    /// Nothing: the base station estimates channels, or needs none either.
    Nothing,
    /// The phase of the channel, with which clients rotate their symbols.
    Phase,
    /// Phase and amplitude, on every subcarrier that it uses.
    Coefficient,
}

named_choice!(
    ChannelKnowledge,
    "channel knowledge",
    [Nothing => "nothing", "nothing"],
    [Phase => "phase", "its phase"],
    [Coefficient => "coefficient", "its coefficient"],
);

/// Whom clients trust: whose noise hides their updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Each client's own noise suffices.
    NoOne,
    /// The other clients of a round add their noise and do not reveal it.
    Clients,
    /// The receiver has at least the stated noise.
    Receiver,
    /// The base station follows the protocol: it adds the noise, or keeps only the decoded sum.
    BaseStation,
}

named_choice!(
    Trust,
    "trust",
    [NoOne => "no-one", "no one"],
    [Clients => "clients", "the other clients"],
    [Receiver => "receiver", "the receiver's noise"],
    [BaseStation => "base-station", "the base station"],
);

/// Noise of a scheme that calibration can search to meet an `ε`.
#[derive(Clone, Debug, PartialEq)]
pub struct NoiseKey {
    /// The key of `[uplink]`; a larger value reveals less.
    pub key: &'static str,
    /// The range of the key.
    pub range: RangeInclusive<f64>,
    /// Whom clients trust who rely on this noise.
    pub trust: Trust,
}
