//! The curves of a run: measured quantities of each round, over the trials.
//!
//! Means have 95% intervals by Student's distribution, as in the summary. Gains and noise can have no mean (the paper's
//! receiver makes Cauchy noise); their curves are medians of the trials with the range around them.

use std::collections::{BTreeMap, BTreeSet};

use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{Cost, Estimate, RoundMetrics, against, spent_by_round};

/// A quantity of a round.
type Pick = fn(&RoundMetrics) -> Option<f64>;

/// The trials that a mean is over, and a description of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trials {
    pub(crate) included: BTreeSet<u32>,
    pub(crate) words: String,
}

/// The mean of a quantity over the trials, with its band.
fn mean_curve(name: &str, lines: &[RoundMetrics], trials: &Trials, pick: Pick) -> Option<Curve> {
    let by_round = collect(lines, trials, pick);
    if by_round.is_empty() {
        return None;
    }
    let estimates: Vec<(u32, Option<Estimate>)> =
        by_round.into_iter().map(|(round, values)| (round, Estimate::of(&values))).collect();
    let band: Vec<Option<(f64, f64)>> = estimates
        .iter()
        .map(|(_, estimate)| {
            let Estimate { mean, ci95 } = (*estimate)?;
            ci95.map(|half| (mean - half, mean + half))
        })
        .collect();
    Some(Curve {
        name: name.to_owned(),
        colour: 0,
        style: Style::Solid,
        x: estimates.iter().map(|(round, _)| f64::from(*round)).collect(),
        y: estimates.iter().map(|(_, estimate)| estimate.map(|estimate| estimate.mean)).collect(),
        band: band.iter().any(Option::is_some).then_some(band),
    })
}

/// The median of the trials, with the smallest and the largest value around it.
fn median_curve(name: &str, lines: &[RoundMetrics], trials: &Trials, pick: Pick) -> Option<Curve> {
    let by_round = collect(lines, trials, pick);
    if by_round.is_empty() {
        return None;
    }
    let (mut x, mut y, mut band) = (Vec::new(), Vec::new(), Vec::new());
    for (round, mut values) in by_round {
        values.sort_by(f64::total_cmp);
        let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        x.push(f64::from(round));
        y.push(Some(0.5 * lower + 0.5 * upper));
        let ends = (values[0], values[values.len() - 1]);
        band.push((values.len() > 1).then_some(ends));
    }
    let band = band.iter().any(Option::is_some).then_some(band);
    Some(Curve { name: name.to_owned(), colour: 0, style: Style::Solid, x, y, band })
}

fn collect(lines: &[RoundMetrics], trials: &Trials, pick: Pick) -> BTreeMap<u32, Vec<f64>> {
    let mut by_round: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for line in lines.iter().filter(|line| trials.included.contains(&line.trial)) {
        if let Some(value) = pick(line).filter(|value| value.is_finite()) {
            by_round.entry(line.round).or_default().push(value);
        }
    }
    by_round
}

fn round_axis() -> Axis {
    Axis { label: "round".to_owned(), logarithmic: false, range: None }
}

/// The mean of a loss over the trials. No loss is negative, so that the wide interval of a diverging run ends at 0.
pub(crate) fn loss_curve(name: &str, lines: &[RoundMetrics], trials: &Trials, pick: Pick) -> Option<Curve> {
    let mut curve = mean_curve(name, lines, trials, pick)?;
    curve.band.iter_mut().flatten().flatten().for_each(|(low, _)| *low = low.max(0.0));
    Some(curve)
}

/// Training, test and local loss over the rounds.
pub(crate) fn losses(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let wanted: [(&str, Pick, Style); 3] = [
        ("train loss", |line| line.train_loss, Style::Dashed),
        ("test loss", |line| line.test_loss, Style::Solid),
        ("local loss", |line| line.local_loss, Style::Dotted),
    ];
    let curves: Vec<Curve> = wanted
        .into_iter()
        .enumerate()
        .filter_map(|(colour, (name, pick, style))| {
            Some(Curve { colour, style, ..loss_curve(name, lines, trials, pick)? })
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let logarithmic = spans_decades(&curves);
    let y = Axis { label: "mean cross-entropy (nats)".to_owned(), logarithmic, range: None };
    Some(Panel { name: "loss".to_owned(), title: "Loss".to_owned(), x: round_axis(), y, curves })
}

/// Whether a logarithmic axis is needed to see the smaller values, as after a loss that exploded.
pub(crate) fn spans_decades(curves: &[Curve]) -> bool {
    let positive =
        curves.iter().flat_map(|curve| curve.y.iter().flatten().copied()).filter(|value| *value > 0.0);
    let (low, high) =
        positive.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    high > 100.0 * low
}

/// Mean test accuracy over the trials in percent, with its band between 0 and 100.
pub(crate) fn accuracy_curve(name: &str, lines: &[RoundMetrics], trials: &Trials) -> Option<Curve> {
    let mut curve = mean_curve(name, lines, trials, |line| line.test_accuracy)?;
    curve.y.iter_mut().flatten().for_each(|accuracy| *accuracy *= 100.0);
    for (low, high) in curve.band.iter_mut().flatten().flatten() {
        (*low, *high) = (100.0 * low.max(0.0), 100.0 * high.min(1.0));
    }
    Some(curve)
}

/// The label of an axis with accuracies.
pub(crate) const ACCURACY: &str = "test accuracy (%)";

/// Test accuracy over the rounds.
pub(crate) fn accuracy(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let curve = accuracy_curve("test accuracy", lines, trials)?;
    let y = Axis { label: ACCURACY.to_owned(), logarithmic: false, range: None };
    let (name, title) = ("accuracy".to_owned(), "Test accuracy".to_owned());
    Some(Panel { name, title, x: round_axis(), y, curves: vec![curve] })
}

/// Test accuracy against channel uses and against energy.
pub(crate) fn accuracy_against_cost(lines: &[RoundMetrics], trials: &Trials) -> Vec<Panel> {
    type Spending = (&'static str, &'static str, &'static str, fn(&Cost) -> f64);
    let spendings: [Spending; 2] = [
        ("accuracy-uses", "Test accuracy against channel uses", "channel uses of a trial", |cost| {
            cost.channel_uses() as f64
        }),
        (
            "accuracy-energy",
            "Test accuracy against energy",
            "energy of all clients (channel uses at unit power)",
            |cost| cost.energy,
        ),
    ];
    let included: Vec<RoundMetrics> =
        lines.iter().filter(|line| trials.included.contains(&line.trial)).cloned().collect();
    let panel = |(name, title, label, pick): Spending| {
        let mut panel = accuracy(lines, trials)?;
        panel.curves.iter_mut().for_each(|curve| against(curve, &spent_by_round(&included, pick)));
        let x = Axis { label: label.to_owned(), logarithmic: false, range: None };
        let is_empty = panel.curves.iter().all(|curve| curve.x.is_empty());
        (!is_empty).then(|| Panel { name: name.to_owned(), title: title.to_owned(), x, ..panel })
    };
    spendings.into_iter().filter_map(panel).collect()
}

/// The name of a curve that is not a mean.
const MEDIAN: &str = "median of the trials";
/// A gain is a spike if its distance from the median exceeds this multiple of the usual distance.
const SPIKE: f64 = 5.0;

/// The mean gain of a round. Spikes, as the paper's receiver makes them, are cut off, and the label states it.
pub(crate) fn gain(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let curve = median_curve(MEDIAN, lines, trials, |line| line.mean_gain)?;
    let range = without_spikes(&curve);
    let label = "mean gain of the clients (1 = exact)".to_owned();
    let (label, range) = match range {
        None => (label, None),
        Some(Cut { shown, outside, extremes: (low, high) }) => {
            let rounds = floras_sim::number::count(outside as u64, "round");
            (format!("{label}; axis cut at {rounds} from {low:.3} to {high:.3}"), Some(shown))
        }
    };
    let y = Axis { label, logarithmic: false, range };
    let (name, title) = ("gain".to_owned(), "Gain of the clients' updates".to_owned());
    Some(Panel { name, title, x: round_axis(), y, curves: vec![curve] })
}

/// A part of an axis that leaves out spikes.
struct Cut {
    shown: (f64, f64),
    /// Rounds whose value or band leaves the axis.
    outside: usize,
    extremes: (f64, f64),
}

/// The axis that shows all but the spikes; `None` if there are no spikes.
fn without_spikes(curve: &Curve) -> Option<Cut> {
    let ends = |index: usize| -> Option<(f64, f64)> {
        let value = curve.y.get(index).copied().flatten()?;
        let band = curve.band.as_ref().and_then(|band| band.get(index).copied().flatten());
        Some(band.unwrap_or((value, value)))
    };
    let all: Vec<(f64, f64)> = (0..curve.x.len()).filter_map(ends).collect();
    let quantile = |pick: fn(&(f64, f64)) -> f64, part: f64| -> Option<f64> {
        let mut values: Vec<f64> = all.iter().map(pick).collect();
        values.sort_by(f64::total_cmp);
        values.get((part * (values.len().checked_sub(1)?) as f64).round() as usize).copied()
    };
    let (low, high) = (quantile(|ends| ends.0, 0.1)?, quantile(|ends| ends.1, 0.9)?);
    let extremes = (quantile(|ends| ends.0, 0.0)?, quantile(|ends| ends.1, 1.0)?);
    let room = 0.5 * (high - low).max(1e-3 * high.abs());
    let has_spikes = extremes.1 - extremes.0 > SPIKE * (high - low + 2.0 * room);
    let shown = ((low - room).max(extremes.0), (high + room).min(extremes.1));
    let is_outside = |&&(low, high): &&(f64, f64)| low < shown.0 || high > shown.1;
    has_spikes.then(|| Cut { shown, outside: all.iter().filter(is_outside).count(), extremes })
}

/// The noise of a round, on a logarithmic axis if it spans more than a decade.
pub(crate) fn noise(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let mut curve = median_curve(MEDIAN, lines, trials, |line| line.noise_std)?;
    if curve.y.iter().flatten().all(|value| *value == 0.0) {
        return None;
    }
    curve.colour = 1;
    let values = || {
        let ends = curve.band.iter().flatten().flatten().flat_map(|&(low, high)| [low, high]);
        curve.y.iter().flatten().copied().chain(ends).filter(|value| *value > 0.0)
    };
    let logarithmic = values().fold(0.0, f64::max) > 10.0 * values().fold(f64::INFINITY, f64::min);
    let label = "noise ν (standard deviation per parameter)".to_owned();
    let y = Axis { label, logarithmic, range: None };
    let (name, title) = ("noise".to_owned(), "Noise in the decoded sum".to_owned());
    Some(Panel { name, title, x: round_axis(), y, curves: vec![curve] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trial: u32, round: u32, value: f64) -> RoundMetrics {
        RoundMetrics {
            trial,
            round,
            test_loss: Some(value),
            noise_std: Some(value),
            ..RoundMetrics::default()
        }
    }

    fn all(trials: &[u32]) -> Trials {
        Trials { included: trials.iter().copied().collect(), words: String::new() }
    }

    /// Two values 1 and 3: t quantile 12.706 with one degree of freedom, times s/√2 = 1.
    #[test]
    fn bands_follow_students_distribution() {
        let lines = [line(0, 1, 1.0), line(1, 1, 3.0), line(0, 2, 5.0), line(2, 1, 1e9)];
        let curve = mean_curve("loss", &lines, &all(&[0, 1]), |line| line.test_loss).unwrap();
        assert_eq!(curve.y, [Some(2.0), Some(5.0)]);
        let band = curve.band.unwrap();
        let (low, high) = band[0].unwrap();
        assert!((low - (2.0 - 12.706)).abs() < 1e-3 && (high - (2.0 + 12.706)).abs() < 1e-3);
        assert_eq!(band[1], None);
    }

    #[test]
    fn losses_have_no_negative_interval() {
        let lines = [line(0, 1, 1.0), line(1, 1, 3.0)];
        let panel = losses(&lines, &all(&[0, 1])).unwrap();
        assert_eq!(panel.curves[0].band.as_ref().unwrap()[0].unwrap().0, 0.0);
    }

    #[test]
    fn noise_has_a_median_and_a_range() {
        let lines = [line(0, 1, 1.0), line(1, 1, 1e6), line(2, 1, 4.0)];
        let panel = noise(&lines, &all(&[0, 1, 2])).unwrap();
        assert_eq!(panel.curves[0].y, [Some(4.0)]);
        assert_eq!(panel.curves[0].band.as_ref().unwrap()[0], Some((1.0, 1e6)));
    }

    #[test]
    fn spikes_of_the_gain_are_cut_off() {
        let gains = |spike: f64| -> Vec<RoundMetrics> {
            let gain = |round| if round == 7 { spike } else { 1.0 + 0.01 * f64::from(round % 5) };
            let line =
                |round| RoundMetrics { round, mean_gain: Some(gain(round)), ..RoundMetrics::default() };
            (1..=40).map(line).collect()
        };
        let panel = gain(&gains(50.0), &all(&[0])).unwrap();
        let (low, high) = panel.y.range.unwrap();
        assert!(low >= 0.9 && high <= 1.2, "{low} to {high}");
        assert!(panel.y.label.contains("axis cut at 1 round from 1.000 to 50.000"), "{}", panel.y.label);
        assert_eq!(gain(&gains(1.05), &all(&[0])).unwrap().y.range, None);
    }
}
