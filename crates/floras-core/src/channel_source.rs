//! Where the channel coefficients of an experiment come from: a distribution of fading, or a file.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::choice::{Choice, ChoiceError};
use crate::fading::Fading;

/// A distribution of fading, or a trace file with measured coefficients.
#[derive(Clone, Debug, PartialEq)]
pub enum ChannelSource {
    /// Coefficients are drawn.
    Fading(Fading),
    /// Coefficients are read from this file.
    Trace(PathBuf),
}

impl ChannelSource {
    /// The fading distribution; `None` for a trace.
    pub fn fading(&self) -> Option<Fading> {
        match self {
            Self::Fading(fading) => Some(*fading),
            Self::Trace(_) => None,
        }
    }
}

impl Default for ChannelSource {
    fn default() -> Self {
        Self::Fading(Fading::default())
    }
}

impl From<Fading> for ChannelSource {
    fn from(fading: Fading) -> Self {
        Self::Fading(fading)
    }
}

impl Choice for ChannelSource {
    const WHAT: &'static str = "fading";
    const FORMS: &'static [&'static str] = &["rayleigh", "none", "rician=k", "nakagami=m", "trace=file"];
    const RANGES: &'static str = Fading::RANGES;

    fn label(&self) -> String {
        match self {
            Self::Fading(fading) => fading.label(),
            Self::Trace(path) => format!("trace {}", path.display()),
        }
    }
}

impl FromStr for ChannelSource {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        match text.split_once('=') {
            Some(("trace", path)) if !path.is_empty() => Ok(Self::Trace(path.into())),
            _ => text.parse().map(Self::Fading).map_err(|_: ChoiceError| Self::refuse(text)),
        }
    }
}

impl fmt::Display for ChannelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fading(fading) => fading.fmt(f),
            Self::Trace(path) => write!(f, "trace={}", path.display()),
        }
    }
}

crate::serde_as_text!(ChannelSource);
