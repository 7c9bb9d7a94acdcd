//! Notes on privacy statements: assumptions and caveats.

use floras_core::{Clipping, Level, Receiver, View};
use floras_privacy::published::{unmet_conditions, unmet_local_work};
use floras_privacy::{PrivacyUnit, Sampling, Views};

use super::Protected;
use crate::experiment::{Settings, Weights};
use crate::schemes::{AGEING, OVERLAPPING};

/// The notes on the statements about some rounds.
pub(crate) fn of(
    settings: &Settings,
    protected: &Protected,
    views: &Views,
    sampling: Sampling,
    rounds: u64,
) -> Vec<String> {
    let mut notes: Vec<String> =
        views.why_published_is_smaller(shown_receiver(settings)).into_iter().collect();
    if let (Some(floras), Some(_)) = (settings.uplink.scheme.floras(), views.get(View::Published)) {
        let (clients, sequences) = (&settings.clients, floras.sequences as u64);
        let item = protected.batch_and_samples();
        notes.extend(unmet_conditions(clients.per_round.into(), sequences, clients.total.into(), item));
        if let PrivacyUnit::Item { local, .. } = protected.unit() {
            notes.extend(unmet_local_work(local));
        }
        if floras.is_orthonormal(settings.uplink.radio.length).is_ok_and(|orthonormal| !orthonormal) {
            notes.push(format!("published and idealised: {OVERLAPPING}"));
        }
    }
    if let Some(radio) = settings.uplink.radio() {
        if radio.ages() && settings.uplink.scheme.floras().is_some() {
            notes.push(format!("published and idealised: {AGEING}"));
        }
        if radio.is_unequal() {
            notes.push(UNEQUAL.to_owned());
        }
    }
    notes.extend(protected.note());
    match settings.uplink.scheme.floras() {
        Some(_) => notes.extend(any_channel_assumes(views)),
        None => notes.extend(views_assume(views, settings)),
    }
    notes.extend(masks_assume(views));
    notes.extend(dropouts(settings));
    notes.extend(weights_assumption(settings).map(|words| format!("all statements assume: {words}")));
    if sampling != Sampling::Everyone {
        notes.push(SELECTION.to_owned());
    }
    notes.extend(views.why_bounds_differ(sampling, rounds));
    if settings.privacy.clip.is_some() && settings.privacy.normalise == Clipping::Paper {
        notes.push(floras_privacy::NORMALISED.to_owned());
    }
    notes
}

/// The assumption of an account with dropouts; `None` without dropouts.
pub(crate) fn dropout_assumption(settings: &Settings) -> Option<&'static str> {
    (!settings.clients.dropout.is_none()).then_some("whether a client is silent does not depend on its data")
}

/// The assumption about clients that count by their numbers of samples: their weights depend on all of these numbers. At the item level
/// no neighbour changes them.
pub(crate) fn weights_assumption(settings: &Settings) -> Option<&'static str> {
    let is_assumed = settings.clients.weights == Weights::Samples && settings.privacy.level == Level::Client;
    is_assumed.then_some(
        "the clients' numbers of samples are public, and a client whose data change keeps its number",
    )
}

/// How rounds with dropouts are accounted for.
fn dropouts(settings: &Settings) -> Option<String> {
    let assumption = dropout_assumption(settings)?;
    let clients = &settings.clients;
    let mut counted = Vec::new();
    if let Some(sequences) = settings.uplink.scheme.sequences() {
        let unused = sequences.saturating_sub(clients.per_round as usize);
        counted
            .push(format!("the sequence of a silent client does not count as unused (γ = N − K = {unused})"));
    }
    if settings.uplink.scheme.floras().is_some_and(|floras| !floras.noise_grows_with_silence()) {
        let words = "with MMSE weights a silent client can leave less noise than one that sends, and the actual view allows for it";
        counted.push(words.to_owned());
    }
    if clients.per_round < clients.total {
        counted.push(format!(
            "drawing K = {} of M = {} clients does not count as secret",
            clients.per_round, clients.total
        ));
    }
    counted.push(format!("it assumes that {assumption}"));
    Some(format!(
        "clients drop out; the account of every round uses these conventions: {}",
        counted.join("; ")
    ))
}

/// Note on the noise of every simulation.
pub const SIMULATED: &str = "the noise comes from the simulation's generator: ε describes the mechanism with ideal noise, and \
     this run's outputs are not fit for release";

/// Note on clients with unequal long-term gains.
const UNEQUAL: &str = "clients have unequal long-term gains and keep them over a trial: an estimate of actual or \
     raw-signal is for the client that reveals most, and others reveal less; drawing K of M clients does not count as secret";

/// Note that the ledger is at the client level, even if the statements are at the item level.
pub(super) const LEDGER: &str = "`mu` and `worst` of the ledger, and with them the client with the largest loss, are at the client \
     level: they count all data of a client in the rounds in which it took part";

fn shown_receiver(settings: &Settings) -> Receiver {
    settings.uplink.scheme.floras().map_or(Receiver::Paper, |floras| floras.receiver)
}

/// The assumptions of the any-channel `ε` about the radio, if that view has an `ε` of its own.
pub(crate) fn any_channel_assumes(views: &Views) -> Option<String> {
    let statement = views.get(View::AnyChannel)?;
    let is_own = statement.epsilon.is_some() && !statement.from_masks;
    let has_number = is_own && !statement.assumptions.is_empty();
    has_number.then(|| format!("any-channel assumes: {}", statement.assumptions.join("; ")))
}

/// The assumptions of the views of a scheme, one note for views with the same. Those of all statements have notes of their own.
fn views_assume(views: &Views, settings: &Settings) -> Vec<String> {
    let common = [dropout_assumption(settings), weights_assumption(settings)];
    let mut groups: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    for view in [View::RawSignal, View::AnyChannel, View::Actual] {
        let own = views.get(view).filter(|statement| statement.epsilon.is_some() && !statement.from_masks);
        let Some(statement) = own else { continue };
        let assumptions = statement.assumptions.iter().map(String::as_str);
        let assumptions: Vec<&str> = assumptions.filter(|words| !common.contains(&Some(words))).collect();
        match groups.iter_mut().find(|(known, _)| *known == assumptions) {
            _ if assumptions.is_empty() => {}
            Some((_, names)) => names.push(view.name()),
            None => groups.push((assumptions, vec![view.name()])),
        }
    }
    let note = |(assumptions, names): (Vec<&str>, Vec<&str>)| {
        let verb = if names.len() == 1 { "assumes" } else { "assume" };
        format!("{} {verb}: {}", names.join(", "), assumptions.join("; "))
    };
    groups.into_iter().map(note).collect()
}

/// The views whose `ε` is the bound of the masks or of the local noise, and the assumptions of that bound.
pub(crate) fn masks_assume(views: &Views) -> Option<String> {
    let (_, statement) = views.iter().find(|(_, statement)| statement.from_masks)?;
    let decided: Vec<&str> =
        views.iter().filter(|(_, statement)| statement.from_masks).map(|(view, _)| view.name()).collect();
    let what = if statement.assumptions.len() > 1 { "masks decide" } else { "the clients' noise decides" };
    Some(format!("{what} {}: {}", decided.join(", "), statement.assumptions.join("; ")))
}

/// Note on the assumption of amplification by subsampling.
pub const SELECTION: &str = "K of M helps only against an adversary who does not know who takes part. `known` (in JSON \
     `participation_known`) is for one who sees a random selection: a base station, or anyone who distinguishes clients by \
     their channels, so that the any-channel number is always this one. `every round` (`in_every_round`) is for a client that \
     takes part in every round, as against a base station that does not select at random";
