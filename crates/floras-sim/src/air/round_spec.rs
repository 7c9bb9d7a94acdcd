//! A round as its clients see it: which one it is, who was asked, from how many, and who answered.

use floras_phy::{Noise, Round};
use floras_privacy::Sampling;

use super::wrong;
use crate::error::SimError;

/// How many clients were asked for their update, how many sent one, and how many could have been asked.
///
/// Being asked by lot hides a client only if the lot is all there is to it. Some who were asked and do not answer say something
/// about who was, unless it strikes all alike: a round in which someone is missing counts as if it had been known who is in it.
/// That `among` clients could have been asked, and would all have answered as likely, is the caller's word.
///
/// A client that does not answer may have sent its pilot before. The base station then knows its channel, and its sequence is
/// not an unused one. So the account of every round takes `γ = N − selected` sequences as unused: a sequence whose client is
/// missing adds no noise to it. This is the safe side, also where the pilot was missed as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cohort {
    /// Those who sent: `K`.
    pub answered: u32,
    /// Those who were asked, at least as many,
    pub selected: u32,
    /// chosen by lot from so many.
    pub among: u32,
}

impl Cohort {
    /// All who were asked answered.
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

/// Which round it is, and who is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundSpec {
    /// Where the round's randomness comes from, save for noise that is fit for release.
    pub seed: u64,
    /// From 0; another trial has other randomness.
    pub trial: u16,
    /// From 1.
    pub round: u32,
    /// Those who sent, each with its number.
    pub clients: Vec<u32>,
    /// How many were asked.
    pub selected: u32,
    /// From how many they were chosen by lot; `None` if from all there are.
    pub among: Option<u32>,
    /// Where the noise comes from; the channels come from the seed.
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

    /// The same round with noise that is fit for release. Its seed should be a secret one.
    pub fn for_release(self) -> Self {
        Self { noise: Noise::Release, ..self }
    }

    pub(super) fn round(&self) -> Result<Round<'_>, SimError> {
        if self.round == 0 {
            return Err(wrong("round", "at least 1", self.round));
        }
        Ok(Round::new(self.seed, self.trial, self.round, &self.clients)?)
    }
}
