//! Estimates for clients of unequal mean power.
//!
//! A client keeps its long-term gain during a trial. Its rounds are therefore not independent draws from all clients, and an
//! average over clients would not compose. Here some rounds are drawn for every client, at its position in the run. The two clients
//! with the largest mean of `δ_G(ε; μ)`, which decides about few rounds, and of `μ²`, which decides about many, are drawn again.
//! The estimate has the larger of their values of `μ` at every probability.

use std::ops::RangeInclusive;

use floras_core::random::Domain;
use floras_phy::{Round, UplinkError};
use floras_privacy::{Source, gaussian};

use super::context::{AccountContext, DRAWS};
use crate::error::SimError;

/// Number of candidates for the worst client, over all trials: the maximum, and the minimum if rounds have many clients.
const CANDIDATES: RangeInclusive<usize> = 20..=1000;
/// Maximum number of channel draws of the search, over all clients of its rounds.
const MAX_SEARCHED: usize = 20_000_000;
/// Number of rounds drawn per candidate.
const ROUNDS_EACH: u32 = 200;
/// Maximum number of channel draws for the found clients, over all clients of their rounds.
const MAX_DRAWS: u32 = 2_000_000;

/// A client at its position in a trial of the run.
#[derive(Clone, Copy)]
struct Candidate {
    trial: u16,
    client: u32,
    gain: f64,
}

type Values<'v> = &'v mut dyn FnMut(&Round<'_>) -> Result<Vec<f64>, UplinkError>;

pub(super) fn estimate(context: &AccountContext<'_>, values: Values<'_>) -> Result<Source, SimError> {
    let candidates = candidates(context)?;
    let each = context.affordable(ROUNDS_EACH);
    let mut seen = Vec::with_capacity(candidates.len());
    for (index, candidate) in candidates.iter().enumerate() {
        seen.push(draw(context, values, *candidate, index as u32 * each, each)?);
    }
    let pooled: Vec<f64> = seen.iter().flatten().copied().collect();
    let epsilon = epsilon(&pooled, context.privacy().delta);
    let by_delta = largest(&seen, |mu| gaussian::delta(epsilon, mu));
    let by_square = largest(&seen, |mu| mu * mu);
    let rounds = context.affordable((MAX_DRAWS / context.clients().per_round).clamp(1000, DRAWS));
    let first = candidates.len() as u32 * each;
    let mut worst = draw(context, values, candidates[by_delta], first, rounds)?;
    if by_square != by_delta {
        let mut other = draw(context, values, candidates[by_square], first, rounds)?;
        worst.sort_by(f64::total_cmp);
        other.sort_by(f64::total_cmp);
        worst.iter_mut().zip(other).for_each(|(worst, other)| *worst = worst.max(other));
    }
    let words = format!(
        "it is an estimate from {rounds} drawn rounds of the client that reveals most among {} in their places, and not a bound",
        candidates.len()
    );
    Ok(context.estimated(worst, &words))
}

/// All clients of all trials. If there are too many: those at evenly spaced ranks of the gain, including both ends.
fn candidates(context: &AccountContext<'_>) -> Result<Vec<Candidate>, SimError> {
    let channels = context.radio().channels()?;
    let clients: Vec<u32> = (0..context.population).collect();
    let mut all = Vec::new();
    for trial in 0..context.settings.trials {
        let trial = trial as u16;
        let gains = channels.long_term_gains(&Round::new(context.seed(), trial, 1, &clients)?);
        all.extend(clients.iter().zip(gains).map(|(&client, gain)| Candidate { trial, client, gain }));
    }
    all.sort_by(|a, b| a.gain.total_cmp(&b.gain));
    let affordable = MAX_SEARCHED / (ROUNDS_EACH as usize * context.clients().per_round as usize);
    let count = all.len().min(affordable.clamp(*CANDIDATES.start(), *CANDIDATES.end()));
    let rank = |index: usize| index * (all.len() - 1) / (count - 1).max(1);
    Ok((0..count).map(|index| all[rank(index)]).collect())
}

/// The values of a candidate in rounds that are drawn for it, each with the other clients that are selected.
fn draw(
    context: &AccountContext<'_>,
    values: Values<'_>,
    candidate: Candidate,
    first: u32,
    rounds: u32,
) -> Result<Vec<f64>, SimError> {
    let mut drawn = Vec::with_capacity(rounds as usize);
    let trial = Domain::Estimate.trial(0);
    for number in first + 1..=first + rounds {
        let mut clients = (context.select)(trial, number);
        // If all other clients are silent, the round has only this client.
        if clients.is_empty() {
            clients.push(candidate.client);
        }
        let place = clients.iter().position(|&client| client == candidate.client).unwrap_or(0);
        clients[place] = candidate.client;
        let round = context.round(trial, number, &clients)?.placed_as_in(candidate.trial);
        drawn.push(values(&round)?[place]);
    }
    Ok(drawn)
}

/// Index of the client with the largest mean of a quantity.
fn largest(seen: &[Vec<f64>], of: impl Fn(f64) -> f64) -> usize {
    let mean = |values: &Vec<f64>| values.iter().map(|&mu| of(mu)).sum::<f64>() / values.len() as f64;
    let means: Vec<f64> = seen.iter().map(mean).collect();
    (0..means.len()).max_by(|&a, &b| means[a].total_cmp(&means[b])).unwrap_or(0)
}

/// Approximate `ε` at which the mean of `δ_G(ε; μ)` over a subset of the values is `delta`. It is only used to rank clients.
fn epsilon(values: &[f64], delta: f64) -> f64 {
    let some: Vec<f64> = values.iter().copied().step_by(values.len().div_ceil(2000).max(1)).collect();
    let mean =
        |epsilon: f64| some.iter().map(|&mu| gaussian::delta(epsilon, mu)).sum::<f64>() / some.len() as f64;
    let (mut low, mut high) = (0.0, 1.0);
    while mean(high) > delta && high < 1e12 {
        high *= 2.0;
    }
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if mean(middle) > delta { low = middle } else { high = middle }
    }
    high
}
