//! What meets an `ε`, or that nothing does and why.

use floras_core::{ClipLevel, Receiver, View, named_choice};
use floras_privacy::calibrate::{self, Calibrated, Target};
use floras_privacy::{Account, Margins, PrivacyError, Setting, Views};
use serde::Serialize;

use super::{Inquiry, ReceiverChoice, notes, wrong};
use crate::error::SimError;

/// Without a length, no more sequences are looked at; fewer if the clipped projector's level is to be found too.
const MAX_SEQUENCES: u64 = 1_000_000;
const MAX_SEQUENCES_FOR_LEVEL: u64 = 1024;
/// Without a number of rounds, no more are looked at.
const MAX_ROUNDS: u64 = 1_000_000;

/// What to meet, and what to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// `ε`.
    pub epsilon: f64,
    /// The view in which to meet it.
    pub view: View,
    /// What to find.
    pub find: Find,
    /// `N`, if something else is to be found.
    pub sequences: Option<u64>,
    /// The most sequences that there may be; the length if absent.
    pub most_sequences: Option<u64>,
}

/// What to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Find {
    /// The fewest sequences.
    #[default]
    Sequences,
    /// The largest clip norm.
    Clip,
    /// The most rounds.
    Rounds,
    /// The least noise, for schemes that add noise of their own.
    Noise,
    /// The masks that leave the least noise in the decoded sum of an experiment.
    Masks,
}

named_choice!(
    Find,
    "quantity to find",
    [Sequences => "sequences", "the fewest sequences"],
    [Clip => "clip", "the largest clip norm"],
    [Rounds => "rounds", "the most rounds"],
    [Noise => "noise", "the least noise"],
    [Masks => "masks", "masks that leave the least noise"],
);

/// What was found: what `floras calibrate --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationReport {
    /// `N`; `None` if nothing meets the `ε`.
    pub sequences: Option<u64>,
    /// `γ = N − K`.
    pub gamma: Option<u64>,
    /// The view's name.
    pub view: &'static str,
    /// What the found setting has.
    pub epsilon: Option<f64>,
    /// What was asked for.
    pub epsilon_asked: f64,
    /// `C`.
    pub clip: Option<f64>,
    /// `T`.
    pub rounds: Option<u64>,
    /// The receiver's name.
    pub receiver: Option<String>,
    /// Standard deviation of the noise in every parameter of the sum, around which it concentrates, for the clipped projector.
    pub noise_std: Option<f64>,
    /// `δ`.
    pub delta: f64,
    /// `client` or `item`.
    pub level: &'static str,
    /// The statements about the found setting.
    pub views: Option<Views>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Why nothing meets it.
    pub reason: Option<String>,
    /// The found setting itself.
    #[serde(skip)]
    pub found: Option<Found>,
}

/// A setting, and what it comes to.
pub type Found = Calibrated;

impl Inquiry {
    /// Looks for what meets a goal. That nothing does is an answer too.
    pub fn calibrate(&self, goal: &Goal) -> Result<CalibrationReport, SimError> {
        match self.search(goal) {
            Ok(found) => self.report(goal, found),
            Err(SimError::Privacy(error @ PrivacyError::NothingMeets { .. })) => {
                Ok(self.nothing(goal, error.to_string()))
            }
            Err(other) => Err(other),
        }
    }

    fn search(&self, goal: &Goal) -> Result<Calibrated, SimError> {
        let most_rounds = if goal.find == Find::Rounds { MAX_ROUNDS } else { 1 };
        let target =
            Target { view: goal.view, epsilon: goal.epsilon, rounds: self.rounds.unwrap_or(most_rounds) };
        if goal.find == Find::Sequences {
            return self.search_sequences(goal, target);
        }
        if matches!(goal.find, Find::Noise | Find::Masks) {
            let allowed = "sequences, clip or rounds, unless an experiment is given";
            return Err(wrong("find", allowed, goal.find));
        }
        let ReceiverChoice::Given(receiver) = self.receiver else {
            let allowed = "paper, mmse or clipped with a number, unless sequences are to be found";
            return Err(wrong("receiver", allowed, "clipped without one"));
        };
        let Some(sequences) = goal.sequences else {
            let allowed = "given, unless the sequences are what is to be found";
            return Err(wrong("sequences", allowed, "absent"));
        };
        let setting = self.setting(sequences, receiver)?;
        Ok(match goal.find {
            Find::Clip => calibrate::largest_clip(&setting, target)?,
            Find::Sequences | Find::Rounds | Find::Noise | Find::Masks => {
                calibrate::most_rounds(&setting, target)?
            }
        })
    }

    fn search_sequences(&self, goal: &Goal, target: Target) -> Result<Calibrated, SimError> {
        if let Some(sequences) = goal.sequences {
            return Err(wrong(
                "sequences",
                "left out, unless the clip norm or the rounds are to be found",
                sequences,
            ));
        }
        let most = |otherwise: u64| goal.most_sequences.or(self.length).unwrap_or(otherwise);
        // A sequence with a foreign pilot counts for nothing, so that the search is one without them, and they come on top.
        let foreign_pilots = self.margins.foreign_pilots;
        let most = |otherwise: u64| most(otherwise).saturating_sub(foreign_pilots);
        let silent = Self { margins: Margins { foreign_pilots: 0, ..self.margins }, ..self.clone() };
        let smallest = self.per_round;
        let found = match self.receiver {
            ReceiverChoice::Given(receiver) => {
                let setting = silent.setting(smallest, receiver)?;
                calibrate::fewest_sequences(&setting, target, most(MAX_SEQUENCES))?
            }
            ReceiverChoice::ClippedAuto => {
                let setting = silent.setting(smallest, Receiver::Clipped(ClipLevel::ONE))?;
                let most = most(smallest.saturating_add(MAX_SEQUENCES_FOR_LEVEL));
                calibrate::least_noise(&setting, target, most)?
            }
        };
        if foreign_pilots == 0 {
            return Ok(found);
        }
        let Calibrated { setting, rounds, epsilon } = found;
        let sequences = setting.sequences.saturating_add(foreign_pilots);
        let setting = Setting { sequences, margins: self.margins, ..setting };
        let epsilon = Account::of(&setting)?.epsilon(target.view, rounds)?.unwrap_or(epsilon);
        Ok(Calibrated { setting, rounds, epsilon })
    }

    fn report(&self, goal: &Goal, found: Calibrated) -> Result<CalibrationReport, SimError> {
        let Calibrated { setting, rounds, epsilon } = &found;
        let views = Account::of(setting)?.views(*rounds)?;
        Ok(CalibrationReport {
            sequences: Some(setting.sequences),
            gamma: Some(setting.gamma()),
            view: goal.view.name(),
            epsilon: Some(*epsilon),
            epsilon_asked: goal.epsilon,
            clip: Some(setting.clip),
            rounds: Some(*rounds),
            receiver: Some(setting.receiver.to_string()),
            noise_std: setting.noise_std(),
            delta: setting.delta,
            level: self.level.name(),
            notes: notes::of(setting, &views, *rounds),
            views: Some(views),
            reason: None,
            found: Some(found),
        })
    }

    fn nothing(&self, goal: &Goal, reason: String) -> CalibrationReport {
        CalibrationReport {
            sequences: None,
            gamma: None,
            view: goal.view.name(),
            epsilon: None,
            epsilon_asked: goal.epsilon,
            clip: None,
            rounds: None,
            receiver: None,
            noise_std: None,
            delta: self.delta,
            level: self.level.name(),
            views: None,
            notes: Vec::new(),
            reason: Some(reason),
            found: None,
        }
    }
}
