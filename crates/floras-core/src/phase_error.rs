//! The error that a client makes when it corrects its channel's phase.

use std::f64::consts::FRAC_PI_2;
use std::fmt;
use std::str::FromStr;

use crate::bounded;
use crate::choice::{Choice, ChoiceError, split};

/// The distribution of the phase-correction error, drawn for every client and round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum PhaseError {
    /// Perfect correction, as the paper assumes.
    #[default]
    None,
    /// Uniform between plus and minus this angle.
    Uniform(HalfWidth),
    /// Gaussian with this standard deviation; a large error may flip a client's sign.
    Gaussian(PhaseStd),
}

bounded!(
    /// Half of the interval's width in radians: between 0 and π/2.
    HalfWidth: f64,
    PhaseError,
    "uniform",
    (0.0..=FRAC_PI_2)
);

bounded!(
    /// Standard deviation in radians: between 0 and 100.
    PhaseStd: f64,
    PhaseError,
    "gaussian",
    (0.0..=100.0)
);

impl PhaseError {
    /// Uniform between `±half_width` radians, at most `±π/2`.
    pub fn uniform(half_width: f64) -> Result<Self, ChoiceError> {
        HalfWidth::new(half_width).map(Self::Uniform)
    }

    /// Gaussian with a standard deviation in radians, at most 100.
    pub fn gaussian(std: f64) -> Result<Self, ChoiceError> {
        PhaseStd::new(std).map(Self::Gaussian)
    }
}

impl Choice for PhaseError {
    const WHAT: &'static str = "phase error";
    const FORMS: &'static [&'static str] = &["none", "uniform=a", "gaussian=s"];
    const RANGES: &'static str = "in radians, a between 0 and π/2, s between 0 and 100";

    fn label(&self) -> String {
        match self {
            Self::None => "no phase error".to_owned(),
            Self::Uniform(half_width) => format!("phase error uniform within ±{half_width} rad"),
            Self::Gaussian(std) => format!("Gaussian phase error of {std} rad"),
        }
    }
}

impl FromStr for PhaseError {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let number = |parameter: &str| parameter.parse().map_err(|_| Self::refuse(text));
        match split(text) {
            ("none", None) => Ok(Self::None),
            ("uniform", Some(half_width)) => Self::uniform(number(half_width)?),
            ("gaussian", Some(std)) => Self::gaussian(number(std)?),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for PhaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Uniform(half_width) => write!(f, "uniform={half_width}"),
            Self::Gaussian(std) => write!(f, "gaussian={std}"),
        }
    }
}

crate::serde_as_text!(PhaseError);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_out_of_range_are_refused() {
        let wrong = [1.6, -0.1, f64::NAN].map(PhaseError::uniform).into_iter();
        for error in wrong.chain([-1.0, 101.0, f64::NAN].map(PhaseError::gaussian)) {
            assert!(error.is_err(), "{error:?}");
        }
    }
}
