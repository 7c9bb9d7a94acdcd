//! Which clients take part in channel inversion.

use std::fmt;
use std::str::FromStr;

use crate::bounded;
use crate::choice::{Choice, ChoiceError, split};

/// The weakest channel that takes part. The paper states 0.01 "for the fading channel gain" and calls `|h|` the gain in Remark 2;
/// the power `|h|²` is the other reading.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Admission {
    /// Minimum amplitude `|h|` of an admitted client.
    Amplitude(AmplitudeThreshold),
    /// Minimum power `|h|²` of an admitted client.
    Power(PowerThreshold),
}

bounded!(
    /// A threshold on `|h|`: between 1e-9 and 1e6.
    AmplitudeThreshold: f64,
    Admission,
    "amplitude",
    (1e-9..=1e6)
);

bounded!(
    /// A threshold on `|h|²`: between 1e-18 and 1e12.
    PowerThreshold: f64,
    Admission,
    "power",
    (1e-18..=1e12)
);

impl Admission {
    /// Admits clients with `|h|` of at least this, between 1e-9 and 1e6.
    pub fn at_amplitude(amplitude: f64) -> Result<Self, ChoiceError> {
        AmplitudeThreshold::new(amplitude).map(Self::Amplitude)
    }

    /// Admits clients with `|h|²` of at least this, between 1e-18 and 1e12.
    pub fn at_power(power: f64) -> Result<Self, ChoiceError> {
        PowerThreshold::new(power).map(Self::Power)
    }

    /// The threshold as an amplitude.
    pub fn amplitude(self) -> f64 {
        match self {
            Self::Amplitude(amplitude) => amplitude.get(),
            Self::Power(power) => power.get().sqrt(),
        }
    }
}

impl Default for Admission {
    /// `|h| ≥ 0.01`.
    fn default() -> Self {
        Self::Amplitude(AmplitudeThreshold(0.01))
    }
}

impl Choice for Admission {
    const WHAT: &'static str = "admission rule";
    const FORMS: &'static [&'static str] = &["amplitude=h", "power=p"];
    const RANGES: &'static str = "h between 1e-9 and 1e6, p between 1e-18 and 1e12";

    fn label(&self) -> String {
        match self {
            Self::Amplitude(amplitude) => format!("|h| ≥ {amplitude}"),
            Self::Power(power) => format!("|h|² ≥ {power}"),
        }
    }
}

impl FromStr for Admission {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        let number = |parameter: &str| parameter.parse().map_err(|_| Self::refuse(text));
        match split(text) {
            ("amplitude", Some(amplitude)) => Self::at_amplitude(number(amplitude)?),
            ("power", Some(power)) => Self::at_power(number(power)?),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Amplitude(amplitude) => write!(f, "amplitude={amplitude}"),
            Self::Power(power) => write!(f, "power={power}"),
        }
    }
}

crate::serde_as_text!(Admission);
