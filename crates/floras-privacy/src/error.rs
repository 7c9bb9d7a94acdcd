//! Errors of the accounting: invalid input, and settings without a guarantee.

use floras_core::View;
use thiserror::Error;

/// An error of the accounting. Each message names the quantity and its allowed range.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PrivacyError {
    /// A number outside its range.
    #[error("{name} must be {allowed}, not {}", plain(*.value))]
    OutOfRange {
        /// Name of the quantity, for the message.
        name: &'static str,
        /// Allowed range, for the message.
        allowed: &'static str,
        /// The rejected value.
        value: f64,
    },

    /// An invalid choice, such as a clip level out of range.
    #[error(transparent)]
    Choice(#[from] floras_core::ChoiceError),

    /// Two numbers that are each in range but contradict one another.
    #[error("{name} must be {allowed}, not {value}")]
    Inconsistent {
        /// Name of the quantity, for the message.
        name: &'static str,
        /// The condition on it, for the message.
        allowed: String,
        /// The rejected value.
        value: u64,
    },

    /// No rounds to compose.
    #[error("there is nothing to compose: give at least one kind of rounds")]
    NoRounds,

    /// Rounds with different neighbouring relations.
    #[error(
        "rounds with replace-one neighbours and rounds with add-or-remove neighbours do not compose: all must have the same"
    )]
    MixedNeighbours,

    /// Accounts with different `δ`, which do not compose.
    #[error("all accounts must have the same delta, not {one:?} and {other:?}")]
    DifferentDeltas {
        /// `δ` of the first account.
        one: f64,
        /// Privacy parameter `δ` of the account that differs from the others, between 0 and 1.
        other: f64,
    },

    /// Masks under the paper's normalisation.
    #[error(
        "masks need updates that are clipped each on its own: the normalisation must be clip, not paper, which sends the \
         updates' means and norms without masks"
    )]
    MaskedNormalisation,

    /// No unused sequences: `γ = N − K = 0`.
    #[error(
        "there is no guarantee without unused sequences: γ = N − K must be at least 1, because it is their noise that hides \
         a client"
    )]
    NoUnusedSequences,

    /// The paper's theorems do not cover a receiver with several branches.
    #[error("the paper's theorems are for one real branch, not for {branches}")]
    SeveralBranches {
        /// Number of real branches of the receiver.
        branches: u32,
    },

    /// `δ` is below the probability of an infinite loss.
    #[error(
        "there is no epsilon for delta = {delta}: with a probability of {least} the noise does not hide anything"
    )]
    DeltaOutOfReach {
        /// The requested `δ`.
        delta: f64,
        /// The probability of an infinite loss, a lower limit of `δ`.
        least: f64,
    },

    /// A view that needs the channel, for a setting without one.
    #[error("the {view} view needs the channel: give the length of the sequences and the SNR")]
    NeedsChannel {
        /// The view that was requested.
        view: View,
    },

    /// No setting meets the target of a calibration.
    #[error("no setting meets epsilon = {epsilon} in the {view} view: {why}")]
    NothingMeets {
        /// The view of the target.
        view: View,
        /// The requested `ε`.
        epsilon: f64,
        /// The reason, for the message.
        why: String,
    },

    /// No `ε` in the supported range holds at this `δ`.
    #[error("no epsilon up to {most:e} is established for this delta")]
    EpsilonOutOfReach {
        /// The largest `ε` that was tried.
        most: f64,
    },
}

impl PrivacyError {
    /// Whether the input is valid but no guarantee exists.
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

/// Returns `Ok` if the condition holds; otherwise the error that `name` must be `allowed`.
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

/// Maximum number of curves that are composed: rounds times the parts of a round.
pub(crate) const MAX_COMPOSED: u64 = 1_000_000_000_000;

/// Checks the number of composed curves.
pub(crate) fn require_composed(count: u64) -> Result<(), PrivacyError> {
    let allowed = "between 1 and 1e12";
    require((1..=MAX_COMPOSED).contains(&count), "rounds times the parts of a round", allowed, count as f64)
}

/// Checks the number of rounds; every allowed value is exact as `f64`.
pub(crate) fn require_rounds(rounds: u64) -> Result<(), PrivacyError> {
    require((1..=1_000_000_000).contains(&rounds), "rounds", "between 1 and 1e9", rounds as f64)
}
