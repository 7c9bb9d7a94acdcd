//! What a benchmark shows, in sentences with its numbers.

use floras_sim::Estimate;
use floras_sim::benchmark::{Benchmark, Entry, Point, Row};
use floras_sim::number::{compact, percentage};
use floras_sim::schemes::ChannelKnowledge;

/// The reading of the results: what is equal, who is best at equal rounds, at equal airtime and at equal `ε`.
pub(super) fn paragraphs(benchmark: &Benchmark) -> Vec<String> {
    vec![equal(benchmark), reading(benchmark), caveats(benchmark)]
}

fn equal(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let with_more = benchmark.entries.iter().filter(|entry| entry.antennas > 1);
    let antennas: String = with_more
        .map(|entry| format!(" `{}` has {} receive antennas, not one.", entry.name, entry.antennas))
        .collect();
    format!(
        "All schemes train the same model ({} parameters) on the same data for {} rounds, with the same clients, steps and clip norm \
         C = {}, over the same Rayleigh channels. A client sends at a mean power of at most 1 in every channel use of its payload, \
         and the receiver's noise is the same in every channel use: the SNR is that of a channel use at unit power. Airtime counts all \
         channel uses of a round, pilots and control included. Private points add noise until every client has ε ≤ {} at δ = {} \
         after all rounds, in the view that the table names. Results are means over {} trials.{antennas}",
        conditions.parameters,
        conditions.rounds,
        compact(conditions.clip),
        conditions.epsilon,
        compact(conditions.delta),
        conditions.trials,
    )
}

/// The entry with the highest value among some, with its row.
fn best<'b>(
    benchmark: &'b Benchmark,
    point: &Point,
    is_compared: impl Fn(&Entry, &Row) -> bool,
    value: impl Fn(&Row) -> Option<Estimate>,
) -> Option<(&'b str, Estimate)> {
    let candidates = benchmark.entries.iter().filter_map(|entry| {
        let row = benchmark.row(&entry.name, point)?;
        let found = value(row).filter(|_| is_compared(entry, row))?;
        Some((entry.name.as_str(), found))
    });
    candidates.max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))
}

fn named(found: Option<(&str, Estimate)>) -> String {
    found.map_or_else(|| "none".to_owned(), |(name, accuracy)| format!("`{name}` ({})", percentage(accuracy)))
}

fn reading(benchmark: &Benchmark) -> String {
    let conditions = &benchmark.conditions;
    let point = &conditions.reference;
    let private = conditions.private();
    let on_air = |_: &Entry, row: &Row| row.cost.is_some();
    let blind =
        |entry: &Entry, row: &Row| row.cost.is_some() && entry.channel_knowledge == ChannelKnowledge::Nothing;
    let untrusted = |entry: &Entry, row: &Row| {
        let trusts_server =
            row.protected_by.as_ref().is_some_and(|by| by.trust == floras_sim::schemes::Trust::BaseStation);
        !trusts_server && on_air(entry, row)
    };
    let accuracy = |row: &Row| row.accuracy;
    let at_airtime = |row: &Row| row.at_airtime.map(|(_, accuracy)| accuracy);
    let without_radio = |point: &Point| best(benchmark, point, |_, row| row.cost.is_none(), accuracy);
    let silent = benchmark
        .entries
        .iter()
        .filter(|entry| {
            benchmark
                .row(&entry.name, point)
                .is_some_and(|row| row.cost.is_some() && row.at_airtime.is_none())
        })
        .map(|entry| format!("`{}`", entry.name))
        .collect::<Vec<_>>();
    let left_out = match &silent[..] {
        [] => String::new(),
        names => format!(" Not one round of {} fits into it.", names.join(", ")),
    };
    format!(
        "With K = {} clients at {} dB ({}), the best scheme on the air after {} rounds without protection is {}; without a radio \
         it is {}. Among schemes whose clients know nothing about their channels, it is {}. At an equal airtime of {} channel uses per \
         parameter the best is {}, and without channel knowledge {}.{left_out} At ε = {}, the best scheme whose clients do not trust \
         the base station is {}, and without channel knowledge {}; without a radio it is {}.",
        point.clients,
        point.snr_db,
        point.partition,
        conditions.rounds,
        named(best(benchmark, point, on_air, accuracy)),
        named(without_radio(point)),
        named(best(benchmark, point, blind, accuracy)),
        conditions.airtime,
        named(best(benchmark, point, on_air, at_airtime)),
        named(best(benchmark, point, blind, at_airtime)),
        conditions.epsilon,
        named(best(benchmark, &private, untrusted, accuracy)),
        named(best(benchmark, &private, |entry, row| untrusted(entry, row) && blind(entry, row), accuracy)),
        named(without_radio(&private)),
    )
}

fn caveats(benchmark: &Benchmark) -> String {
    let diverged: u32 = benchmark.rows.iter().map(|row| row.diverged).sum();
    let unmet = benchmark.rows.iter().filter(|row| row.accuracy.is_none()).count();
    let mut text = "Differences within the intervals are not significant. Settings of a scheme are those of its file: they are not tuned for each point, so that a scheme may do better \
                    with others. Schemes that a scheme's paper combines with other data, models or optimisers are compared as \
                    uplinks alone."
        .to_owned();
    if diverged > 0 {
        text.push_str(&format!(" {diverged} trials diverged; they count as guessing."));
    }
    if unmet > 0 {
        text.push_str(&format!(" At {unmet} points nothing meets the ε; they have no result."));
    }
    text
}
