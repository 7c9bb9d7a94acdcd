//! How a channel changes between the pilot and the payload of a round: a Gauss–Markov process over blocks of the payload.
//!
//! ```text
//! h_{b+1} = ρ·h_b + √(1 − ρ²)·w_b,     w_b from the stationary distribution
//! ```
//!
//! `h_0` is the channel of the pilot, and the first block of the payload has `h_1`: the correlation with the pilot is `ρ` in the
//! first block and `ρᵇ` in block `b`. `ρ = J₀(2πf)` for a Doppler frequency of `f` periods in the duration of one block.
//!
//! # Citations
//! Clarke, *A statistical theory of mobile-radio reception*, Bell System Technical Journal 47 (1968).
//! Jakes, *Microwave Mobile Communications*, Wiley (1974).

use std::f64::consts::TAU;
use std::fmt;
use std::str::FromStr;

use crate::bounded;
use crate::choice::{Choice, ChoiceError, split};

/// The correlation of a channel with itself one block later.
///
/// ```
/// use floras_core::Ageing;
///
/// let ageing: Ageing = "doppler=0.05".parse()?;
/// assert!((ageing.correlation() - 0.9755).abs() < 1e-4);
/// assert_eq!(Ageing::None.correlation(), 1.0);
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Ageing {
    /// The channel is constant over a round.
    #[default]
    None,
    /// A given `ρ`.
    Correlation(BlockCorrelation),
    /// `ρ = J₀(2πf)` for a given `f`.
    Doppler(DopplerFrequency),
}

bounded!(
    /// `ρ`, the correlation of a channel with itself one block later: between -1 and 1.
    BlockCorrelation: f64,
    Ageing,
    "correlation",
    (-1.0..=1.0)
);

bounded!(
    /// `f`, the Doppler frequency times the duration of one block, without unit: between 0 and 100.
    DopplerFrequency: f64,
    Ageing,
    "doppler",
    (0.0..=100.0)
);

impl Ageing {
    /// Ageing with this correlation `ρ`, between -1 and 1.
    pub fn with_correlation(correlation: f64) -> Result<Self, ChoiceError> {
        BlockCorrelation::new(correlation).map(Self::Correlation)
    }

    /// Ageing at this Doppler frequency times the duration of one block, between 0 and 100.
    pub fn at_doppler(frequency: f64) -> Result<Self, ChoiceError> {
        DopplerFrequency::new(frequency).map(Self::Doppler)
    }

    /// `ρ`: between -1 and 1; 1 for a channel that does not change.
    pub fn correlation(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Correlation(correlation) => correlation.get(),
            Self::Doppler(frequency) => libm::j0(TAU * frequency.get()),
        }
    }
}

impl Choice for Ageing {
    const WHAT: &'static str = "ageing";
    const FORMS: &'static [&'static str] = &["none", "correlation=r", "doppler=f"];
    const RANGES: &'static str =
        "r between -1 and 1; f, Doppler frequency times block duration, between 0 and 100";

    fn label(&self) -> String {
        match self {
            Self::None => "no ageing".to_owned(),
            Self::Correlation(correlation) => format!("ageing with correlation {correlation}"),
            Self::Doppler(frequency) => format!("ageing with Doppler frequency {frequency}"),
        }
    }
}

impl FromStr for Ageing {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let number = |parameter: &str| parameter.parse().map_err(|_| Self::refuse(text));
        match split(text) {
            ("none", None) => Ok(Self::None),
            ("correlation", Some(correlation)) => Self::with_correlation(number(correlation)?),
            ("doppler", Some(frequency)) => Self::at_doppler(number(frequency)?),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for Ageing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Correlation(correlation) => write!(f, "correlation={correlation}"),
            Self::Doppler(frequency) => write!(f, "doppler={frequency}"),
        }
    }
}

crate::serde_as_text!(Ageing);

#[cfg(test)]
mod tests {
    use super::*;

    /// `J₀(x) = (1/π)·∫ cos(x·sin θ) dθ` over half a turn. The trapezoidal rule is exact to rounding for a periodic integrand.
    #[test]
    fn doppler_correlation_is_the_mean_over_angles() {
        for frequency in [0.0, 0.01, 0.1, 0.3827, 1.0] {
            let points = 2000;
            let angle = |index: i32| std::f64::consts::PI * f64::from(index) / f64::from(points);
            let mean = (0..points).map(|index| (TAU * frequency * angle(index).sin()).cos()).sum::<f64>()
                / f64::from(points);
            let correlation = Ageing::at_doppler(frequency).unwrap().correlation();
            assert!((correlation - mean).abs() < 1e-12, "{frequency}: {correlation} instead of {mean}");
        }
    }

    #[test]
    fn ageing_out_of_range_is_refused() {
        let wrong = [-1.1, 1.1, f64::NAN].map(Ageing::with_correlation).into_iter();
        for ageing in wrong.chain([-0.1, 101.0, f64::NAN].map(Ageing::at_doppler)) {
            assert!(ageing.is_err(), "{ageing:?}");
        }
    }
}
