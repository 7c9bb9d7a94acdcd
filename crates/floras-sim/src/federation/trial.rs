//! One trial: the rounds from an initial model to a trained one.

use std::mem;
use std::sync::Mutex;

use floras_core::random::{Stream, StreamName, TrialId};
use floras_learn::model::{SCORED_TOGETHER, penalty};
use floras_learn::{Batch, ClientData, LearnError, Randomness, Samples, Score, Workspace};
use floras_phy::{
    Aggregate, Aggregation, ClientMemory, Cost, EffectiveChannel, Round, Signal, UplinkError, precode,
};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::clients::Holdings;
use super::{Federation, RoundMetrics};
use crate::error::SimError;
use crate::experiment::Weights;
use crate::purpose;

/// The state of a trial.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Some rounds are not done yet.
    Running,
    /// All rounds are done.
    Finished,
    /// A parameter of the common model was not finite or too large, and the trial ended.
    Diverged,
}

/// A training in progress: the common model, the random streams of one trial, and the rounds done.
#[derive(Debug)]
pub struct Trial<'f> {
    federation: &'f Federation,
    id: TrialId,
    options: TrialOptions<'f>,
    holdings: Holdings<'f>,
    status: Status,
    /// Number of completed rounds.
    round: u32,
    parameters: Vec<f32>,
    /// The updates of one wave of clients.
    updates: Vec<Vec<f32>>,
    /// What the clients keep between rounds, for schemes that need it.
    memory: ClientMemory,
    workspaces: Workspaces,
}

/// How a trial differs from the experiment's own trials.
#[derive(Clone, Copy, Debug)]
pub struct TrialOptions<'f> {
    /// The trial whose partition and initial model are used; this trial's own if absent.
    pub start_of: Option<TrialId>,
    /// A watched client, which takes part in every round, and the samples that replace its own.
    pub replaced: Option<(u32, &'f Samples)>,
    /// Whether the model is evaluated in the rounds that the experiment records.
    pub scored: bool,
    /// Whether outcomes contain the updates as they were sent. All updates of a round are then in memory at once.
    pub keep_sent: bool,
}

impl Default for TrialOptions<'_> {
    fn default() -> Self {
        Self { start_of: None, replaced: None, scored: true, keep_sent: false }
    }
}

/// The outcome of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundOutcome {
    /// The measurements of the round.
    pub metrics: RoundMetrics,
    /// The clients that sent, in ascending order.
    pub clients: Vec<u32>,
    /// The clients that were selected, in ascending order: those that sent and those that were silent.
    pub selected: Vec<u32>,
    /// The decoded sum with its channel; `None` if training diverged before, or if all selected clients were silent.
    pub aggregate: Option<Aggregate>,
    /// The updates as they were sent, in the order of the clients, if the trial keeps them.
    pub sent: Vec<Vec<f32>>,
    /// The signal behind the gains, if the experiment records it in this round and the scheme has a radio.
    pub signal: Option<Signal>,
}

/// Training diverged in this round.
struct Diverged;

/// Maximum magnitude of a parameter of the common model; training diverges above it. The product of two such numbers is near the
/// maximum of single precision.
const MAX_PARAMETER: f32 = 1e18;

/// Maximum size in bytes of the updates of one wave of clients.
const WAVE_BYTES: usize = 256 << 20;

impl<'f> Trial<'f> {
    /// Begins a trial, with no round done.
    pub fn begin(federation: &'f Federation, id: impl Into<TrialId>) -> Result<Self, SimError> {
        Self::begin_with(federation, id, TrialOptions::default())
    }

    /// Begins a trial with options.
    pub fn begin_with(
        federation: &'f Federation,
        id: impl Into<TrialId>,
        options: TrialOptions<'f>,
    ) -> Result<Self, SimError> {
        let id = id.into();
        let start = federation.initial_model(options.start_of.unwrap_or(id));
        Self::at(federation, id, options, (0, Status::Running), start)
    }

    /// Resumes a trial after some rounds, with the status and the parameters at that point.
    pub fn at(
        federation: &'f Federation,
        id: impl Into<TrialId>,
        options: TrialOptions<'f>,
        (round, status): (u32, Status),
        parameters: Vec<f32>,
    ) -> Result<Self, SimError> {
        let settings = federation.experiment.settings();
        let (expected, found) = (federation.model.parameters(), parameters.len());
        if expected != found {
            return Err(SimError::WrongParameters { expected, found });
        }
        let id = id.into();
        let holdings = federation.population.hold(settings, options.start_of.unwrap_or(id))?;
        let wave = if options.keep_sent {
            settings.clients.per_round as usize
        } else {
            wave_size(federation, parameters.len())
        };
        let updates = vec![vec![0.0; parameters.len()]; wave];
        let (memory, workspaces) = (ClientMemory::default(), Workspaces::default());
        Ok(Self { federation, id, options, holdings, status, round, parameters, updates, memory, workspaces })
    }

    /// The same trial with what its clients have kept from earlier rounds.
    pub fn with_memory(self, memory: ClientMemory) -> Self {
        Self { memory, ..self }
    }

    /// What the clients keep for later rounds. Not private.
    pub fn memory(&self) -> &ClientMemory {
        &self.memory
    }

    /// The identifier of the trial.
    pub fn id(&self) -> TrialId {
        self.id
    }

    /// The number of the trial, counted from 0.
    pub fn number(&self) -> u16 {
        self.id.number()
    }

    /// Number of completed rounds.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// The current state of the trial.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The current parameters of the model.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// Does one round, on the threads of the current `rayon` pool. Fails if the trial has ended.
    ///
    /// If training diverges, the parameters stay as they were before the round.
    pub fn step(&mut self) -> Result<RoundOutcome, SimError> {
        if self.status != Status::Running {
            return Err(SimError::TrialEnded { trial: self.number() });
        }
        let number = self.round + 1;
        let rate = self.federation.experiment.settings().local.rate.at(number);
        let mut metrics =
            RoundMetrics { trial: self.number().into(), round: number, rate, ..RoundMetrics::default() };
        let selected = self.selected(number);
        let clients = self.senders(number, &selected);
        if !self.federation.experiment.settings().clients.dropout.is_none() {
            metrics.silent = Some((selected.len() - clients.len()) as u32);
        }
        let (aggregate, sent, signal) = (None, Vec::new(), None);
        let mut outcome = RoundOutcome { metrics, clients, selected, aggregate, sent, signal };
        let advanced = self.advance(&mut outcome)?;
        self.round = number;
        outcome.metrics.keep_finite();
        if advanced.is_err() {
            self.status = Status::Diverged;
            let silent = outcome.metrics.silent;
            outcome.metrics =
                RoundMetrics { silent, ..RoundMetrics::diverged(self.number().into(), number, rate) };
        } else if number == self.federation.rounds {
            self.status = Status::Finished;
        }
        Ok(outcome)
    }

    fn advance(&mut self, outcome: &mut RoundOutcome) -> Result<Result<(), Diverged>, SimError> {
        if outcome.clients.is_empty() {
            // Without senders there is no sum, and the model does not change.
            if self.federation.experiment.settings().uplink.radio().is_some() {
                outcome.metrics.set_cost(Cost::default());
            }
            self.evaluate(&mut outcome.metrics);
            return Ok(Ok(()));
        }
        match self.train_and_send(outcome) {
            Ok(()) => {}
            Err(SimError::Uplink(UplinkError::NotFinite { .. } | UplinkError::Overflow { .. })) => {
                return Ok(Err(Diverged));
            }
            Err(other) => return Err(other),
        }
        let Some(aggregate) = &outcome.aggregate else { return Ok(Err(Diverged)) };
        let mut parameters = self.parameters.clone();
        precode::server_step(&mut parameters, &aggregate.sum, outcome.clients.len())?;
        // The common model is released, so that stopping here leaks no more than the model itself.
        if parameters.iter().any(|value| !value.is_finite() || value.abs() > MAX_PARAMETER) {
            return Ok(Err(Diverged));
        }
        self.parameters = parameters;
        self.evaluate(&mut outcome.metrics);
        Ok(Ok(()))
    }

    /// Trains the clients of the round and sends their updates, in waves that fit into memory.
    fn train_and_send(&mut self, outcome: &mut RoundOutcome) -> Result<(), SimError> {
        let federation = self.federation;
        let settings = federation.experiment.settings();
        let RoundOutcome { metrics, clients, selected, .. } = outcome;
        let round = Round::new(settings.seed, self.id, metrics.round, clients)?.with_selected(selected)?;
        let streams = |client| purpose::training(|purpose| round.stream_of(purpose, client));
        let is_recorded = settings.record.signal.contains(metrics.round);
        let aggregation = Aggregation { keep_decoded: is_recorded, ..settings.aggregation() };
        let uplink = federation.uplink.0.as_ref();
        let sum = vec![0.0; self.parameters.len()];
        let mut updates = mem::take(&mut self.updates);
        let mut losses = Vec::with_capacity(clients.len());
        let sent = if aggregation.streams(uplink) {
            aggregation.begin(uplink, round, sum).map_err(SimError::from).and_then(|mut in_progress| {
                for wave in clients.chunks(updates.len()) {
                    let updates = &mut updates[..wave.len()];
                    losses.extend(self.train_all(wave, metrics.rate, &streams, updates)?);
                    in_progress.add(updates)?;
                }
                Ok(in_progress.finish()?)
            })
        } else {
            let mut memory = mem::take(&mut self.memory);
            let sent = self.train_all(clients, metrics.rate, &streams, &mut updates).and_then(|all| {
                losses = all;
                let updates = &updates[..clients.len()];
                Ok(aggregation.run_in(uplink, round, updates, Some(&mut memory), sum)?)
            });
            self.memory = memory;
            sent
        };
        self.updates = updates;
        let aggregate = sent?;
        losses.retain(|loss| loss.is_finite());
        metrics.local_loss = (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
        metrics.broken = aggregate.broken.len() as u32;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        metrics.update_norm = aggregate.norms.as_deref().map(mean);
        metrics.mean_gain = aggregate.channel.as_ref().map(|channel| mean(channel.gains()));
        metrics.noise_std = aggregate.channel.as_ref().map(EffectiveChannel::noise_std);
        if let Some(cost) = aggregate.cost(uplink, &round)? {
            metrics.set_cost(cost);
        }
        if is_recorded {
            outcome.signal = aggregation.signal(uplink, round, self.parameters.len())?;
        }
        if self.options.keep_sent {
            outcome.sent = self.updates[..outcome.clients.len()].to_vec();
            outcome.sent.iter_mut().zip(&aggregate.scales).for_each(|(update, scale)| scale.apply(update));
            aggregate.broken.iter().for_each(|&place| outcome.sent[place].fill(0.0));
        }
        outcome.aggregate = Some(aggregate);
        Ok(())
    }

    /// The selected clients of a round. A watched client is always selected.
    fn selected(&self, round: u32) -> Vec<u32> {
        let mut clients = self.federation.select(self.id, round);
        if let Some((watched, _)) = self.options.replaced
            && !clients.contains(&watched)
        {
            clients[0] = watched;
            clients.sort_unstable();
        }
        clients
    }

    /// The selected clients that are not silent. A watched client is never silent.
    fn senders(&self, round: u32, selected: &[u32]) -> Vec<u32> {
        let mut senders = self.federation.senders(self.id, round, selected);
        if let Some((watched, _)) = self.options.replaced
            && !senders.contains(&watched)
        {
            senders.push(watched);
            senders.sort_unstable();
        }
        senders
    }

    /// The next round's updates before clipping, with the random numbers of trial `streams_of`. An adversary that knows all
    /// clients' data and the common model can compute them.
    pub fn expected_updates(&self, streams_of: TrialId) -> Result<Vec<Vec<f32>>, SimError> {
        let settings = self.federation.experiment.settings();
        let selected = self.federation.select(self.id, self.round + 1);
        let clients = self.federation.senders(self.id, self.round + 1, &selected);
        let name = |purpose| StreamName::new(settings.seed, purpose).trial(streams_of).round(self.round);
        let streams = |client| purpose::training(|purpose| name(purpose).client(client).stream());
        let mut updates = vec![vec![0.0; self.parameters.len()]; clients.len()];
        self.train_all(&clients, settings.local.rate.at(self.round + 1), &streams, &mut updates)?;
        Ok(updates)
    }

    /// Trains the clients and writes their updates, the common model minus the trained one, to `updates`. Returns their mean
    /// losses.
    fn train_all(
        &self,
        clients: &[u32],
        rate: f64,
        streams: &(dyn Fn(u32) -> Randomness<Stream> + Sync),
        updates: &mut [Vec<f32>],
    ) -> Result<Vec<f64>, SimError> {
        let Self { federation, holdings, parameters, workspaces, options, .. } = self;
        let mean_size = holdings.mean_size();
        let train = |(update, &client): (&mut Vec<f32>, &u32)| {
            let work = |data: ClientData<'_>| {
                let mut workspace = workspaces.take();
                let local = LocalTraining { federation, parameters, rate, mean_size };
                let loss = local.train(data, &mut streams(client), update, &mut workspace);
                workspaces.give_back(workspace);
                loss
            };
            match options.replaced {
                Some((other, samples)) if other == client => Ok(with_all(samples, work)),
                _ => holdings.with_client(client, work),
            }
        };
        let losses: Result<Vec<f64>, LearnError> = updates.par_iter_mut().zip(clients).map(train).collect();
        losses.map_err(SimError::learn("data"))
    }

    fn evaluate(&self, metrics: &mut RoundMetrics) {
        let settings = self.federation.experiment.settings();
        let last = metrics.round == self.federation.rounds;
        let is_due = |every: u32| last || metrics.round.is_multiple_of(every);
        let (test_due, train_due) = (is_due(settings.record.test_every), is_due(settings.record.train_every));
        if !self.options.scored || !(test_due || train_due) {
            return;
        }
        let penalty = penalty(self.federation.model(), &self.parameters);
        if test_due {
            let score = self.score(&self.federation.test);
            metrics.test_loss = Some(score.mean_loss() + penalty);
            metrics.test_accuracy = Some(score.accuracy());
        }
        if train_due {
            metrics.train_loss = Some(self.score(self.holdings.train()).mean_loss() + penalty);
        }
    }

    /// The score over batches, on all threads; the sum is in the order of the batches.
    fn score(&self, samples: &Samples) -> Score {
        let model = self.federation.model();
        let rows: Vec<u32> = (0..samples.count() as u32).collect();
        let score = |rows: &[u32]| {
            let mut workspace = self.workspaces.take();
            let score = model.score(&self.parameters, Batch { samples, rows }, &mut workspace.scratch);
            self.workspaces.give_back(workspace);
            score
        };
        let scores: Vec<Score> = rows.par_chunks(SCORED_TOGETHER).map(score).collect();
        scores.into_iter().fold(Score::default(), Score::and)
    }
}

/// A client's training in a round.
pub struct LocalTraining<'a> {
    /// The model and the settings.
    pub federation: &'a Federation,
    /// Parameters of the common model at the beginning of the round.
    pub parameters: &'a [f32],
    /// Learning rate `η_t` of the round, above 0.
    pub rate: f64,
    /// Mean number of samples per client.
    pub mean_size: f64,
}

impl LocalTraining<'_> {
    /// Trains from the common model, and writes the weighted update, the common model minus the trained one, to `update`. Returns
    /// the mean loss.
    pub fn train(
        &self,
        data: ClientData<'_>,
        randomness: &mut Randomness<Stream>,
        update: &mut [f32],
        workspace: &mut Workspace,
    ) -> f64 {
        let settings = self.federation.experiment.settings();
        update.copy_from_slice(self.parameters);
        let model = self.federation.model();
        let loss = settings.sgd().train(model, data, self.rate, randomness, update, workspace);
        let weight = weight(settings.clients.weights, data, self.mean_size);
        for (update, &common) in update.iter_mut().zip(self.parameters) {
            *update = (common - *update) * weight;
        }
        loss
    }
}

/// Calls `work` with all samples of a set as the data of one client.
pub fn with_all<T>(samples: &Samples, work: impl FnOnce(ClientData<'_>) -> T) -> T {
    let rows: Vec<u32> = (0..samples.count() as u32).collect();
    work(ClientData { samples, rows: &rows })
}

/// Number of clients whose updates are in memory at once: all of a round if they fit, or if the round cannot be streamed.
pub(super) fn wave_size(federation: &Federation, parameters: usize) -> usize {
    let settings = federation.experiment.settings();
    let all = settings.clients.per_round as usize;
    if !settings.aggregation().streams(federation.uplink.0.as_ref()) {
        return all;
    }
    let fit = WAVE_BYTES / (parameters * size_of::<f32>());
    fit.max(rayon::current_num_threads()).min(all)
}

/// Weight of a client's update; the mean weight is 1.
fn weight(weights: Weights, data: ClientData<'_>, mean_size: f64) -> f32 {
    match weights {
        Weights::Equal => 1.0,
        Weights::Samples => (data.rows.len() as f64 / mean_size) as f32,
    }
}

/// A pool of workspaces, which clients reuse one after another.
#[derive(Debug, Default)]
struct Workspaces(Mutex<Vec<Workspace>>);

impl Workspaces {
    fn take(&self) -> Workspace {
        self.0.lock().ok().and_then(|mut free| free.pop()).unwrap_or_default()
    }

    fn give_back(&self, workspace: Workspace) {
        if let Ok(mut free) = self.0.lock() {
            free.push(workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    #[test]
    fn waves_do_not_change_a_byte_under_dropouts() {
        let text = "rounds = 3\ntrials = 1\n[data]\nset = \"synthetic\"\ntrain = 400\n[clients]\ntotal = 20\n\
                    per_round = 14\ndropout = 0.3\n[privacy]\nclip = 1.0";
        let federation = Federation::new(&Experiment::parse("a test", text).unwrap()).unwrap();
        let parameters = |wave: usize| {
            let mut trial = Trial::begin(&federation, 0).unwrap();
            trial.updates.truncate(wave);
            (0..3).for_each(|_| drop(trial.step().unwrap()));
            trial.parameters
        };
        let whole = parameters(14);
        assert_eq!(parameters(3), whole);
        assert_eq!(parameters(1), whole);
    }

    /// Features at the end of single precision: the second step's logits overflow.
    #[test]
    fn trials_continue_after_a_broken_update() {
        let text = "rounds = 3\ntrials = 1\n[clients]\ntotal = 4\nper_round = 4\n[uplink]\nscheme = \"ideal\"\n\
                    [privacy]\nclip = 1.0\n[local]\nsteps = 5";
        let federation = Federation::new(&Experiment::parse("a test", text).unwrap()).unwrap();
        let (width, classes) = (federation.test.width(), federation.test.classes());
        let loud = Samples::new(width, classes, vec![f32::MAX; 20 * width], vec![1; 20]).unwrap();
        let options = TrialOptions { replaced: Some((2, &loud)), keep_sent: true, ..TrialOptions::default() };
        let mut trial = Trial::begin_with(&federation, 0, options).unwrap();
        for round in 1..=3 {
            let RoundOutcome { metrics, sent, .. } = trial.step().unwrap();
            assert_eq!((metrics.round, metrics.broken, metrics.diverged), (round, 1, false));
            assert!(metrics.local_loss.is_some_and(f64::is_finite));
            assert!(sent[2].iter().all(|&value| value == 0.0));
            assert!(sent[1].iter().any(|&value| value != 0.0));
        }
        assert_eq!(trial.status(), Status::Finished);
    }
}
