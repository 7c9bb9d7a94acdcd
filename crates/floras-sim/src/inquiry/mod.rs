//! Accounts and calibrations of federations that are described by keywords or by an experiment.
//!
//! `floras account`, `floras calibrate` and `floras.privacy` in Python share them: [`AccountReport`], [`CalibrationReport`],
//! [`ExperimentReport`] and [`ExperimentCalibration`].

mod account;
mod calibrate;
mod curves;
mod experiment;
mod keywords;
mod masks;
mod notes;
mod published;
mod statement;

use std::fmt;
use std::str::FromStr;

use floras_core::{
    Choice, ChoiceError, Clipping, Fading, Level, LocalWork, Masks, Modulation, Neighbours, Pilot, Receiver,
    Snr, SnrConvention, serde_as_text,
};
use floras_privacy::{Coefficients, Margins, PrivacyUnit, Setting};

pub use account::{AccountReport, OneRound};
pub use calibrate::{CalibrationReport, Find, Found, Goal};
pub use curves::{CurveKind, CurveReport, GroupReport, JointReport, compose, read_losses};
pub use experiment::{
    ExperimentAccount, ExperimentCalibration, ExperimentReport, ExperimentViews, calibrate_experiment,
};
pub use keywords::Keywords;
pub use masks::FoundMasks;
pub use notes::{
    NO_FINITE, adversary_text, bound_text, epsilon_text, is_model, is_sampled, sampled_texts, verdict_text,
};
pub use published::PublishedRenyi;

use crate::error::{SimError, incomplete, wrong};

/// Clients, updates and radio of a federation.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// Clip norm `C` of an update.
    pub clip: f64,
    /// Number of clients per round `K`.
    pub per_round: u64,
    /// Total number of clients `M`; `K` if absent.
    pub clients: Option<u64>,
    /// Number of rounds `T`. If absent: 1, or at most 10⁶ if the rounds are to be found.
    pub rounds: Option<u64>,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// The unit that is protected.
    pub level: Level,
    /// Batch size `b`, at the item level.
    pub batch: Option<u64>,
    /// Number of samples per client `D`, at the item level.
    pub samples: Option<u64>,
    /// Local work of a client in a round, at the item level.
    pub local: LocalWork,
    /// Which populations are neighbours.
    pub neighbours: Neighbours,
    /// How updates are limited to norm `C`.
    pub clipping: Clipping,
    /// The base station's rule for the weights `w(ĥ)` of despread symbols.
    pub receiver: ReceiverChoice,
    /// Chips per sequence `L`: the maximum number of sequences, and with `snr_db` part of the radio.
    pub length: Option<u64>,
    /// Signal-to-noise ratio in dB, by the given convention; `None` without a radio.
    pub snr_db: Option<f64>,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
    /// The distribution of the channels.
    pub fading: Fading,
    /// Which branches the base station decodes, and whether clients correct their channel's phase.
    pub modulation: Modulation,
    /// Number of receive antennas `R`: from 1 to 64, and 1 with phase correction.
    pub antennas: usize,
    /// Amplitude and repetitions of the pilot.
    pub pilot: Pilot,
    /// How far the radio may depart from the model.
    pub margins: Margins,
    /// Masks and local noise of the clients.
    pub masks: Option<Masks>,
}

/// A receiver, or the clipped projector with a level to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverChoice {
    /// A receiver with all its parameters.
    Given(Receiver),
    /// The clipped projector at the level with the least noise.
    ClippedAuto,
}

impl Default for ReceiverChoice {
    fn default() -> Self {
        Self::Given(Receiver::default())
    }
}

impl Choice for ReceiverChoice {
    const WHAT: &'static str = Receiver::WHAT;
    const FORMS: &'static [&'static str] = Receiver::FORMS;
    const RANGES: &'static str =
        "k between 0.01 and 1e4, c between 1e-6 and 1e6; clipped alone where the level is to be found";

    fn label(&self) -> String {
        match self {
            Self::Given(receiver) => receiver.label(),
            Self::ClippedAuto => "clipped projector".to_owned(),
        }
    }
}

impl FromStr for ReceiverChoice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<Self, ChoiceError> {
        if text.trim() == "clipped" {
            return Ok(Self::ClippedAuto);
        }
        text.parse().map(Self::Given).map_err(|_: ChoiceError| Self::refuse(text))
    }
}

impl fmt::Display for ReceiverChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given(receiver) => receiver.fmt(f),
            Self::ClippedAuto => f.pad("clipped"),
        }
    }
}

serde_as_text!(ReceiverChoice);

impl Inquiry {
    /// The federation with `sequences` sequences.
    pub fn setting(&self, sequences: u64, receiver: Receiver) -> Result<Setting, SimError> {
        let setting = Setting {
            clip: self.clip,
            sequences,
            per_round: self.per_round,
            clients: self.clients.unwrap_or(self.per_round),
            delta: self.delta,
            unit: self.unit()?,
            neighbours: self.neighbours,
            clipping: self.clipping,
            receiver,
            branches: self.branches()?,
            channel: self.channel()?,
            pilot: self.pilot,
            margins: self.margins,
            masks: self.masks,
        };
        if self.length.is_some_and(|length| sequences > length) {
            let allowed = "at most the length, the maximum number of orthogonal sequences";
            return Err(wrong("sequences", allowed, sequences));
        }
        Ok(setting)
    }

    fn unit(&self) -> Result<PrivacyUnit, SimError> {
        if self.level == Level::Client {
            for (name, given) in [("batch", self.batch), ("samples", self.samples)] {
                if given.is_some() {
                    return Err(incomplete(name, "can be given for the item level only"));
                }
            }
            return Ok(PrivacyUnit::Client);
        }
        let (Some(batch), Some(samples)) = (self.batch, self.samples) else {
            return Err(incomplete("level", "can be item only together with batch and samples"));
        };
        Ok(PrivacyUnit::Item { batch, samples, local: self.local })
    }

    /// The distribution of the channels, if the radio was given.
    fn channel(&self) -> Result<Option<Coefficients>, SimError> {
        let (Some(length), Some(snr_db)) = (self.length, self.snr_db) else {
            if self.snr_db.is_some() {
                return Err(incomplete("snr_db", "must be given together with a length"));
            }
            return Ok(None);
        };
        if length == 0 || length > 1 << 24 {
            return Err(wrong("length", "between 1 and 2^24", length));
        }
        let noise_std = Snr::new(snr_db, self.snr_convention)?.despread_noise_std(length as usize);
        if noise_std == 0.0 {
            return Err(wrong("snr_db", "finite", snr_db));
        }
        let channel = Coefficients::of_antennas(self.fading, self.modulation, self.antennas, noise_std)?;
        channel.map(Some).ok_or_else(|| {
            let allowed =
                "rayleigh or none (or nakagami=m with complex modulation) with several branches and a radio";
            wrong("fading", allowed, self.fading)
        })
    }

    /// Number of real branches `B` of the receiver.
    fn branches(&self) -> Result<u32, SimError> {
        self.modulation
            .check_antennas(self.antennas)
            .map_err(|error| wrong("antennas", &error.allowed, error.value))?;
        Ok(self.modulation.branches(self.antennas) as u32)
    }
}
