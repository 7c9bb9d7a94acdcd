//! Despreading: a base station that stores its samples extracts every client's update.
//!
//! The scheme's noise arises in the decoder, which adds all sequences up. A projection on one sequence alone contains only the
//! channel's noise:
//!
//! ```text
//! z_j = a_jᵀY = h x + s n,      x̂ = z_j/ĥ_j
//! ```
//!
//! The base station first detects the sequences in use ([`crate::sequences`], from pilot and energy, without knowledge of the
//! fading), and continues with the `K` most likely ones. For these it determines
//!
//! - which belong to the same client in the next round: the pairs of despread updates with the highest correlation, after
//!   subtracting the mean of all (weighted by `ĥ²`), because a common part does not distinguish clients;
//! - which client each belongs to: it knows all data, trains on them in its own mini-batch order from the same model, and takes
//!   the highest correlation with the result.
//!
//! Training is real, in a separate trial; every client keeps its sequence over a round's whole payload. If sequences changed
//! half-way, a second pilot would be necessary, and the base station could match old and new sequences by their channel
//! estimates.

mod report;

use floras_core::random::{Domain, StreamName};
use floras_phy::{Round, Signal, Trace, Uplink, precode};
use floras_sim::{Federation, RoundOutcome, SimError, Status, Trial, TrialOptions, purpose};
use rayon::prelude::*;
pub use report::{DespreadClient, DespreadingAttack};

use crate::branches;
use crate::game::despread;
use crate::matching::{by_correlation, by_order, correlation};
use crate::sequences::detector::{Payload, Seen, generalised};
use crate::sequences::norm;

/// Maximum number of rounds; more add no information.
const MAX_ROUNDS: u32 = 20;
/// Approximate limit on multiplications in products of updates.
const MAX_WORK: f64 = 1e10;

/// The attack on an experiment. `None` unless its clients spread their updates, without masks, by sequences that do not
/// overlap, and the receiver has one branch.
///
/// It uses at least two rounds, even if the experiment has one.
pub(crate) fn attack(federation: &Federation, rounds: u32) -> Result<Option<DespreadingAttack>, SimError> {
    let settings = federation.experiment().settings();
    let is_open = settings.masks.is_none() && branches(settings) == 1;
    let scheme = settings.uplink.scheme.floras().filter(|_| is_open);
    let Some(scheme) = scheme else { return Ok(None) };
    let floras = scheme.over_radio(&settings.uplink.radio, settings.seed)?;
    if !floras.settings().sequences.is_orthonormal() {
        return Ok(None);
    }
    let channels = floras.settings().channels.clone();
    let rounds = affordable(federation, rounds, channels.trace());
    // A trace applies to the clients that the experiment's own trials select.
    let number = if channels.trace().is_some() { 0.into() } else { Domain::Despreading.trial(0) };
    let payload = Payload::over(&floras, federation.model().parameters() as f64, norm(federation)?);
    let uplink = settings.at_power(Box::new(floras))?;
    let station = Station { uplink, payload, seed: settings.seed };
    let options = TrialOptions { keep_sent: true, ..TrialOptions::default() };
    let mut trial = Trial::begin_with(federation, number, options)?;
    let mut tally = Tally::default();
    let (mut clients, mut before): (Vec<DespreadClient>, Option<Recovered>) = (Vec::new(), None);
    for _ in 0..rounds {
        if trial.status() == Status::Finished {
            let (at, parameters) = ((trial.round(), Status::Running), trial.parameters().to_vec());
            trial = Trial::at(federation, number, options, at, parameters)?;
        }
        let shadows = trial.expected_updates(Domain::Naming.trial(0))?;
        let outcome = trial.step()?;
        if trial.status() == Status::Diverged {
            break;
        }
        let stored = station.store_round(&trial, &outcome)?;
        if clients.is_empty() {
            clients = stored.compare(&outcome.sent);
        }
        let recovered = station.recover(&stored);
        tally.in_round.add(recovered.owners.iter().flatten().count(), stored.clients.len());
        tally.by_strength.add(station.pair_halves(&stored), stored.clients.len());
        tally.named.add(name(&recovered, &stored.clients, shadows), stored.clients.len());
        if let Some(before) = &before {
            let (right, both) = link(before, &recovered, &stored.clients);
            tally.across_rounds.add(right, both);
        }
        before = Some(Recovered { present: stored.clients, ..recovered });
        tally.rounds += 1;
    }
    Ok(Some(tally.report(clients, settings.clients.per_round)))
}

fn affordable(federation: &Federation, rounds: u32, trace: Option<&Trace>) -> u32 {
    let clients = f64::from(federation.experiment().settings().clients.per_round);
    let work = 2.0 * clients * clients * federation.model().parameters() as f64;
    let recorded =
        trace.map_or(u32::MAX, |trace| trace.rounds().min(federation.experiment().settings().rounds));
    let most = ((MAX_WORK / work) as u32).min(MAX_ROUNDS).min(federation.rounds());
    rounds.min(most).max(2).min(recorded)
}

/// A base station that stores its samples.
struct Station {
    uplink: Box<dyn Uplink>,
    payload: Payload,
    seed: u64,
}

/// The stored samples of a round, and the true senders.
struct StoredRound {
    air: Signal,
    clients: Vec<u32>,
    /// `z_j` of every sequence.
    payloads: Vec<Vec<f32>>,
    noise: StreamName,
}

/// The base station's results for the sequences that it considers used.
struct Recovered {
    /// The client that used each sequence; `None` for unused ones.
    owners: Vec<Option<u32>>,
    /// `z/ĥ` without the common part, one per sequence.
    updates: Vec<Vec<f32>>,
    /// Numbers of all clients that took part in the round.
    present: Vec<u32>,
}

impl Station {
    /// A despread round of a trial: the decoder's channels and pilot, and independent payload noise.
    fn store_round(&self, trial: &Trial<'_>, outcome: &RoundOutcome) -> Result<StoredRound, SimError> {
        let clients = &outcome.clients;
        let parameters = trial.parameters().len();
        let round = Round::new(self.seed, trial.id(), trial.round(), clients)?.with_parameters(parameters);
        let air = despread(self.uplink.as_ref(), &round)?;
        let noise = round.stream_name(purpose::DESPREAD_NOISE);
        let mut sent: Vec<Option<(f64, &[f32])>> = vec![None; air.estimates.len()];
        for ((&sequence, &amplitude), update) in air.assigned.iter().zip(&air.amplitudes).zip(&outcome.sent) {
            sent[sequence] = Some((amplitude, update));
        }
        let receive = |(sequence, sent): (usize, &Option<(f64, &[f32])>)| {
            let mut payload = vec![0.0; parameters];
            noise.client(sequence as u32).normals().fill(0, &mut payload);
            payload.iter_mut().for_each(|value| *value *= air.symbol_noise_std as f32);
            if let Some((amplitude, update)) = sent {
                for (value, &x) in payload.iter_mut().zip(*update) {
                    *value += *amplitude as f32 * x;
                }
            }
            payload
        };
        let payloads = sent.par_iter().enumerate().map(receive).collect();
        Ok(StoredRound { air, clients: clients.to_vec(), payloads, noise })
    }

    /// The `K` sequences with the highest scores, which the base station considers in use, in descending order.
    fn detect(&self, stored: &StoredRound) -> Vec<usize> {
        let in_use = stored.clients.len();
        let mut detected: Vec<usize> = (0..stored.payloads.len()).collect();
        if detected.len() == in_use {
            return detected;
        }
        let score = |sequence: &usize| {
            let energy = (precode::norm(&stored.payloads[*sequence]) / stored.air.symbol_noise_std).powi(2);
            generalised(
                Seen { pilot: stored.air.estimates[*sequence] / stored.pilot_noise_std(), energy },
                self.payload,
            )
        };
        let scores: Vec<f64> = detected.par_iter().map(score).collect();
        detected.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
        detected.truncate(in_use);
        detected
    }

    fn recover(&self, stored: &StoredRound) -> Recovered {
        let mut owner_of = vec![None; stored.payloads.len()];
        stored
            .air
            .assigned
            .iter()
            .zip(&stored.clients)
            .for_each(|(&sequence, &client)| owner_of[sequence] = Some(client));
        let detected = self.detect(stored);
        let owners = detected.iter().map(|&sequence| owner_of[sequence]).collect();
        let weights: Vec<f64> =
            detected.iter().map(|&sequence| stored.air.estimates[sequence].powi(2)).collect();
        let mut updates: Vec<Vec<f32>> = detected.iter().map(|&sequence| stored.estimate(sequence)).collect();
        remove_mean(&mut updates, &weights);
        Recovered { owners, updates, present: Vec::new() }
    }

    /// The number of clients that are matched by their channel if sequences change half-way, with a second pilot.
    fn pair_halves(&self, stored: &StoredRound) -> usize {
        let Signal { estimates, assigned, amplitudes, .. } = &stored.air;
        let mut normals = vec![0.0; amplitudes.len()];
        stored.noise.client(estimates.len() as u32).normals().fill(0, &mut normals);
        let first: Vec<f64> = assigned.iter().map(|&sequence| estimates[sequence]).collect();
        let second: Vec<f64> = amplitudes
            .iter()
            .zip(normals)
            .map(|(h, normal)| h + stored.pilot_noise_std() * f64::from(normal))
            .collect();
        by_order(&first, &second).iter().enumerate().filter(|&(one, &other)| one == other).count()
    }
}

impl StoredRound {
    /// `s_p`, the estimation error.
    fn pilot_noise_std(&self) -> f64 {
        self.air.pilot_noise_std.unwrap_or(self.air.symbol_noise_std)
    }

    /// `x̂ = z/ĥ`.
    fn estimate(&self, sequence: usize) -> Vec<f32> {
        let inverse = 1.0 / self.air.estimates[sequence];
        self.payloads[sequence].iter().map(|&z| (f64::from(z) * inverse) as f32).collect()
    }

    /// Compares each client's sent update with the one recovered from its sequence.
    fn compare(&self, sent: &[Vec<f32>]) -> Vec<DespreadClient> {
        let compare = |(index, &client): (usize, &u32)| {
            let (x, found) = (&sent[index], self.estimate(self.air.assigned[index]));
            let error: Vec<f32> = found.iter().zip(x).map(|(found, x)| found - x).collect();
            let size = precode::norm(x);
            DespreadClient {
                client,
                amplitude: self.air.amplitudes[index].abs(),
                correlation: correlation(x, &found),
                relative_error: if size > 0.0 { precode::norm(&error) / size } else { 0.0 },
            }
        };
        self.clients.iter().enumerate().map(compare).collect()
    }
}

/// Subtracts the weighted mean of all rows.
fn remove_mean(rows: &mut [Vec<f32>], weights: &[f64]) {
    let total: f64 = weights.iter().sum();
    let Some(parameters) = rows.first().map(Vec::len).filter(|_| rows.len() > 1 && total > 0.0) else {
        return;
    };
    let mut mean = vec![0.0_f64; parameters];
    for (row, weight) in rows.iter().zip(weights) {
        mean.iter_mut().zip(row).for_each(|(mean, &value)| *mean += weight / total * f64::from(value));
    }
    rows.par_iter_mut().for_each(|row| {
        row.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= *mean as f32);
    });
}

/// The number of clients that an adversary who knows all data identifies correctly.
fn name(recovered: &Recovered, clients: &[u32], mut shadows: Vec<Vec<f32>>) -> usize {
    let equal = vec![1.0; shadows.len()];
    remove_mean(&mut shadows, &equal);
    let partners = by_correlation(&recovered.updates, &shadows);
    let is_right = |(owner, partner): &(&Option<u32>, Option<usize>)| {
        owner.is_some() && **owner == partner.map(|shadow| clients[shadow])
    };
    recovered.owners.iter().zip(partners).filter(is_right).count()
}

/// The number of clients linked to the next round, and the number that took part in both.
fn link(before: &Recovered, after: &Recovered, present: &[u32]) -> (usize, usize) {
    let both = before.present.iter().filter(|&client| present.binary_search(client).is_ok()).count();
    let partners = by_correlation(&before.updates, &after.updates);
    let is_right = |(owner, partner): &(&Option<u32>, Option<usize>)| {
        owner.is_some() && **owner == partner.and_then(|place| after.owners[place])
    };
    (before.owners.iter().zip(partners).filter(is_right).count(), both)
}

/// A fraction of two counts.
#[derive(Default)]
struct Share {
    right: usize,
    of: usize,
}

impl Share {
    fn add(&mut self, right: usize, of: usize) {
        self.right += right;
        self.of += of;
    }

    fn value(&self) -> f64 {
        self.right as f64 / self.of.max(1) as f64
    }
}

/// All shares, over all rounds.
#[derive(Default)]
struct Tally {
    in_round: Share,
    by_strength: Share,
    across_rounds: Share,
    named: Share,
    rounds: u32,
}

impl Tally {
    fn report(&self, clients: Vec<DespreadClient>, per_round: u32) -> DespreadingAttack {
        DespreadingAttack {
            clients,
            linked_in_round: self.in_round.value(),
            linked_by_strength: self.by_strength.value(),
            linked_across_rounds: self.across_rounds.value(),
            named: self.named.value(),
            at_random: 1.0 / f64::from(per_round),
            rounds: self.rounds,
        }
    }
}

#[cfg(test)]
mod tests;
