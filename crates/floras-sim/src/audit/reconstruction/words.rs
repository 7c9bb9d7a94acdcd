//! The settings that decide what a picture shows, for the line below it.

use floras_core::Choice;

use crate::experiment::{DataChoice, FlorasScheme, Scheme, Settings};

/// Key and value.
pub(super) fn settings(settings: &Settings) -> Vec<(String, String)> {
    let mut pairs = vec![
        ("data", data(&settings.data.set)),
        ("local work", "one step on one sample a client, from the initial model".to_owned()),
        ("learning rate", settings.local.rate.at(1).to_string()),
        ("clip norm C", clip(settings)),
        ("clients K", settings.clients.per_round.to_string()),
        ("scheme", settings.uplink.scheme.name().to_owned()),
    ];
    if let Scheme::Floras(floras) = &settings.uplink.scheme {
        pairs.extend(spreading(floras, settings.clients.per_round));
    }
    if let Some(air) = settings.uplink.scheme.air() {
        pairs.push(("fading", air.fading.label()));
    }
    pairs.push(("the adversary knows", "neither the channels nor the originals".to_owned()));
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn data(set: &DataChoice) -> String {
    let name = match set {
        DataChoice::Digits20 => "digits, 20×20 pixels",
        DataChoice::Digits28 => "digits, 28×28 pixels",
        DataChoice::Mnist(_) => "MNIST",
        DataChoice::FashionMnist(_) => "Fashion-MNIST",
        DataChoice::Cifar10(_) => "CIFAR-10, by brightness",
        DataChoice::Synthetic { .. } => "generated",
    };
    name.to_owned()
}

fn clip(settings: &Settings) -> String {
    let mode = settings.privacy.normalise.label();
    settings.privacy.clip.map_or_else(|| "none".to_owned(), |clip| format!("{clip}, {mode}"))
}

fn spreading(floras: &FlorasScheme, clients: u32) -> [(&'static str, String); 5] {
    [
        ("sequences N", floras.sequences.to_string()),
        ("unused γ", (floras.sequences as u64).saturating_sub(clients.into()).to_string()),
        ("chips L", floras.air.length.to_string()),
        ("modulation", floras.modulation.label()),
        ("receiver", floras.receiver.label()),
    ]
}
