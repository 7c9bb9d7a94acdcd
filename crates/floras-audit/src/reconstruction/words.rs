//! The settings that determine a reconstruction, for the caption.

use floras_core::Choice;
use floras_sim::{DataChoice, Settings};

/// Key and value.
pub(super) fn settings(settings: &Settings) -> Vec<(String, String)> {
    let mut pairs = vec![
        ("data", data(&settings.data.set)),
        ("local work", "one step on one sample per client, from the initial model".to_owned()),
        ("learning rate", settings.local.rate.at(1).to_string()),
        ("clip norm C", clip(settings)),
        ("clients K", settings.clients.per_round.to_string()),
        ("scheme", settings.uplink.scheme.name().to_owned()),
    ];
    pairs.extend(settings.uplink.scheme.details(settings.clients.per_round));
    if let Some(radio) = settings.uplink.radio() {
        pairs.push(("chips, L", radio.length.to_string()));
        pairs.push(("fading", radio.fading.label()));
    }
    pairs.push(("the adversary knows", "neither the channels nor the originals".to_owned()));
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn clip(settings: &Settings) -> String {
    let mode = settings.privacy.normalise.label();
    settings.privacy.clip.map_or_else(|| "none".to_owned(), |clip| format!("{clip}, {mode}"))
}

fn data(set: &DataChoice) -> String {
    let brightness = if set.picture().is_some_and(|(_, colour)| colour) { ", by brightness" } else { "" };
    format!("{}{brightness}", set.label())
}
