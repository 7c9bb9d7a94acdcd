//! The plots of a benchmark.

use floras_core::View;
use floras_sim::benchmark::{Benchmark, Point, Row};
use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{Cost, Estimate, RoundMetrics, against, spent_by_round};

use crate::reproduce::RunRecord;

/// Number of colours before the style of lines changes.
const COLOURS: usize = 7;
const STYLES: [Style; 4] = [Style::Solid, Style::Dashed, Style::Dotted, Style::DashDotted];

/// All plots. `run` returns the run of an entry at the reference point.
pub(super) fn all<'r>(benchmark: &Benchmark, run: impl Fn(&str) -> Option<&'r RunRecord>) -> Vec<Panel> {
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
        let curves = indexed(benchmark).filter_map(|(index, entry)| spent(index, entry, run(entry)?, pick));
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
    panels
}

/// Name, label of the axis, and what a round costs.
type Spending<'a> = (&'a str, &'a str, &'a dyn Fn(&Cost) -> f64);

fn indexed(benchmark: &Benchmark) -> impl Iterator<Item = (usize, &str)> {
    benchmark.entries.iter().map(|entry| entry.name.as_str()).enumerate()
}

fn accuracy_axis() -> Axis {
    Axis { label: "test accuracy (%)".to_owned(), logarithmic: false, range: None }
}

fn percent(accuracy: f64) -> f64 {
    100.0 * accuracy
}

fn curve(index: usize, name: &str, points: &[(f64, Estimate)]) -> Option<Curve> {
    if points.is_empty() {
        return None;
    }
    Some(Curve {
        name: name.to_owned(),
        colour: index % COLOURS,
        style: STYLES[index / COLOURS % STYLES.len()],
        x: points.iter().map(|(x, _)| *x).collect(),
        y: points.iter().map(|(_, accuracy)| Some(percent(accuracy.mean))).collect(),
        band: None,
    })
}

/// The learning curve of a run against what its rounds cost; `None` without a radio.
fn spent(index: usize, name: &str, record: &RunRecord, pick: &dyn Fn(&Cost) -> f64) -> Option<Curve> {
    let accuracies = record.curve(|line: &RoundMetrics| line.test_accuracy);
    let points: Vec<(f64, Estimate)> =
        accuracies.into_iter().map(|(round, accuracy)| (f64::from(round), accuracy)).collect();
    let mut curve = curve(index, name, &points)?;
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
    let curves: Vec<Curve> = indexed(benchmark)
        .filter_map(|(index, entry)| {
            let rows = benchmark.rows.iter().filter(|row| row.entry == entry);
            curve(index, entry, &rows.filter_map(place).collect::<Vec<_>>())
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
        let bound = row.privacy.iter().find(|bound| bound.view == view && bound.guarantee)?;
        Some((bound.epsilon.filter(|_| is_shown)?, row.accuracy?))
    };
    let curves = indexed(benchmark).filter_map(|(index, entry)| {
        let rows = benchmark.rows.iter().filter(|row| row.entry == entry);
        let mut points: Vec<(f64, Estimate)> = rows.filter_map(place).collect();
        points.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        points.dedup_by(|(a, x), (b, y)| a == b && x == y);
        curve(index, entry, &points)
    });
    Panel {
        name: format!("benchmark-epsilon-{view}"),
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
