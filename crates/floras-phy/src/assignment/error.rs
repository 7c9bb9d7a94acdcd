//! Errors of the assignment protocol.

use thiserror::Error;

use super::{Epoch, GroupId, MAX_SEQUENCES, PublicKey};

/// Why a key, a sealed key or a beacon was refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AssignmentError {
    /// The operating system could not supply random bytes.
    #[error("the operating system returned no random bytes for a key")]
    Randomness,

    /// The recipient's public key is a point of low order, with which no secret can be agreed.
    #[error("the recipient's public key is not a usable X25519 key")]
    UnusablePublicKey,

    /// A sealed key has the wrong number of bytes.
    #[error("a sealed key has {expected} bytes, but {got} were given")]
    SealedKeyLength {
        /// Number of bytes given.
        got: usize,
        /// Number of bytes in the format.
        expected: usize,
    },

    /// A sealed key is written in a format this version does not know.
    #[error("the sealed key has format version {got}; only version {known} is known")]
    SealedKeyVersion {
        /// The version byte found.
        got: u8,
        /// The version byte this code writes and reads.
        known: u8,
    },

    /// A sealed key cannot be opened: it is for another client, from another dealer, or was altered.
    #[error("the sealed key does not open: it is for another client, from another dealer, or altered")]
    SealedKeyRejected,

    /// A sealed key, a beacon or a saved state belongs to another group.
    #[error("the {subject} is for group {got}; group {expected} is expected")]
    WrongGroup {
        /// The rejected object, in words.
        subject: &'static str,
        /// The group that the object names.
        got: GroupId,
        /// The group that this client accepts.
        expected: GroupId,
    },

    /// A sealed key or a beacon belongs to another epoch.
    #[error("the {subject} is for epoch {got}; epoch {expected} is expected")]
    WrongEpoch {
        /// The rejected object, in words.
        subject: &'static str,
        /// The epoch that the object names.
        got: Epoch,
        /// The epoch that this client accepts.
        expected: Epoch,
    },

    /// A key is older than the one this client has already used.
    #[error("the key is of epoch {got}, but this client has reached epoch {reached} and does not go back")]
    EpochRollback {
        /// The epoch of the refused key.
        got: Epoch,
        /// The epoch this client has reached.
        reached: Epoch,
    },

    /// The beacon repeats or precedes a slot this client has already used.
    #[error("the beacon's slot {slot} is not greater than slot {last}, which this client used last")]
    SlotNotNew {
        /// The slot in the beacon.
        slot: u64,
        /// The last slot this client used.
        last: u64,
    },

    /// The index is outside the range of the participants.
    #[error("index {index} is outside 1..={per_round}")]
    IndexOutOfRange {
        /// The given index.
        index: u32,
        /// Number of participants `K`.
        per_round: u32,
    },

    /// The beacon announces a round without participants.
    #[error("the beacon announces a round of 0 clients; at least 1 must take part")]
    NoParticipants,

    /// The beacon announces fewer sequences than participants.
    #[error("{sequences} sequences cannot serve {per_round} clients; each client needs its own")]
    TooFewSequences {
        /// Number of sequences `N`.
        sequences: u32,
        /// Number of participants `K`.
        per_round: u32,
    },

    /// The number of sequences is zero or beyond the limit.
    #[error("{sequences} sequences cannot be permuted; 1..={MAX_SEQUENCES} are allowed")]
    SequencesOutOfRange {
        /// Requested number of sequences `N`.
        sequences: u32,
    },

    /// The beacon leaves fewer sequences unused than this client requires.
    #[error("the beacon leaves {unused} sequences unused; this client requires at least {minimum}")]
    TooFewUnused {
        /// Number of sequences that the beacon leaves unused, `γ = N − K`.
        unused: u32,
        /// Minimum number that this client requires.
        minimum: u32,
    },

    /// A member's public key is a point of low order, with which no secret can be agreed.
    #[error("the public key {member} of a member is not a usable X25519 key")]
    UnusableMemberKey {
        /// The public key of the member.
        member: PublicKey,
    },

    /// The number of clients in the cohort list differs from that in the beacon.
    #[error("the cohort lists {got} clients; the beacon announces {per_round}")]
    CohortSize {
        /// Number of clients in the list.
        got: usize,
        /// Number of clients in the beacon, `K`.
        per_round: u32,
    },

    /// The cohort list has another client at this client's index.
    #[error("the cohort lists another client at index {index}, which was given to this client")]
    NotAtIndex {
        /// The index that was given to this client.
        index: u32,
    },

    /// A client is in the cohort list twice.
    #[error("the cohort lists {member} more than once")]
    RepeatedMember {
        /// The public key of the repeated client.
        member: PublicKey,
    },

    /// A client in the cohort list is not enrolled.
    #[error("the cohort lists {member}, which is not enrolled with this client")]
    UnknownMember {
        /// The public key of the client that is not enrolled.
        member: PublicKey,
    },

    /// The cohort has fewer other clients than this client requires.
    #[error("the cohort has {others} other clients; this client requires at least {minimum}")]
    CohortTooSmall {
        /// Number of clients in the list besides this one.
        others: u32,
        /// Minimum number that this client requires.
        minimum: u32,
    },
}
