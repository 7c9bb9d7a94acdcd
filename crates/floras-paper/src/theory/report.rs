//! The complete theory for one experiment.

use floras_core::Clipping;
use floras_sim::{Federation, Settings, SimError};
use serde::{Serialize, Serializer};

use super::bound::{Bound, Limits, Problem};
use super::conditions::{Condition, collect_notes, conditions, is_cauchy, is_ideal};
use super::constants::Constants;
use super::recursion::{RelativeNoise, RoundMap, limit_floor};
use super::truncation::Truncation;

/// The results of the theory for an experiment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Theory {
    /// Name of the experiment.
    pub name: String,
    /// Quantities that the experiment's settings determine.
    pub sizes: Sizes,
    /// Quantities that its data determine; `None` if the loss is not strongly convex.
    pub constants: Option<Constants>,
    /// The noise after clamping; `None` if it is not the clamped Cauchy noise of the theorem.
    pub noise: Option<NoiseMoments>,
    /// Assumptions and conditions of the theorem.
    pub conditions: Vec<Condition>,
    /// The theorem as printed.
    pub printed: Option<Evaluation>,
    /// The theorem's formula with the corrected second moment.
    pub corrected: Option<Evaluation>,
    /// The bound that can be proved instead, for the experiment's own rates.
    pub reached: Option<Reached>,
    /// Errors of the proof, and omissions.
    pub notes: Vec<String>,
}

/// Quantities that the experiment's settings determine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Sizes {
    /// Total number of clients, `M`.
    pub clients: u32,
    /// Number of clients per round, `K`.
    pub per_round: u32,
    /// Number of model parameters, `d`.
    pub parameters: usize,
    /// `γ = N − K`; `None` if the scheme has no sequences.
    pub gamma: Option<usize>,
    /// Clip norm `C`; `None` without clipping.
    pub clip: Option<f64>,
    /// Bound `B` to which decoded values are clamped; `None` without clamping.
    pub bound: Option<f64>,
    /// Number of rounds, `T`.
    pub rounds: u32,
}

/// Second moments of the noise of one coordinate, in units of `C²`, and its bias, in units of `K·C`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NoiseMoments {
    /// `D(γ)` as printed in Theorem 4.
    pub printed: f64,
    /// Second moment of the distribution conditioned on no clamping, at a sum of 0.
    pub conditioned_at_zero: f64,
    /// Second moment of clamped noise, at a sum of 0.
    pub clamped_at_zero: f64,
    /// Second moment of clamped noise, at the worst sum of one coordinate, `K·C`.
    pub clamped_at_worst: f64,
    /// `D'(γ)`: second moment of clamped noise for the worst sum of the whole vector, averaged over its
    /// coordinates.
    pub corrected: f64,
    /// `ρ`: the largest bias of the whole vector.
    pub bias: f64,
}

/// The integers that meet the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// No integer meets the condition. In JSON: `null`.
    None,
    /// Every integer meets the condition. In JSON: `"any"`.
    Any,
    /// The largest or the smallest integer that meets the condition.
    Number(u64),
}

impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_none(),
            Self::Any => serializer.serialize_str("any"),
            Self::Number(number) => serializer.serialize_u64(*number),
        }
    }
}

impl Answer {
    fn from(number: Option<f64>) -> Self {
        match number {
            None => Self::None,
            Some(number) if number.is_infinite() => Self::Any,
            Some(number) => Self::Number(number as u64),
        }
    }
}

/// Theorem 4 evaluated for one second moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluation {
    /// Second moment `D` of the noise, in units of `C²`.
    pub second_moment: f64,
    /// `2√(dD)·EH/K`, which `μ` must exceed; `None` if `D` is negative.
    pub needed_convexity: Option<f64>,
    /// Whether `μ` exceeds that number.
    pub met: bool,
    /// The bound at the last step; `None` if the condition fails.
    pub bound: Option<Bound>,
    /// The largest `γ` that meets the condition, with all other settings unchanged.
    pub largest_gamma: Answer,
    /// The smallest `K` that meets the condition, with the same number of unused sequences.
    pub least_clients: Answer,
    /// The smallest `K` that meets the condition with one unused sequence.
    pub least_clients_at_one: Answer,
}

/// The bound that training provably reaches with the experiment's own rates, by [`RoundMap`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Reached {
    /// Upper bound on `E‖w_T − w*‖²` after all rounds.
    pub distance_squared: f64,
    /// Upper bound on `E f(w_T) − f*`.
    pub excess_loss: f64,
    /// Upper bound on the limit of `E‖w − w*‖²` at the last rate.
    pub floor: f64,
    /// Upper bound on the limit of `E‖w − w*‖²` if the rate falls to 0.
    pub limit_floor: f64,
}

impl Theory {
    /// Computes everything, on the threads of the current `rayon` pool. `report` receives the progress.
    pub fn of(federation: &Federation, report: &(dyn Fn(&str) + Sync)) -> Result<Self, SimError> {
        let settings = federation.experiment().settings();
        let sizes = sizes(federation);
        // As in the model, which has single precision: a tiny penalty is 0.
        let convex = federation.model().is_softmax_regression() && federation.model().l2() > 0.0;
        let constants = if convex { Some(Constants::find(federation, report)?) } else { None };
        let problem = constants.as_ref().map(|constants| problem(constants, &sizes));
        let limits = limits(settings, &sizes);
        let noise = moments(settings, &sizes, limits);
        let step = |problem: &Problem| f64::from(sizes.rounds) * problem.local_steps;
        let evaluate = |variant: Variant| {
            let (problem, noise) = (problem?, noise?);
            Some(variant.evaluate(&problem, noise, limits, sizes.gamma.unwrap_or(0), step(&problem)))
        };
        let (printed, corrected) = (evaluate(Variant::Printed), evaluate(Variant::Corrected));
        let reached =
            problem.zip(noise).and_then(|(problem, noise)| reach(settings, &sizes, &problem, noise));
        let conditions = conditions(
            (settings, federation.model().is_softmax_regression()),
            &sizes,
            constants.as_ref(),
            [&printed, &corrected],
        );
        let notes = collect_notes(settings, &sizes, constants.as_ref());
        let name = settings.name.clone();
        Ok(Self { name, sizes, constants, noise, conditions, printed, corrected, reached, notes })
    }
}

fn sizes(federation: &Federation) -> Sizes {
    let settings = federation.experiment().settings();
    let clients = &settings.clients;
    let gamma = settings.uplink.scheme.sequences().map(|count| count - clients.per_round as usize);
    Sizes {
        clients: clients.total,
        per_round: clients.per_round,
        parameters: federation.model().parameters(),
        gamma,
        clip: settings.privacy.clip,
        bound: settings.uplink.truncate,
        rounds: federation.rounds(),
    }
}

fn problem(constants: &Constants, sizes: &Sizes) -> Problem {
    Problem {
        mu: constants.mu,
        smoothness: constants.smoothness,
        gradient_bound: constants.gradient_bound,
        gradient_mean_square: constants.gradient_mean_square,
        heterogeneity: constants.heterogeneity,
        distance_squared: constants.distance_squared,
        local_steps: constants.local_steps as f64,
        clients: f64::from(sizes.clients),
        per_round: f64::from(sizes.per_round),
        parameters: sizes.parameters as f64,
    }
}

fn limits(settings: &Settings, sizes: &Sizes) -> Option<Limits> {
    let (clip, bound) = sizes.clip.zip(sizes.bound)?;
    let covered = is_cauchy(settings) || is_ideal(settings);
    covered.then_some(Limits { clip, bound })
}

fn moments(settings: &Settings, sizes: &Sizes, limits: Option<Limits>) -> Option<NoiseMoments> {
    let none = NoiseMoments {
        printed: 0.0,
        conditioned_at_zero: 0.0,
        clamped_at_zero: 0.0,
        clamped_at_worst: 0.0,
        corrected: 0.0,
        bias: 0.0,
    };
    let no_noise = is_ideal(settings) || (is_cauchy(settings) && sizes.gamma == Some(0));
    if no_noise && sizes.bound.is_none() {
        return Some(none);
    }
    let limits = limits?;
    let noise = Truncation::new(sizes.gamma.unwrap_or(0) as f64, limits.bound).ok()?;
    let square = limits.clip * limits.clip;
    let sum_norm = f64::from(sizes.per_round) * limits.clip;
    let dimensions = sizes.parameters as f64;
    Some(NoiseMoments {
        printed: noise.printed(limits.clip),
        conditioned_at_zero: noise.conditioned_second_moment(0.0)? / square,
        clamped_at_zero: noise.second_moment(0.0) / square,
        clamped_at_worst: noise.second_moment(sum_norm) / square,
        corrected: noise.largest_error(sum_norm, dimensions) / (dimensions * square),
        bias: noise.largest_bias(sum_norm) / sum_norm,
    })
}

#[derive(Clone, Copy)]
enum Variant {
    Printed,
    Corrected,
}

impl Variant {
    fn evaluate(
        self,
        problem: &Problem,
        noise: NoiseMoments,
        limits: Option<Limits>,
        gamma: usize,
        step: f64,
    ) -> Evaluation {
        let second_moment = match self {
            Self::Printed => noise.printed,
            Self::Corrected => noise.corrected,
        };
        let met = problem.meets(second_moment);
        let least = |gamma: f64| match (limits, self) {
            // Without noise there is no equation to solve.
            (None, _) => {
                if met {
                    Some(1.0)
                } else {
                    None
                }
            }
            (Some(limits), Self::Printed) => limits.least_clients_printed(gamma, problem),
            (Some(limits), Self::Corrected) => limits.least_clients_corrected(gamma, problem),
        };
        let largest_gamma = match (limits, self) {
            (None, _) => None,
            (Some(limits), Self::Printed) => limits.largest_gamma_printed(problem),
            (Some(limits), Self::Corrected) => limits.largest_gamma_corrected(problem),
        };
        Evaluation {
            second_moment,
            needed_convexity: problem.needed_convexity(second_moment),
            met,
            bound: problem.bound(second_moment, step),
            largest_gamma: Answer::from(largest_gamma),
            least_clients: Answer::from(least(gamma as f64)),
            least_clients_at_one: Answer::from(least(1.0)),
        }
    }
}

/// The recursion over the experiment's own rounds; `None` if the noise does not shrink with the rate or the rate is
/// too large.
fn reach(settings: &Settings, sizes: &Sizes, problem: &Problem, noise: NoiseMoments) -> Option<Reached> {
    if !is_ideal(settings) && settings.privacy.normalise != Clipping::Paper {
        return None;
    }
    let per_client = problem.parameters * noise.corrected / (problem.per_round * problem.per_round);
    let noise = RelativeNoise { bias: noise.bias, second_moment: per_client };
    let mut distance_squared = problem.distance_squared;
    let mut last = None;
    for round in 1..=sizes.rounds {
        let map = RoundMap::new(problem, settings.local.rate.at(round), noise)?;
        distance_squared = map.apply(distance_squared);
        last = Some(map);
    }
    Some(Reached {
        distance_squared,
        excess_loss: 0.5 * problem.smoothness * distance_squared,
        floor: last?.floor(),
        limit_floor: limit_floor(problem, noise),
    })
}
