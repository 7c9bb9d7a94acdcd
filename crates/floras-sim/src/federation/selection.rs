//! Uniform sampling of a round's clients.

use floras_core::random::{StreamName, TrialId};
use rand::seq::index;

use crate::experiment::{ClientSettings, Settings};
use crate::purpose;

/// The `K` of `M` clients that are selected in a round, in ascending order; rounds are counted from 1.
pub fn select(settings: &Settings, trial: TrialId, round: u32) -> Vec<u32> {
    let ClientSettings { total, per_round, .. } = settings.clients;
    if per_round == total {
        return (0..total).collect();
    }
    let name = StreamName::new(settings.seed, purpose::SELECTION).trial(trial).round(round - 1);
    let chosen = index::sample(&mut name.stream(), total as usize, per_round as usize);
    let mut chosen: Vec<u32> = chosen.into_iter().map(|client| client as u32).collect();
    chosen.sort_unstable();
    chosen
}
