//! What a benchmark shows, in sentences with its numbers.

use floras_core::View;
use floras_sim::Estimate;
use floras_sim::benchmark::{Benchmark, Entry, Point, Row};
use floras_sim::number::{compact, percentage};
use floras_sim::schemes::{ChannelKnowledge, Trust};

/// The reading of the results: what is equal, who is best at equal rounds, at equal airtime and at equal `ε`, and what the comparison
/// leaves out.
pub(super) fn paragraphs(benchmark: &Benchmark) -> Vec<String> {
    let all = [equal(benchmark), open(benchmark), private(benchmark), caveats(benchmark)];
    all.into_iter().filter(|text| !text.is_empty()).collect()
}

fn equal(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let with_more = benchmark.entries.iter().filter(|entry| entry.antennas > 1);
    let antennas: String = with_more
        .map(|entry| {
            format!(" `{}` has {} receive antennas, all others have one.", entry.name, entry.antennas)
        })
        .collect();
    format!(
        "All schemes train the same model ({} parameters) on the same data for {} rounds, with the same clients, steps and clip norm \
         C = {}, over Rayleigh fading. The expected mean power of the clients over a round is at most 1, and the receiver's noise is the same in every \
         channel use: the SNR is that of a channel use at unit power. Airtime counts all channel uses of a round, with pilots and \
         control. Private points add noise until every client has ε ≤ {} at δ = {} after all rounds, in the view that the table \
         names. Results are means over {} trials with 95% intervals.{antennas}",
        conditions.parameters,
        conditions.rounds,
        compact(conditions.clip),
        conditions.epsilon,
        compact(conditions.delta),
        conditions.trials,
    )
}

/// The entries among some that have a value at a point, the best first, in words; `None` if there are none. Entries whose intervals
/// overlap that of the best are named with it.
fn best(
    benchmark: &Benchmark,
    point: &Point,
    is_compared: impl Fn(&Entry, &Row) -> bool,
    value: impl Fn(&Row) -> Option<Estimate>,
) -> Option<String> {
    let candidates = benchmark.entries.iter().filter_map(|entry| {
        let row = benchmark.row(&entry.name, point)?;
        let found = value(row).filter(|_| is_compared(entry, row))?;
        Some((entry.name.as_str(), found))
    });
    let mut candidates: Vec<(&str, Estimate)> = candidates.collect();
    candidates.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let (&(name, first), others) = candidates.split_first()?;
    let half = |estimate: Estimate| estimate.ci95.unwrap_or(0.0);
    let lowest = first.mean - half(first);
    let near = others.iter().filter(|(_, other)| other.mean + half(*other) >= lowest);
    let near: Vec<String> = near.map(|(name, _)| format!("`{name}`")).collect();
    Some(match &near[..] {
        [] => format!("`{name}` ({})", percentage(first)),
        [one] => format!("`{name}` ({}; its interval overlaps that of {one})", percentage(first)),
        near => {
            format!("`{name}` ({}; its interval overlaps those of {})", percentage(first), near.join(", "))
        }
    })
}

fn is_on_air(_: &Entry, row: &Row) -> bool {
    row.cost.is_some()
}

fn knows_nothing(entry: &Entry, row: &Row) -> bool {
    is_on_air(entry, row) && entry.channel_knowledge == ChannelKnowledge::Nothing
}

/// Whether the bound is one against a base station that keeps its samples, and does not count on the base station or its noise.
fn is_untrusting(entry: &Entry, row: &Row) -> bool {
    let trust = row.protected_by.as_ref().map(|by| by.trust);
    is_on_air(entry, row)
        && entry.view == View::RawSignal
        && trust.is_some_and(|trust| matches!(trust, Trust::NoOne | Trust::Clients))
}

fn open(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let point = &conditions.reference;
    let accuracy = |row: &Row| row.accuracy;
    let at_airtime = |row: &Row| row.at_airtime.map(|(_, accuracy)| accuracy);
    let none_fits = |entry: &&Entry| {
        let row = benchmark.row(&entry.name, point);
        row.is_some_and(|row| row.cost.is_some() && row.at_airtime.is_none())
    };
    let mut sentences = Vec::new();
    if let Some(best) = best(benchmark, point, is_on_air, accuracy) {
        sentences.push(format!(
            "Without protection, with K = {} clients at {} dB ({}) after {} rounds, the best scheme on the air is {best}.",
            point.clients, point.snr_db, point.partition, conditions.rounds
        ));
    }
    if let Some(best) = best(benchmark, point, knows_nothing, accuracy) {
        sentences
            .push(format!("Among schemes whose clients know nothing about their channels it is {best}."));
    }
    if let Some(best) = best(benchmark, point, is_on_air, at_airtime) {
        sentences.push(format!(
            "At an equal airtime of {} channel uses per parameter, it is {best}.",
            conditions.airtime
        ));
    }
    if let Some(best) = best(benchmark, point, knows_nothing, at_airtime) {
        sentences.push(format!("At this airtime and without channel knowledge it is {best}."));
    }
    let left_out: Vec<String> =
        benchmark.entries.iter().filter(none_fits).map(|entry| format!("`{}`", entry.name)).collect();
    if !left_out.is_empty() {
        sentences.push(format!(
            "Not one round of {} fits into {} channel uses per parameter.",
            left_out.join(", "),
            conditions.airtime
        ));
    }
    sentences.join(" ")
}

fn private(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let point = &conditions.private();
    let accuracy = |row: &Row| row.accuracy;
    let mut sentences = Vec::new();
    if let Some(best) = best(benchmark, point, is_untrusting, accuracy) {
        sentences.push(format!(
            "At ε ≤ {} against a base station that keeps its raw samples, with noise of the clients alone, the best scheme on the \
             air is {best}. Noise that is a key of the scheme, such as artificial_noise_std, protects only if the coefficients that \
             clients invert are correct, although the base station can return others. Masks and the noise of each client protect \
             with any coefficients.",
            conditions.epsilon
        ));
    }
    let is_blind = |entry: &Entry, row: &Row| is_untrusting(entry, row) && knows_nothing(entry, row);
    if let Some(best) = best(benchmark, point, is_blind, accuracy) {
        sentences.push(format!("Among these schemes, the best one without channel knowledge is {best}."));
    }
    let is_trusting = |entry: &Entry, row: &Row| is_on_air(entry, row) && !is_untrusting(entry, row);
    if let Some(best) = best(benchmark, point, is_trusting, accuracy) {
        sentences.push(format!(
            "At ε ≤ {} with noise of a trusted base station or receiver, the best scheme is {best}.",
            conditions.epsilon
        ));
    }
    if let Some(best) = best(benchmark, point, |entry, row| !is_on_air(entry, row), accuracy) {
        sentences.push(format!("At ε ≤ {} without a radio, the best one is {best}.", conditions.epsilon));
    }
    sentences.join(" ")
}

fn caveats(benchmark: &Benchmark) -> String {
    let diverged: u32 = benchmark.rows.iter().map(|row| row.diverged).sum();
    let unmet = benchmark.rows.iter().filter(|row| row.accuracy.is_none()).count();
    let is_present = |scheme: &str| benchmark.entries.iter().any(|entry| entry.scheme == scheme);
    let present = |schemes: &[&str]| -> Option<String> {
        let found: Vec<String> =
            schemes.iter().filter(|scheme| is_present(scheme)).map(|scheme| format!("`{scheme}`")).collect();
        let (last, first) = found.split_last()?;
        Some(if first.is_empty() { last.clone() } else { format!("{} and {last}", first.join(", ")) })
    };
    let mut text = "What is not equal: channels are independent between clients in all schemes".to_owned();
    if let Some(schemes) = present(&["broadband-inversion", "one-bit"]) {
        text.push_str(&format!(", between subcarriers in {schemes}"));
    }
    if is_present("fsk-vote") {
        text.push_str(", and between parameters in `fsk-vote`");
    }
    text.push('.');
    if let Some(schemes) = present(&["digital", "d-dsgd"]) {
        text.push_str(&format!(
            " Clients of {schemes} send at the power K in a share 1/K of the channel uses."
        ));
    }
    if let Some(schemes) = present(&["digital", "one-bit", "blind"]) {
        text.push_str(&format!(
            " Clients of {schemes} send in both real dimensions of a symbol, those of other schemes in one."
        ));
    }
    text.push_str(
        " Clients that know their channels know them without error. Base stations that need channels estimate them from noisy \
         pilots. Power is the mean power of the payload, at most 1: pilots have a power of their own, and peaks differ. At an equal \
         airtime, a scheme trains for at most the rounds of the benchmark.",
    );
    if let Some(schemes) = present(&["digital"]) {
        text.push_str(&format!(
            " Only the base station of {schemes} knows all channels without pilots in the airtime."
        ));
    }
    text.push_str(
        " The settings of a scheme are those of its file, for all points; others may be better. Private rows compare protections as \
         much as uplinks: each scheme has the one that its file supports. Where the receiver's noise hides the updates too, ε is \
         smaller than asked for.",
    );
    if is_present("one-bit") {
        text.push_str(
            " Zeros of an update count as positive votes in `one-bit`, which matters if clients hold few samples.",
        );
    }
    if is_present("d-dsgd") {
        text.push_str(
            " A client of `d-dsgd` sends nothing if its share of the channel uses has no room for one value.",
        );
    }
    text.push_str(
        " Each scheme is compared as an uplink alone, without its paper's data, models and optimisers.",
    );
    if benchmark.entries.iter().any(|entry| entry.name == "digital-masked") {
        text.push_str(" An update of `digital-masked` that is lost leaves its masks in the sum.");
    }
    const BOTH_VIEWS: [&str; 6] =
        ["channel-inversion", "broadband-inversion", "power-control", "one-bit", "a-dsgd", "cotaf"];
    const RAW_SIGNAL: [&str; 3] = ["artificial-noise", "phase-corrected", "fsk-vote"];
    let of = |schemes: &[&str], views: &str| Some(format!("the {views} numbers of {}", present(schemes)?));
    let aligned = [of(&BOTH_VIEWS, "raw-signal and any-channel"), of(&RAW_SIGNAL, "raw-signal")];
    let aligned: Vec<String> = aligned.into_iter().flatten().collect();
    if !aligned.is_empty() {
        text.push_str(&format!(
            " Without masks or local noise, {} assume that the base station, and anyone it works with, receives with one \
             antenna, the one at which clients are aligned. With a second antenna they do not hold.",
            aligned.join(" and ")
        ));
    }
    if diverged > 0 {
        text.push_str(&format!(" {diverged} trials diverged; they count as guessing."));
    }
    if unmet > 0 {
        text.push_str(&format!(" At {unmet} points no noise meets the ε; they have no result."));
    }
    text
}
