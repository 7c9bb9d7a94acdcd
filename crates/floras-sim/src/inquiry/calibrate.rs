//! The setting that meets an `ε`, or why no setting does.

use floras_core::{ClipLevel, Family, Modulation, PhaseError, Pilot, Receiver, View, named_choice};
use floras_privacy::calibrate::{self, Calibrated, Target};
use floras_privacy::{Account, Margins, PrivacyError, Setting, Views};
use serde::Serialize;

use super::{Inquiry, ReceiverChoice, notes, wrong};
use crate::error::{SimError, incomplete};
use crate::experiment::{ExperimentBuilder, ExperimentError};

/// Maximum number of sequences without a length; smaller if the level of the clipped projector is searched too.
const MAX_SEQUENCES: u64 = 1_000_000;
const MAX_SEQUENCES_FOR_LEVEL: u64 = 1024;
/// Maximum number of rounds, if it is not given.
const MAX_ROUNDS: u64 = 1_000_000;

/// The target, and what to find.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The target: an upper bound on `ε`.
    pub epsilon: f64,
    /// The view in which to meet it.
    pub view: View,
    /// The quantity to find.
    pub find: Find,
    /// Number of sequences `N`, if another quantity is to be found.
    pub sequences: Option<u64>,
    /// The maximum number of sequences; the length if absent.
    pub max_sequences: Option<u64>,
}

/// The quantity to find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Find {
    /// The minimum number of sequences.
    #[default]
    Sequences,
    /// The largest clip norm `C` that meets the target.
    Clip,
    /// The maximum number of rounds.
    Rounds,
    /// The least noise of an experiment: that of its scheme, or of each client if the scheme has none of its own.
    Noise,
    /// The masks with the least noise in the decoded sum of an experiment.
    Masks,
}

named_choice!(
    Find,
    "quantity to find",
    [Sequences => "sequences", "the minimum number of sequences"],
    [Clip => "clip", "the largest clip norm"],
    [Rounds => "rounds", "the maximum number of rounds"],
    [Noise => "noise", "the least noise"],
    [Masks => "masks", "the masks with the least noise"],
);

/// The result: what `floras calibrate --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationReport {
    /// Number of sequences `N`; `None` if no setting meets the target.
    pub sequences: Option<u64>,
    /// Number of unused sequences, `γ = N − K`.
    pub gamma: Option<u64>,
    /// The view's name.
    pub view: &'static str,
    /// `ε` of the found setting.
    pub epsilon: Option<f64>,
    /// The target: an upper bound on `ε`.
    pub epsilon_asked: f64,
    /// Clip norm `C` of the found setting, if there is one.
    pub clip: Option<f64>,
    /// Number of rounds `T` of the found setting, if there is one.
    pub rounds: Option<u64>,
    /// The receiver's name.
    pub receiver: Option<String>,
    /// Standard deviation of the noise in every parameter of the sum, around which it concentrates, for the clipped projector.
    pub noise_std: Option<f64>,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// `client` or `item`.
    pub level: &'static str,
    /// The statements about the found setting.
    pub views: Option<Views>,
    /// Notes on the statements.
    pub notes: Vec<String>,
    /// Why no setting meets the target; `None` if one was found.
    pub reason: Option<String>,
    /// The found federation as an experiment file, with every setting that the search knows. At the item level, `ε` of the file
    /// depends on the samples of its clients.
    pub fragment: Option<String>,
    /// The setting that meets the target, and its `ε`; `None` if no setting does.
    #[serde(skip)]
    pub found: Option<Found>,
}

/// A setting with its rounds and its `ε`.
pub type Found = Calibrated;

impl Inquiry {
    /// Searches a setting that meets a goal. If there is none, the report states the reason.
    pub fn calibrate(&self, goal: &Goal) -> Result<CalibrationReport, SimError> {
        match self.search(goal) {
            Ok(found) => self.report(goal, found),
            Err(SimError::Privacy(error @ PrivacyError::NothingMeets { .. })) => {
                Ok(self.no_setting(goal, error.to_string()))
            }
            Err(other) => Err(other),
        }
    }

    fn search(&self, goal: &Goal) -> Result<Calibrated, SimError> {
        let max_rounds = if goal.find == Find::Rounds { MAX_ROUNDS } else { 1 };
        let target =
            Target { view: goal.view, epsilon: goal.epsilon, rounds: self.rounds.unwrap_or(max_rounds) };
        if goal.find == Find::Sequences {
            return self.search_sequences(goal, target);
        }
        if matches!(goal.find, Find::Noise | Find::Masks) {
            let allowed = "sequences, clip or rounds, unless an experiment is given";
            return Err(wrong("find", allowed, goal.find));
        }
        let ReceiverChoice::Given(receiver) = self.receiver else {
            let allowed = "paper, mmse or clipped with a number, unless the search is for sequences";
            return Err(wrong("receiver", allowed, "clipped without one"));
        };
        let Some(sequences) = goal.sequences else {
            return Err(incomplete("sequences", "must be given, unless the search is for sequences"));
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
        if goal.sequences.is_some() {
            return Err(incomplete("sequences", "must be left out: the search is for sequences"));
        }
        let most = |otherwise: u64| goal.max_sequences.or(self.length).unwrap_or(otherwise);
        // A sequence with a foreign pilot adds no noise: the search is without them, and their number is added.
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
            fragment: Some(self.fragment(&found)?),
            found: Some(found),
        })
    }

    fn fragment(&self, found: &Calibrated) -> Result<String, ExperimentError> {
        let Calibrated { setting, rounds, .. } = found;
        let length = self.length.unwrap_or_else(|| setting.sequences.next_power_of_two());
        let mut builder = ExperimentBuilder::new()
            .set_to("rounds", rounds)?
            .set_to("clients.total", setting.clients)?
            .set_to("clients.per_round", setting.per_round)?;
        if let Some(batch) = self.batch {
            builder = builder.set_to("local.batch", batch)?;
        }
        builder = builder
            .set_to("uplink.scheme", "floras")?
            .set_to("uplink.sequences", setting.sequences)?
            .set_to("uplink.length", length)?
            .set_to("uplink.receiver", setting.receiver)?;
        if !length.is_power_of_two() {
            builder = builder.set_to("uplink.family", Family::Orthonormal)?;
        }
        builder = match self.modulation {
            Modulation::PhaseCorrected(error) if error != PhaseError::None => builder
                .set_to("uplink.modulation", Modulation::PhaseCorrected(PhaseError::None))?
                .set_to("uplink.phase_error", error)?,
            other => builder.set_to("uplink.modulation", other)?,
        };
        builder = builder.set_to("uplink.antennas", self.antennas as u64)?;
        if let Some(snr_db) = self.snr_db {
            builder = builder
                .set_to("uplink.snr_db", snr_db)?
                .set_to("uplink.snr_convention", self.snr_convention)?
                .set_to("uplink.fading", self.fading)?;
        }
        if self.pilot != Pilot::default() {
            builder = builder.set_to("uplink.pilot", self.pilot)?;
        }
        builder = builder
            .set_to("privacy.clip", setting.clip)?
            .set_to("privacy.normalise", self.clipping)?
            .set_to("privacy.delta", self.delta)?
            .set_to("privacy.level", self.level)?;
        let (margins, default) = (self.margins, Margins::default());
        if margins != default {
            builder = builder
                .set_to("privacy.pilot_noise", margins.pilot_noise)?
                .set_to("privacy.channel_growth", margins.channel_growth)?
                .set_to("privacy.foreign_pilots", margins.foreign_pilots)?;
        }
        if let Some(masks) = setting.masks {
            builder = builder
                .set_to("masks.mask_std", masks.mask_std())?
                .set_to("masks.noise_std", masks.noise_std())?
                .set_to("masks.colluding", masks.colluding())?;
        }
        Ok(builder.without_unused()?.to_toml())
    }

    fn no_setting(&self, goal: &Goal, reason: String) -> CalibrationReport {
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
            fragment: None,
            found: None,
        }
    }
}
