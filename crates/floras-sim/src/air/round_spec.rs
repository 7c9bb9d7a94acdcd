//! The description of a round: its number, the clients that were selected, and those that answered.

use floras_phy::{Noise, Round};
use floras_privacy::Sampling;

use super::wrong;
use crate::error::SimError;

/// The numbers of clients that answered, that were selected, and from which they were sampled.
///
/// Subsampling amplifies privacy only while the sample stays secret. Dropouts can reveal it, so a round with dropouts is accounted
/// for as if its participants were known. The caller asserts that all `among` clients were equally likely to be selected and to
/// answer.
///
/// A client that does not answer may have sent its pilot. The base station then knows its channel, and its sequence is not an
/// unused one. The account of every round therefore takes `γ = N − selected` sequences as unused: the sequence of a missing
/// client adds no noise. This is conservative if the pilot is missing as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cohort {
    /// Number of clients `K` that sent an update.
    pub answered: u32,
    /// Number of selected clients, at least `answered`.
    pub selected: u32,
    /// Number of clients from which the selected ones were sampled uniformly.
    pub among: u32,
}

impl Cohort {
    /// A cohort whose selected clients all answered.
    pub fn complete(per_round: u32, among: u32) -> Self {
        Self { answered: per_round, selected: per_round, among }
    }

    pub(super) fn sampling(self) -> Sampling {
        if self.answered < self.selected || self.selected == self.among {
            return Sampling::Everyone;
        }
        Sampling::ReplaceOne(f64::from(self.selected) / f64::from(self.among))
    }
}

/// A round: its number, its clients and the source of its randomness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundSpec {
    /// The seed of the round's randomness, except for noise that is fit for release.
    pub seed: u64,
    /// The trial, counted from 0; each trial has its own randomness.
    pub trial: u16,
    /// The round, counted from 1.
    pub round: u32,
    /// The numbers of the clients that sent an update.
    pub clients: Vec<u32>,
    /// Number of clients that were selected.
    pub selected: u32,
    /// Number of clients from which the selected ones were sampled; `None` for all clients.
    pub among: Option<u32>,
    /// The generator of the noise; channels are always drawn from the seed.
    pub noise: Noise,
}

impl RoundSpec {
    /// A round of `count` clients, numbered from 0, all of whom answered, with the simulation's noise.
    pub fn of_all(seed: u64, round: u32, count: u32) -> Self {
        Self {
            seed,
            trial: 0,
            round,
            clients: (0..count).collect(),
            selected: count,
            among: None,
            noise: Noise::Simulated,
        }
    }

    /// The same round with noise that is fit for release. Its seed should be secret.
    pub fn for_release(self) -> Self {
        Self { noise: Noise::Release, ..self }
    }

    pub(super) fn round(&self) -> Result<Round<'_>, SimError> {
        if self.round == 0 {
            return Err(wrong("round", "at least 1", self.round));
        }
        let round = Round::new(self.seed, self.trial, self.round, &self.clients)?;
        let selected = self.selected as usize;
        // The check of the cohort rejects fewer selected than answered clients.
        if selected < self.clients.len() { Ok(round) } else { Ok(round.with_selected_count(selected)?) }
    }
}
