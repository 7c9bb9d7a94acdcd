//! How clients map their symbols to the carrier, and which branches of the antennas the base station decodes.
//!
//! A receive antenna has two real branches, in-phase and quadrature. The base station decodes from `B` of them:
//!
//! | modulation | branches `B` with `R` antennas | what the clients know |
//! |---|---|---|
//! | [`Modulation::Real`] | `R`, the in-phase ones | – |
//! | [`Modulation::PhaseCorrected`] | 1; `R` must be 1, because a client can correct the phase of one antenna only | their channel's phase |
//! | [`Modulation::Complex`] | `2R` | – |

use std::fmt;
use std::str::FromStr;

use crate::choice::{Choice, ChoiceError, split};
use crate::parameters_per_symbol::ParametersPerSymbol;
use crate::phase_error::PhaseError;

/// How a client maps its symbols to the carrier.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Modulation {
    /// Symbols are sent unchanged; the base station decodes the real part of the channel.
    #[default]
    Real,
    /// Clients rotate their symbols by their channel's phase, with some error.
    PhaseCorrected(PhaseError),
    /// Symbols are sent unchanged; the base station combines both branches of every antenna.
    Complex,
}

impl Modulation {
    /// The largest number of receive antennas.
    pub const MAX_ANTENNAS: usize = 64;

    /// `B`: the number of real branches that the base station decodes, given the number of antennas.
    pub fn branches(self, antennas: usize) -> usize {
        match self {
            Self::Real => antennas,
            Self::PhaseCorrected(_) => 1,
            Self::Complex => 2 * antennas,
        }
    }

    /// Rejects a number of receive antennas outside 1 to [`MAX_ANTENNAS`](Self::MAX_ANTENNAS), and any but 1 with phase
    /// correction.
    pub fn check_antennas(self, antennas: usize) -> Result<(), ChoiceError> {
        let max = if let Self::PhaseCorrected(_) = self { 1 } else { Self::MAX_ANTENNAS };
        if (1..=max).contains(&antennas) {
            return Ok(());
        }
        let allowed = match self {
            Self::PhaseCorrected(_) => {
                "1 with phase-corrected modulation, which fits one antenna only".to_owned()
            }
            Self::Real | Self::Complex => format!("between 1 and {max}"),
        };
        Err(ChoiceError { what: "number of antennas", allowed, value: antennas.to_string() })
    }

    /// Rejects two parameters per symbol unless the modulation is complex.
    pub fn check_packing(self, packing: ParametersPerSymbol) -> Result<(), ChoiceError> {
        if packing == ParametersPerSymbol::One || self == Self::Complex {
            return Ok(());
        }
        let allowed = format!("1 with modulation {self}; 2 needs complex modulation");
        Err(ChoiceError { what: "number of parameters per symbol", allowed, value: packing.to_string() })
    }

    /// The modulation combined with a separately given phase error. Real and complex modulation accept none.
    pub fn with_phase_error(self, error: Option<PhaseError>) -> Result<Self, ChoiceError> {
        let own = match (self, error) {
            (_, None) => return Ok(self),
            (Self::PhaseCorrected(PhaseError::None), Some(error)) => return Ok(Self::PhaseCorrected(error)),
            (Self::PhaseCorrected(own), Some(error)) if own == error => return Ok(self),
            (Self::Real | Self::Complex, Some(PhaseError::None)) => return Ok(self),
            (Self::PhaseCorrected(own), Some(_)) => own,
            (Self::Real | Self::Complex, Some(_)) => PhaseError::None,
        };
        let allowed = format!("{own}, or left out, with modulation {self}");
        let value = error.map_or_else(String::new, |error| error.to_string());
        Err(ChoiceError { what: PhaseError::WHAT, allowed, value })
    }
}

impl Choice for Modulation {
    const WHAT: &'static str = "modulation";
    const FORMS: &'static [&'static str] = &["real", "phase-corrected", "phase-corrected=error", "complex"];
    const RANGES: &'static str = "error as in uniform=0.1 or gaussian=0.1, in radians";

    fn label(&self) -> String {
        match self {
            Self::Real => "real".to_owned(),
            Self::PhaseCorrected(PhaseError::None) => "phase-corrected".to_owned(),
            Self::PhaseCorrected(error) => format!("phase-corrected, {}", error.label()),
            Self::Complex => "complex".to_owned(),
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
            ("complex", None) => Ok(Self::Complex),
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
            Self::Complex => f.pad("complex"),
        }
    }
}

crate::serde_as_text!(Modulation);

#[cfg(test)]
mod tests {
    use super::*;

    const CORRECTED: Modulation = Modulation::PhaseCorrected(PhaseError::None);

    #[test]
    fn branches_follow_from_modulation_and_antennas() {
        assert_eq!([1, 4].map(|antennas| Modulation::Real.branches(antennas)), [1, 4]);
        assert_eq!([1, 4].map(|antennas| Modulation::Complex.branches(antennas)), [2, 8]);
        assert_eq!(CORRECTED.branches(1), 1);
    }

    #[test]
    fn phase_correction_has_one_antenna() {
        assert!(CORRECTED.check_antennas(1).is_ok());
        assert_eq!(
            CORRECTED.check_antennas(2).unwrap_err().to_string(),
            "the number of antennas must be 1 with phase-corrected modulation, which fits one antenna only, not 2"
        );
        for modulation in [Modulation::Real, Modulation::Complex] {
            assert!([1, 64].iter().all(|&antennas| modulation.check_antennas(antennas).is_ok()));
            assert!([0, 65].iter().all(|&antennas| modulation.check_antennas(antennas).is_err()));
        }
    }

    #[test]
    fn two_parameters_need_complex_symbols() {
        assert!(Modulation::Complex.check_packing(ParametersPerSymbol::Two).is_ok());
        for modulation in [Modulation::Real, CORRECTED] {
            assert!(modulation.check_packing(ParametersPerSymbol::One).is_ok());
            assert!(modulation.check_packing(ParametersPerSymbol::Two).is_err());
        }
    }

    #[test]
    fn complex_modulation_has_no_phase_error() {
        let error = PhaseError::uniform(0.1).unwrap();
        assert!(Modulation::Complex.with_phase_error(Some(error)).is_err());
        assert_eq!(Modulation::Complex.with_phase_error(Some(PhaseError::None)), Ok(Modulation::Complex));
        assert_eq!("complex".parse(), Ok(Modulation::Complex));
    }
}
