//! The receiver's weights, computed from a channel estimate `ĥ`.
//!
//! The decoder projects on `v = Σ_k w(ĥ_k) a_k`, over all `N` sequences. With `s` the standard deviation of the estimation
//! noise:
//!
//! | receiver | weight `w(ĥ)` | largest weight |
//! |---|---|---|
//! | [`Receiver::Paper`] | `1/ĥ` | none |
//! | [`Receiver::Mmse`] | `ĥ/(ĥ² + s²)` | `1/(2s)` |
//! | [`Receiver::Regularised`] | `ĥ/(ĥ² + κ·s²)` | `1/(2√κ·s)` |
//! | [`Receiver::Clipped`] | `sign(ĥ)/max(|ĥ|, c·s)` | `1/(c·s)` |
//!
//! The paper's weight is unbounded: it makes the noise of unused sequences Cauchy, and a faded client's gain grows with the
//! noise. The clipped projector is this project's answer to both.
//!
//! A sequence received on `B` real branches has one estimate per branch, `ĥ ∈ ℝᴮ`. Its weights are `(ĥ/‖ĥ‖)·w(‖ĥ‖)`:
//! maximum-ratio combining, scaled as one branch with the estimate `‖ĥ‖`. The paper's weights become `ĥ/‖ĥ‖²`, and the
//! regularised ones `ĥ/(ĥ² + κ·s²)` become `ĥ/(‖ĥ‖² + κ·s²)`.

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
    /// `ĥ/(ĥ² + s²)`, which minimises the mean square error for a symbol of unit power.
    Mmse,
    /// `ĥ/(ĥ² + κ·s²)`, as [`Mmse`](Self::Mmse) for symbols whose power is `1/κ`, or for estimates whose noise adds to the payload's.
    Regularised(Regularisation),
    /// `sign(ĥ)/max(|ĥ|, c·s)`: the paper's weight, bounded at `c` times the pilot noise.
    Clipped(ClipLevel),
}

bounded!(
    /// `c`, the level of the clipped projector in units of the pilot noise: between 1e-6 and 1e6.
    ClipLevel: f64,
    Receiver,
    "clipped",
    (1e-6..=1e6)
);

bounded!(
    /// `κ`, the regularisation in units of the pilot noise power: between 0.01 and 1e4.
    Regularisation: f64,
    Receiver,
    "mmse",
    (1e-2..=1e4)
);

impl ClipLevel {
    /// `c = 1`: weights are bounded at the pilot noise.
    pub const ONE: Self = Self(1.0);
}

impl Receiver {
    /// The clipped projector at level `c`, between 1e-6 and 1e6.
    pub fn clipped(c: f64) -> Result<Self, ChoiceError> {
        ClipLevel::new(c).map(Self::Clipped)
    }

    /// The receiver with weights `ĥ/(ĥ² + κ·s²)`, `κ` between 0.01 and 1e4; [`Mmse`](Self::Mmse) for `κ = 1`.
    pub fn regularised(kappa: f64) -> Result<Self, ChoiceError> {
        Ok(match Regularisation::new(kappa)? {
            Regularisation(1.0) => Self::Mmse,
            kappa => Self::Regularised(kappa),
        })
    }

    /// `κ` of weights `ĥ/(ĥ² + κ·s²)`; `None` for other weights. These weights are not largest for the smallest estimates.
    pub fn regularisation(self) -> Option<f64> {
        match self {
            Self::Mmse => Some(1.0),
            Self::Regularised(kappa) => Some(kappa.get()),
            Self::Paper | Self::Clipped(_) => None,
        }
    }

    /// The level `c` of the clipped projector.
    pub fn level(self) -> Option<f64> {
        match self {
            Self::Paper | Self::Mmse | Self::Regularised(_) => None,
            Self::Clipped(c) => Some(c.get()),
        }
    }

    /// The same weights in units of noise that is `factor` times as strong, if the level stays in its range.
    pub fn in_units_of(self, factor: f64) -> Result<Self, ChoiceError> {
        match self {
            Self::Paper | Self::Mmse | Self::Regularised(_) => Ok(self),
            Self::Clipped(c) => Self::clipped(c.get() / factor),
        }
    }

    /// The same weights; a clipped projector has a level of at least `minimum`.
    pub fn with_level_at_least(self, minimum: ClipLevel) -> Self {
        match self {
            Self::Clipped(c) if c < minimum => Self::Clipped(minimum),
            Self::Paper | Self::Mmse | Self::Regularised(_) | Self::Clipped(_) => self,
        }
    }

    /// A short description of the base station's receiver.
    pub fn description(self) -> String {
        match self {
            Self::Paper => "the paper's receiver, which divides by the channel estimates".to_owned(),
            Self::Mmse => "the receiver with minimum mean square error (MMSE)".to_owned(),
            Self::Regularised(kappa) => format!("a regularised receiver (MMSE, κ = {kappa})"),
            Self::Clipped(c) => {
                format!("a receiver that bounds its amplification (clipped projector, c = {c})")
            }
        }
    }

    /// The weight `w(ĥ)` of a despread symbol, given the channel estimate `ĥ` (`estimate`) and the standard deviation `s > 0` of its
    /// error (`estimate_noise_std`), both in units of the channel amplitude.
    pub fn weight(self, estimate: f64, estimate_noise_std: f64) -> f64 {
        match self {
            Self::Paper => 1.0 / estimate,
            Self::Mmse => estimate / (estimate * estimate + estimate_noise_std * estimate_noise_std),
            Self::Regularised(kappa) => {
                estimate / (estimate * estimate + kappa.get() * estimate_noise_std * estimate_noise_std)
            }
            Self::Clipped(c) => estimate.signum() / estimate.abs().max(c.get() * estimate_noise_std),
        }
    }
}

impl Choice for Receiver {
    const WHAT: &'static str = "receiver";
    const FORMS: &'static [&'static str] = &["paper", "mmse", "mmse=k", "clipped=c"];
    const RANGES: &'static str = "k between 0.01 and 1e4, c between 1e-6 and 1e6";

    fn label(&self) -> String {
        match self {
            Self::Paper => "paper, 1/ĥ".to_owned(),
            Self::Mmse => "MMSE".to_owned(),
            Self::Regularised(kappa) => format!("MMSE, κ = {kappa}"),
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
            ("mmse", Some(kappa)) => Self::regularised(kappa.parse().map_err(|_| refuse())?),
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
            Self::Regularised(kappa) => write!(f, "mmse={kappa}"),
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
        let (regularised, clipped) = (Receiver::regularised(3.0).unwrap(), Receiver::clipped(1.5).unwrap());
        for receiver in [Receiver::Paper, Receiver::Mmse, regularised, clipped] {
            for h in [-2.0, -0.01, 0.3, 5.0] {
                assert!((receiver.weight(h, 0.0) * h - 1.0).abs() < 1e-12);
            }
        }
    }

    /// `ĥ = ½`, `s = ¼`: weights 2, ½/(¼ + 1/16) = 1.6, ½/(¼ + 3/16) = 8/7 for `κ = 3`,
    /// and 1/max(½, ¾) = 4/3 for `c = 3`.
    #[test]
    fn weights_are_those_of_the_table() {
        let (regularised, clipped) = (Receiver::regularised(3.0).unwrap(), Receiver::clipped(3.0).unwrap());
        let weights =
            [(Receiver::Paper, 2.0), (Receiver::Mmse, 1.6), (regularised, 8.0 / 7.0), (clipped, 4.0 / 3.0)];
        for (receiver, expected) in weights {
            assert!((receiver.weight(0.5, 0.25) - expected).abs() < 1e-15, "{receiver}");
        }
    }

    #[test]
    fn mmse_is_regularised_with_kappa_one() {
        assert_eq!(Receiver::regularised(1.0), Ok(Receiver::Mmse));
        assert_eq!("mmse=1".parse(), Ok(Receiver::Mmse));
        let regularised: Receiver = "mmse=3".parse().unwrap();
        assert_eq!((regularised.regularisation(), regularised.to_string()), (Some(3.0), "mmse=3".to_owned()));
        assert!(
            ["mmse=0", "mmse=-1", "mmse=x", "mmse=nan"].iter().all(|text| text.parse::<Receiver>().is_err())
        );
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
            let regularised = Receiver::regularised(c * c).unwrap();
            let receivers =
                [(Receiver::Mmse, 0.5 / s), (regularised, 0.5 / (c * s)), (clipped, 1.0 / (c * s))];
            for (receiver, largest) in receivers {
                let weight = receiver.weight(h, s);
                prop_assert!(weight > 0.0 && weight <= largest * (1.0 + 1e-12));
                prop_assert!(weight <= Receiver::Paper.weight(h, s) * (1.0 + 1e-12));
                prop_assert_eq!(receiver.weight(-h, s), -weight);
            }
        }
    }
}
