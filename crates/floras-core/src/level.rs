//! The unit that differential privacy protects.

use std::fmt;
use std::str::FromStr;

use crate::choice::{Choice, ChoiceError, split};
use crate::{bounded, named_choice, serde_as_text};

/// The unit of privacy: what neighbouring data sets differ in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// All data of a client.
    #[default]
    Client,
    /// One sample of a client.
    Item,
}

named_choice!(Level, "privacy level", [Client => "client", "client level"], [Item => "item", "item level"]);

/// The share of its data that a client uses in a round: `one-step`, `steps=n` or `epochs`.
///
/// ```
/// use floras_core::LocalWork;
///
/// assert_eq!("steps=1".parse(), Ok(LocalWork::ONE_STEP));
/// assert_eq!(LocalWork::ONE_STEP.to_string(), "one-step");
/// # Ok::<(), floras_core::ChoiceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LocalWork {
    /// Steps on one mini-batch each. A sample is used again only after all others were used.
    Steps(StepCount),
    /// Whole epochs, which use every sample.
    Epochs,
}

bounded!(
    /// `n`, local steps per round: between 1 and 1000000.
    StepCount: u32, LocalWork, "steps", (1..=1_000_000)
);

impl LocalWork {
    /// One step on one mini-batch.
    pub const ONE_STEP: Self = Self::Steps(StepCount(1));

    /// `n` steps, from 1 to 1,000,000.
    pub fn steps(steps: u32) -> Result<Self, ChoiceError> {
        StepCount::new(steps).map(Self::Steps)
    }
}

impl Default for LocalWork {
    fn default() -> Self {
        Self::ONE_STEP
    }
}

impl Choice for LocalWork {
    const WHAT: &'static str = "local work";
    const FORMS: &'static [&'static str] = &["one-step", "steps=n", "epochs"];
    const RANGES: &'static str = "n an integer between 1 and 1000000";

    fn label(&self) -> String {
        match *self {
            Self::ONE_STEP => "one step on one mini-batch".to_owned(),
            Self::Steps(steps) => format!("{steps} steps on one mini-batch each"),
            Self::Epochs => "epochs over all samples".to_owned(),
        }
    }
}

impl FromStr for LocalWork {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match split(text) {
            ("one-step", None) => Ok(Self::ONE_STEP),
            ("steps", Some(steps)) => Self::steps(steps.parse().map_err(|_| Self::refuse(text))?),
            ("epochs", None) => Ok(Self::Epochs),
            _ => Err(Self::refuse(text)),
        }
    }
}

impl fmt::Display for LocalWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::ONE_STEP => f.pad("one-step"),
            Self::Steps(steps) => write!(f, "steps={steps}"),
            Self::Epochs => f.pad("epochs"),
        }
    }
}

serde_as_text!(LocalWork);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_out_of_range_are_refused() {
        for text in ["steps=0", "steps=1000001", "steps=1.5", "steps", "epochs=2"] {
            let error = text.parse::<LocalWork>().unwrap_err().to_string();
            let allowed = "one-step, steps=n or epochs (n an integer between 1 and 1000000)";
            assert_eq!(error, format!("the local work must be {allowed}, not {text}"));
        }
    }
}
