//! Calibration to an `ε` after all rounds: the smallest number of sequences of FLORAS for a receiver and a view, and the least noise of
//! other schemes.
//!
//! - *Idealised view*: `γ` does not depend on `K`. `L` is the next power of two from `N = K + γ` on, and not below that of the
//!   clipped projector, so that all receivers have the same bandwidth unless they need more.
//! - *Actual view*: the pilot's noise falls with `L`, so that `N` depends on `L`. `L` is the least power of two, from that of
//!   the idealised view on, with which some `N ≤ L` meets `ε`.
//! - *Central Gaussian noise*: `T` rounds are one with `μ = Δ√T/ν`, hence `ν = Δ√T/μ(ε, δ)`, the least that there is.

use std::collections::{BTreeMap, BTreeSet};

use floras_core::{
    ClipLevel, Clipping, Fading, Modulation, Neighbours, PhaseError, Receiver, Snr, SnrConvention, View,
};
use floras_privacy::calibrate::{self, Target};
use floras_privacy::{Coefficients, PrivacyError, PrivacyUnit, Setting};
use floras_sim::{Settings, SimError, VERSION};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::noise::sufficient_std;
use crate::reproduce::workbench::{Stage, Workbench};

/// Maximum number of chips per parameter.
pub(super) const MAX_LENGTH: u64 = 8192;

/// The clipped projector, whose bandwidth the others share.
pub(super) const CLIPPED: Receiver = Receiver::Clipped(ClipLevel::ONE);

/// File name of the stored calibrations.
const FILE: &str = "frontier-calibration.json";

/// Number and length of the sequences.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Choice {
    /// Number of sequences, `N`.
    pub(super) sequences: u64,
    /// Length of the sequences, `L`, in chips.
    pub(super) length: u64,
    /// `ε` of this choice, after all rounds.
    pub(super) epsilon: f64,
}

/// One calibration: receiver, number of clients, `ε` and view.
pub(super) type Task = (Receiver, u32, u32, View);

/// All requested choices; `None` if no `N` up to [`MAX_LENGTH`] meets the `ε`.
pub(super) struct Choices {
    found: BTreeMap<String, Option<Choice>>,
}

/// The settings that all calibrations share.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    clip: f64,
    delta: f64,
    rounds: u64,
    snr_db: f64,
}

impl Terms {
    pub(super) fn of(settings: &Settings) -> Self {
        let snr_db = settings.uplink.radio().map_or(f64::INFINITY, |radio| radio.snr_db);
        let clip = settings.privacy.clip.unwrap_or(1.0);
        Self { clip, delta: settings.privacy.delta, rounds: settings.rounds.into(), snr_db }
    }

    /// The noise in each parameter of the sum for which a trusted server meets `ε` after all rounds.
    pub(super) fn central_noise_std(&self, epsilon: u32) -> Result<f64, PrivacyError> {
        sufficient_std(self.clip, self.rounds as u32, epsilon.into(), self.delta)
    }

    fn setting(
        &self,
        receiver: Receiver,
        clients: u32,
        length: Option<u64>,
    ) -> Result<Setting, PrivacyError> {
        let channel = match length {
            None => None,
            Some(length) => {
                let snr = Snr::new(self.snr_db, SnrConvention::Symbol);
                let noise_std = snr.map_or(0.0, |snr| snr.despread_noise_std(length as usize));
                let modulation = Modulation::PhaseCorrected(PhaseError::None);
                Some(Coefficients::of(Fading::Rayleigh, modulation, noise_std)?)
            }
        };
        Ok(Setting {
            clip: self.clip,
            sequences: clients.into(),
            per_round: clients.into(),
            clients: clients.into(),
            delta: self.delta,
            unit: PrivacyUnit::Client,
            neighbours: Neighbours::ReplaceOne,
            clipping: Clipping::Each,
            receiver,
            channel,
            ..Setting::default()
        })
    }

    fn target(&self, view: View, epsilon: u32) -> Target {
        Target { view, epsilon: epsilon.into(), rounds: self.rounds }
    }

    /// The smallest number of unused sequences in the idealised view, for any number of clients.
    fn idealised(&self, receiver: Receiver, epsilon: u32) -> Result<Option<(u64, f64)>, PrivacyError> {
        let target = self.target(View::Idealised, epsilon);
        let found = calibrate::fewest_sequences(&self.setting(receiver, 1, None)?, target, MAX_LENGTH);
        Ok(met(found)?.map(|found| (found.setting.gamma(), found.epsilon)))
    }

    /// The smallest number of sequences in the actual view; the search begins near the `γ` of the idealised view.
    fn actual(
        &self,
        receiver: Receiver,
        clients: u32,
        epsilon: u32,
        near: u64,
        mut length: u64,
    ) -> Result<Option<Choice>, PrivacyError> {
        while length <= MAX_LENGTH {
            let setting = self.setting(receiver, clients, Some(length))?;
            let target = self.target(View::Actual, epsilon);
            if let Some(found) = met(calibrate::fewest_sequences_near(&setting, target, length, near))? {
                return Ok(Some(Choice {
                    sequences: found.setting.sequences,
                    length,
                    epsilon: found.epsilon,
                }));
            }
            length *= 2;
        }
        Ok(None)
    }

    fn find(
        &self,
        &(receiver, clients, epsilon, view): &Task,
        unused: &BTreeMap<String, Option<(u64, f64)>>,
    ) -> Result<Option<Choice>, PrivacyError> {
        let Some((gamma, reached)) = unused.get(&unused_key(receiver, epsilon)).copied().flatten() else {
            return Ok(None);
        };
        let sequences = u64::from(clients) + gamma;
        let of_clipped = unused.get(&unused_key(CLIPPED, epsilon)).copied().flatten();
        let at_least = u64::from(clients) + of_clipped.map_or(0, |(gamma, _)| gamma);
        let length = sequences.max(at_least).next_power_of_two();
        match view {
            _ if length > MAX_LENGTH => Ok(None),
            View::Actual => self.actual(receiver, clients, epsilon, gamma, length),
            _ => Ok(Some(Choice { sequences, length, epsilon: reached })),
        }
    }
}

/// Replaces the error that no setting meets an `ε` by `None`.
fn met(
    found: Result<calibrate::Calibrated, PrivacyError>,
) -> Result<Option<calibrate::Calibrated>, PrivacyError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(PrivacyError::NothingMeets { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn unused_key(receiver: Receiver, epsilon: u32) -> String {
    format!("{receiver:?}, epsilon {epsilon}")
}

fn key(&(receiver, clients, epsilon, view): &Task) -> String {
    format!("{receiver:?}, K {clients}, epsilon {epsilon}, {view}")
}

impl Choices {
    /// Calibrates, or reads the results of an earlier call from the workbench's directory.
    pub(super) fn make(bench: &Workbench<'_>, terms: &Terms, tasks: &[Task]) -> Result<Self, SimError> {
        let about = format!("floras {VERSION}, {terms:?}, L from that of {CLIPPED:?} up to {MAX_LENGTH}");
        let keys: Vec<String> = tasks.iter().map(key).collect();
        let found = bench.recall(FILE, about, &keys, || {
            (bench.watch)(Stage::Working("calibrating the sequences of every point"));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(bench.threads).build()?;
            Ok(pool.install(|| calibrate_all(terms, tasks))?)
        })?;
        Ok(Self { found })
    }

    pub(super) fn get(&self, task: &Task) -> Option<Choice> {
        self.found.get(&key(task)).copied().flatten()
    }
}

fn calibrate_all(terms: &Terms, tasks: &[Task]) -> Result<BTreeMap<String, Option<Choice>>, PrivacyError> {
    let mut pairs: BTreeSet<String> = BTreeSet::new();
    let distinct: Vec<&Task> = tasks.iter().filter(|task| pairs.insert(unused_key(task.0, task.2))).collect();
    let unused = distinct
        .into_par_iter()
        .map(|&(receiver, _, epsilon, _)| {
            Ok((unused_key(receiver, epsilon), terms.idealised(receiver, epsilon)?))
        })
        .collect::<Result<BTreeMap<_, _>, PrivacyError>>()?;
    // One task per job, because their costs differ widely.
    tasks.par_iter().with_max_len(1).map(|task| Ok((key(task), terms.find(task, &unused)?))).collect()
}
