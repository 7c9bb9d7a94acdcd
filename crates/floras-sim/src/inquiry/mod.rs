//! An inquiry: how private is a federation that is only described, and what would make it more so?
//!
//! It is what `floras account` and `floras calibrate` ask, and what `floras.privacy` in Python does: both get the same answer,
//! [`AccountReport`] and [`CalibrationReport`].

mod account;
mod calibrate;
mod curves;
mod notes;
mod read;
mod statement;

use floras_phy::{Fading, Modulation, Snr, SnrConvention};
use floras_privacy::{Coefficients, Level, Local, Margins, Neighbours, Receiver, Scaling, Setting};

pub use account::{AccountReport, OneRound};
pub use calibrate::{CalibrationReport, Find, Found, Goal};
pub use curves::{CurveKind, CurveReport, GroupReport, JointReport, compose, read_losses};
pub use notes::{bound_text, epsilon_text, guarantee_text, is_sampled, sampled_texts};

use crate::accounting::coefficients;
use crate::error::SimError;
use crate::experiment::ExperimentError;

/// Who takes part, what they send, and over which radio.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// `C`.
    pub clip: f64,
    /// `K`.
    pub per_round: u64,
    /// `M`; as many as take part in a round if absent.
    pub clients: Option<u64>,
    /// `T`.
    pub rounds: Option<u64>,
    /// `δ`.
    pub delta: f64,
    /// What has to stay hidden.
    pub level: LevelChoice,
    /// `b`, at the item level.
    pub batch: Option<u64>,
    /// `D`, at the item level.
    pub samples: Option<u64>,
    /// What a client does in a round, at the item level.
    pub local: Local,
    /// Which populations are neighbours.
    pub neighbours: Neighbours,
    /// How updates are brought to norm `C`.
    pub scaling: Scaling,
    /// The base station's weights.
    pub receiver: ReceiverChoice,
    /// `L`.
    pub length: Option<u64>,
    /// SNR in decibels.
    pub snr_db: Option<f64>,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
    /// The law of the channels.
    pub fading: Fading,
    /// Whether clients correct their channel's phase.
    pub modulation: Modulation,
    /// How far the radio may depart from the model.
    pub margins: Margins,
}

/// All data of a client, or one item of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LevelChoice {
    /// All data of a client.
    #[default]
    Client,
    /// One item.
    Item,
}

/// A receiver, or the clipped projector with a level to be found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReceiverChoice {
    /// This one.
    Given(Receiver),
    /// The clipped projector, with whichever level is best.
    ClippedSomehow,
}

impl LevelChoice {
    /// `client` or `item`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Item => "item",
        }
    }
}

impl Inquiry {
    /// The federation with so many sequences.
    pub fn setting(&self, sequences: u64, receiver: Receiver) -> Result<Setting, SimError> {
        let setting = Setting {
            clip: self.clip,
            sequences,
            per_round: self.per_round,
            clients: self.clients.unwrap_or(self.per_round),
            delta: self.delta,
            level: self.level()?,
            neighbours: self.neighbours,
            scaling: self.scaling,
            receiver,
            channel: self.channel()?,
            margins: self.margins,
        };
        setting.check()?;
        if self.length.is_some_and(|length| sequences > length) {
            let allowed = "at most the length: no more orthogonal sequences fit into so many chips";
            return Err(wrong("sequences", allowed, sequences));
        }
        Ok(setting)
    }

    fn level(&self) -> Result<Level, SimError> {
        if self.level == LevelChoice::Client {
            for (name, given) in [("batch", self.batch), ("samples", self.samples)] {
                if let Some(value) = given {
                    return Err(wrong(name, "given for the item level only", value));
                }
            }
            return Ok(Level::Client);
        }
        let (Some(batch), Some(samples)) = (self.batch, self.samples) else {
            return Err(wrong("level", "given together with batch and samples if it is item", "item alone"));
        };
        Ok(Level::Item { batch, samples, local: self.local })
    }

    /// The law of the channels, if the radio was given.
    fn channel(&self) -> Result<Option<Coefficients>, SimError> {
        let (Some(length), Some(snr_db)) = (self.length, self.snr_db) else {
            if self.snr_db.is_some() {
                return Err(wrong("snr_db", "given together with a length", "alone"));
            }
            return Ok(None);
        };
        if length == 0 || length > 1 << 24 {
            return Err(wrong("length", "between 1 and 2^24", length));
        }
        let noise_std = Snr::new(snr_db, self.snr_convention)?.despread_noise_std(length as usize);
        if noise_std == 0.0 {
            return Err(wrong("snr_db", "finite: a channel without noise hides nothing", snr_db));
        }
        self.fading.check()?;
        Ok(coefficients(&self.fading, self.modulation, noise_std)?)
    }
}

/// The receiver as it is given on the command line.
pub fn receiver_name(receiver: Receiver) -> String {
    match receiver {
        Receiver::Paper => "paper".to_owned(),
        Receiver::Mmse => "mmse".to_owned(),
        Receiver::Clipped(c) => format!("clipped={c}"),
    }
}

fn wrong(key: &str, allowed: &str, value: impl ToString) -> SimError {
    let (key, allowed) = (key.to_owned(), allowed.to_owned());
    ExperimentError::Value { key, allowed, value: value.to_string() }.into()
}
