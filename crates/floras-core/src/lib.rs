//! The shared vocabulary of the floras crates, and their random streams.
//!
//! Every choice that a user can make is one type. It implements [`Choice`]: one text form for the experiment file, the command
//! line, JSON and Python, a list of its values, and a short label for tables and figures. Values out of range cannot be
//! constructed.
//!
//! | choice | text forms |
//! |---|---|
//! | [`Receiver`] | `paper`, `mmse`, `mmse=k`, `clipped=c` |
//! | [`Modulation`] | `real`, `phase-corrected`, `phase-corrected=error`, `complex` |
//! | [`ParametersPerSymbol`] | `1`, `2` (an integer) |
//! | [`PhaseError`] | `none`, `uniform=a`, `gaussian=s` |
//! | [`Fading`] | `rayleigh`, `none`, `rician=k`, `nakagami=m` |
//! | [`ChannelSource`] | those of [`Fading`], `trace=file` |
//! | [`Ageing`] | `none`, `correlation=r`, `doppler=f` |
//! | [`PathLoss`] | `none`, `exponent=n,shadowing_db=s,min_distance=m,power_control=k` |
//! | [`SnrConvention`] | `symbol`, `complex-symbol`, `despread` |
//! | [`Family`] | `walsh`, `orthonormal`, `gaussian`, `gold`, `zadoff-chu` |
//! | [`SequenceSource`] | those of [`Family`], `file=path` |
//! | [`Fidelity`] | `symbol`, `chip` |
//! | [`View`] | `published`, `idealised`, `actual`, `any-channel`, `raw-signal` |
//! | [`Level`] | `client`, `item` |
//! | [`LocalWork`] | `one-step`, `steps=n`, `epochs` |
//! | [`Neighbours`] | `replace-one`, `add-remove` |
//! | [`Clipping`] | `clip`, `paper` |
//! | [`Admission`] | `amplitude=h`, `power=p` |
//! | [`PowerRule`] | `worst-admitted`, `fixed-at-threshold` |
//! | [`TransmitPower`] | `unscaled`, `unit` |
//! | [`NoiseReference`] | `per-symbol`, `same-bandwidth` |
//! | [`Projector`] | `normalised`, `printed` |
//! | [`RoundSet`] | `none`, `all`, rounds such as `1,5,10-20` |
//! | [`Assignment`] | `seed`, `keyed` |
//! | [`Dropout`] | `p` (a number), `trace=file` |
//!
//! [`Pilot`] has two numbers, and is a table in files: `{ amplitude = 1, repetitions = 1 }`. So are [`Masks`]:
//! `{ mask_std = 2, noise_std = 0.1, colluding = 0 }`.
//!
//! ```
//! use floras_core::{Choice, Receiver};
//!
//! let receiver: Receiver = "clipped=1".parse()?;
//! assert_eq!(receiver, Receiver::clipped(1.0)?);
//! assert_eq!(receiver.to_string(), "clipped=1");
//! let error = "clipped=0".parse::<Receiver>().unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "the receiver must be paper, mmse, mmse=k or clipped=c (k between 0.01 and 1e4, c between 1e-6 and 1e6), not clipped=0"
//! );
//! # Ok::<(), floras_core::ChoiceError>(())
//! ```

mod admission;
mod ageing;
mod assignment;
mod bounded;
mod channel_source;
mod choice;
mod clipping;
mod dropout;
mod fading;
mod family;
mod fidelity;
mod level;
mod masks;
mod modulation;
mod neighbours;
mod noise_reference;
mod parameters_per_symbol;
mod path_loss;
mod phase_error;
mod pilot;
mod power_rule;
mod projector;
pub mod random;
mod receiver;
mod round_set;
mod rounding;
mod sequence_source;
mod snr;
mod transmit_power;
pub mod verdict;
mod view;

pub use admission::{Admission, AmplitudeThreshold, PowerThreshold};
pub use ageing::{Ageing, BlockCorrelation, DopplerFrequency};
pub use assignment::Assignment;
pub use channel_source::ChannelSource;
pub use choice::{Choice, ChoiceError, deserialize, list, split};
pub use clipping::Clipping;
pub use dropout::Dropout;
pub use fading::{Fading, NakagamiShape, RicianFactor};
pub use family::Family;
pub use fidelity::Fidelity;
pub use level::{Level, LocalWork, StepCount};
pub use masks::Masks;
pub use modulation::Modulation;
pub use neighbours::Neighbours;
pub use noise_reference::NoiseReference;
pub use parameters_per_symbol::ParametersPerSymbol;
pub use path_loss::{Cell, PathLoss};
pub use phase_error::{HalfWidth, PhaseError, PhaseStd};
pub use pilot::Pilot;
pub use power_rule::PowerRule;
pub use projector::Projector;
pub use receiver::{ClipLevel, Receiver, Regularisation};
pub use round_set::RoundSet;
pub use rounding::Rounding;
pub use sequence_source::{SequenceFile, SequenceSource};
pub use snr::{Snr, SnrConvention};
pub use transmit_power::TransmitPower;
pub use view::View;

#[doc(hidden)]
pub use serde;

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
