//! Training in a game: by the adversary, for its expectations, and by the watched client in every game.

use floras_core::Clipping;
use floras_core::random::{Domain, StreamName, TrialId};
use floras_learn::{ClientData, Randomness, Samples, Workspace};
use floras_phy::{Round, UplinkError};
use floras_sim::{LocalTraining, SimError, purpose, with_all};
use rayon::prelude::*;

use super::Players;
use super::canary::WATCHED;
use super::witness::Hypotheses;

/// Number of the watched client's trainings that are averaged for its expected update.
const SHADOWS: u32 = 16;

/// The adversary's own training.
pub(super) struct Shadow<'a> {
    pub(super) players: &'a Players<'a>,
    pub(super) parameters: &'a [f32],
    pub(super) rate: f64,
    pub(super) round: u32,
    pub(super) number: TrialId,
}

impl Shadow<'_> {
    /// The watched client's update if it had these samples. The same `number` gives the same order of mini-batches.
    pub(super) fn update(&self, samples: &Samples, number: u32, workspace: &mut Workspace) -> Vec<f32> {
        let federation = self.players.bench.federation;
        let seed = self.players.bench.settings.seed;
        let stream = |purpose| {
            let name = StreamName::new(seed, purpose).trial(self.number).round(self.round);
            name.client(number).stream()
        };
        let mut randomness = Randomness {
            order: stream(purpose::GAME),
            dropout: stream(purpose::GAME_DROPOUT),
            augmentation: stream(purpose::GAME_AUGMENTATION),
        };
        let mean_size = self.players.mean_size;
        let local = LocalTraining { federation, parameters: self.parameters, rate: self.rate, mean_size };
        let mut update = vec![0.0; self.parameters.len()];
        with_all(samples, |data| local.train(data, &mut randomness, &mut update, workspace));
        update
    }
}

/// The first round: all updates but the watched client's, which is trained again in every game.
pub(super) struct FirstRound<'a> {
    players: &'a Players<'a>,
    pub(super) clients: Vec<u32>,
    parameters: Vec<f32>,
    rate: f64,
    /// Updates as sent if each is clipped on its own, and before normalisation otherwise. The first one is the
    /// watched client's.
    pub(super) updates: Vec<Vec<f32>>,
    pub(super) hypotheses: Hypotheses,
}

impl<'a> FirstRound<'a> {
    pub(super) fn new(players: &'a Players<'a>, worlds: &[Samples; 2]) -> Result<Self, SimError> {
        let bench = players.bench;
        let (settings, federation) = (bench.settings, bench.federation);
        let (parameters, rate) = (federation.initial_model(0), settings.local.rate.at(1));
        let clients: Vec<u32> = (WATCHED..settings.clients.per_round).collect();
        let holdings = federation.holdings(0)?;
        let mean_size = players.mean_size;
        let local = LocalTraining { federation, parameters: &parameters, rate, mean_size };
        let round = Round::new(settings.seed, Domain::Shadows.trial(0), 1, &clients)?;
        let train = |&client: &u32| {
            let mut update = vec![0.0; parameters.len()];
            let mut streams = purpose::training(|purpose| round.stream_of(purpose, client));
            let work = |data: ClientData<'_>| {
                local.train(data, &mut streams, &mut update, &mut Workspace::default())
            };
            holdings.with_client(client, work).map(|_| update)
        };
        let updates: Result<Vec<Vec<f32>>, _> = clients.par_iter().map(train).collect();
        let updates = updates.map_err(SimError::learn("data"))?;
        let mut sent = updates.clone();
        let largest_norm = players.precode(&mut sent)?;
        let shadow =
            Shadow { players, parameters: &parameters, rate, round: 0, number: Domain::Shadows.trial(0) };
        let expected = |samples: &Samples| -> Result<Vec<f32>, UplinkError> {
            let mut mean = vec![0.0; parameters.len()];
            for number in 0..SHADOWS {
                let update = shadow.update(samples, number, &mut Workspace::default());
                let update = players.as_sent(update, largest_norm)?;
                mean.iter_mut().zip(update).for_each(|(mean, value)| *mean += value / SHADOWS as f32);
            }
            Ok(mean)
        };
        let hypotheses = Hypotheses::new(&expected(&worlds[0])?, &expected(&worlds[1])?);
        let updates = if largest_norm.is_some() { updates } else { sent };
        Ok(Self { players, clients, parameters, rate, updates, hypotheses })
    }

    /// All updates of a game, as sent: the watched client trains on its samples of this world.
    pub(super) fn local(
        &self,
        updates: &mut [Vec<f32>],
        samples: &Samples,
        round: &Round<'_>,
        workspace: &mut Workspace,
    ) -> Result<(), UplinkError> {
        let together = self.players.bench.settings.privacy.normalise == Clipping::Paper;
        if together {
            updates.iter_mut().zip(&self.updates).for_each(|(update, known)| update.copy_from_slice(known));
        }
        let federation = self.players.bench.federation;
        let mean_size = self.players.mean_size;
        let local = LocalTraining { federation, parameters: &self.parameters, rate: self.rate, mean_size };
        let mut streams = purpose::training(|purpose| round.stream_of(purpose, WATCHED));
        with_all(samples, |data| local.train(data, &mut streams, &mut updates[0], workspace));
        self.players.precode(if together { updates } else { &mut updates[..1] }).map(|_| ())
    }
}
