//! The radio: the keys of `[uplink]` that all schemes on the air share.

use std::ops::RangeInclusive;

use floras_core::{
    Ageing, ChannelSource, Choice, Fading, Modulation, PathLoss, Snr, SnrConvention, TransmitPower,
};
use floras_phy::{Channels, UplinkError};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};

/// Range of the number of sequences, and of the chips per sequence.
pub(crate) const SIZES: RangeInclusive<usize> = 1..=1 << 24;

/// The settings that all schemes with a radio share.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default)]
pub struct Radio {
    /// `L`, chips in a sequence, from 1 to 2^24; for schemes without spreading, of the FLORAS system that they are compared
    /// with.
    pub length: usize,
    /// The source of the channel coefficients.
    pub fading: ChannelSource,
    /// SNR in decibels: from −100 to 100, or infinite for no noise.
    pub snr_db: f64,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
    /// How the channel changes from the pilot through the payload.
    #[serde(skip_serializing_if = "is_default")]
    pub ageing: Ageing,
    /// Parameters over which an ageing channel is constant, from 1 to 2^40; `None` for all of them.
    #[serde(skip_serializing_if = "is_default")]
    pub coherence: Option<usize>,
    /// Standard deviation of the error of the clients' channel estimates, relative to the channels' mean power 1: from 0 to 100.
    #[serde(skip_serializing_if = "is_default")]
    pub channel_error: f64,
    /// The long-term gains of the clients.
    #[serde(skip_serializing_if = "is_default")]
    pub path_loss: PathLoss,
    /// The power at which clients send their updates.
    #[serde(skip_serializing_if = "is_default")]
    pub power: TransmitPower,
    /// Number of receive antennas `R` of the base station, from 1 to 64; their channels are independent.
    #[serde(skip_serializing_if = "is_one")]
    pub antennas: usize,
}

fn is_one(antennas: &usize) -> bool {
    *antennas == 1
}

/// Settings that have no effect are not written, so that files of earlier versions stay as they are.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Default for Radio {
    fn default() -> Self {
        Self {
            length: 32,
            fading: ChannelSource::default(),
            snr_db: 20.0,
            snr_convention: SnrConvention::default(),
            ageing: Ageing::default(),
            coherence: None,
            channel_error: 0.0,
            path_loss: PathLoss::default(),
            power: TransmitPower::default(),
            antennas: 1,
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
        within("uplink.coherence", self.coherence, 1..=1 << 40)?;
        within("uplink.antennas", Some(self.antennas), 1..=Modulation::MAX_ANTENNAS)?;
        if self.antennas > 1 && self.trace().is_some() {
            return Err(ExperimentError::refused("uplink.antennas", "a trace has the channels of 1 antenna"));
        }
        within("uplink.channel_error", Some(self.channel_error), 0.0..=100.0)?;
        let channels = self.fading.fading().map(Channels::from);
        let cannot = |of: &ChannelSource| of.to_string();
        let aged = match (&channels, self.ageing) {
            (None, ageing) if ageing != Ageing::None => {
                Err(UplinkError::CannotAge { channels: cannot(&self.fading) })
            }
            (None, _) => Ok(()),
            (Some(channels), ageing) => channels.clone().with_ageing(ageing, self.coherence).map(|_| ()),
        };
        aged.map_err(|error| ExperimentError::refused("uplink.ageing", error))?;
        if channels.is_none() && self.path_loss != PathLoss::None {
            let error = UplinkError::CannotLose { channels: cannot(&self.fading) };
            return Err(ExperimentError::refused("uplink.path_loss", error));
        }
        Ok(())
    }

    /// The channel coefficients; reads the trace if it is their source.
    pub fn channels(&self) -> Result<Channels, UplinkError> {
        let channels = Channels::open(&self.fading)?.with_ageing(self.ageing, self.coherence)?;
        channels.with_path_loss(self.path_loss)?.with_estimation_error(self.channel_error)
    }

    /// Whether the channels of the payload differ from those of the pilot.
    pub fn ages(&self) -> bool {
        self.ageing.correlation() != 1.0
    }

    /// Whether the blocks of a round's channel depend on the number of parameters.
    pub fn needs_parameters(&self) -> bool {
        self.ages() && self.coherence.is_some()
    }

    /// Whether clients arrive with unequal mean powers.
    pub fn is_unequal(&self) -> bool {
        self.path_loss.unequal().is_some()
    }

    /// Properties of the channel besides fading, as text to append after a comma.
    fn departures(&self) -> String {
        let mut words = match self.antennas {
            1 => String::new(),
            several => format!(", {several} receive antennas"),
        };
        if self.ageing != Ageing::None {
            words += &format!(", {}", self.ageing.label());
            words += &match self.coherence {
                Some(coherence) => format!(" over blocks of {coherence} parameters"),
                None => " from pilot to payload".to_owned(),
            };
        }
        if self.channel_error > 0.0 {
            words += &format!(", channel estimates with an error of {}", self.channel_error);
        }
        if self.path_loss != PathLoss::None {
            words += &format!(", {}", self.path_loss.label());
        }
        words
    }

    /// The signal-to-noise ratio, with its convention.
    pub fn snr(&self) -> Result<Snr, UplinkError> {
        Ok(Snr::new(self.snr_db, self.snr_convention)?)
    }

    /// The file of the channel coefficients, if a trace is their source.
    pub fn trace(&self) -> Option<&std::path::Path> {
        match &self.fading {
            ChannelSource::Trace(path) => Some(path),
            ChannelSource::Fading(_) => None,
        }
    }

    /// A short description for one line of text, such as `Rayleigh fading, SNR 20 dB`.
    pub fn summary(&self) -> String {
        let fading = match &self.fading {
            ChannelSource::Fading(Fading::None) => "a channel without fading".to_owned(),
            ChannelSource::Fading(fading) => match fading.label().split_once(", ") {
                Some((name, parameter)) => format!("{name} fading ({parameter})"),
                None => format!("{} fading", fading.label()),
            },
            ChannelSource::Trace(path) => format!("the channels in {}", path.display()),
        };
        let departures = self.departures();
        match self.snr_db.is_finite() {
            true => format!("{fading}{departures}, SNR {} dB", self.snr_db),
            false => format!("{fading}{departures}, no noise"),
        }
    }

    /// The description as a sentence.
    pub fn description(&self) -> String {
        let fading = match &self.fading {
            ChannelSource::Fading(Fading::None) => "does not fade".to_owned(),
            ChannelSource::Fading(fading) => {
                format!("fades independently in every round ({})", fading.label())
            }
            ChannelSource::Trace(path) => format!("follows the measured values in {}", path.display()),
        };
        let departures = self.departures();
        match self.snr_db.is_finite() {
            true => {
                let place = if self.antennas > 1 { " at each antenna" } else { "" };
                format!(
                    "The channel {fading}{departures}, with a signal-to-noise ratio of {} dB{place}.",
                    self.snr_db
                )
            }
            false => format!("The channel {fading}{departures}, without noise."),
        }
    }
}
