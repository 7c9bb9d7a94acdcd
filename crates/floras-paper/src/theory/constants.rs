//! The constants of Theorem 4 for the regularised logistic task, from an experiment's own data (trial 0).
//!
//! | constant | method |
//! |---|---|
//! | `μ = 2λ` | exact: the penalty `λ‖w‖²` takes in all parameters |
//! | `L` | an upper bound from the spectrum of the clients' features |
//! | `H`, `H_k` | **measured**: the longest mini-batch gradient in a training over an ideal uplink; no proof that none is longer |
//! | `f*`, `Γ`, `‖w_0 − w*‖²` | by minimising, with a certified error |
//!
//! `H` cannot be proved: a strongly convex function has gradients of any length far from its minimum. So Assumptions 2 and 4
//! contradict each other on the whole space, and can only hold together along a training.

use std::sync::Mutex;

use floras_core::random::StreamName;
use floras_learn::{Batch, ClientData, Model, Samples, Score, Scratch, Tensor, Workspace};
use floras_phy::Round;
use floras_sim::{Federation, Holdings, SimError, Weights, purpose};
use rand::Rng;
use rayon::prelude::*;
use serde::Serialize;

use super::objective::{Objective, smoothness};

/// Maximum number of clients whose losses are minimised; if there are more, these clients represent all.
pub const MAX_CLIENTS: u32 = 200;
/// Maximum number of local trainings in which gradients are measured.
pub const MAX_TRAININGS: u32 = 10_000;
/// Accuracy of the minima in the loss, unless rounding prevents it.
const TOLERANCE: f64 = 1e-10;

/// The constants of Theorem 4, with their errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Constants {
    /// Strong convexity `μ` of the loss.
    pub mu: f64,
    /// Upper bound on the smoothness `L`.
    pub smoothness: f64,
    /// Norm of the longest mini-batch gradient, `H`, measured.
    pub gradient_bound: f64,
    /// The smallest `H_k` of a client, measured.
    pub least_client_gradient: f64,
    /// Sum of the squared gradient bounds of all clients, over the square of their number, `Σ_k H_k²/M²`, measured.
    pub gradient_mean_square: f64,
    /// Number of clients whose gradients were measured.
    pub clients_measured: usize,
    /// Number of rounds in which gradients were measured.
    pub rounds_measured: u32,
    /// Minimum of the loss, `f*`.
    pub minimum: f64,
    /// The true `f*` is below `minimum` by at most this.
    pub minimum_error: f64,
    /// Heterogeneity of the clients, `Γ = f* − Σ p_k f_k*`.
    pub heterogeneity: f64,
    /// Maximum error of `Γ`.
    pub heterogeneity_error: f64,
    /// Squared distance of the initial model from the minimum, `‖w_0 − w*‖²`.
    pub distance_squared: f64,
    /// Maximum error of `‖w_0 − w*‖`.
    pub distance_error: f64,
    /// Number of clients from which `L`, `f*` and `Γ` are computed.
    pub clients_minimised: u32,
    /// Number of SGD steps per round, `E`: the maximum over the clients.
    pub local_steps: usize,
    /// Whether all these clients hold the same number of samples.
    pub equal_sizes: bool,
    /// Whether every mini-batch gradient is unbiased given the steps before: one step per round, or full batches.
    pub unbiased_batches: bool,
}

impl Constants {
    /// Finds the constants of a logistic task with a penalty, on the threads of the current `rayon` pool. `report`
    /// receives the progress.
    pub(super) fn find(federation: &Federation, report: &(dyn Fn(&str) + Sync)) -> Result<Self, SimError> {
        let settings = federation.experiment().settings();
        let (sgd, l2) = (settings.local.sgd, f64::from(federation.model().l2()));
        let total = settings.clients.total;
        let count = total.min(MAX_CLIENTS);
        let chosen: Vec<u32> =
            (0..count).map(|i| (u64::from(i) * u64::from(total) / u64::from(count)) as u32).collect();
        let holdings = federation.holdings(0)?;
        let select = |&client: &u32| holdings.with_client(client, |data| data.samples.select(data.rows));
        let clients: Result<Vec<Samples>, _> = chosen.iter().map(select).collect();
        let clients = clients.map_err(SimError::learn("data"))?;
        let sizes: Vec<usize> = clients.iter().map(Samples::count).collect();
        let steps: Vec<usize> = sizes.iter().map(|&size| sgd.steps(size)).collect();

        report("smoothness of the clients' losses");
        let stream = |client: u32| StreamName::new(settings.seed, purpose::POWER_METHOD).client(client);
        let bounds: Vec<f64> = clients
            .par_iter()
            .zip(&chosen)
            .map(|(samples, &client)| smoothness(samples, l2, stream(client)))
            .collect();
        report("minimum of the loss");
        let weights = weights(settings.clients.weights, &sizes);
        let parts = weights.iter().copied().zip(&clients).collect();
        let common = Objective { parts, l2 }.minimise(TOLERANCE);
        report("minimum of every client's loss");
        let own: Vec<(f64, f64)> = clients
            .par_iter()
            .map(|samples| Objective { parts: vec![(1.0, samples)], l2 }.minimise(TOLERANCE))
            .map(|minimum| (minimum.value, minimum.value_error))
            .collect();
        let mean = |part: fn(&(f64, f64)) -> f64| -> f64 {
            weights.iter().zip(&own).map(|(p, own)| p * part(own)).sum()
        };
        report("gradients of a training over an ideal uplink");
        let gradients = Gradients::measure(federation, &holdings)?;
        let square: f64 = common.point.iter().map(|value| value * value).sum();
        Ok(Self {
            mu: 2.0 * l2,
            smoothness: bounds.into_iter().fold(0.0, f64::max),
            gradient_bound: gradients.largest,
            least_client_gradient: gradients.least_client,
            gradient_mean_square: gradients.mean_square / f64::from(total),
            clients_measured: gradients.clients,
            rounds_measured: gradients.rounds,
            minimum: common.value,
            minimum_error: common.value_error,
            heterogeneity: (common.value - mean(|own| own.0)).max(0.0),
            heterogeneity_error: common.value_error.max(mean(|own| own.1)),
            // The initial parameters of a logistic model are 0.
            distance_squared: square,
            distance_error: common.point_error,
            clients_minimised: count,
            local_steps: steps.iter().copied().max().unwrap_or(1),
            equal_sizes: sizes.windows(2).all(|pair| pair[0] == pair[1]),
            unbiased_batches: steps
                .iter()
                .zip(&sizes)
                .all(|(&steps, &size)| steps == 1 || sgd.batch() >= size),
        })
    }
}

/// The weights `p_k`: all equal, or proportional to the number of samples.
fn weights(weights: Weights, sizes: &[usize]) -> Vec<f64> {
    let all: usize = sizes.iter().sum();
    match weights {
        Weights::Equal => vec![1.0 / sizes.len() as f64; sizes.len()],
        Weights::Samples => sizes.iter().map(|&size| size as f64 / all as f64).collect(),
    }
}

/// The longest mini-batch gradients of a training over an ideal uplink.
struct Gradients {
    largest: f64,
    least_client: f64,
    /// The mean of `H_k²` over the measured clients.
    mean_square: f64,
    clients: usize,
    rounds: u32,
}

impl Gradients {
    /// The experiment's own trial 0, with an exact uplink and without clipping.
    fn measure(federation: &Federation, holdings: &Holdings<'_>) -> Result<Self, SimError> {
        let settings = federation.experiment().settings();
        let rounds = federation.rounds().min(MAX_TRAININGS.div_ceil(settings.clients.per_round));
        let mut parameters = federation.initial_model(0);
        let mut longest = vec![None::<f64>; settings.clients.total as usize];
        for number in 1..=rounds {
            let clients = federation.select(0, number);
            let round = Round::new(settings.seed, 0, number, &clients)?;
            let rate = settings.local.rate.at(number);
            let train = |data: ClientData<'_>, client: u32| {
                let recording = RecordingModel { model: federation.model(), longest: Mutex::new(0.0) };
                let (mut moved, mut workspace) = (parameters.clone(), Workspace::default());
                let mut streams = purpose::training(|purpose| round.stream_of(purpose, client));
                settings.sgd().train(&recording, data, rate, &mut streams, &mut moved, &mut workspace);
                (moved, recording.longest.into_inner().unwrap_or(f64::INFINITY))
            };
            let train = |&client: &u32| holdings.with_client(client, |data| train(data, client));
            let trained: Result<Vec<_>, _> = clients.par_iter().map(train).collect();
            let trained = trained.map_err(SimError::learn("data"))?;
            let mut sum = vec![0.0_f64; parameters.len()];
            for ((moved, norm), &client) in trained.iter().zip(&clients) {
                sum.iter_mut().zip(moved).for_each(|(sum, &value)| *sum += f64::from(value));
                let known = &mut longest[client as usize];
                *known = Some(known.unwrap_or(0.0).max(*norm));
            }
            for (parameter, sum) in parameters.iter_mut().zip(sum) {
                *parameter = (sum / clients.len() as f64) as f32;
            }
            if !parameters.iter().all(|value| value.is_finite()) {
                break;
            }
        }
        let seen: Vec<f64> = longest.into_iter().flatten().collect();
        Ok(Self {
            largest: seen.iter().copied().fold(0.0, f64::max),
            least_client: seen.iter().copied().fold(f64::INFINITY, f64::min),
            mean_square: seen.iter().map(|norm| norm * norm).sum::<f64>() / seen.len() as f64,
            clients: seen.len(),
            rounds,
        })
    }
}

/// A model that records the longest gradient that it has returned.
#[derive(Debug)]
struct RecordingModel<'a> {
    model: &'a dyn Model,
    longest: Mutex<f64>,
}

impl Model for RecordingModel<'_> {
    fn features(&self) -> usize {
        self.model.features()
    }

    fn classes(&self) -> usize {
        self.model.classes()
    }

    fn l2(&self) -> f32 {
        self.model.l2()
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.model.tensors()
    }

    fn initialise(&self, randomness: &mut dyn Rng) -> Vec<f32> {
        self.model.initialise(randomness)
    }

    fn gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        dropout: &mut dyn Rng,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64 {
        let loss = self.model.gradient(parameters, batch, dropout, scratch, gradient);
        let norm = gradient.iter().map(|&slope| f64::from(slope) * f64::from(slope)).sum::<f64>().sqrt();
        if let Ok(mut longest) = self.longest.lock() {
            *longest = longest.max(norm);
        }
        loss
    }

    fn score(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Score {
        self.model.score(parameters, batch, scratch)
    }
}
