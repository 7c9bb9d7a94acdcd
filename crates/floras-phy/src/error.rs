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
    /// A chip-level simulation of a scheme that has the symbol level only.
    #[error("scheme {scheme} has no chip level")]
    NoChipLevel {
        /// The scheme's name.
        scheme: &'static str,
    },

    /// An effective channel of a scheme that has none.
    #[error("scheme {scheme} is not linear: its rounds have no gains that are independent of the updates")]
    NotLinear {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// Noise that is fit for release in a scheme whose noise is always simulated.
    #[error(
        "scheme {scheme} has the simulation's noise only; noise that is fit for release needs a linear scheme"
    )]
    SimulatedOnly {
        /// The scheme's name.
        scheme: &'static str,
    },
    /// A round on its own over a scheme whose clients keep a memory.
    #[error(
        "the clients of scheme {scheme} keep what they have not sent for later rounds, which a round on its own cannot do"
    )]
    NeedsMemory {
        /// The scheme's name.
        scheme: &'static str,
    },

    /// Ageing of channels without a scattered part.
    #[error(
        "channels age only under Rayleigh and Rician fading, which have a scattered part; these are: {channels}"
    )]
    CannotAge {
        /// The channels, in words.
        channels: String,
    },
    /// Path loss with channels that are not drawn from a distribution.
    #[error("path loss needs channels drawn from a distribution, not {channels}")]
    CannotLose {
        /// The channels, in words.
        channels: String,
    },
    /// A power that follows from the distribution of the channels, with channels that have none, or one for each client.
    #[error(
        "the transmit power follows from the distribution of the channels, which must be known and the same for all clients; these \
         are: {channels}"
    )]
    UnknownMeanPower {
        /// The channels, in words.
        channels: String,
    },
    /// Symbols of unit power in a round without a number of parameters.
    #[error("symbols of unit power need the number of parameters, which is not set for this round")]
    UnitPowerWithoutParameters,
    /// Blocks of parameters in a round without a number of parameters.
    #[error(
        "blocks of {coherence} parameters need the number of parameters, which is not set for this round"
    )]
    ParametersUnknown {
        /// Number of parameters in a block.
        coherence: usize,
    },
    /// More blocks than the limit allows.
    #[error(
        "blocks of {coherence} parameters make {blocks} blocks for each of {clients} clients; a round may have at most {max} \
         coefficients in all"
    )]
    TooManyBlocks {
        /// Number of parameters in a block.
        coherence: usize,
        /// Number of blocks in the payload.
        blocks: usize,
        /// Number of clients `K` in the round.
        clients: usize,
        /// Maximum number of coefficients, clients times blocks.
        max: usize,
    },

    /// A client that takes part without having been selected.
    #[error("client {client} takes part in a round for which it was not selected")]
    NotSelected {
        /// Number of the client that was not selected.
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
        "{sequences} sequences (N) cannot serve {clients} clients (K) per round: N must be at least K, and N − K is the \
         number γ of unused sequences"
    )]
    TooFewSequences {
        /// Number of sequences `N` in the set.
        sequences: usize,
        /// Number of clients `K` in the round.
        clients: usize,
    },

    /// A set without sequences, or sequences without chips.
    #[error("a sequence set needs N ≥ 1 sequences of length L ≥ 1, not N = {sequences} and L = {length}")]
    EmptySequenceSet {
        /// Requested number of sequences `N`.
        sequences: usize,
        /// Requested sequence length `L` in chips.
        length: usize,
    },

    /// More orthogonal sequences than dimensions.
    #[error(
        "there are no {sequences} orthogonal sequences (N) of length {length} (L): L must be at least N, or take a \
         Gaussian set"
    )]
    SequencesTooShort {
        /// Requested number of sequences `N`.
        sequences: usize,
        /// Requested sequence length `L` in chips.
        length: usize,
    },

    /// A Walsh length that is not a power of two.
    #[error(
        "Walsh sequences have a length that is a power of two, and {length} (L) is not one; the next is {next}, or \
         take an orthonormal set"
    )]
    LengthNotPowerOfTwo {
        /// Requested sequence length `L` in chips.
        length: usize,
        /// The next larger power of two.
        next: usize,
    },

    /// A sequence length that does not exist in the family.
    #[error("{family} sequences have {allowed} chips (L), not {length}")]
    SequenceLength {
        /// The family, in words.
        family: String,
        /// The allowed lengths, in words.
        allowed: &'static str,
        /// Requested sequence length `L` in chips.
        length: usize,
    },

    /// More sequences than a family has at this length.
    #[error("there are {max} {family} sequences of {length} chips (L), too few for N = {sequences}")]
    SequencesTooMany {
        /// The family, in words.
        family: String,
        /// Requested number of sequences `N`.
        sequences: usize,
        /// Sequence length `L` in chips.
        length: usize,
        /// Maximum `N` at this length.
        max: usize,
    },

    /// A file of sequences that cannot be read.
    #[error("cannot read the sequence file {name}: {reason}")]
    SequenceFileUnreadable {
        /// Name of the sequence file.
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
        /// Name of the sequence file.
        name: String,
        /// Line number, counted from 1.
        line: usize,
        /// The error in the line.
        reason: String,
        /// Expected sequence length `L`, in numbers per line.
        length: usize,
    },

    /// A file with fewer sequences than are needed.
    #[error("the sequence file {name} has {rows} lines, too few for {sequences} sequences (N)")]
    SequenceFileTooShort {
        /// Name of the sequence file.
        name: String,
        /// Number of sequences in the file.
        rows: usize,
        /// Requested number of sequences `N`.
        sequences: usize,
    },

    /// More chips than a set from a file may have.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) exceed the limit of a sequence file: N·L may be at most {max}"
    )]
    SequenceFileTooLarge {
        /// Requested number of sequences `N`.
        sequences: usize,
        /// Requested sequence length `L` in chips.
        length: usize,
        /// Maximum of `N·L`.
        max: usize,
    },

    /// A set too large to simulate.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) are too many: N and L may be at most {max} each, and a \
         Gaussian set may have at most {max_drawn} chips in all"
    )]
    SequenceSetTooLarge {
        /// Requested number of sequences `N`.
        sequences: usize,
        /// Requested sequence length `L` in chips.
        length: usize,
        /// Maximum of `N`, and of `L`.
        max: usize,
        /// Maximum of `N·L` for Gaussian sets, whose chips are all kept in memory.
        max_drawn: usize,
    },

    /// A sequence outside its set.
    #[error("there is no sequence {sequence} in a set of {sequences}; they are counted from 0")]
    NoSuchSequence {
        /// The requested sequence, counted from 0.
        sequence: usize,
        /// Number of sequences `N` in the set.
        sequences: usize,
    },

    /// A list of the wrong length.
    #[error("expected {expected} {what}, but there are {found}")]
    WrongCount {
        /// The items of the list, in words.
        what: &'static str,
        /// Expected number of items.
        expected: usize,
        /// Number of items found.
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
        /// The quantity, in words.
        name: &'static str,
        /// The range, in words.
        allowed: &'static str,
        /// The given value.
        value: f64,
    },

    /// Without noise, the estimate of an unused sequence's channel is exactly zero.
    #[error(
        "{unused} unused sequences (γ) on a channel without noise: their channel estimates are exactly zero and the \
         projector divides by them; give a finite SNR, or N = K"
    )]
    UnusedSequencesWithoutNoise {
        /// Number of unused sequences, `γ = N − K`.
        unused: usize,
    },

    /// A channel estimate of zero, which leads to an infinite gain or noise.
    #[error("the receiver's weight for client {client} is not finite, because its channel estimate is zero")]
    ChannelIsZero {
        /// Number of the client whose channel estimate is zero.
        client: u32,
    },

    /// The number of updates differs from the number of clients.
    #[error("{updates} updates were given for {clients} clients; there must be one for each")]
    UpdateCount {
        /// Number of updates given.
        updates: usize,
        /// Number of clients in the round.
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
        /// Position of the update with a different length, counted from 0.
        index: usize,
        /// The first update's length.
        expected: usize,
        /// Length of that update.
        found: usize,
    },

    /// NaN or an infinity in an update.
    #[error("parameter {parameter} of update {index} is {value}; every value must be finite")]
    NotFinite {
        /// Position of the update in the list, counted from 0.
        index: usize,
        /// Position of the value in the update, counted from 0.
        parameter: usize,
        /// NaN or an infinity.
        value: f32,
    },

    /// A value too large for the grid of masks.
    #[error(
        "parameter {parameter} of the update is {value}; with masks it must be below {limit} in magnitude"
    )]
    BeyondMaskGrid {
        /// Position of the value in the update, counted from 0.
        parameter: usize,
        /// The value that is too large.
        value: f32,
        /// Limit on the magnitude.
        limit: f64,
    },

    /// Finite updates whose weighted sum leaves the range of single precision.
    #[error(
        "the decoded sum leaves the range of single precision at parameter {parameter}, though every update is \
         finite: an update, a gain or the noise is too large"
    )]
    Overflow {
        /// Position of the parameter in the decoded sum, counted from 0.
        parameter: usize,
    },

    /// More chips than a round may have at the chip level.
    #[error(
        "{parameters} parameters of {length} chips (L) are too many for the chip level: L may be at most {max_length}, \
         and all chips together at most {max}; the symbol level has no such limit"
    )]
    TooManyChips {
        /// Number of parameters `d` in an update.
        parameters: usize,
        /// Sequence length `L` in chips.
        length: usize,
        /// Maximum of `L`, which bounds the memory of a thread.
        max_length: usize,
        /// Maximum of `L·d`, beyond which noise would repeat.
        max: u64,
    },

    /// Noise weaker than the rounding of the chips.
    #[error(
        "the rounding errors of chips of magnitude {largest_chip} in single precision are too large for noise of standard \
         deviation {chip_noise_std}: lower the SNR, clip the updates, or take the symbol level"
    )]
    NoiseBelowPrecision {
        /// Largest magnitude of a chip on the air, before noise.
        largest_chip: f32,
        /// Standard deviation of the noise in a chip.
        chip_noise_std: f64,
    },

    /// Sequences without a fast transform, too many to despread them all.
    #[error(
        "{sequences} sequences (N) of {length} chips (L) without a fast transform are too many for the chip level: N·L \
         may be at most {max}; take Walsh sequences, or the symbol level"
    )]
    TransformTooLong {
        /// Number of sequences `N` in the set.
        sequences: usize,
        /// Sequence length `L` in chips.
        length: usize,
        /// Maximum of `N·L`.
        max: usize,
    },

    /// A round after the last one in the channel trace.
    #[error(
        "the channel trace is too short: round {round} was asked for, and its last one is {last} (counted from 0)",
        last = rounds.saturating_sub(1)
    )]
    TraceTooShort {
        /// The requested round, counted from 0.
        round: u32,
        /// Number of rounds in the trace.
        rounds: u32,
    },

    /// A client without a coefficient in the channel trace.
    #[error("the channel trace has no coefficient for client {client} in round {round}")]
    TraceLacksClient {
        /// The round, counted from 0.
        round: u32,
        /// Number of the client without a coefficient.
        client: u32,
    },

    /// A trace that cannot be read.
    #[error("cannot read the channel trace {name}: {reason}")]
    TraceUnreadable {
        /// Name of the trace file.
        name: String,
        /// The error of the operating system.
        reason: String,
    },

    /// A trace with a wrong line.
    #[error(
        "line {line} of the channel trace {name}: {reason}; expected round,client,real,imaginary, as in 0,3,0.71,-0.2"
    )]
    TraceMalformed {
        /// Name of the trace file.
        name: String,
        /// Line number, counted from 1.
        line: usize,
        /// The error in the line.
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
