//! The air interface of FLORAS: private federated learning over the air without channel knowledge at the clients.
//!
//! `K` clients send their updates at the same moment over the same radio channel, each spread by a secret sequence.
//! The base station learns all channels from one common pilot and decodes only the sum; the unused sequences
//! amplify the receiver's noise, which protects the clients' updates.
//!
//! | item | content |
//! |---|---|
//! | [`SequenceSet`] | spreading sequences: Walsh, orthonormal, Gaussian, Gold, Zadoff–Chu, or from a file |
//! | [`assignment`] | which client uses which sequence, hidden from the base station |
//! | [`Channels`], [`Trace`] | channel coefficients: drawn, measured or fixed; ageing, path loss, the clients' estimates |
//! | [`Uplink`] and its schemes | [`Floras`], [`ChannelInversion`], [`BroadbandInversion`], [`PowerControl`], [`PhaseCorrected`], [`Ideal`], [`CentralGaussian`] |
//! | [`Masked`], [`UnitPower`] | any of them with masks, or with symbols of unit power |
//! | [`Aggregation`] | a whole round: clip, send, decode, clamp |
//! | [`EffectiveChannel`], [`ChipLink`] | the two fidelities: symbol level and chip level |
//! | [`Projection`], [`Amp`] | compressed updates, and their recovery |
//! | [`Cost`] | transmit power, channel uses and energy of a round |
//! | [`Signal`] | channels, estimates, assignment and noise behind a round's gains |
//! | [`precode`] | clipping, the paper's normalisation, truncation, the server's step |
//! | [`masks`] | zero-sum masks between clients, against the base station itself |
//! | [`release`] | noise for sums of real data: cryptographic, on a public grid |
//!
//! A round in full:
//!
//! ```
//! use floras_phy::*;
//!
//! let uplink = Floras::new(FlorasSettings {
//!     sequences: SequenceSet::walsh(3, 4)?,
//!     modulation: Modulation::Real,
//!     receiver: Receiver::Paper,
//!     channels: Fading::Rayleigh.into(),
//!     snr: Snr::new(20.0, SnrConvention::Symbol)?,
//!     ..FlorasSettings::default()
//! });
//! let updates = [vec![0.1, -0.2, 0.3], vec![0.0, 0.5, 0.1]];
//! let round = Round::new(1, 0, 1, &[0, 1])?;
//! let aggregation = Aggregation { clip: Some(1.0), truncate: Some(6.0), ..Aggregation::default() };
//! let aggregate = aggregation.run(&uplink, round, &updates)?;
//! let mut model = vec![0.0; 3];
//! precode::server_step(&mut model, &aggregate.sum, 2)?;
//! # Ok::<(), UplinkError>(())
//! ```
//!
//! # Citations
//! Wei, Wang, Huang, Shen, Yang, Poor, *Differentially private wireless federated learning using orthogonal
//! sequences*, IEEE Trans. Inf. Theory 72(5), 2026, arXiv:2306.08280: the paper that this crate calls "the paper".

mod aggregation;
mod amp;
pub mod assignment;
mod channels;
mod chip;
mod cost;
mod effective;
mod error;
mod kernel;
mod lines;
pub mod masks;
mod memory;
pub mod precode;
mod projection;
pub mod release;
mod round;
mod sequences;
mod updates;
mod uplink;
mod walsh;

pub use aggregation::{Aggregate, Aggregation, Noise, RoundInProgress};
pub use amp::{Amp, Recovered};
pub use channels::{Channels, PayloadBlock, Trace};
pub use chip::{ChipBlock, ChipLink};
pub use cost::{Cost, Transmission};
pub use effective::{Block, EffectiveChannel};
pub use error::UplinkError;
/// The vocabulary of the air interface.
pub use floras_core::{
    Admission, Ageing, Assignment, Cell, ChannelSource, ClipLevel, Fading, Family, Fidelity, Modulation,
    NoiseReference, ParametersPerSymbol, PathLoss, PhaseError, Pilot, PowerRule, Projector, Receiver,
    SequenceFile, SequenceSource, Snr, SnrConvention, random,
};
pub use memory::ClientMemory;
/// A channel coefficient `h`, or a complex symbol; dimensionless.
pub use num_complex::Complex64;
pub use projection::Projection;
pub use round::Round;
pub use sequences::SequenceSet;
pub use uplink::{
    ADsgd, ADsgdSettings, ArtificialNoise, ArtificialNoiseSettings, Blind, BlindSettings, BroadbandInversion,
    BroadbandInversionSettings, CentralGaussian, ChannelInversion, ChannelInversionSettings, CodeRate, Cotaf,
    CotafSettings, DDsgd, DDsgdSettings, Decoded, Digital, DigitalSettings, Floras, FlorasSettings, FskVote,
    FskVoteSettings, Ideal, LevelPolicy, Masked, Nonlinear, OneBit, PhaseCorrected, PhaseCorrectedSettings,
    PowerControl, PowerControlSettings, PowerSplit, Received, Sent, Signal, UnitPower, Uplink, transmit,
    transmit_into, unit_scale,
};

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
