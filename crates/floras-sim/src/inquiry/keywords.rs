//! An inquiry as keywords, with the names of an experiment file's keys and of the command line's options.

use floras_core::{
    ChoiceError, Clipping, Fading, Level, LocalWork, Masks, Modulation, Neighbours, PhaseError, Pilot,
    SnrConvention, View,
};
use floras_privacy::Margins;
use serde::{Deserialize, Serialize};
use toml::Table;

use super::{Find, Goal, Inquiry, ReceiverChoice};
use crate::experiment::{ExperimentError, PrivacySettings, deserialize};

/// All keywords of an account or a calibration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Keywords {
    clip: f64,
    per_round: u64,
    clients: Option<u64>,
    rounds: Option<u64>,
    delta: Option<f64>,
    #[serde(default)]
    level: Level,
    batch: Option<u64>,
    samples: Option<u64>,
    #[serde(default)]
    local: LocalWork,
    #[serde(default)]
    neighbours: Neighbours,
    #[serde(default)]
    normalise: Clipping,
    #[serde(default)]
    receiver: ReceiverChoice,
    length: Option<u64>,
    snr_db: Option<f64>,
    #[serde(default)]
    snr_convention: SnrConvention,
    #[serde(default)]
    fading: Fading,
    #[serde(default)]
    modulation: Modulation,
    phase_error: Option<PhaseError>,
    antennas: Option<u64>,
    pilot_amplitude: Option<f64>,
    pilot_repetitions: Option<u32>,
    pilot_noise: Option<f64>,
    channel_growth: Option<f64>,
    foreign_pilots: Option<u64>,
    mask_std: Option<f64>,
    noise_std: Option<f64>,
    colluding: Option<u32>,
    sequences: Option<u64>,
    dim: Option<u64>,
    alpha: Option<f64>,
    epsilon: Option<f64>,
    view: Option<View>,
    #[serde(default)]
    find: Find,
    #[serde(alias = "most_sequences")]
    max_sequences: Option<u64>,
}

impl Keywords {
    /// Reads keywords from a map, with errors that name them.
    pub fn read(keywords: impl Serialize) -> Result<Self, ExperimentError> {
        let table =
            Table::try_from(keywords).map_err(|error| ExperimentError::refused("the keywords", error))?;
        deserialize(&table)
    }

    /// The federation that is described.
    pub fn inquiry(&self) -> Result<Inquiry, ExperimentError> {
        let margins = Margins::default();
        let modulation = self.modulation.with_phase_error(self.phase_error);
        Ok(Inquiry {
            clip: self.clip,
            per_round: self.per_round,
            clients: self.clients,
            rounds: self.rounds,
            delta: self.delta.unwrap_or(1e-5),
            level: self.level,
            batch: self.batch,
            samples: self.samples,
            local: self.local,
            neighbours: self.neighbours,
            clipping: self.normalise,
            receiver: self.receiver,
            length: self.length,
            snr_db: self.snr_db,
            snr_convention: self.snr_convention,
            fading: self.fading,
            modulation: modulation.map_err(|error| ExperimentError::value("phase_error", error))?,
            antennas: self.antennas.map_or(1, |antennas| antennas.try_into().unwrap_or(usize::MAX)),
            pilot: Pilot::new(self.pilot_amplitude.unwrap_or(1.0), self.pilot_repetitions.unwrap_or(1))
                .map_err(|error| ExperimentError::value(pilot_key(&error), error))?,
            margins: Margins {
                pilot_noise: self.pilot_noise.unwrap_or(margins.pilot_noise),
                channel_growth: self.channel_growth.unwrap_or(margins.channel_growth),
                foreign_pilots: self.foreign_pilots.unwrap_or(margins.foreign_pilots),
            },
            masks: self.masks()?,
        })
    }

    /// The masks, if the standard deviation of the clients' noise is given.
    fn masks(&self) -> Result<Option<Masks>, ExperimentError> {
        let Some(noise_std) = self.noise_std else {
            let given = [("mask_std", self.mask_std.is_some()), ("colluding", self.colluding.is_some())];
            return match given.into_iter().find(|(_, is_given)| *is_given) {
                None => Ok(None),
                Some((key, _)) => Err(ExperimentError::Incomplete {
                    key: key.to_owned(),
                    requirement:
                        "must be given together with the standard deviation of the clients' own noise"
                            .to_owned(),
                }),
            };
        };
        Masks::new(self.mask_std.unwrap_or(0.0), noise_std, self.colluding.unwrap_or(0)).map(Some).map_err(
            |error| {
                let key = if error.what == Masks::MASK_STD { "mask_std" } else { "noise_std" };
                ExperimentError::value(key, error)
            },
        )
    }

    /// Number of sequences `N`, which an account requires.
    pub fn sequences(&self) -> Result<u64, ExperimentError> {
        required(self.sequences, "sequences")
    }

    /// Number of parameters `d`, if one round is to be accounted for exactly.
    pub fn dim(&self) -> Option<u64> {
        self.dim
    }

    /// Order `α`, if the published Rényi divergence is requested.
    pub fn alpha(&self) -> Option<f64> {
        self.alpha
    }

    /// The target of a calibration, and the quantity to find.
    pub fn goal(&self) -> Result<Goal, ExperimentError> {
        Ok(Goal {
            epsilon: required(self.epsilon, "epsilon")?,
            view: self.view.unwrap_or_else(|| PrivacySettings::default_view(self.noise_std.is_some())),
            find: self.find,
            sequences: self.sequences,
            max_sequences: self.max_sequences,
        })
    }
}

/// The keyword of a number of the pilot that is out of range.
fn pilot_key(error: &ChoiceError) -> &'static str {
    if error.what == Pilot::AMPLITUDE { "pilot_amplitude" } else { "pilot_repetitions" }
}

fn required<T>(value: Option<T>, key: &str) -> Result<T, ExperimentError> {
    value.ok_or_else(|| ExperimentError::refused(key, "it must be given"))
}
