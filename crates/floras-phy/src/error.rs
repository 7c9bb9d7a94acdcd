//! Errors of the air interface.

use thiserror::Error;

use crate::assignment::AssignmentError;

/// Invalid input of the air interface. Each message names the quantity and what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum UplinkError {
    /// A round without clients.
    #[error("a round needs at least one client, but none takes part")]
    NoClients,
    /// Rounds are counted from 1.
    #[error("a round's number must be at least 1, not 0")]
    RoundZero,
    /// A scheme that is simulated at the symbol level only.
    #[error("scheme {scheme} has no chip level")]
    NoChipLevel {
        /// The scheme's name.
        scheme: &'static str,
    },

    /// Channels without a scattered part.
    #[error(
        "channels age only under Rayleigh and Rician fading, which have a scattered part; these are: {channels}"
    )]
    CannotAge {
        /// The channels, in words.
        channels: String,
    },
    /// Channels that are not drawn.
    #[error("path loss needs channels drawn from a distribution, not {channels}")]
    CannotLose {
        /// The channels, in words.
        channels: String,
    },
    /// Symbols of unit power in a payload of unknown size.
    #[error("symbols of unit power need the number of parameters, which this round does not know")]
    UnitPowerWithoutParameters,
    /// Blocks of a payload of unknown size.
    #[error("blocks of {coherence} parameters need the number of parameters, which this round does not know")]
    ParametersUnknown {
        /// Parameters in a block.
        coherence: usize,
    },
    /// More blocks than the limit allows.
    #[error(
        "blocks of {coherence} parameters make {blocks} blocks for each of {clients} clients; a round may have at most {most} \
         coefficients in all"
    )]
    TooManyBlocks {
        /// Parameters in a block.
        coherence: usize,
        /// Blocks in the payload.
        blocks: usize,
        /// `K`.
        clients: usize,
        /// The largest number of coefficients.
        most: usize,
    },

    /// A client that takes part without having been selected.
    #[error("client {client} takes part in a round for which it was not selected")]
    NotSelected {
        /// The client.
        client: u32,
    },

    /// The protocol that assigns sequences refused a key or a beacon.
    #[error("the assignment of sequences failed: {0}")]
    Assignment(#[from] AssignmentError),

    /// The same client twice in one round.
    #[error("client {client} takes part twice in one round; every client may be listed once")]
    RepeatedClient {
        /// The client that is listed more than once.
        client: u32,
    },

    /// Fewer sequences than clients.
    #[error(
        "{sequences} sequences (N) cannot serve {clients} clients (K) a round: N must be at least K, and N − K is the \
         number γ of unused sequences"
    )]
    TooFewSequences {
        /// `N`.
        sequences: usize,
        /// `K`.
        clients: usize,
    },

    /// A set without sequences, or sequences without chips.
    #[error("a sequence set needs N ≥ 1 sequences of length L ≥ 1, not N = {sequences} and L = {length}")]
    EmptySequenceSet {
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
    },

    /// More orthogonal sequences than dimensions.
    #[error(
        "there are no {sequences} orthogonal sequences (N) of length {length} (L): L must be at least N, or take a \
         Gaussian set"
    )]
    SequencesTooShort {
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
    },

    /// A Walsh length that is no power of two.
    #[error(
        "Walsh sequences have a length that is a power of two, and {length} (L) is not one; the next is {next}, or \
         take an orthonormal set"
    )]
    LengthNotPowerOfTwo {
        /// `L`.
        length: usize,
        /// The next larger power of two.
        next: usize,
    },

    /// A length that a family does not have.
    #[error("{family} sequences have {allowed} chips (L), not {length}")]
    SequenceLength {
        /// The family, in words.
        family: String,
        /// The lengths, in words.
        allowed: &'static str,
        /// `L`.
        length: usize,
    },

    /// More sequences than a family has at this length.
    #[error("there are {most} {family} sequences of {length} chips (L), too few for N = {sequences}")]
    SequencesTooMany {
        /// The family, in words.
        family: String,
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
        /// The largest `N`.
        most: usize,
    },

    /// A file of sequences that cannot be read.
    #[error("cannot read the sequence file {name}: {reason}")]
    SequenceFileUnreadable {
        /// The file.
        name: String,
        /// The error of the operating system.
        reason: String,
    },

    /// A file of sequences with a wrong line.
    #[error(
        "line {line} of the sequence file {name}: {reason}; expected one sequence per line, {length} numbers (L) separated by \
         commas"
    )]
    SequenceFileMalformed {
        /// The file.
        name: String,
        /// Line number, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: String,
        /// `L`.
        length: usize,
    },

    /// A file with fewer sequences than are needed.
    #[error("the sequence file {name} has {rows} lines, too few for {sequences} sequences (N)")]
    SequenceFileTooShort {
        /// The file.
        name: String,
        /// How many sequences it has.
        rows: usize,
        /// `N`.
        sequences: usize,
    },

    /// More chips than a set from a file may have.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) exceed the limit of a sequence file: N·L may be at most {most}"
    )]
    SequenceFileTooLarge {
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
        /// The limit on their product.
        most: usize,
    },

    /// A set too large to simulate.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) are too many: N and L may be at most {most} each, and a \
         Gaussian set may have at most {most_drawn} chips in all"
    )]
    SequenceSetTooLarge {
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
        /// The limit on each of them.
        most: usize,
        /// The limit on their product, where every chip is kept in memory.
        most_drawn: usize,
    },

    /// A sequence outside its set.
    #[error("there is no sequence {sequence} in a set of {sequences}; they are counted from 0")]
    NoSuchSequence {
        /// The number that was asked for.
        sequence: usize,
        /// `N`.
        sequences: usize,
    },

    /// A list of the wrong length.
    #[error("expected {expected} {what}, but there are {found}")]
    WrongCount {
        /// What the list holds.
        what: &'static str,
        /// How many there should be.
        expected: usize,
        /// How many there are.
        found: usize,
    },

    /// A choice out of range.
    #[error(transparent)]
    Choice(#[from] floras_core::ChoiceError),

    /// No random bytes for a key.
    #[error("the operating system returned no random bytes for a key")]
    NoRandomness,

    /// A number outside its range.
    #[error("{name} must be {allowed}, not {value}")]
    OutOfRange {
        /// What the number is, in words.
        name: &'static str,
        /// The range, in words.
        allowed: &'static str,
        /// What was given.
        value: f64,
    },

    /// Without noise, the estimate of an unused sequence's channel is exactly zero.
    #[error(
        "{unused} unused sequences (γ) on a channel without noise: their channel estimates are exactly zero and the \
         projector divides by them; give a finite SNR, or N = K"
    )]
    UnusedSequencesWithoutNoise {
        /// `γ = N − K`.
        unused: usize,
    },

    /// A channel draw that leads to an infinite gain or noise.
    #[error("the receiver's weight for client {client} is not finite, because its channel estimate is zero")]
    ChannelIsZero {
        /// The client.
        client: u32,
    },

    /// Not as many updates as clients.
    #[error("{updates} updates were given for {clients} clients; there must be one for each")]
    UpdateCount {
        /// How many updates came.
        updates: usize,
        /// How many clients take part.
        clients: usize,
    },

    /// Updates without parameters.
    #[error("the updates are empty; they need at least one parameter")]
    EmptyUpdate,

    /// Updates of different lengths.
    #[error(
        "update {index} has {found} parameters, but the first one has {expected}; all must have the same length"
    )]
    LengthMismatch {
        /// Position of the odd update in the list.
        index: usize,
        /// The first update's length.
        expected: usize,
        /// The odd update's length.
        found: usize,
    },

    /// NaN or an infinity in an update.
    #[error("parameter {parameter} of update {index} is {value}; every value must be finite")]
    NotFinite {
        /// Position of the update in the list.
        index: usize,
        /// Position of the value in the update.
        parameter: usize,
        /// NaN or an infinity.
        value: f32,
    },

    /// A value too large for the grid of masks.
    #[error(
        "parameter {parameter} of the update is {value}; with masks it must be below {limit} in magnitude"
    )]
    BeyondMaskGrid {
        /// Position of the value in the update.
        parameter: usize,
        /// The value.
        value: f32,
        /// What it must be below.
        limit: f64,
    },

    /// Finite updates whose weighted sum leaves the range of single precision.
    #[error(
        "the decoded sum leaves the range of single precision at parameter {parameter}, though every update is \
         finite: an update, a gain or the noise is too large"
    )]
    Overflow {
        /// Position in the decoded sum.
        parameter: usize,
    },

    /// More chips than one round can be simulated with.
    #[error(
        "{parameters} parameters of {length} chips (L) are too many for the chip level: L may be at most {most_length}, \
         and all chips together at most {most}; the symbol level has no such limit"
    )]
    TooManyChips {
        /// `d`.
        parameters: usize,
        /// `L`.
        length: usize,
        /// The limit on `L`, which bounds the memory of a thread.
        most_length: usize,
        /// The limit on `L·d`, beyond which noise would repeat.
        most: u64,
    },

    /// Noise weaker than the rounding of the chips.
    #[error(
        "chips as loud as {loudest_chip} are rounded too coarsely in single precision to carry noise of \
         {chip_noise_std}: lower the SNR, clip the updates, or take the symbol level"
    )]
    NoiseBelowPrecision {
        /// The largest magnitude on the air.
        loudest_chip: f32,
        /// Standard deviation of the noise in a chip.
        chip_noise_std: f64,
    },

    /// Sequences without a fast transform, too many to despread them all.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) without a fast transform are too many for the chip level: N·L \
         may be at most {most}; take Walsh sequences, or the symbol level"
    )]
    TransformTooLong {
        /// `N`.
        sequences: usize,
        /// `L`.
        length: usize,
        /// The limit on their product.
        most: usize,
    },

    /// A round that the channel trace does not reach.
    #[error(
        "the channel trace is too short: round {round} was asked for, and its last one is {last} (counted from 0)",
        last = rounds.saturating_sub(1)
    )]
    TraceTooShort {
        /// The round that was asked for, from 0 on.
        round: u32,
        /// How many rounds the trace holds.
        rounds: u32,
    },

    /// A client that the channel trace does not know.
    #[error("the channel trace has no coefficient for client {client} in round {round}")]
    TraceLacksClient {
        /// The round, from 0 on.
        round: u32,
        /// The client.
        client: u32,
    },

    /// A trace that cannot be read.
    #[error("cannot read the channel trace {name}: {reason}")]
    TraceUnreadable {
        /// The file.
        name: String,
        /// The error of the operating system.
        reason: String,
    },

    /// A trace with a wrong line.
    #[error(
        "line {line} of the channel trace {name}: {reason}; expected round,client,real,imaginary, as in 0,3,0.71,-0.2"
    )]
    TraceMalformed {
        /// The file.
        name: String,
        /// Line number, from 1 on.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

/// `Ok` if `holds`; otherwise the error that `name` must be `allowed`, not `value`.
pub(crate) fn require(
    holds: bool,
    name: &'static str,
    allowed: &'static str,
    value: f64,
) -> Result<(), UplinkError> {
    if holds { Ok(()) } else { Err(UplinkError::OutOfRange { name, allowed, value }) }
}

/// `Ok` if `found` is `expected`; otherwise the error that the number of `what` is wrong.
pub(crate) fn require_count(what: &'static str, expected: usize, found: usize) -> Result<(), UplinkError> {
    if expected == found { Ok(()) } else { Err(UplinkError::WrongCount { what, expected, found }) }
}
