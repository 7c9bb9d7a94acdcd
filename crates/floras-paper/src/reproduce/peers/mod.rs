//! Figures of the papers of other schemes, and what those papers claim about them.
//!
//! One file per paper. Every claim is a statement of the paper's text, of its abstract where only that could be retrieved, or of a figure
//! whose settings the text or the authors' published code has. All numbers come from this project's implementation of the scheme, with data
//! that are generated here.

mod alistarh2017;
mod liu2021;
mod regression;
mod sahin2021;
mod sery2020;
mod sery2021;
mod zhu2020;

use floras_core::random::Purpose;
use floras_sim::Estimate;
use floras_sim::figure::{Axis, Claim, Curve, Style, Verdict};

pub(super) use alistarh2017::alistarh2017;
pub(super) use liu2021::liu2021;
pub(super) use sahin2021::sahin2021;
pub(super) use sery2020::sery2020;
pub(super) use sery2021::sery2021;
pub(super) use zhu2020::zhu2020;

/// The features of a generated regression, one stream for each sample.
const FEATURES: Purpose = Purpose(80);
/// The noise on the labels of a generated regression.
const LABEL_NOISE: Purpose = Purpose(81);

/// Where the text of a paper comes from.
const ABSTRACT_ONLY: &str = "Of the paper's text, only the abstract could be retrieved. Numbers in its figures are therefore not compared, and its \
     settings are unknown to this page: the table lists the choices of this project.";

/// A curve without an interval.
fn exact(name: &str, colour: usize, style: Style, points: impl IntoIterator<Item = (f64, f64)>) -> Curve {
    let (x, y) = points.into_iter().map(|(x, y)| (x, Some(y))).unzip();
    Curve { name: name.to_owned(), colour, style, x, y, band: None }
}

/// The curve of geometric means over trials, with intervals of their logarithm. All values are positive.
fn measured_logarithms(name: &str, colour: usize, style: Style, x: &[f64], at: &[Vec<f64>]) -> Curve {
    let logarithms: Vec<Vec<f64>> =
        at.iter().map(|values| values.iter().map(|value| value.ln()).collect()).collect();
    let mut curve = measured(name, colour, style, x, &logarithms);
    curve.y.iter_mut().for_each(|value| *value = value.map(f64::exp));
    let exponential = |ends: Option<(f64, f64)>| ends.map(|(low, high)| (low.exp(), high.exp()));
    curve.band = curve.band.map(|band| band.into_iter().map(exponential).collect());
    curve
}

/// A curve of means over trials with their 95% intervals. `at[i]` has the values of all trials at `x[i]`.
fn measured(name: &str, colour: usize, style: Style, x: &[f64], at: &[Vec<f64>]) -> Curve {
    let estimates: Vec<Option<Estimate>> = at.iter().map(|values| Estimate::of(values)).collect();
    let interval = |estimate: &Option<Estimate>| {
        let Estimate { mean, ci95 } = (*estimate)?;
        ci95.map(|half| (mean - half, mean + half))
    };
    Curve {
        name: name.to_owned(),
        colour,
        style,
        x: x.to_vec(),
        y: estimates.iter().map(|estimate| estimate.map(|estimate| estimate.mean)).collect(),
        band: Some(estimates.iter().map(interval).collect()),
    }
}

fn axis(label: &str, logarithmic: bool) -> Axis {
    Axis { label: label.to_owned(), logarithmic, range: None }
}

/// The slope of a straight line through points, by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |pick: fn(&(f64, f64)) -> f64| points.iter().map(pick).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let product: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    product / points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>()
}

/// A claim with one number of ours, which has no interval or whose interval does not decide.
fn stated(
    claim: &str,
    published: Option<f64>,
    ours: f64,
    unit: &str,
    verdict: Verdict,
    reason: &str,
) -> Claim {
    Claim {
        claim: claim.to_owned(),
        published,
        ours: Some(ours),
        ci95: None,
        unit: unit.to_owned(),
        verdict,
        reason: reason.to_owned(),
    }
}

/// Choices as key and value.
fn choices(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_slope() {
        let line: Vec<(f64, f64)> = [1.0, 2.0, 5.0].map(|x| (x, 3.0 - 2.0 * x)).to_vec();
        assert!((slope(&line) + 2.0).abs() < 1e-12);
    }

    #[test]
    fn intervals_surround_the_mean_of_trials() {
        let curve = measured("a", 0, Style::Solid, &[1.0, 2.0], &[vec![1.0, 3.0], vec![5.0]]);
        assert_eq!(curve.y, [Some(2.0), Some(5.0)]);
        let band = curve.band.unwrap();
        // Student's 97.5% quantile with one degree of freedom is 12.706.
        let (low, high) = band[0].unwrap();
        assert!((high - 2.0 - 12.706).abs() < 1e-3 && (2.0 - low - 12.706).abs() < 1e-3);
        assert_eq!(band[1], None);
        let curve = measured_logarithms("a", 0, Style::Solid, &[1.0], &[vec![1.0, 100.0]]);
        assert!((curve.y[0].unwrap() - 10.0).abs() < 1e-9);
    }
}
