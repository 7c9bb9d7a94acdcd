//! What can be wrong with the input of the accounting, and when there is no guarantee to state.

use floras_core::View;
use thiserror::Error;

/// Why there is no number. Each message names the thing and what is allowed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PrivacyError {
    /// A number outside its range.
    #[error("{name} must be {allowed}, not {}", plain(*.value))]
    OutOfRange {
        /// What the number is, in words.
        name: &'static str,
        /// The range, in words.
        allowed: &'static str,
        /// What was given.
        value: f64,
    },

    /// A choice out of range.
    #[error(transparent)]
    Choice(#[from] floras_core::ChoiceError),

    /// Two numbers that do not fit together.
    #[error("{name} must be {allowed}, not {value}")]
    Inconsistent {
        /// What the number is, in words.
        name: &'static str,
        /// What it has to fit, in words.
        allowed: String,
        /// What was given.
        value: u64,
    },

    /// A composition of nothing.
    #[error("there is nothing to compose: give at least one kind of rounds")]
    NoRounds,

    /// Rounds that are about different neighbours.
    #[error(
        "rounds with replace-one neighbours and rounds with add-or-remove neighbours do not compose: all must have the same"
    )]
    MixedNeighbours,

    /// Accounts of one federation that answer different questions.
    #[error("all accounts must have the same delta, not {one:?} and {other:?}")]
    DifferentDeltas {
        /// The first account's.
        one: f64,
        /// Another one's.
        other: f64,
    },

    /// Masks under the paper's normalisation.
    #[error(
        "masks need updates that are clipped each on its own: the normalisation must be clip, not paper, which sends the \
         updates' means and norms without masks"
    )]
    MaskedNormalisation,

    /// `γ = 0`.
    #[error(
        "there is no guarantee without unused sequences: γ = N − K must be at least 1, because it is their noise that hides \
         a client"
    )]
    NoUnusedSequences,

    /// A published number for a receiver that the paper does not have.
    #[error("the paper's theorems are for one real branch, not for {branches}")]
    SeveralBranches {
        /// Real branches of the receiver.
        branches: u32,
    },

    /// A `δ` below the probability that everything leaks.
    #[error(
        "there is no epsilon for delta = {delta}: with a probability of {least} the noise does not hide anything"
    )]
    DeltaOutOfReach {
        /// What was asked for.
        delta: f64,
        /// What is possible.
        least: f64,
    },

    /// A view of the radio without a radio.
    #[error("the {view} view needs the channel: give the length of the sequences and the SNR")]
    NeedsChannel {
        /// The view.
        view: View,
    },

    /// A calibration without a solution.
    #[error("nothing meets epsilon = {epsilon} in the {view} view: {why}")]
    NothingMeets {
        /// In which view.
        view: View,
        /// What was asked for.
        epsilon: f64,
        /// Why not.
        why: String,
    },

    /// No `ε` of any use.
    #[error("no epsilon up to {most:e} is established for this delta")]
    EpsilonOutOfReach {
        /// The largest that was looked at.
        most: f64,
    },
}

impl PrivacyError {
    /// Whether the input is in order, and there is just no guarantee.
    pub fn is_no_guarantee(&self) -> bool {
        matches!(
            self,
            Self::NoUnusedSequences
                | Self::SeveralBranches { .. }
                | Self::DeltaOutOfReach { .. }
                | Self::EpsilonOutOfReach { .. }
                | Self::NothingMeets { .. }
        )
    }
}

/// Integers without a decimal point, other numbers in their shortest form.
fn plain(value: f64) -> String {
    if value.trunc() == value && value.abs() < 1e15 { format!("{value}") } else { format!("{value:?}") }
}

/// `Ok` if the condition holds, and otherwise the error that `name` must be `allowed`.
pub(crate) fn require(
    holds: bool,
    name: &'static str,
    allowed: &'static str,
    value: f64,
) -> Result<(), PrivacyError> {
    if holds { Ok(()) } else { Err(PrivacyError::OutOfRange { name, allowed, value }) }
}

/// `ε ≥ 0`.
pub(crate) fn require_epsilon(epsilon: f64) -> Result<(), PrivacyError> {
    require(epsilon >= 0.0 && epsilon.is_finite(), "epsilon", "a finite number of at least 0", epsilon)
}

/// `10⁻³⁰ ≤ δ < 1`. Integrals leave out tails of about 10⁻³², which are counted as infinite losses; a smaller `δ` is not certified.
pub(crate) fn require_delta(delta: f64) -> Result<(), PrivacyError> {
    require((1e-30..1.0).contains(&delta), "delta", "at least 1e-30 and below 1", delta)
}

/// A positive number far from the ends of double precision.
pub(crate) fn require_positive(name: &'static str, value: f64) -> Result<(), PrivacyError> {
    require((1e-30..=1e30).contains(&value), name, "between 1e-30 and 1e30", value)
}

/// Checks the number of rounds; every allowed value is exact as `f64`.
pub(crate) fn require_rounds(rounds: u64) -> Result<(), PrivacyError> {
    require((1..=1_000_000_000).contains(&rounds), "rounds", "between 1 and 1e9", rounds as f64)
}
