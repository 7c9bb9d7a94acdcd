//! The settings that decide what a picture shows, for the line below it.

use floras_phy::{Fading, Modulation, PhaseError, Receiver};

use crate::experiment::{Air, DataChoice, FadingChoice, FlorasScheme, Normalise, Scheme, Settings};

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
        pairs.push(("fading", fading(air)));
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
    match (settings.privacy.clip, settings.privacy.normalise) {
        (None, _) => "none".to_owned(),
        (Some(clip), Normalise::Clip) => format!("{clip}, each update clipped"),
        (Some(clip), Normalise::Paper) => format!("{clip}, all updates scaled together"),
    }
}

fn spreading(floras: &FlorasScheme, clients: u32) -> [(&'static str, String); 5] {
    let modulation = match floras.modulation {
        Modulation::Real => "real",
        Modulation::PhaseCorrected(PhaseError::None) => "phase-corrected",
        Modulation::PhaseCorrected(_) => "phase-corrected, with errors",
    };
    let receiver = match floras.receiver {
        Receiver::Paper => "the paper's".to_owned(),
        Receiver::Mmse => "least mean square error".to_owned(),
        Receiver::Clipped(bound) => format!("clipped, c = {bound}"),
    };
    [
        ("sequences N", floras.sequences.to_string()),
        ("unused γ", (floras.sequences as u64).saturating_sub(clients.into()).to_string()),
        ("chips L", floras.air.length.to_string()),
        ("modulation", modulation.to_owned()),
        ("receiver", receiver),
    ]
}

fn fading(air: &Air) -> String {
    match &air.fading {
        FadingChoice::Law(Fading::None) => "none".to_owned(),
        FadingChoice::Law(law) => law.to_string(),
        FadingChoice::Trace(_) => "from a trace".to_owned(),
    }
}
