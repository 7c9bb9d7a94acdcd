//! What a benchmark shows, in sentences with its numbers.

use floras_core::View;
use floras_sim::Estimate;
use floras_sim::benchmark::{Benchmark, Entry, Point, Row};
use floras_sim::number::{compact, percentage};
use floras_sim::schemes::{ChannelKnowledge, Trust};

/// The reading of the results: what is equal, who is best at equal rounds, at equal airtime and at equal `ε`, and what the comparison
/// leaves out.
pub(super) fn paragraphs(benchmark: &Benchmark) -> Vec<String> {
    vec![equal(benchmark), open(benchmark), private(benchmark), caveats(benchmark)]
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

/// The entries among some that have a value at a point, the best first, in words. Entries whose intervals reach that of the best are named
/// with it.
fn best(
    benchmark: &Benchmark,
    point: &Point,
    is_compared: impl Fn(&Entry, &Row) -> bool,
    value: impl Fn(&Row) -> Option<Estimate>,
) -> String {
    let candidates = benchmark.entries.iter().filter_map(|entry| {
        let row = benchmark.row(&entry.name, point)?;
        let found = value(row).filter(|_| is_compared(entry, row))?;
        Some((entry.name.as_str(), found))
    });
    let mut candidates: Vec<(&str, Estimate)> = candidates.collect();
    candidates.sort_by(|(_, a), (_, b)| b.mean.total_cmp(&a.mean));
    let Some((&(name, first), others)) = candidates.split_first() else {
        return "none of those that were compared".to_owned();
    };
    let half = |estimate: Estimate| estimate.ci95.unwrap_or(0.0);
    let lowest = first.mean - half(first);
    let near = others.iter().filter(|(_, other)| other.mean + half(*other) >= lowest);
    let near: Vec<String> = near.map(|(name, _)| format!("`{name}`")).collect();
    match &near[..] {
        [] => format!("`{name}` ({})", percentage(first)),
        near => format!("`{name}` ({}), within the intervals of {}", percentage(first), near.join(", ")),
    }
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
    let left_out: Vec<String> =
        benchmark.entries.iter().filter(none_fits).map(|entry| format!("`{}`", entry.name)).collect();
    let left_out = match &left_out[..] {
        [] => String::new(),
        names => format!(" Not one round of {} fits into it.", names.join(", ")),
    };
    format!(
        "Without protection, with K = {} clients at {} dB ({}) after {} rounds, the best scheme on the air is {}. Among schemes whose clients \
         know nothing about their channels it is {}. At an equal airtime of {} channel uses per parameter, it is {}, and without channel \
         knowledge {}.{left_out}",
        point.clients,
        point.snr_db,
        point.partition,
        conditions.rounds,
        best(benchmark, point, is_on_air, accuracy),
        best(benchmark, point, knows_nothing, accuracy),
        conditions.airtime,
        best(benchmark, point, is_on_air, at_airtime),
        best(benchmark, point, knows_nothing, at_airtime),
    )
}

fn private(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let point = &conditions.private();
    let accuracy = |row: &Row| row.accuracy;
    format!(
        "At ε ≤ {} against a base station that keeps its raw samples, with noise of the clients alone, the best scheme on the air is {}. Noise \
         that is a key of the scheme, such as artificial_noise_std, protects only if the coefficients that clients invert are correct, \
         although the base station can return others; masks and the noise of each client protect with any. Without channel knowledge \
         it is {}. With noise of a trusted base station or receiver it \
         is {}. Without a radio it is {}.",
        conditions.epsilon,
        best(benchmark, point, is_untrusting, accuracy),
        best(benchmark, point, |entry, row| is_untrusting(entry, row) && knows_nothing(entry, row), accuracy),
        best(benchmark, point, |entry, row| is_on_air(entry, row) && !is_untrusting(entry, row), accuracy),
        best(benchmark, point, |entry, row| !is_on_air(entry, row), accuracy),
    )
}

fn caveats(benchmark: &Benchmark) -> String {
    let diverged: u32 = benchmark.rows.iter().map(|row| row.diverged).sum();
    let unmet = benchmark.rows.iter().filter(|row| row.accuracy.is_none()).count();
    let mut text = "What is not equal: channels are independent between clients in all schemes, between subcarriers in `broadband-inversion` \
                    and `one-bit`, and between parameters in `fsk-vote`. Digital clients send at the power K in a share 1/K of \
                    the channel uses. Digital clients and those of `one-bit` and `blind` send in both real dimensions of a symbol, the others in one. The settings of a \
                    scheme are those of its file, for all points; others may be better. Private rows compare protections as much as \
                    uplinks: each scheme has the one that its file supports. Where the receiver's noise hides the \
                    updates too, ε is smaller than asked for. Zeros of an update count as positive votes in `one-bit`, which matters if \
                    clients hold few samples; `d-dsgd` sends nothing if a client's share of the channel uses has no room for one value. Each scheme is compared as an uplink alone, \
                    without its paper's data, models and optimisers. An update of `digital-masked` that is lost leaves its masks in the sum. \
                    Without masks or local noise, raw-signal numbers of `channel-inversion`, `broadband-inversion`, `power-control`, `one-bit`, `a-dsgd`, \
                    `cotaf`, `artificial-noise`, `phase-corrected` and `fsk-vote`, and any-channel numbers of the first six, \
                    assume that the base station, and anyone it works with, receives with one antenna, the one at which clients \
                    are aligned. With a second antenna they do not hold. Those of `floras` and `blind` do not assume it."
        .to_owned();
    if diverged > 0 {
        text.push_str(&format!(" {diverged} trials diverged; they count as guessing."));
    }
    if unmet > 0 {
        text.push_str(&format!(" At {unmet} points no noise meets the ε; they have no result."));
    }
    text
}
