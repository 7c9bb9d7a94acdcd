//! How many parameters of an update share one symbol on the air.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::choice::{Choice, ChoiceError};

/// Number of parameters per symbol. In files and JSON it is the integer 1 or 2.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "u64", into = "u64")]
pub enum ParametersPerSymbol {
    /// One parameter in a real symbol.
    #[default]
    One,
    /// Parameters `2i` and `2i + 1` are the real and the imaginary part of one complex symbol, which halves the payload's airtime. The
    /// last symbol of an odd number of parameters has the imaginary part 0.
    Two,
}

impl ParametersPerSymbol {
    /// The number, 1 or 2.
    pub const fn get(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

impl From<ParametersPerSymbol> for u64 {
    fn from(packing: ParametersPerSymbol) -> Self {
        packing.get() as Self
    }
}

impl TryFrom<u64> for ParametersPerSymbol {
    type Error = ChoiceError;

    fn try_from(number: u64) -> Result<Self, ChoiceError> {
        match number {
            1 => Ok(Self::One),
            2 => Ok(Self::Two),
            _ => Err(Self::refuse(number)),
        }
    }
}

impl Choice for ParametersPerSymbol {
    const WHAT: &'static str = "number of parameters per symbol";
    const FORMS: &'static [&'static str] = &["1", "2"];

    fn label(&self) -> String {
        match self {
            Self::One => "1 parameter per symbol".to_owned(),
            Self::Two => "2 parameters per symbol".to_owned(),
        }
    }
}

impl FromStr for ParametersPerSymbol {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        text.trim().parse::<u64>().map_err(|_| Self::refuse(text))?.try_into()
    }
}

impl fmt::Display for ParametersPerSymbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_and_two_are_read() {
        assert_eq!("2".parse(), Ok(ParametersPerSymbol::Two));
        assert_eq!(ParametersPerSymbol::try_from(1), Ok(ParametersPerSymbol::One));
        assert_eq!(
            "3".parse::<ParametersPerSymbol>().unwrap_err().to_string(),
            "the number of parameters per symbol must be 1 or 2, not 3"
        );
        assert!(["0", "-1", "two", ""].iter().all(|text| text.parse::<ParametersPerSymbol>().is_err()));
    }
}
