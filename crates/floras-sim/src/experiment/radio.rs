//! The keys that describe a radio: read the same way in experiments and in inquiries.

use floras_phy::{Admission, Fading, Modulation, PhaseError, Receiver, SnrConvention};

use super::error::ExperimentError;
use super::section::Section;
use super::uplink::FadingChoice;

/// What an SNR may refer to.
pub(crate) const CONVENTIONS: [(&str, SnrConvention); 3] = [
    ("symbol", SnrConvention::Symbol),
    ("complex-symbol", SnrConvention::ComplexSymbol),
    ("despread", SnrConvention::Despread),
];
const FADINGS: &str = r#""rayleigh", "none", { rician = k }, { nakagami = m } or { trace = "file" }"#;
const RECEIVERS: &str = r#""paper", "mmse" or { clipped = c }"#;
const PHASE_ERRORS: &str = r#""none", { uniform = radians } or { gaussian = radians }"#;
const ADMISSIONS: &str = "{ amplitude = 0.01 } or { power = 0.01 }";

/// Whether clients correct their channel's phase, and how wrong they are about it.
pub(crate) fn read_modulation(section: &Section<'_>) -> Result<Modulation, ExperimentError> {
    let modulations = [("real", false), ("phase-corrected", true)];
    Ok(match section.one_of("modulation", &modulations)?.unwrap_or(false) {
        false => Modulation::Real,
        true => Modulation::PhaseCorrected(read_phase_error(section)?),
    })
}

/// The law of the channels, or the file that holds them.
pub(crate) fn read_fading(section: &Section<'_>) -> Result<FadingChoice, ExperimentError> {
    let Some(choice) = section.choice("fading", FADINGS)? else {
        return Ok(FadingChoice::Law(Fading::Rayleigh));
    };
    let law = match (choice.name, choice.argument.is_some(), choice.number()) {
        ("rayleigh", false, _) => Fading::Rayleigh,
        ("none", false, _) => Fading::None,
        ("rician", true, Some(factor)) => Fading::Rician(factor),
        ("nakagami", true, Some(shape)) => Fading::Nakagami(shape),
        ("trace", true, _) => {
            let path = choice.text().ok_or_else(|| section.no_such_choice("fading", FADINGS))?;
            return Ok(FadingChoice::Trace(path.into()));
        }
        _ => return Err(section.no_such_choice("fading", FADINGS)),
    };
    law.check().map_err(|error| ExperimentError::refused(&section.full("fading"), error))?;
    Ok(FadingChoice::Law(law))
}

/// The SNR in decibels.
pub(crate) fn read_snr_db(section: &Section<'_>) -> Result<f64, ExperimentError> {
    let words = "a number of decibels between -100 and 100, or inf for no noise";
    let snr_db = section.number("snr_db", -100.0..=f64::INFINITY, words)?.unwrap_or(20.0);
    if snr_db > 100.0 && snr_db.is_finite() {
        return Err(section.no_such_choice("snr_db", words));
    }
    Ok(snr_db)
}

/// The base station's weights.
pub(crate) fn read_receiver(section: &Section<'_>) -> Result<Receiver, ExperimentError> {
    let Some(choice) = section.choice("receiver", RECEIVERS)? else { return Ok(Receiver::Paper) };
    let receiver = match (choice.name, choice.argument.is_some(), choice.number()) {
        ("paper", false, _) => Receiver::Paper,
        ("mmse", false, _) => Receiver::Mmse,
        ("clipped", true, Some(bound)) => Receiver::Clipped(bound),
        _ => return Err(section.no_such_choice("receiver", RECEIVERS)),
    };
    receiver.check().map_err(|error| ExperimentError::refused(&section.full("receiver"), error))?;
    Ok(receiver)
}

/// How wrong the clients are about their phase.
pub(crate) fn read_phase_error(section: &Section<'_>) -> Result<PhaseError, ExperimentError> {
    let Some(choice) = section.choice("phase_error", PHASE_ERRORS)? else { return Ok(PhaseError::None) };
    let error = match (choice.name, choice.argument.is_some(), choice.number()) {
        ("none", false, _) => PhaseError::None,
        ("uniform", true, Some(half_width_rad)) => PhaseError::Uniform { half_width_rad },
        ("gaussian", true, Some(std_rad)) => PhaseError::Gaussian { std_rad },
        _ => return Err(section.no_such_choice("phase_error", PHASE_ERRORS)),
    };
    error.check().map_err(|error| ExperimentError::refused(&section.full("phase_error"), error))?;
    Ok(error)
}

/// Who takes part in channel inversion.
pub(crate) fn read_admission(section: &Section<'_>) -> Result<Admission, ExperimentError> {
    let Some(choice) = section.choice("admission", ADMISSIONS)? else {
        return Ok(Admission::Amplitude(0.01));
    };
    let admission = match (choice.name, choice.number()) {
        ("amplitude", Some(amplitude)) => Admission::Amplitude(amplitude),
        ("power", Some(power)) => Admission::Power(power),
        _ => return Err(section.no_such_choice("admission", ADMISSIONS)),
    };
    admission.check().map_err(|error| ExperimentError::refused(&section.full("admission"), error))?;
    Ok(admission)
}
