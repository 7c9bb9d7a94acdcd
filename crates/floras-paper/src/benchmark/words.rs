//! What a benchmark shows, in sentences with its numbers.
//!
//! What is peculiar to a scheme comes from [`Scheme::remarks`](floras_sim::schemes::Scheme::remarks): no scheme is named here.

use floras_core::View;
use floras_sim::Estimate;
use floras_sim::benchmark::{Benchmark, Entry, Point, Row};
use floras_sim::number::{compact, count, percentage};
use floras_sim::schemes::{ChannelKnowledge, Trust};

/// The maximum number of entries that a sentence names as equally good.
const MAX_NAMED: usize = 3;
/// The smallest share of the `ε` of a point with which a private row is calibrated closely.
const TIGHT: f64 = 0.98;

/// Who is best at equal rounds, at equal airtime, with estimated channels and at equal `ε`, in one paragraph.
pub(super) fn reading(benchmark: &Benchmark) -> String {
    [open(benchmark), private(benchmark)].concat().join(" ")
}

/// What is equal and what is not, one statement per string.
pub(super) fn notes(benchmark: &Benchmark) -> Vec<String> {
    [equal(benchmark), remarks(benchmark), exceptions(benchmark)].concat()
}

/// Names in code style, as in `` `a`, `b` and `c` ``.
fn joined<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        None => String::new(),
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
    }
}

fn equal(benchmark: &Benchmark) -> Vec<String> {
    let conditions = &benchmark.conditions;
    let (one, more): (Vec<&Entry>, Vec<&Entry>) =
        benchmark.entries.iter().partition(|entry| entry.antennas == 1);
    let mut notes = vec![
        format!(
            "Learning: all schemes train the same model ({} parameters) on the same data for {}, with the same clients, steps and clip norm \
             C = {}. Results are means over {} with 95% intervals.",
            conditions.parameters,
            count(conditions.rounds.into(), "round"),
            compact(conditions.clip),
            count(conditions.trials.into(), "trial"),
        ),
        "Channels: Rayleigh fading, independent between clients and rounds. The receiver's noise is the same in every channel use; the SNR is \
         that of a channel use at unit power."
            .to_owned(),
        "Power: the mean power of the clients is at most 1, over the channel uses of the payload and over those of payload and pilots. Peaks \
         differ, and the table has them."
            .to_owned(),
        "Airtime: all channel uses of a round count, with pilots and control. A scheme whose base station or clients need channels sends the \
         pilots for them."
            .to_owned(),
        format!(
            "Equal airtime: at the reference point every scheme also trains for as many rounds as fit into {} channel uses per parameter, \
             at most {}.",
            conditions.airtime, conditions.max_rounds
        ),
        format!(
            "Channel knowledge: clients that need their channels know them without error, because the guarantees assume it. The column \
             \"estimated channels\" shows the accuracy with the error of one pilot of unit power, of standard deviation {}, without \
             protection. A base station that needs a sum of channels estimates it from noisy pilots.",
            compact(conditions.channel_error)
        ),
        format!(
            "Privacy: private points add noise until every client has ε ≤ {} at δ = {} after all rounds, in the view that the table names. \
             The receiver's noise counts where that view allows it. Bounds hold under the assumptions that a table lists, such as one \
             receive antenna.",
            conditions.epsilon,
            compact(conditions.delta)
        ),
        "Settings are those of the scheme's file at all points; others may be better. Each scheme is compared as an uplink alone, without \
         its paper's data, models and optimisers. Private rows compare protections as much as uplinks: each scheme has the one that its \
         file supports."
            .to_owned(),
    ];
    if let Some(first) = more.first() {
        let same = more.iter().all(|entry| entry.antennas == first.antennas);
        let antennas = if same { first.antennas.to_string() } else { "several".to_owned() };
        let others = if one.is_empty() { "" } else { ", all others one" };
        let names = joined(more.iter().map(|entry| entry.name.as_str()));
        let has = if more.len() == 1 { "has" } else { "have" };
        notes.push(format!("Antennas: {names} {has} {antennas} receive antennas{others}."));
    }
    notes
}

/// The remarks of the schemes, each once, with the entries that it is about.
fn remarks(benchmark: &Benchmark) -> Vec<String> {
    let mut grouped: Vec<(&str, Vec<&str>)> = Vec::new();
    for entry in &benchmark.entries {
        for remark in &entry.remarks {
            match grouped.iter_mut().find(|(known, _)| known == remark) {
                Some((_, names)) => names.push(&entry.name),
                None => grouped.push((remark, vec![&entry.name])),
            }
        }
    }
    grouped.into_iter().map(|(remark, names)| format!("{}: {remark}.", joined(names))).collect()
}

/// Rows that differ from the rest.
fn exceptions(benchmark: &Benchmark) -> Vec<String> {
    let mut notes = Vec::new();
    let diverged: u32 = benchmark.rows.iter().map(|row| row.diverged).sum();
    if diverged > 0 {
        notes.push(format!(
            "{} diverged at some point of the benchmark; they count as guessing.",
            count(diverged.into(), "trial")
        ));
    }
    let private = || benchmark.rows.iter().filter(|row| row.point.epsilon.is_some());
    let unmet = private().filter(|row| row.accuracy.is_none()).count();
    if unmet > 0 {
        notes.push(format!("At {} no noise meets the ε; they have no result.", count(unmet as u64, "point")));
    }
    let is_loose = |row: &&Row| {
        let entry = benchmark.entries.iter().find(|entry| entry.name == row.entry);
        let spent = entry.and_then(|entry| row.bound(entry.view)?.epsilon);
        spent.zip(row.point.epsilon).is_some_and(|(spent, epsilon)| spent < TIGHT * epsilon)
    };
    let loose = private().filter(is_loose).count();
    if loose > 0 {
        notes.push(format!(
            "At {} the noise that exists anyway gives an ε below {TIGHT} of the target; the row states it.",
            count(loose as u64, "private point")
        ));
    }
    notes
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
    let near: Vec<&str> = near.map(|(name, _)| *name).collect();
    let value = percentage(first);
    Some(match near.len() {
        0 => format!("`{name}` ({value})"),
        1..=MAX_NAMED => format!("`{name}` ({value}; intervals overlap with {})", joined(near)),
        many => format!("`{name}` ({value}; intervals overlap with {many} others)"),
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

fn open(benchmark: &Benchmark) -> Vec<String> {
    let conditions = &benchmark.conditions;
    let point = &conditions.reference;
    let accuracy = |row: &Row| row.accuracy;
    let at_airtime = |row: &Row| row.at_airtime.map(|at| at.accuracy);
    let mut sentences = Vec::new();
    if let Some(best) = best(benchmark, point, is_on_air, accuracy) {
        sentences.push(format!(
            "Without protection, with K = {} clients at {} dB ({}) after {}, the best scheme on the air is {best}.",
            point.clients,
            point.snr_db,
            point.partition,
            count(conditions.rounds.into(), "round")
        ));
    }
    if let Some(best) = best(benchmark, point, knows_nothing, accuracy) {
        sentences.push(format!("Without channel knowledge of the clients it is {best}."));
    }
    if let Some(best) = best(benchmark, point, is_on_air, at_airtime) {
        sentences.push(format!(
            "At an equal airtime of {} channel uses per parameter it is {best}.",
            conditions.airtime
        ));
    }
    if let Some(best) = best(benchmark, point, knows_nothing, at_airtime) {
        sentences.push(format!("At this airtime and without channel knowledge it is {best}."));
    }
    let none_fits = |entry: &&Entry| {
        let row = benchmark.row(&entry.name, point);
        row.is_some_and(|row| row.cost.is_some() && row.at_airtime.is_none())
    };
    let left_out = joined(benchmark.entries.iter().filter(none_fits).map(|entry| entry.name.as_str()));
    if !left_out.is_empty() {
        sentences.push(format!("Not one round of {left_out} fits into it."));
    }
    if let Some(best) = best(benchmark, point, is_on_air, |row| row.with_estimates) {
        sentences.push(format!(
            "If clients estimate the channels that they need from one pilot of unit power, the best scheme among them is {best}."
        ));
    }
    sentences
}

fn private(benchmark: &Benchmark) -> Vec<String> {
    let conditions = &benchmark.conditions;
    let point = &conditions.private();
    let accuracy = |row: &Row| row.accuracy;
    let mut sentences = Vec::new();
    if let Some(best) = best(benchmark, point, is_untrusting, accuracy) {
        sentences.push(format!(
            "At ε ≤ {} against a base station that keeps its raw samples, with noise of the clients alone, the best scheme on the air is \
             {best}.",
            conditions.epsilon
        ));
    }
    let is_blind = |entry: &Entry, row: &Row| is_untrusting(entry, row) && knows_nothing(entry, row);
    if let Some(best) = best(benchmark, point, is_blind, accuracy) {
        sentences.push(format!("Among these, the best one without channel knowledge is {best}."));
    }
    let is_trusting = |entry: &Entry, row: &Row| is_on_air(entry, row) && !is_untrusting(entry, row);
    if let Some(best) = best(benchmark, point, is_trusting, accuracy) {
        sentences.push(format!(
            "If clients trust the base station or its receiver's noise, the best scheme on the air is {best}."
        ));
    }
    if let Some(best) = best(benchmark, point, |entry, row| !is_on_air(entry, row), accuracy) {
        sentences.push(format!("Without a radio the best one is {best}."));
    }
    sentences
}
