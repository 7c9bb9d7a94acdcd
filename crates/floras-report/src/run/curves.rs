//! The curves of a run: what was measured in each round, over the trials.
//!
//! Means come with 95% intervals by Student's distribution, as in the summary. Gains and noise can have no mean (the paper's
//! receiver makes Cauchy noise), and are shown as the middle one of the trials with the smallest and the largest.

use std::collections::{BTreeMap, BTreeSet};

use floras_sim::figure::{Axis, Curve, Panel, Style};
use floras_sim::{Cost, Estimate, RoundMetrics, against, spent_by_round};

/// A quantity of a round.
type Pick = fn(&RoundMetrics) -> Option<f64>;

/// Which trials a mean is over, and in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trials {
    pub(crate) included: BTreeSet<u32>,
    pub(crate) words: String,
}

/// The mean of a quantity over the trials, with its band.
pub(crate) fn mean_curve(name: &str, lines: &[RoundMetrics], trials: &Trials, pick: Pick) -> Option<Curve> {
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

/// The middle one of the trials, with the smallest and the largest around it.
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

/// Losses with their curves in different styles.
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
            Some(Curve { colour, style, ..mean_curve(name, lines, trials, pick)? })
        })
        .collect();
    if curves.is_empty() {
        return None;
    }
    let logarithmic = spans_decades(&curves);
    let y = Axis { label: "mean cross-entropy (nats)".to_owned(), logarithmic, range: None };
    Some(Panel { name: "loss".to_owned(), title: "Loss".to_owned(), x: round_axis(), y, curves })
}

/// A loss that explodes would press all others onto the floor.
pub(crate) fn spans_decades(curves: &[Curve]) -> bool {
    let positive =
        curves.iter().flat_map(|curve| curve.y.iter().flatten().copied()).filter(|value| *value > 0.0);
    let (low, high) =
        positive.fold((f64::MAX, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    high > 100.0 * low
}

/// Test accuracy over the trials. A share lies between 0 and 1, and so does its band.
pub(crate) fn accuracy_curve(name: &str, lines: &[RoundMetrics], trials: &Trials) -> Option<Curve> {
    let mut curve = mean_curve(name, lines, trials, |line| line.test_accuracy)?;
    for (low, high) in curve.band.iter_mut().flatten().flatten() {
        (*low, *high) = (low.max(0.0), high.min(1.0));
    }
    Some(curve)
}

/// The share of test samples whose class was found.
pub(crate) fn accuracy(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let curve = accuracy_curve("test accuracy", lines, trials)?;
    let y = Axis {
        label: "share of test samples classified correctly".to_owned(),
        logarithmic: false,
        range: None,
    };
    let (name, title) = ("accuracy".to_owned(), "Test accuracy".to_owned());
    Some(Panel { name, title, x: round_axis(), y, curves: vec![curve] })
}

/// Test accuracy against what the clients spent for it, in channel uses and in energy.
pub(crate) fn accuracy_against_cost(lines: &[RoundMetrics], trials: &Trials) -> Vec<Panel> {
    type Spending = (&'static str, &'static str, &'static str, fn(&Cost) -> f64);
    let spendings: [Spending; 2] = [
        ("accuracy-uses", "Test accuracy against channel uses", "channel uses of a trial so far", |cost| {
            cost.channel_uses() as f64
        }),
        (
            "accuracy-energy",
            "Test accuracy against energy",
            "energy of all clients so far (channel uses at unit power)",
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

/// The mean gain of a round.
pub(crate) fn gain(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let curve = median_curve("middle one of the trials", lines, trials, |line| line.mean_gain)?;
    let y =
        Axis { label: "mean gain of the clients (1 = exact)".to_owned(), logarithmic: false, range: None };
    let (name, title) = ("gain".to_owned(), "How strongly updates arrive".to_owned());
    Some(Panel { name, title, x: round_axis(), y, curves: vec![curve] })
}

/// The noise of a round.
pub(crate) fn noise(lines: &[RoundMetrics], trials: &Trials) -> Option<Panel> {
    let mut curve = median_curve("middle one of the trials", lines, trials, |line| line.noise_std)?;
    if curve.y.iter().flatten().all(|value| *value == 0.0) {
        return None;
    }
    curve.colour = 1;
    let y =
        Axis {
            label: "noise ν (standard deviation a parameter)".to_owned(), logarithmic: true, range: None
        };
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
    fn bands_follow_students_law() {
        let lines = [line(0, 1, 1.0), line(1, 1, 3.0), line(0, 2, 5.0), line(2, 1, 1e9)];
        let curve = mean_curve("loss", &lines, &all(&[0, 1]), |line| line.test_loss).unwrap();
        assert_eq!(curve.y, [Some(2.0), Some(5.0)]);
        let band = curve.band.unwrap();
        let (low, high) = band[0].unwrap();
        assert!((low - (2.0 - 12.706)).abs() < 1e-3 && (high - (2.0 + 12.706)).abs() < 1e-3);
        assert_eq!(band[1], None);
    }

    #[test]
    fn noise_is_shown_by_its_middle_and_its_ends() {
        let lines = [line(0, 1, 1.0), line(1, 1, 1e6), line(2, 1, 4.0)];
        let panel = noise(&lines, &all(&[0, 1, 2])).unwrap();
        assert_eq!(panel.curves[0].y, [Some(4.0)]);
        assert_eq!(panel.curves[0].band.as_ref().unwrap()[0], Some((1.0, 1e6)));
    }
}
