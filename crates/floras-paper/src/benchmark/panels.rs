//! The plots of a benchmark.
//!
//! A plot has at most [`MAX_CURVES`] curves. Those of more schemes are two plots: of schemes whose clients know nothing about channels, and
//! of the others. Each has the best schemes of its kind, and its caption names those that it leaves out.

use floras_core::View;
use floras_sim::benchmark::{Benchmark, CaptionedPanel, Entry, Point, Row};
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::schemes::ChannelKnowledge;
use floras_sim::{Cost, Estimate, RoundMetrics, against, spent_by_round};

use crate::reproduce::RunRecord;

/// Maximum number of curves of a plot.
const MAX_CURVES: usize = 8;
/// Number of colours before the style of lines changes.
const COLOURS: usize = 7;
const STYLES: [Style; 2] = [Style::Solid, Style::Dashed];

/// All plots. `run` returns the longest run of an entry at the reference point.
pub(super) fn all<'r>(
    benchmark: &Benchmark,
    run: impl Fn(&str) -> Option<&'r RunRecord>,
) -> Vec<CaptionedPanel> {
    let conditions = &benchmark.conditions;
    let (reference, parameters) = (&conditions.reference, conditions.parameters as f64);
    let clients = f64::from(reference.clients);
    let at = format!("K = {}, {} dB, {}", reference.clients, reference.snr_db, reference.partition);
    let mut panels = Vec::new();
    let spendings: [Spending<'_>; 2] = [
        ("airtime", "channel uses per parameter", &|cost| cost.channel_uses() as f64 / parameters),
        ("energy", "energy of a client (channel uses at unit power per parameter)", &|cost| {
            cost.energy / (clients * parameters)
        }),
    ];
    for (name, label, pick) in spendings {
        let curves = names(benchmark).filter_map(|entry| spent(entry, run(entry)?, pick));
        panels.push(Panel {
            name: format!("benchmark-{name}"),
            title: format!("Accuracy against {name}, without protection ({at})"),
            x: Axis { label: label.to_owned(), logarithmic: true, range: None },
            y: accuracy_axis(),
            curves: curves.collect(),
        });
    }
    for protected in [reference.clone(), conditions.private()] {
        let words = protected.protection();
        panels.extend(over(
            benchmark,
            &protected,
            "snr",
            &format!("Final accuracy against SNR, {words}"),
            |point| (point.clients == reference.clients).then_some(point.snr_db),
        ));
        panels.extend(over(
            benchmark,
            &protected,
            "clients",
            &format!("Final accuracy against the number of clients, {words}"),
            |point| (point.snr_db == reference.snr_db).then_some(f64::from(point.clients)),
        ));
    }
    panels.extend(View::BY_ADVERSARY.into_iter().map(|view| against_epsilon(benchmark, view, &at)));
    panels.retain(|panel| !panel.curves.is_empty());
    panels.into_iter().flat_map(|panel| divided(benchmark, panel)).collect()
}

/// A panel with at most [`MAX_CURVES`] curves, or two panels by what clients know.
fn divided(benchmark: &Benchmark, panel: Panel) -> Vec<CaptionedPanel> {
    let unproven = unproven(benchmark, &panel);
    if panel.curves.len() <= MAX_CURVES {
        return vec![captioned(panel, unproven)];
    }
    let knows_nothing = |name: &str| {
        let mut entries = benchmark.entries.iter();
        entries.any(|entry| entry.name == name && entry.channel_knowledge == ChannelKnowledge::Nothing)
    };
    let part = |nothing: bool, suffix: &str, words: &str| {
        let is_here = |name: &str| knows_nothing(name) == nothing;
        let curves = panel.curves.iter().filter(|curve| is_here(&curve.name)).cloned().collect();
        let (name, title) = (format!("{}-{suffix}", panel.name), format!("{}: {words}", panel.title));
        let unproven = unproven.iter().copied().filter(|name| is_here(name)).collect();
        captioned(Panel { name, title, curves, ..panel.clone() }, unproven)
    };
    let parts = [
        part(true, "unknown-channels", "clients know nothing about channels"),
        part(false, "known-channels", "clients know their channels"),
    ];
    parts.into_iter().filter(|part| !part.panel.curves.is_empty()).collect()
}

/// The best curves in their colours, with a caption that names the others.
fn captioned(mut panel: Panel, unproven: Vec<&str>) -> CaptionedPanel {
    let last = |curve: &Curve| curve.y.iter().rev().flatten().next().copied().unwrap_or(f64::NEG_INFINITY);
    let mut ends: Vec<f64> = panel.curves.iter().map(last).collect();
    ends.sort_by(|a, b| b.total_cmp(a));
    let worst = ends.get(MAX_CURVES - 1).copied().unwrap_or(f64::NEG_INFINITY);
    let (mut shown, mut others) = (Vec::new(), Vec::new());
    for curve in panel.curves {
        let is_shown = last(&curve) >= worst && shown.len() < MAX_CURVES;
        if is_shown { shown.push(curve) } else { others.push(curve.name) }
    }
    for (index, curve) in shown.iter_mut().enumerate() {
        (curve.colour, curve.style) = (index % COLOURS, STYLES[index / COLOURS % STYLES.len()]);
    }
    panel.curves = shown;
    let mut sentences = Vec::new();
    if !others.is_empty() {
        sentences.push(format!("Left out, with a lower accuracy at the end: {}.", others.join(", ")));
    }
    if !unproven.is_empty() {
        sentences.push(format!("Without a proven finite ε in this view: {}.", unproven.join(", ")));
    }
    CaptionedPanel { panel, caption: sentences.join(" ") }
}

/// The entries that a plot against `ε` leaves out, because it has guarantees only.
fn unproven<'b>(benchmark: &'b Benchmark, panel: &Panel) -> Vec<&'b str> {
    if !panel.name.starts_with(AGAINST_EPSILON) {
        return Vec::new();
    }
    let is_shown = |name: &str| panel.curves.iter().any(|curve| curve.name == name);
    let is_private = |entry: &Entry| {
        let mut rows = benchmark.rows.iter().filter(|row| row.entry == entry.name);
        rows.any(|row| row.point.epsilon.is_some() && row.accuracy.is_some())
    };
    let entries = benchmark.entries.iter().filter(|entry| is_private(entry) && !is_shown(&entry.name));
    entries.map(|entry| entry.name.as_str()).collect()
}

/// The beginning of the names of plots against `ε`.
const AGAINST_EPSILON: &str = "benchmark-epsilon";

/// Name, label of the axis, and what a round costs.
type Spending<'a> = (&'a str, &'a str, &'a dyn Fn(&Cost) -> f64);

fn names(benchmark: &Benchmark) -> impl Iterator<Item = &str> {
    benchmark.entries.iter().map(|entry| entry.name.as_str())
}

fn accuracy_axis() -> Axis {
    Axis { label: "test accuracy (%)".to_owned(), logarithmic: false, range: None }
}

/// A curve of percentages with 95% intervals, which gets its colour in its plot.
fn curve(name: &str, points: &[(f64, Estimate)]) -> Option<Curve> {
    let interval = |(_, Estimate { mean, ci95 }): &(f64, Estimate)| {
        ci95.map(|half| (100.0 * (mean - half).max(0.0), 100.0 * (mean + half).min(1.0)))
    };
    (!points.is_empty()).then(|| Curve {
        name: name.to_owned(),
        colour: 0,
        style: Style::Solid,
        x: points.iter().map(|(x, _)| *x).collect(),
        y: points.iter().map(|(_, accuracy)| Some(100.0 * accuracy.mean)).collect(),
        band: Some(points.iter().map(interval).collect()),
    })
}

/// The learning curve of a run against what its rounds cost; `None` without a radio.
fn spent(name: &str, record: &RunRecord, pick: &dyn Fn(&Cost) -> f64) -> Option<Curve> {
    let accuracies = record.curve(|line: &RoundMetrics| line.test_accuracy);
    let points: Vec<(f64, Estimate)> =
        accuracies.into_iter().map(|(round, accuracy)| (f64::from(round), accuracy)).collect();
    let mut curve = curve(name, &points)?;
    against(&mut curve, &spent_by_round(&record.metrics, pick));
    (!curve.x.is_empty()).then_some(curve)
}

/// Final accuracies on the partition of the reference against a condition; `None` if it has one value only.
fn over(
    benchmark: &Benchmark,
    protected: &Point,
    name: &str,
    title: &str,
    x: impl Fn(&Point) -> Option<f64>,
) -> Option<Panel> {
    let reference = &benchmark.conditions.reference;
    let place = |row: &Row| {
        let is_shown = row.point.epsilon == protected.epsilon && row.point.partition == reference.partition;
        Some((x(&row.point).filter(|_| is_shown)?, row.accuracy?))
    };
    let curves: Vec<Curve> = names(benchmark)
        .filter_map(|entry| {
            let rows = benchmark.rows.iter().filter(|row| row.entry == entry);
            curve(entry, &rows.filter_map(place).collect::<Vec<_>>())
        })
        .filter(|curve| curve.x.len() > 1)
        .collect();
    let label = if name == "snr" { "SNR of a channel use (dB)" } else { "clients, K" };
    let fixed = match name {
        "snr" => format!("K = {}", reference.clients),
        _ => format!("{} dB", reference.snr_db),
    };
    let protection = if protected.epsilon.is_some() { "private" } else { "open" };
    (!curves.is_empty()).then(|| Panel {
        name: format!("benchmark-{name}-{protection}"),
        title: format!("{title} ({fixed}, {})", reference.partition),
        x: Axis { label: label.to_owned(), logarithmic: name == "clients", range: None },
        y: accuracy_axis(),
        curves,
    })
}

/// Final accuracies of the private rows at the reference point against their `ε` in a view. Only guarantees count.
fn against_epsilon(benchmark: &Benchmark, view: View, at: &str) -> Panel {
    let reference = &benchmark.conditions.reference;
    let place = |row: &Row| {
        let is_shown =
            Point { epsilon: None, ..row.point.clone() } == *reference && row.point.epsilon.is_some();
        let bound = row.bound(view).filter(|bound| bound.guarantee)?;
        Some((bound.epsilon.filter(|_| is_shown)?, row.accuracy?))
    };
    let curves = names(benchmark).filter_map(|entry| {
        let rows = benchmark.rows.iter().filter(|row| row.entry == entry);
        let mut points: Vec<(f64, Estimate)> = rows.filter_map(place).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points.dedup_by(|(a, x), (b, y)| a == b && x == y);
        curve(entry, &points)
    });
    Panel {
        name: format!("{AGAINST_EPSILON}-{view}"),
        title: format!("Accuracy against ε in the {view} view ({at})"),
        x: Axis {
            label: format!("ε after {} rounds, {view} view", benchmark.conditions.rounds),
            logarithmic: true,
            range: None,
        },
        y: accuracy_axis(),
        curves: curves.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_curves_are_shown_in_order() {
        // Two curves share the eighth place.
        let ends = [0.3, 0.9, 0.1, 0.8, 0.7, 0.6, 0.5, 0.4, 0.2, 0.3];
        let curves = ends.iter().enumerate().filter_map(|(index, &end)| {
            let points = [0.5, end].map(|mean| Estimate { mean, ci95: Some(0.2) });
            curve(&format!("s{index}"), &[(1.0, points[0]), (2.0, points[1])])
        });
        let axis = accuracy_axis();
        let (x, y) = (axis.clone(), axis);
        let panel = Panel { name: String::new(), title: String::new(), x, y, curves: curves.collect() };
        let CaptionedPanel { panel, caption } = captioned(panel, vec!["t"]);
        let names: Vec<&str> = panel.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert_eq!(names, ["s0", "s1", "s3", "s4", "s5", "s6", "s7", "s9"]);
        let looks: Vec<(usize, Style)> =
            panel.curves.iter().map(|curve| (curve.colour, curve.style)).collect();
        assert_eq!((looks[6], looks[7]), ((6, Style::Solid), (0, Style::Dashed)));
        // Intervals end at possible values.
        assert_eq!(panel.curves[1].band.as_ref().unwrap()[1], Some((70.0, 100.0)));
        assert_eq!(
            caption,
            "Left out, with a lower accuracy at the end: s2, s8. Without a proven finite ε in this view: t."
        );
    }
}
