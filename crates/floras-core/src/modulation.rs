//! Whether clients correct their channel's phase before they transmit.

use std::fmt;
use std::str::FromStr;

use crate::choice::{Choice, ChoiceError, split};
use crate::phase_error::PhaseError;

/// How a client maps its symbols to the carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Modulation {
    /// Symbols go out as they are; the base station decodes the real part of the channel.
    #[default]
    Real,
    /// Clients turn their symbols by their channel's phase, with some error.
    PhaseCorrected(PhaseError),
}

impl Modulation {
    /// The same with a phase error that was given on its own. It must not contradict the modulation: real modulation has none.
    pub fn with_phase_error(self, error: Option<PhaseError>) -> Result<Self, ChoiceError> {
        let own = match (self, error) {
            (_, None) => return Ok(self),
            (Self::PhaseCorrected(PhaseError::None), Some(error)) => return Ok(Self::PhaseCorrected(error)),
            (Self::PhaseCorrected(own), Some(error)) if own == error => return Ok(self),
            (Self::Real, Some(PhaseError::None)) => return Ok(self),
            (Self::PhaseCorrected(own), Some(_)) => own,
            (Self::Real, Some(_)) => PhaseError::None,
        };
        let allowed = format!("{own}, or left out, with modulation {self}");
        let value = error.map_or_else(String::new, |error| error.to_string());
        Err(ChoiceError { what: PhaseError::WHAT, allowed, value })
    }
}

impl Choice for Modulation {
    const WHAT: &'static str = "modulation";
    const FORMS: &'static [&'static str] = &["real", "phase-corrected", "phase-corrected=error"];
    const RANGES: &'static str = "error as in uniform=0.1 or gaussian=0.1, in radians";

    fn label(&self) -> String {
        match self {
            Self::Real => "real".to_owned(),
            Self::PhaseCorrected(PhaseError::None) => "phase-corrected".to_owned(),
            Self::PhaseCorrected(error) => format!("phase-corrected, {}", error.label()),
        }
    }
}

impl FromStr for Modulation {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match split(text) {
            ("real", None) => Ok(Self::Real),
            ("phase-corrected", None) => Ok(Self::PhaseCorrected(PhaseError::None)),
            ("phase-corrected", Some(error)) => error.parse().map(Self::PhaseCorrected),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for Modulation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Real => f.pad("real"),
            Self::PhaseCorrected(PhaseError::None) => f.pad("phase-corrected"),
            Self::PhaseCorrected(error) => write!(f, "phase-corrected={error}"),
        }
    }
}

crate::serde_as_text!(Modulation);
