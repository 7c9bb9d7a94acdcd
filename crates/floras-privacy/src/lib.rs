//! Privacy accounting for federated learning over the air: `(ε, δ)` bounds against several adversaries.
//!
//! Given the channels and the pilot's noise, a round of any linear uplink is a Gaussian mechanism with some `μ`. Every rigorous
//! [`View`] is a distribution of `μ`, the input of one composition engine: `δ₁(ε) = E_μ[δ_G(ε; μ)]`, sampling, `T` rounds.
//!
//! | item | contents |
//! |---|---|
//! | [`Account`], [`Setting`], [`View`] | all views of a federation, for any number of rounds |
//! | [`mixed`] | the same for rounds that differ |
//! | [`calibrate`] | the sequences, the clip norm, the level or the rounds that meet an `ε` |
//! | [`ledger`] | the privacy loss of each round of a run |
//! | [`DeltaCurve`], [`TradeOff`], [`RenyiCurve`] | the privacy curves of a view |
//! | [`LossFile`], [`JointLoss`] | loss distributions to export, to import and to compose |
//! | [`group_epsilon`] | group privacy: several clients together |
//! | [`MuDistribution`], [`Curve`], [`Sampling`], [`Composition`] | the engine |
//! | [`idealised`], [`AnyChannel`], [`Coefficients`] | the distributions of the views |
//! | [`EnergyVote`], [`Energies`] | curves of votes, which are not Gaussian mechanisms |
//! | [`MaskBound`] | the bound of masks, which holds in every view |
//! | [`published`] | the paper's theorems as printed, which are not guarantees |
//! | [`cauchy`], [`rdp`], [`gaussian`], [`normal`] | closed forms |
//!
//! # Citations
//! Wei, Wang, Huang, Shen, Yang, Poor, *Differentially private wireless federated learning using orthogonal
//! sequences*, IEEE Trans. Inf. Theory 72(5), 2026, arXiv:2306.08280: the paper that this crate calls "the paper".

mod account;
pub mod calibrate;
mod curves;
mod engine;
mod error;
pub mod ledger;
mod mechanisms;
pub mod mixed;
mod numerics;
pub mod published;
mod setting;
mod views;

pub use account::{Account, Source};
pub use curves::delta::DeltaCurve;
pub use curves::group::{GroupBound, GroupEpsilon, MAX_GROUP, group_epsilon, group_epsilon_of};
pub use curves::pld::{JointLoss, LossDirection, LossFile, LossFileError, RoundLoss};
pub use curves::renyi::{ORDERS, RenyiCurve};
pub use curves::tradeoff::TradeOff;
pub use engine::compose::{Bounds, Composition, Grid, MAX_EPSILON, Part};
pub use engine::distribution::{Cells, MuDistribution, Values};
pub use engine::sampling::{Curve, Sampling};
pub use error::PrivacyError;
/// The terms of the accounting.
pub use floras_core::{
    ClipLevel, Clipping, Fading, Level, LocalWork, Masks, Modulation, Neighbours, PhaseError, Receiver, View,
};
pub use mechanisms::{Energies, EnergyVote};
pub use numerics::solve::largest_integer;
pub use numerics::{gaussian, normal};
pub use published::{cauchy, rdp};
pub use setting::{Margins, NORMALISED, PrivacyUnit, Setting};
pub use views::actual::Coefficients;
pub use views::any_channel::{AnyChannel, simple_bound};
pub use views::idealised::{idealised, idealised_of_branches};
pub use views::masks::MaskBound;
pub use views::receiver::{clipped_mean, clipped_mean_of_branches};
pub use views::statement::{Statement, Views};

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
