//! The assumptions and conditions of Theorem 4, checked for an experiment.

use floras_core::{Clipping, Receiver};
use floras_sim::Settings;
use floras_sim::schemes::IdealScheme;
use serde::Serialize;

use super::constants::Constants;
use super::notes;
use super::report::{Evaluation, Sizes};

/// An assumption or a condition of the theorem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Name of the condition.
    pub name: &'static str,
    /// Whether it holds; `None` if unknown.
    pub holds: Option<bool>,
    /// The reason, with numbers.
    pub detail: String,
}

/// Whether the noise is that of the theorem: the paper's receiver with one branch and orthonormal sequences, whose unused sequences
/// produce Cauchy noise.
pub(super) fn is_cauchy(settings: &Settings) -> bool {
    let floras = settings.uplink.scheme.floras();
    floras.is_some_and(|floras| floras.receiver == Receiver::Paper)
        && !overlaps(settings)
        && branches(settings) == 1
}

/// Number of real branches of the receiver, `B`; 1 for other schemes.
fn branches(settings: &Settings) -> usize {
    let antennas = settings.uplink.radio.antennas;
    settings.uplink.scheme.floras().map_or(1, |floras| floras.modulation.branches(antennas))
}

/// Whether sequences overlap. Unreadable files were rejected earlier.
fn overlaps(settings: &Settings) -> bool {
    let floras = settings.uplink.scheme.floras();
    floras.is_some_and(|floras| floras.is_orthonormal(settings.uplink.radio.length) != Ok(true))
}

/// Whether the uplink is ideal, without noise.
pub(super) fn is_ideal(settings: &Settings) -> bool {
    settings.uplink.scheme.get::<IdealScheme>().is_some()
}

/// All assumptions and conditions of the theorem.
pub(super) fn conditions(
    (settings, is_convex): (&Settings, bool),
    sizes: &Sizes,
    constants: Option<&Constants>,
    [printed, corrected]: [&Option<Evaluation>; 2],
) -> Vec<Condition> {
    let condition = |name, holds, detail: String| Condition { name, holds, detail };
    let mut all = Vec::new();
    let l2 = settings.model.l2;
    let convexity = match constants {
        _ if !is_convex => "the model is not convex, so that Assumption 2 fails".to_owned(),
        None => "without a penalty (model.l2 = 0) μ is 0, so that Assumption 2 fails".to_owned(),
        Some(_) => format!("logistic regression with λ = {l2}, so that μ = 2λ = {}", 2.0 * l2),
    };
    all.push(condition("strongly convex loss", Some(constants.is_some()), convexity));
    all.push(receiver_condition(settings));
    if !settings.clients.dropout.is_none() {
        let detail = "clients drop out (clients.dropout): a round has fewer than K".to_owned();
        all.push(condition("K clients in every round", Some(false), detail));
    }
    let scaled = settings.privacy.normalise == Clipping::Paper;
    let scaling = match (is_ideal(settings), scaled) {
        (true, _) => (Some(true), "there is no noise"),
        (_, true) => {
            (Some(true), "updates are scaled to norm C together, so that the noise shrinks with them")
        }
        (_, false) => (
            Some(false),
            "privacy.normalise is not \"paper\": the noise does not shrink with the rate, as the proof needs it to",
        ),
    };
    all.push(condition("the paper's normalisation", scaling.0, scaling.1.to_owned()));
    all.push(clamp_condition(settings, sizes));
    if let Some((clip, bound)) = sizes.clip.zip(sizes.bound) {
        let detail = format!("C = {clip}, B = {bound}; taken as B ≥ 10·C");
        all.push(condition("B ≫ C (section VI)", Some(bound >= 10.0 * clip), detail));
    }
    let Some(constants) = constants else { return all };
    let equal = if constants.equal_sizes {
        "all clients hold the same number of samples"
    } else {
        "clients hold different numbers"
    };
    all.push(condition("equal clients", Some(constants.equal_sizes), equal.to_owned()));
    let unbiased = if constants.unbiased_batches {
        "every mini-batch is a fresh draw, or the whole of a client's samples".to_owned()
    } else {
        let steps = constants.local_steps;
        format!(
            "{steps} steps per round without repeating a sample: given the steps before, the next batch is not a fresh draw"
        )
    };
    all.push(condition("unbiased mini-batches", Some(constants.unbiased_batches), unbiased));
    for (name, evaluation) in
        [("μ > 2√(dD)EH/K, D as printed", printed), ("μ > 2√(dD)EH/K, D corrected", corrected)]
    {
        let Some(evaluation) = evaluation else { continue };
        let detail = match evaluation.needed_convexity {
            Some(needed) => format!("μ = {:.2e} must exceed {needed:.2e}", constants.mu),
            None => "the printed D is negative and has no root".to_owned(),
        };
        all.push(condition(name, Some(evaluation.met), detail));
    }
    let most = 1.0 / (4.0 * constants.smoothness);
    let first = settings.local.rate.at(1);
    let detail = format!("the experiment begins with η = {first:.2e}; 1/(4L) = {most:.2e}");
    all.push(condition("η ≤ 1/(4L)", Some(first <= most), detail));
    all
}

fn receiver_condition(settings: &Settings) -> Condition {
    let scheme = &settings.uplink.scheme;
    let (holds, detail) = match scheme.floras() {
        _ if is_ideal(settings) => (true, "the uplink is ideal: D = 0".to_owned()),
        Some(_) if overlaps(settings) => (
            false,
            "with overlapping sequences the unused estimates carry the clients' pilots, and the noise is not Cauchy: Remark 3 \
             is wrong"
                .to_owned(),
        ),
        Some(_) if branches(settings) > 1 => (
            false,
            format!("over {} branches the noise of unused sequences is not Cauchy", branches(settings)),
        ),
        Some(floras) if floras.receiver == Receiver::Paper => {
            (true, "the paper's receiver, whose unused sequences make Cauchy noise".to_owned())
        }
        Some(_) => (false, "another receiver bounds its weights, and its noise is not Cauchy".to_owned()),
        None => (false, format!("the scheme {} has no unused sequences", scheme.name())),
    };
    Condition { name: "the theorem's noise", holds: Some(holds), detail }
}

fn clamp_condition(settings: &Settings, sizes: &Sizes) -> Condition {
    let name = "clamped decoding, K·C ≤ B";
    let quiet = is_ideal(settings) || sizes.gamma == Some(0);
    let (holds, detail) = match (sizes.clip, sizes.bound) {
        (_, None) if quiet => (Some(true), "there is no noise to clamp".to_owned()),
        (_, None) => (
            Some(false),
            "without uplink.truncate Cauchy noise has no second moment: D is infinite".to_owned(),
        ),
        (None, Some(_)) => (None, "without privacy.clip there is no C to compare B with".to_owned()),
        (Some(clip), Some(bound)) => {
            let sum_norm = clip * f64::from(sizes.per_round);
            (Some(sum_norm <= bound), format!("K·C = {sum_norm}, B = {bound}"))
        }
    };
    Condition { name, holds, detail }
}

/// The notes that apply to this experiment.
pub(super) fn collect_notes(
    settings: &Settings,
    sizes: &Sizes,
    constants: Option<&Constants>,
) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    if let Some((clip, bound)) = sizes.clip.zip(sizes.bound)
        && clip * f64::from(sizes.per_round) > bound
    {
        all.push(notes::SUM_BEYOND_BOUND.to_owned());
    }
    if let Some(constants) = constants {
        if constants.clients_minimised < sizes.clients {
            all.push(format!(
                "L, f*, Γ and w* are over {} of {} clients, evenly chosen",
                constants.clients_minimised, sizes.clients
            ));
        }
        if constants.rounds_measured < sizes.rounds || constants.clients_measured < sizes.clients as usize {
            all.push(format!(
                "H was measured in {} of {} rounds, over {} of {} clients",
                constants.rounds_measured, sizes.rounds, constants.clients_measured, sizes.clients
            ));
        }
    }
    if constants.is_some_and(|constants| !constants.unbiased_batches) {
        all.push(notes::SHUFFLED.to_owned());
    }
    if is_cauchy(settings) {
        all.push(notes::HIGH_SNR.to_owned());
    }
    if !is_ideal(settings) {
        all.extend(notes::PROOF.map(str::to_owned));
    }
    all.extend(notes::STATEMENT.map(str::to_owned));
    all
}
