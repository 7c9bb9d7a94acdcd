//! The distribution of a channel coefficient `h` under block fading.
//!
//! | fading | `h` | source |
//! |---|---|---|
//! | [`Fading::None`] | `1` | a cable |
//! | [`Fading::Rayleigh`] | `CN(0, 1)` | rich scattering; the paper's experiments |
//! | [`Fading::Rician`] | `√(κ/(κ+1))·e^{jθ} + √(1/(κ+1))·CN(0, 1)` | a line of sight with `κ` times the scattered power |
//! | [`Fading::Nakagami`] | `√Gamma(m, 1/m)·e^{jθ}` | empirical; `m = 1` is Rayleigh |
//!
//! with `θ` uniform over the circle and `E|h|² = 1`.

mod density;

use std::f64::consts::PI;
use std::fmt;
use std::str::FromStr;

use crate::bounded;
use crate::choice::{Choice, ChoiceError, split};

/// The distribution of the channel coefficients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fading {
    /// No fading: every coefficient is 1.
    None,
    /// Rayleigh: circular complex Gaussian of unit power.
    #[default]
    Rayleigh,
    /// Rician with this factor `κ`, the line of sight's power over the scattered power (a ratio, not dB).
    Rician(RicianFactor),
    /// Nakagami with this shape `m`.
    Nakagami(NakagamiShape),
}

bounded!(
    /// `κ`, the line of sight's power over the scattered power: between 0 and 1e6.
    RicianFactor: f64,
    Fading,
    "rician",
    (0.0..=1e6)
);

bounded!(
    /// The shape `m` of Nakagami fading: between 0.5 and 1e6.
    NakagamiShape: f64,
    Fading,
    "nakagami",
    (0.5..=1e6)
);

impl Fading {
    /// Rician fading with the factor `κ`, between 0 and 1e6.
    pub fn rician(factor: f64) -> Result<Self, ChoiceError> {
        RicianFactor::new(factor).map(Self::Rician)
    }

    /// Nakagami fading with the shape `m`, between 0.5 and 1e6.
    pub fn nakagami(shape: f64) -> Result<Self, ChoiceError> {
        NakagamiShape::new(shape).map(Self::Nakagami)
    }

    /// `E|h|`, for receivers that know the distribution but not the draw.
    pub fn mean_amplitude(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Rayleigh => PI.sqrt() / 2.0,
            Self::Rician(factor) => rician_mean_amplitude(factor.get()),
            Self::Nakagami(shape) => {
                let m = shape.get();
                (libm::lgamma(m + 0.5) - libm::lgamma(m)).exp() / m.sqrt()
            }
        }
    }
}

impl Choice for Fading {
    const WHAT: &'static str = "fading";
    const FORMS: &'static [&'static str] = &["rayleigh", "none", "rician=k", "nakagami=m"];
    const RANGES: &'static str = "k between 0 and 1e6, a ratio of powers, not dB; m between 0.5 and 1e6";

    fn label(&self) -> String {
        match self {
            Self::None => "no fading".to_owned(),
            Self::Rayleigh => "Rayleigh".to_owned(),
            Self::Rician(factor) => format!("Rician, factor {factor}"),
            Self::Nakagami(shape) => format!("Nakagami, m = {shape}"),
        }
    }
}

impl FromStr for Fading {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let number = |parameter: &str| parameter.parse().map_err(|_| Self::refuse(text));
        match split(text) {
            ("none", None) => Ok(Self::None),
            ("rayleigh", None) => Ok(Self::Rayleigh),
            ("rician", Some(factor)) => Self::rician(number(factor)?),
            ("nakagami", Some(shape)) => Self::nakagami(number(shape)?),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for Fading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Rayleigh => f.pad("rayleigh"),
            Self::Rician(factor) => write!(f, "rician={factor}"),
            Self::Nakagami(shape) => write!(f, "nakagami={shape}"),
        }
    }
}

crate::serde_as_text!(Fading);

/// `E|h| = ½√(π/(κ+1))·₁F₁(−½; 1; −κ)`, with `₁F₁(−½; 1; −κ) = e^{−κ} Σ_n (3/2)_n κⁿ/(n!)²`, all terms positive.
fn rician_mean_amplitude(factor: f64) -> f64 {
    if factor > 500.0 {
        // The next term of this expansion is below 1e-10.
        let inverse = 1.0 / factor;
        return (factor / (factor + 1.0)).sqrt() * (1.0 + inverse / 4.0 + inverse * inverse / 32.0);
    }
    let mut term = (-factor).exp();
    let mut sum = term;
    let mut n = 0.0;
    while term > sum * 1e-17 || n < factor {
        n += 1.0;
        term *= (n + 0.5) * factor / (n * n);
        sum += term;
    }
    0.5 * (PI / (factor + 1.0)).sqrt() * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_amplitudes_meet_their_closed_forms() {
        let rician = |factor: f64| Fading::rician(factor).unwrap().mean_amplitude();
        let nakagami = |shape: f64| Fading::nakagami(shape).unwrap().mean_amplitude();
        let rayleigh = Fading::Rayleigh.mean_amplitude();
        assert!((rician(0.0) - rayleigh).abs() < 1e-14);
        assert!((nakagami(1.0) - rayleigh).abs() < 1e-13);
        // Half a normal: √(2/π).
        assert!((nakagami(0.5) - (2.0 / PI).sqrt()).abs() < 1e-13);
        let [below, above] = [499.999, 500.001].map(rician);
        assert!((below - above).abs() < 1e-8, "series {below}, expansion {above}");
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = [-0.1, f64::NAN, 2e6].map(Fading::rician).into_iter();
        for fading in wrong.chain([0.49, f64::INFINITY].map(Fading::nakagami)) {
            assert!(fading.is_err(), "{fading:?}");
        }
    }
}
