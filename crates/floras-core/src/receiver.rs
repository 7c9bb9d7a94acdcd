//! The receiver's weights: what the base station does with a channel estimate `ĥ`.
//!
//! The decoder is the projection on `v = Σ_k w(ĥ_k) a_k`, over all `N` sequences. With `s` the standard deviation of
//! the estimate's own noise:
//!
//! | receiver | weight `w(ĥ)` | largest weight |
//! |---|---|---|
//! | [`Receiver::Paper`] | `1/ĥ` | none |
//! | [`Receiver::Mmse`] | `ĥ/(ĥ² + s²)` | `1/(2s)` |
//! | [`Receiver::Clipped`] | `sign(ĥ)/max(|ĥ|, c·s)` | `1/(c·s)` |
//!
//! The paper's weight is unbounded: it makes the unused sequences' noise Cauchy, and lets a faded client's gain grow
//! with the noise. The clipped projector is this project's own answer to both.

use std::fmt;
use std::str::FromStr;

use crate::bounded;
use crate::choice::{Choice, ChoiceError, split};

/// How a channel estimate becomes a weight of the projector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Receiver {
    /// `1/ĥ`, as in the paper (section IV-A, step 2).
    #[default]
    Paper,
    /// `ĥ/(ĥ² + s²)`, the least mean square error for a symbol of unit power.
    Mmse,
    /// `sign(ĥ)/max(|ĥ|, c·s)`: the paper's weight, bounded at `c` times the pilot's own noise.
    Clipped(ClipLevel),
}

bounded!(
    /// `c`, the level of the clipped projector in units of the pilot's noise: between 1e-6 and 1e6.
    ClipLevel: f64,
    Receiver,
    "clipped",
    (1e-6..=1e6)
);

impl ClipLevel {
    /// `c = 1`: weights are bounded at the pilot's own noise.
    pub const ONE: Self = Self(1.0);
}

impl Receiver {
    /// The clipped projector at level `c`, between 1e-6 and 1e6.
    pub fn clipped(c: f64) -> Result<Self, ChoiceError> {
        ClipLevel::new(c).map(Self::Clipped)
    }

    /// The level `c` of the clipped projector.
    pub fn level(self) -> Option<f64> {
        match self {
            Self::Paper | Self::Mmse => None,
            Self::Clipped(c) => Some(c.get()),
        }
    }

    /// The same weights in units of a noise that is `factor` times as strong, if the level stays in its range.
    pub fn in_units_of(self, factor: f64) -> Result<Self, ChoiceError> {
        match self {
            Self::Paper | Self::Mmse => Ok(self),
            Self::Clipped(c) => Self::clipped(c.get() / factor),
        }
    }

    /// The same with a level of at least `least`.
    pub fn with_level_at_least(self, least: ClipLevel) -> Self {
        match self {
            Self::Clipped(c) if c < least => Self::Clipped(least),
            Self::Paper | Self::Mmse | Self::Clipped(_) => self,
        }
    }

    /// What the base station uses, in a few words.
    pub fn description(self) -> String {
        match self {
            Self::Paper => "the receiver of the paper, which divides by the channel estimates".to_owned(),
            Self::Mmse => "the receiver with the least mean square error".to_owned(),
            Self::Clipped(c) => {
                format!("a receiver that bounds its amplification (clipped projector, c = {c})")
            }
        }
    }

    /// `w(ĥ)`, with `estimate_noise_std = s`.
    pub fn weight(self, estimate: f64, estimate_noise_std: f64) -> f64 {
        match self {
            Self::Paper => 1.0 / estimate,
            Self::Mmse => estimate / (estimate * estimate + estimate_noise_std * estimate_noise_std),
            Self::Clipped(c) => estimate.signum() / estimate.abs().max(c.get() * estimate_noise_std),
        }
    }
}

impl Choice for Receiver {
    const WHAT: &'static str = "receiver";
    const FORMS: &'static [&'static str] = &["paper", "mmse", "clipped=c"];
    const RANGES: &'static str = "c between 1e-6 and 1e6";

    fn label(&self) -> String {
        match self {
            Self::Paper => "paper, 1/ĥ".to_owned(),
            Self::Mmse => "MMSE".to_owned(),
            Self::Clipped(c) => format!("clipped projector, c = {c}"),
        }
    }
}

impl FromStr for Receiver {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let refuse = || Self::refuse(text);
        match split(text) {
            ("paper", None) => Ok(Self::Paper),
            ("mmse", None) => Ok(Self::Mmse),
            ("clipped", Some(c)) => Self::clipped(c.parse().map_err(|_| refuse())?),
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paper => f.pad("paper"),
            Self::Mmse => f.pad("mmse"),
            Self::Clipped(c) => write!(f, "clipped={c}"),
        }
    }
}

crate::serde_as_text!(Receiver);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_noise_all_receivers_invert_the_channel() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.5).unwrap()] {
            for h in [-2.0, -0.01, 0.3, 5.0] {
                assert!((receiver.weight(h, 0.0) * h - 1.0).abs() < 1e-12);
            }
        }
    }

    /// `ĥ = ½`, `s = ¼`: weights 2, ½/(¼ + 1/16) = 1.6, and 1/max(½, ¾) = 4/3 for `c = 3`.
    #[test]
    fn weights_are_those_of_the_table() {
        let clipped = Receiver::clipped(3.0).unwrap();
        for (receiver, expected) in [(Receiver::Paper, 2.0), (Receiver::Mmse, 1.6), (clipped, 4.0 / 3.0)] {
            assert!((receiver.weight(0.5, 0.25) - expected).abs() < 1e-15, "{receiver}");
        }
    }

    #[test]
    fn a_level_out_of_range_is_refused() {
        for c in [0.0, -1.0, 1e-7, 1e7, f64::NAN, f64::INFINITY] {
            assert!(Receiver::clipped(c).is_err(), "{c}");
        }
        for c in [1e-6, 1e6] {
            assert!(Receiver::clipped(c).is_ok(), "{c}");
        }
    }

    proptest! {
        #[test]
        fn weights_are_odd_and_bounded_as_stated(h in 1e-9_f64..10.0, s in 1e-3_f64..1.0, c in 0.1_f64..4.0) {
            let clipped = Receiver::clipped(c).unwrap();
            for (receiver, largest) in [(Receiver::Mmse, 0.5 / s), (clipped, 1.0 / (c * s))] {
                let weight = receiver.weight(h, s);
                prop_assert!(weight > 0.0 && weight <= largest * (1.0 + 1e-12));
                prop_assert!(weight <= Receiver::Paper.weight(h, s) * (1.0 + 1e-12));
                prop_assert_eq!(receiver.weight(-h, s), -weight);
            }
        }
    }
}
