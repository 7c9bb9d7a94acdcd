//! The accounting: how private a federation over the air is, and against whom.
//!
//! Given the channels and the pilot's noise, a round of any linear uplink is a Gaussian mechanism with some `μ`. Every rigorous
//! [`View`] is a law of `μ`, fed to one composition engine: `δ₁(ε) = E_μ[δ_G(ε; μ)]`, sampling, `T` rounds.
//!
//! | item | what it holds |
//! |---|---|
//! | [`Account`], [`Setting`], [`View`] | all views of a federation, for any number of rounds |
//! | [`mixed`] | the same for rounds that differ |
//! | [`calibrate`] | the sequences, the clip norm, the level or the rounds that meet an `ε` |
//! | [`ledger`] | what each round of a run has spent |
//! | [`DeltaCurve`], [`TradeOff`], [`RenyiCurve`] | what a view leaks, as curves |
//! | [`LossFile`], [`JointLoss`] | loss distributions to export, to import and to compose |
//! | [`group_epsilon`] | several clients together |
//! | [`Law`], [`Curve`], [`Sampling`], [`Composition`] | the engine |
//! | [`idealised`], [`AnyChannel`], [`Coefficients`] | the laws of the views |
//! | [`published`] | the paper's theorems as printed, which are no guarantees |
//! | [`cauchy`], [`rdp`], [`gaussian`], [`normal`] | closed forms |
//!
//! # Citations
//! Wei, Wang, Huang, Shen, Yang, Poor, *Differentially private wireless federated learning using orthogonal
//! sequences*, IEEE Trans. Inf. Theory 72(5), 2026, arXiv:2306.08280: the paper that this crate calls "the paper".

mod account;
mod actual;
mod any_channel;
pub mod calibrate;
pub mod cauchy;
mod chords;
mod compose;
mod curve;
mod error;
mod few;
mod fourier;
mod gains;
pub mod gaussian;
mod group;
mod law;
pub mod ledger;
mod loss;
pub mod mixed;
mod nodes;
mod noise;
pub mod normal;
mod pilot;
mod pld;
mod prepared;
pub mod published;
mod pure;
mod quadrature;
pub mod rdp;
mod receiver;
mod renyi;
mod sampling;
mod setting;
mod solve;
mod table;
mod tabulated;
mod tilt;
mod tradeoff;
mod view;
mod window;

pub use account::{Account, Source};
pub use actual::Coefficients;
pub use any_channel::{AnyChannel, idealised, simple_bound};
pub use compose::{Bounds, Composition, Grid, MAX_EPSILON, Part};
pub use curve::DeltaCurve;
pub use error::PrivacyError;
/// The vocabulary of the accounting.
pub use floras_core::{
    ClipLevel, Clipping, Fading, Level, LocalWork, Modulation, Neighbours, PhaseError, Receiver, View,
};
pub use group::{GroupBound, GroupEpsilon, MAX_GROUP, group_epsilon};
pub use law::{Cells, Law, Values};
pub use pld::{JointLoss, LossDirection, LossFile, LossFileError, RoundLoss};
pub use receiver::clipped_mean;
pub use renyi::{ORDERS, RenyiCurve};
pub use sampling::{Curve, Sampling};
pub use setting::{Margins, NORMALISED, PrivacyUnit, Setting};
pub use tradeoff::TradeOff;
pub use view::{Statement, Views};
