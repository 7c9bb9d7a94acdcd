//! The pilot: a known symbol that every client sends before its payload, for channel estimation.
//!
//! The paper's pilot is one symbol of unit amplitude (section IV-A, step 1). Averaging `r` repetitions of a pilot of amplitude
//! `a` leaves an estimation error of standard deviation
//!
//! ```text
//! s_p = s/(a·√r),     s = σ/√L the noise of a despread payload symbol.
//! ```

use serde::{Deserialize, Serialize};

use crate::choice::ChoiceError;

/// Amplitude and repetitions of the pilot, in range by construction: `{ amplitude = 1, repetitions = 1 }` in a file.
///
/// ```
/// use floras_core::Pilot;
///
/// let pilot = Pilot::new(2.0, 4)?;
/// assert_eq!(pilot.noise_ratio(), 0.25);
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Parts", into = "Parts")]
pub struct Pilot(Parts);

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a table, { amplitude = a, repetitions = r } with a between 1e-3 and 1e3 and r between 1 and 1000000"
)]
struct Parts {
    amplitude: f64,
    repetitions: u32,
}

impl Pilot {
    /// Name of the amplitude in errors.
    pub const AMPLITUDE: &'static str = "pilot amplitude";

    /// A pilot of `amplitude` between 1e-3 and 1e3, relative to a payload symbol of unit power, sent between 1 and 1,000,000
    /// times.
    pub fn new(amplitude: f64, repetitions: u32) -> Result<Self, ChoiceError> {
        Parts { amplitude, repetitions }.try_into()
    }

    /// Amplitude `a` of the pilot, relative to a payload symbol of unit power: between 1e-3 and 1e3.
    pub fn amplitude(self) -> f64 {
        self.0.amplitude
    }

    /// Number `r` of times that the pilot is sent: between 1 and 1,000,000.
    pub fn repetitions(self) -> u32 {
        self.0.repetitions
    }

    /// `s_p/s = 1/(a·√r)`: standard deviation of the estimation error, relative to that of a despread payload symbol.
    pub fn noise_ratio(self) -> f64 {
        1.0 / (self.0.amplitude * f64::from(self.0.repetitions).sqrt())
    }
}

impl Default for Pilot {
    /// The paper's: amplitude 1, sent once.
    fn default() -> Self {
        Self(Parts::default())
    }
}

impl Default for Parts {
    fn default() -> Self {
        Self { amplitude: 1.0, repetitions: 1 }
    }
}

impl TryFrom<Parts> for Pilot {
    type Error = ChoiceError;

    fn try_from(parts: Parts) -> Result<Self, ChoiceError> {
        let refuse = |what, allowed: &str, value: String| {
            Err(ChoiceError { what, allowed: allowed.to_owned(), value })
        };
        if !(1e-3..=1e3).contains(&parts.amplitude) {
            return refuse(Pilot::AMPLITUDE, "between 1e-3 and 1e3", parts.amplitude.to_string());
        }
        if !(1..=1_000_000).contains(&parts.repetitions) {
            let value = parts.repetitions.to_string();
            return refuse("number of pilot repetitions", "between 1 and 1000000", value);
        }
        Ok(Self(parts))
    }
}

impl From<Pilot> for Parts {
    fn from(pilot: Pilot) -> Self {
        pilot.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pilots_out_of_range_are_refused() {
        for (amplitude, repetitions) in [(0.0, 1), (f64::NAN, 1), (1e4, 1), (1.0, 0), (1.0, 2_000_000)] {
            assert!(Pilot::new(amplitude, repetitions).is_err());
        }
        let read = |text: &str| serde_json::from_str::<Pilot>(text);
        assert_eq!(read(r#"{"amplitude": 2}"#).unwrap(), Pilot::new(2.0, 1).unwrap());
        assert_eq!(read(r#"{"repetitions": 9}"#).unwrap().noise_ratio(), 1.0 / 3.0);
        assert!(read(r#"{"amplitude": 0}"#).unwrap_err().to_string().contains("between 1e-3 and 1e3, not 0"));
        assert!(read(r#"{"power": 1}"#).is_err());
    }
}
