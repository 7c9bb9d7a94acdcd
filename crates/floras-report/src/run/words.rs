//! What was run, in sentences for someone who has not read the paper.

use floras_core::{Dropout, TransmitPower};
use floras_learn::Partition;
use floras_sim::Settings;

use crate::html::number::{count, grouped};

/// What was trained, by whom, and how often.
pub(crate) fn task(settings: &Settings) -> String {
    let clients = &settings.clients;
    let model = settings.model.description();
    let who = if clients.per_round == clients.total {
        format!("{}, all of them in every round,", count(clients.total.into(), "client"))
    } else {
        format!(
            "{}, of which {} took part in every round,",
            count(clients.total.into(), "client"),
            grouped(clients.per_round.into())
        )
    };
    let trials = match settings.trials {
        1 => "The whole training was done once.".to_owned(),
        many => format!(
            "The whole training was done {} times, with other random numbers each time.",
            grouped(many.into())
        ),
    };
    let silent = dropout(&clients.dropout);
    format!(
        "{who} trained {model} on {} without handing over their data: each client improves the model on the samples it \
         holds, and sends only the change. {}{silent} {trials}",
        settings.data.set.description(),
        partition(settings.data.partition),
    )
}

fn dropout(dropout: &Dropout) -> String {
    let which = match (dropout.as_probability(), dropout.as_trace()) {
        (Some(0.0), _) => return String::new(),
        (Some(p), _) => format!("Each client of a round was silent with probability {p}"),
        (_, Some(path)) => {
            format!("The clients that {} lists were silent", path.file_name().unwrap_or_default().display())
        }
        (None, None) => return String::new(),
    };
    format!(" {which}: it sent neither pilot nor update, and the step is the mean of the others.")
}

fn partition(partition: Partition) -> String {
    match partition {
        Partition::Iid => "The samples were shuffled and dealt, so that everyone's are alike.".to_owned(),
        Partition::OneLabel => "Every client holds samples of one class only.".to_owned(),
        Partition::Shards(pieces) => {
            format!("Every client holds {} of the data sorted by class.", count(pieces.get().into(), "piece"))
        }
        Partition::Dirichlet(alpha) => {
            format!(
                "Every client has its own mixture of classes (Dirichlet, α = {alpha}; the smaller α, the more one-sided)."
            )
        }
        Partition::Unequal(spread) => {
            format!("Clients hold alike samples, but some many and some few (log-normal, spread {spread}).")
        }
    }
}

/// How the updates reached the base station.
pub(crate) fn uplink(settings: &Settings, rounds: u32) -> String {
    let mut how = settings.uplink.description(settings.clients.per_round);
    if settings.uplink.power() == TransmitPower::Unit {
        how.push_str(" All scale what they send to symbols of unit power.");
    }
    if let Some(masks) = settings.masks {
        let noise = masks.noise_std();
        how.push_str(&match masks.mask_std() {
            0.0 => format!(" Every client adds noise of its own, with a standard deviation of {noise}, to each parameter."),
            mask => format!(
                " Every client adds masks of standard deviation {mask} to each parameter, which it shares with the others in \
                 pairs and which cancel in the sum, and noise of its own, of {noise}."
            ),
        });
    }
    format!("{how} Each training has {}.", count(rounds.into(), "round"))
}

/// Words that a newcomer would have to ask for.
pub(crate) const GLOSSARY: [(&str, &str); 9] = [
    ("client", "A phone or another device that holds data of its own and takes part in the training."),
    (
        "base station",
        "The receiver that hears all clients at once, decodes the sum of their updates and keeps the model.",
    ),
    ("round", "Clients get the model, improve it on their data, send the change; the model takes a step."),
    (
        "trial",
        "One whole training. Several trials show how much is random variation: the ± and the bands are 95% intervals of the mean.",
    ),
    (
        "loss",
        "How badly the model predicts: mean cross-entropy, with the natural logarithm. Smaller is better.",
    ),
    (
        "signal-to-noise ratio",
        "How much stronger the signal is than the receiver's noise, in decibels: 20 dB is 100 times.",
    ),
    (
        "γ (gamma)",
        "Spreading sequences that nobody used in a round. They add noise, and the noise adds privacy.",
    ),
    ("gain", "How strongly a client's update arrives in the decoded sum; 1 is exact."),
    ("ε, δ (epsilon, delta)", "How much training may give away about one client; smaller is more private."),
];

/// The command that repeats a run, and a sentence on where to give it.
pub(crate) fn repeat(settings: &Settings, version: &str) -> (String, String) {
    let uplink = &settings.uplink;
    let trace = uplink.radio().and_then(|radio| radio.trace());
    let sequences = uplink.scheme.floras().and_then(|floras| floras.family.file()).map(|file| file.path());
    let relative = [settings.data.set.directory(), trace, sequences, settings.clients.dropout.as_trace()]
        .into_iter()
        .flatten()
        .find(|path| path.is_relative());
    match relative {
        None => (
            format!("floras run experiment.toml --out ../{}-again", settings.name),
            format!("In this directory, with floras {version}:"),
        ),
        Some(path) => (
            format!("floras run DIRECTORY/experiment.toml --out {}-again", settings.name),
            format!(
                "With floras {version}, from where the run was begun, because the experiment names the file {} relative to \
                 it. DIRECTORY stands for this directory:",
                path.display()
            ),
        ),
    }
}
