//! One trial: the rounds from an initial model to a trained one.

use std::mem;
use std::sync::Mutex;

use floras_core::random::{Stream, StreamName, TrialId};
use floras_learn::model::{penalty, score_all};
use floras_learn::{ClientData, LearnError, Samples, Score, Workspace};
use floras_phy::{EffectiveChannel, Round, UplinkError, precode, transmit_into};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::clients::Holdings;
use super::{Federation, RoundMetrics};
use crate::air::bring_back;
use crate::error::SimError;
use crate::experiment::{Precoded, Weights};
use crate::purpose;

/// Where a trial stands.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// There are rounds to come.
    Running,
    /// All rounds are done.
    Finished,
    /// A parameter of the common model left the range of numbers; the trial ended there.
    Diverged,
}

/// A trial in progress.
#[derive(Debug)]
pub struct Trial<'f> {
    federation: &'f Federation,
    id: TrialId,
    holdings: Holdings<'f>,
    status: Status,
    /// Rounds that are done.
    round: u32,
    parameters: Vec<f32>,
    updates: Vec<Vec<f32>>,
    decoded: Vec<f32>,
    /// Who took part in the latest round, and over which effective channel.
    clients: Vec<u32>,
    channel: Option<EffectiveChannel>,
    /// What the paper's normalisation divided the latest updates by.
    largest_norm: Option<f64>,
    /// Someone who holds other samples than the partition gives it.
    replaced: Option<(u32, &'f Samples)>,
    is_scored: bool,
    workspaces: Workspaces,
}

/// Training broke down in this round.
struct Diverged;

/// A parameter of the common model beyond this counts as out of range: the product of two such numbers is near the end of
/// single precision.
const LARGEST: f32 = 1e18;

/// What local training has come to.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trained {
    /// Mean loss of the clients whose loss is finite; `None` if no client's is.
    loss: Option<f64>,
    /// Clients whose update was not finite.
    broken: u32,
}

impl<'f> Trial<'f> {
    /// A trial at its beginning.
    pub fn begin(federation: &'f Federation, id: impl Into<TrialId>) -> Result<Self, SimError> {
        let id = id.into();
        Self::at(federation, id, 0, Status::Running, federation.initial_model(id))
    }

    /// A trial after `round` rounds, with the parameters that it had then.
    pub fn at(
        federation: &'f Federation,
        id: impl Into<TrialId>,
        round: u32,
        status: Status,
        parameters: Vec<f32>,
    ) -> Result<Self, SimError> {
        let settings = federation.experiment.settings();
        let (expected, found) = (federation.model.parameters(), parameters.len());
        if expected != found {
            return Err(SimError::WrongParameters { expected, found });
        }
        let id = id.into();
        let holdings = federation.population.hold(settings, id)?;
        Ok(Self::over(federation, id, round, status, parameters, holdings))
    }

    /// Trial 0 once more from its beginning, under the randomness of another number, with one client that holds other samples
    /// instead of its own. Its model is never scored.
    pub(crate) fn replay(
        federation: &'f Federation,
        id: TrialId,
        replaced: (u32, &'f Samples),
    ) -> Result<Self, SimError> {
        let holdings = federation.holdings(0)?;
        let start = federation.initial_model(0);
        let trial = Self::over(federation, id, 0, Status::Running, start, holdings);
        Ok(Self { replaced: Some(replaced), is_scored: false, ..trial })
    }

    fn over(
        federation: &'f Federation,
        id: TrialId,
        round: u32,
        status: Status,
        parameters: Vec<f32>,
        holdings: Holdings<'f>,
    ) -> Self {
        let settings = federation.experiment.settings();
        Self {
            federation,
            id,
            holdings,
            status,
            round,
            updates: vec![vec![0.0; parameters.len()]; settings.clients.per_round as usize],
            decoded: vec![0.0; parameters.len()],
            parameters,
            clients: Vec::new(),
            channel: None,
            largest_norm: None,
            replaced: None,
            is_scored: true,
            workspaces: Workspaces::default(),
        }
    }

    /// Which trial it is.
    pub fn id(&self) -> TrialId {
        self.id
    }

    /// From 0.
    pub fn number(&self) -> u16 {
        self.id.number()
    }

    /// Rounds that are done.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// Where the trial stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The clients of the latest round, and the channel that their updates went over; none if training broke down before.
    pub fn latest(&self) -> (&[u32], Option<&EffectiveChannel>) {
        (&self.clients, self.channel.as_ref())
    }

    /// What the clients of the latest round sent, after clipping, in their order.
    pub(crate) fn sent(&self) -> &[Vec<f32>] {
        &self.updates
    }

    /// What the paper's normalisation divided the latest updates by.
    pub(crate) fn largest_norm(&self) -> Option<f64> {
        self.largest_norm
    }

    /// The model as it is now.
    pub fn parameters(&self) -> &[f32] {
        &self.parameters
    }

    /// One round, on the threads of the current `rayon` pool. A trial that has ended is refused.
    ///
    /// If training breaks down the parameters stay as they were before the round.
    pub fn step(&mut self) -> Result<RoundMetrics, SimError> {
        if self.status != Status::Running {
            return Err(SimError::TrialEnded { trial: self.number() });
        }
        let settings = self.federation.experiment.settings();
        let number = self.round + 1;
        let rate = settings.local.rate.at(number);
        let before = self.parameters.clone();
        let mut metrics =
            RoundMetrics { trial: self.number().into(), round: number, rate, ..RoundMetrics::default() };
        let outcome = self.advance(&mut metrics)?;
        self.round = number;
        metrics.keep_finite();
        if outcome.is_err() {
            self.parameters = before;
            self.status = Status::Diverged;
            return Ok(RoundMetrics::diverged(self.number().into(), number, rate));
        }
        if number == self.federation.rounds {
            self.status = Status::Finished;
        }
        Ok(metrics)
    }

    fn advance(&mut self, metrics: &mut RoundMetrics) -> Result<Result<(), Diverged>, SimError> {
        let settings = self.federation.experiment.settings();
        let clients = self.selected(metrics.round);
        self.clients.clone_from(&clients);
        self.channel = None;
        let round = Round::new(settings.seed, self.id, metrics.round, &clients)?;
        let trained = self.train_locally(&round, metrics.rate)?;
        metrics.local_loss = trained.loss;
        metrics.broken = trained.broken;
        match self.aggregate(&round, metrics) {
            Ok(()) => {}
            Err(UplinkError::NotFinite { .. } | UplinkError::Overflow { .. }) => return Ok(Err(Diverged)),
            Err(other) => return Err(other.into()),
        }
        // The common model is released, so that ending here gives nothing away that the model does not.
        if self.parameters.iter().any(|value| !value.is_finite() || value.abs() > LARGEST) {
            return Ok(Err(Diverged));
        }
        self.evaluate(metrics);
        Ok(Ok(()))
    }

    /// The clients of a round. One that is watched takes part in every round.
    fn selected(&self, round: u32) -> Vec<u32> {
        let mut clients = self.federation.select(self.id, round);
        if let Some((watched, _)) = self.replaced
            && !clients.contains(&watched)
        {
            clients[0] = watched;
            clients.sort_unstable();
        }
        clients
    }

    /// Every client of the round trains; its way back to the common model is left in `updates`.
    fn train_locally(&mut self, round: &Round<'_>, rate: f64) -> Result<Trained, SimError> {
        let mut updates = mem::take(&mut self.updates);
        let batches = |client| round.stream_of(purpose::BATCHES, client);
        let trained = self.train_all(round.clients(), rate, &batches, &mut updates);
        self.updates = updates;
        trained
    }

    /// What the clients of the coming round would send before clipping, were their samples in the order of another trial: what
    /// someone computes who knows everybody's data and the common model.
    pub(crate) fn shadows(&self, batches_of: TrialId) -> Result<Vec<Vec<f32>>, SimError> {
        let settings = self.federation.experiment.settings();
        let clients = self.federation.select(self.id, self.round + 1);
        let order = StreamName::new(settings.seed, purpose::BATCHES).trial(batches_of).round(self.round);
        let batches = |client| order.client(client).stream();
        let mut updates = vec![vec![0.0; self.parameters.len()]; clients.len()];
        self.train_all(&clients, settings.local.rate.at(self.round + 1), &batches, &mut updates)?;
        Ok(updates)
    }

    /// What the clients of the coming round will have come to, before it is brought to the form in which it is sent.
    #[cfg(test)]
    pub(crate) fn upcoming(&self) -> Result<Vec<Vec<f32>>, SimError> {
        self.shadows(self.id)
    }

    /// An update that is not finite becomes zero: that training broke down for one client is a function of its data, which must
    /// neither end a trial nor be seen in the sum.
    fn train_all(
        &self,
        clients: &[u32],
        rate: f64,
        batches: &(dyn Fn(u32) -> Stream + Sync),
        updates: &mut [Vec<f32>],
    ) -> Result<Trained, SimError> {
        let Self { federation, holdings, parameters, workspaces, replaced, .. } = self;
        let replaced = *replaced;
        let mean_size = holdings.mean_size();
        let train = |(update, &client): (&mut Vec<f32>, &u32)| {
            let work = |data: ClientData<'_>| {
                let mut workspace = workspaces.take();
                let local = Local { federation, parameters, rate, mean_size };
                let loss = local.train(data, &mut batches(client), update, &mut workspace);
                workspaces.give_back(workspace);
                loss
            };
            match replaced {
                Some((other, samples)) if other == client => Ok(with_all(samples, work)),
                _ => holdings.with_client(client, work),
            }
        };
        let train = |(update, client): (&mut Vec<f32>, &u32)| {
            let loss = train((&mut *update, client))?;
            let is_broken = update.iter().any(|value| !value.is_finite());
            if is_broken {
                update.fill(0.0);
            }
            Ok((loss, is_broken))
        };
        let trained: Result<Vec<(f64, bool)>, LearnError> =
            updates.par_iter_mut().zip(clients).map(train).collect();
        let trained = trained.map_err(SimError::learn("data"))?;
        let losses: Vec<f64> =
            trained.iter().map(|&(loss, _)| loss).filter(|loss| loss.is_finite()).collect();
        Ok(Trained {
            loss: (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64),
            broken: trained.iter().filter(|(_, is_broken)| *is_broken).count() as u32,
        })
    }

    /// Sends the updates, and steps the common model by what is decoded.
    fn aggregate(&mut self, round: &Round<'_>, metrics: &mut RoundMetrics) -> Result<(), UplinkError> {
        let settings = self.federation.experiment.settings();
        let Precoded { norms, normalisation } = settings.privacy.precode(&mut self.updates)?;
        self.largest_norm = normalisation.as_ref().map(|normalisation| normalisation.largest_norm());
        metrics.update_norm = Some(norms.iter().sum::<f64>() / norms.len() as f64);
        let uplink = self.federation.uplink.0.as_ref();
        let fidelity = settings.uplink.fidelity;
        let channel = transmit_into(uplink, round, &self.updates, fidelity, &mut self.decoded)?;
        bring_back(&settings.uplink, normalisation.as_ref(), &mut self.decoded)?;
        metrics.mean_gain = Some(channel.gains().iter().sum::<f64>() / channel.gains().len() as f64);
        metrics.noise_std = Some(channel.noise_std());
        self.channel = Some(channel);
        precode::server_step(&mut self.parameters, &self.decoded, round.clients().len())
    }

    fn evaluate(&self, metrics: &mut RoundMetrics) {
        let settings = self.federation.experiment.settings();
        let last = metrics.round == self.federation.rounds;
        let is_due = |every: u32| last || metrics.round.is_multiple_of(every);
        let (test_due, train_due) = (is_due(settings.record.test_every), is_due(settings.record.train_every));
        if !self.is_scored || !(test_due || train_due) {
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

    fn score(&self, samples: &Samples) -> Score {
        let mut workspace = self.workspaces.take();
        let model = self.federation.model();
        let score = score_all(model, &self.parameters, samples, &mut workspace.scratch);
        self.workspaces.give_back(workspace);
        score
    }
}

/// One client's part of a round.
pub(crate) struct Local<'a> {
    pub(crate) federation: &'a Federation,
    /// The common model.
    pub(crate) parameters: &'a [f32],
    pub(crate) rate: f64,
    /// Samples of a client, on average.
    pub(crate) mean_size: f64,
}

impl Local<'_> {
    /// Trains from the common model, and leaves the way back to it in `update`. Returns the mean loss.
    pub(crate) fn train(
        &self,
        data: ClientData<'_>,
        batches: &mut Stream,
        update: &mut [f32],
        workspace: &mut Workspace,
    ) -> f64 {
        let settings = self.federation.experiment.settings();
        update.copy_from_slice(self.parameters);
        let model = self.federation.model();
        let loss = settings.local.sgd.train(model, data, self.rate, batches, update, workspace);
        let weight = weight(settings.clients.weights, data, self.mean_size);
        for (update, &common) in update.iter_mut().zip(self.parameters) {
            *update = (common - *update) * weight;
        }
        loss
    }
}

/// Hands over all samples of a set as one client's.
pub(crate) fn with_all<T>(samples: &Samples, work: impl FnOnce(ClientData<'_>) -> T) -> T {
    let rows: Vec<u32> = (0..samples.count() as u32).collect();
    work(ClientData { samples, rows: &rows })
}

/// How much a client's update counts, on average 1.
fn weight(weights: Weights, data: ClientData<'_>, mean_size: f64) -> f32 {
    match weights {
        Weights::Equal => 1.0,
        Weights::Samples => (data.rows.len() as f64 / mean_size) as f32,
    }
}

/// Memory for the clients that are at work, handed from one to the next.
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

    /// Features at the end of single precision: the second step's logits overflow.
    #[test]
    fn a_broken_update_is_zero_and_the_trial_goes_on() {
        let text = "rounds = 3\ntrials = 1\n[clients]\ntotal = 4\nper_round = 4\n[uplink]\nscheme = \"ideal\"\n\
                    [privacy]\nclip = 1.0\n[local]\nsteps = 5";
        let federation = Federation::new(&Experiment::parse("a test", text).unwrap()).unwrap();
        let (width, classes) = (federation.test.width(), federation.test.classes());
        let loud = Samples::new(width, classes, vec![f32::MAX; 20 * width], vec![1; 20]).unwrap();
        let mut trial = Trial::replay(&federation, 0.into(), (2, &loud)).unwrap();
        for round in 1..=3 {
            let metrics = trial.step().unwrap();
            assert_eq!((metrics.round, metrics.broken, metrics.diverged), (round, 1, false));
            assert!(metrics.local_loss.is_some_and(f64::is_finite));
            assert!(trial.sent()[2].iter().all(|&value| value == 0.0));
            assert!(trial.sent()[1].iter().any(|&value| value != 0.0));
        }
        assert_eq!(trial.status(), Status::Finished);
    }
}
