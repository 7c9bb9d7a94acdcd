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

use crate::error::{UplinkError, require};

/// How a channel estimate becomes a weight of the projector.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Receiver {
    /// `1/ĥ`, as in the paper (section IV-A, step 2).
    #[default]
    Paper,
    /// `ĥ/(ĥ² + s²)`, the least mean square error for a symbol of unit power.
    Mmse,
    /// `sign(ĥ)/max(|ĥ|, c·s)`: the paper's weight, bounded at `c` times the pilot's own noise.
    Clipped(f64),
}

impl Receiver {
    /// `Ok` if the receiver's parameter is in range.
    pub fn check(self) -> Result<(), UplinkError> {
        match self {
            Self::Paper | Self::Mmse => Ok(()),
            Self::Clipped(c) => require(
                (1e-6..=1e6).contains(&c),
                "the clipped projector's level c",
                "between 1e-6 and 1e6",
                c,
            ),
        }
    }

    /// `w(ĥ)`, with `estimate_noise_std = s`.
    pub fn weight(self, estimate: f64, estimate_noise_std: f64) -> f64 {
        match self {
            Self::Paper => 1.0 / estimate,
            Self::Mmse => estimate / (estimate * estimate + estimate_noise_std * estimate_noise_std),
            Self::Clipped(c) => estimate.signum() / estimate.abs().max(c * estimate_noise_std),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn without_noise_all_receivers_invert_the_channel() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::Clipped(1.5)] {
            for h in [-2.0, -0.01, 0.3, 5.0] {
                assert!((receiver.weight(h, 0.0) * h - 1.0).abs() < 1e-12);
            }
        }
    }

    /// `ĥ = ½`, `s = ¼`: weights 2, ½/(¼ + 1/16) = 1.6, and 1/max(½, ¾) = 4/3 for `c = 3`.
    #[test]
    fn weights_are_those_of_the_table() {
        let receivers = [(Receiver::Paper, 2.0), (Receiver::Mmse, 1.6), (Receiver::Clipped(3.0), 4.0 / 3.0)];
        for (receiver, expected) in receivers {
            assert!((receiver.weight(0.5, 0.25) - expected).abs() < 1e-15, "{receiver:?}");
        }
    }

    #[test]
    fn a_clip_level_out_of_range_is_refused() {
        for c in [0.0, -1.0, 1e-7, 1e7, f64::NAN, f64::INFINITY] {
            assert!(Receiver::Clipped(c).check().is_err());
        }
    }

    proptest! {
        #[test]
        fn weights_are_odd_and_bounded_as_stated(h in 1e-9_f64..10.0, s in 1e-3_f64..1.0, c in 0.1_f64..4.0) {
            for (receiver, most) in [(Receiver::Mmse, 0.5 / s), (Receiver::Clipped(c), 1.0 / (c * s))] {
                let weight = receiver.weight(h, s);
                prop_assert!(weight > 0.0 && weight <= most * (1.0 + 1e-12));
                prop_assert!(weight <= Receiver::Paper.weight(h, s) * (1.0 + 1e-12));
                prop_assert_eq!(receiver.weight(-h, s), -weight);
            }
        }
    }
}
