//! The radio: the keys of `[uplink]` that all schemes on the air share.

use std::ops::RangeInclusive;

use floras_core::{ChannelSource, Choice, Fading, Snr, SnrConvention};
use floras_phy::{Channels, UplinkError};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};

/// Sequences, and chips in one.
pub(crate) const SIZES: RangeInclusive<usize> = 1..=1 << 24;

/// What all schemes on the air share.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Radio {
    /// `L`, chips in a sequence, from 1 to 2^24; for schemes without spreading, of the FLORAS system that they are compared
    /// with.
    pub length: usize,
    /// Where the channel coefficients come from.
    pub fading: ChannelSource,
    /// SNR in decibels: from −100 to 100, or infinite for no noise.
    pub snr_db: f64,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
}

impl Default for Radio {
    fn default() -> Self {
        Self {
            length: 32,
            fading: ChannelSource::default(),
            snr_db: 20.0,
            snr_convention: SnrConvention::default(),
        }
    }
}

impl Radio {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("uplink.length", Some(self.length), SIZES)?;
        Snr::new(self.snr_db, self.snr_convention)
            .map_err(|error| ExperimentError::value("uplink.snr_db", error))?;
        if self.trace().is_some_and(|path| path.to_str().is_none()) {
            return Err(ExperimentError::refused("uplink.fading", "the name of the file must be UTF-8"));
        }
        Ok(())
    }

    /// The channel coefficients; reads the trace if they come from one.
    pub fn channels(&self) -> Result<Channels, UplinkError> {
        Channels::open(&self.fading)
    }

    /// The noise.
    pub fn snr(&self) -> Result<Snr, UplinkError> {
        Ok(Snr::new(self.snr_db, self.snr_convention)?)
    }

    /// The file of the channel coefficients, if they come from one.
    pub fn trace(&self) -> Option<&std::path::Path> {
        match &self.fading {
            ChannelSource::Trace(path) => Some(path),
            ChannelSource::Fading(_) => None,
        }
    }

    /// A few words for a line of text, such as `fading channels (Rayleigh), SNR 20 dB`.
    pub fn summary(&self) -> String {
        let fading = match &self.fading {
            ChannelSource::Fading(Fading::None) => "a channel without fading".to_owned(),
            ChannelSource::Fading(fading) => format!("fading channels ({})", fading.label()),
            ChannelSource::Trace(path) => format!("the channels in {}", path.display()),
        };
        match self.snr_db.is_finite() {
            true => format!("{fading}, SNR {} dB", self.snr_db),
            false => format!("{fading}, no noise"),
        }
    }

    /// The same as a sentence.
    pub fn description(&self) -> String {
        let fading = match &self.fading {
            ChannelSource::Fading(Fading::None) => "does not fade".to_owned(),
            ChannelSource::Fading(fading) => format!("fades anew in every round ({})", fading.label()),
            ChannelSource::Trace(path) => format!("follows the measured values in {}", path.display()),
        };
        match self.snr_db.is_finite() {
            true => format!("The channel {fading}, with a signal-to-noise ratio of {} dB.", self.snr_db),
            false => format!("The channel {fading}, without noise."),
        }
    }
}
