//! The experiment in sentences for readers who have not read the paper.

use floras_core::{Dropout, TransmitPower};
use floras_learn::Partition;
use floras_sim::Settings;

use crate::html::number::{count, grouped};

/// The task, the clients and the trials.
pub(crate) fn task(settings: &Settings) -> String {
    let clients = &settings.clients;
    let model = settings.model.description();
    let who = if clients.per_round == clients.total {
        format!("{}, all in every round,", count(clients.total.into(), "client"))
    } else {
        format!(
            "{}, {} of them per round,",
            count(clients.total.into(), "client"),
            grouped(clients.per_round.into())
        )
    };
    let trials = match settings.trials {
        1 => "The experiment has one trial.".to_owned(),
        many => {
            format!("The experiment has {} trials with independent random numbers.", grouped(many.into()))
        }
    };
    let silent = dropout(&clients.dropout);
    format!(
        "{who} train {model} on {}. Each client improves the model on its own samples and sends only its update. \
         {}{silent} {trials}",
        settings.data.set.description(),
        partition(settings.data.partition),
    )
}

fn dropout(dropout: &Dropout) -> String {
    let which = match (dropout.as_probability(), dropout.as_trace()) {
        (Some(0.0), _) => return String::new(),
        (Some(p), _) => format!("Each client of a round is silent with probability {p}"),
        (_, Some(path)) => {
            format!("The clients that {} lists are silent", path.file_name().unwrap_or_default().display())
        }
        (None, None) => return String::new(),
    };
    format!(" {which}: it sends neither pilot nor update, and the step is the mean of the others.")
}

fn partition(partition: Partition) -> String {
    match partition {
        Partition::Iid => "Every client holds a random part of the samples (IID).".to_owned(),
        Partition::OneLabel => "Every client holds samples of a single class.".to_owned(),
        Partition::Shards(pieces) => {
            format!("Every client holds {} of the data sorted by class.", count(pieces.get().into(), "shard"))
        }
        Partition::Dirichlet(alpha) => {
            format!(
                "Every client has its own mixture of classes (Dirichlet, α = {alpha}; with a smaller α, single classes dominate more)."
            )
        }
        Partition::Unequal(spread) => {
            format!(
                "Clients draw from the same distribution but hold different amounts of data (log-normal sizes, spread {spread})."
            )
        }
        Partition::Given => "The caller listed the samples of each client.".to_owned(),
    }
}

/// The uplink in words.
pub(crate) fn uplink(settings: &Settings, rounds: u32) -> String {
    let mut how = settings.uplink.description(settings.clients.per_round);
    if settings.uplink.power() == TransmitPower::Unit {
        how.push_str(" All clients scale what they send to symbols of unit power.");
    }
    if let Some(masks) = settings.masks {
        let noise = masks.noise_std();
        how.push_str(&match masks.mask_std() {
            0.0 => format!(" Every client adds noise of standard deviation {noise} to each parameter."),
            mask => format!(
                " Every client adds pairwise masks of standard deviation {mask}, which cancel in the sum, and its own noise of \
                 standard deviation {noise} to each parameter."
            ),
        });
    }
    format!("{how} Each trial has {}.", count(rounds.into(), "round"))
}

/// Terms of the report.
pub(crate) const GLOSSARY: [(&str, &str); 9] = [
    ("client", "A device that holds its own data and takes part in the training."),
    (
        "base station",
        "The receiver of all clients' signals. It decodes the sum of the updates and keeps the model.",
    ),
    (
        "round",
        "Clients receive the model, improve it on their data and send their updates; the model takes a step.",
    ),
    (
        "trial",
        "One complete training. Intervals (±) and bands are 95 % intervals of the mean over the trials.",
    ),
    (
        "loss",
        "Mean cross-entropy of the predictions, in nats, with the penalty on large weights. Smaller is better.",
    ),
    ("SNR", "Signal-to-noise ratio at the receiver in decibels: 20 dB is a ratio of 100."),
    (
        "γ (gamma)",
        "Number of spreading sequences without a client in a round. They add noise, and the noise adds privacy.",
    ),
    ("gain", "Factor of a client's update in the decoded sum; 1 is exact."),
    ("ε, δ (epsilon, delta)", "Bound on what training leaks about a client; a smaller ε is more private."),
];

/// The command that repeats a run, and a sentence on where to run it.
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
            format!("To repeat the run, in this directory, with floras {version}:"),
        ),
        Some(path) => (
            format!("floras run DIRECTORY/experiment.toml --out {}-again", settings.name),
            format!(
                "To repeat the run with floras {version}, start it where this run was started, because the experiment names {} \
                 relative to that directory. DIRECTORY stands for this directory:",
                path.display()
            ),
        ),
    }
}
