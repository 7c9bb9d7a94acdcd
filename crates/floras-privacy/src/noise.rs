//! The law of `ν²`, the square of the decoder's noise in units of `s²`: a sum of independent bounded terms.
//!
//! A term's law is put on a grid, every value rounded *down*, and convolved by FFT as often as there are such terms. A smaller
//! noise hides less, so rounding down is rounding to the safe side. What rounding loses on average is added again, less
//! what Hoeffding's inequality allows for bad luck: all but a share of 1e-30 of the law is then still on the safe side,
//! and that share is counted as no noise at all.
//!
//! The lower end of the law decides about small `δ`, and a plain transform knows it only to about 1e-16 of the whole. So
//! the transform is made under several tilts `e^{−θν²}`, each of which sees another part of the lower end sharply.

use crate::fourier::{self, fast_length};
use crate::loss::log_sum_exp;
use crate::normal;
use crate::pilot;
use crate::quadrature::narrow_panels;
use crate::solve::least_at;

/// Points of the grid.
const POINTS: usize = 1 << 18;
/// Points with which sizes and tilts are chosen.
const SKETCH: usize = 1 << 10;
/// `−ln` of the share that may lie above the grid.
const ABOVE: f64 = 45.0;
/// `−ln` of the share that is given up at the lower end, and of the bad luck in rounding.
const BELOW: f64 = 69.0;
/// `−ln` of what a tilt has to bring to the middle.
const TILTS: [f64; 3] = [0.0, 20.0, 48.0];
/// Neighbouring values are put together until they span this much, relatively.
const WIDTH: f64 = 0.002;
/// The same, where many other things are summed over.
const COARSE_WIDTH: f64 = 0.006;
/// The same, where there is hardly anything.
const WIDE: f64 = 0.05;
const HARDLY_ANYTHING: f64 = 1e-22;

/// Independent terms of one law.
pub(crate) struct Term {
    count: u64,
    /// No value is larger.
    most: f64,
    mean: f64,
    /// `P(Y < y)`, exact relative to itself where it is small.
    below: Box<dyn Fn(f64) -> f64 + Sync>,
}

impl Term {
    /// `count` terms with `P(Y < y) = below(y)` for `0 < y ≤ most`.
    pub(crate) fn continuous(
        count: u64,
        most: f64,
        mean: f64,
        below: impl Fn(f64) -> f64 + Sync + 'static,
    ) -> Self {
        Self { count, most, mean, below: Box::new(below) }
    }

    /// `count` terms that take some values with some probabilities.
    pub(crate) fn discrete(count: u64, mut values: Vec<(f64, f64)>) -> Self {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = values.iter().map(|&(value, mass)| value * mass).sum();
        let most = values.last().map_or(0.0, |&(value, _)| value);
        let mut sum = 0.0;
        // Smallest first, each with the mass of all values up to it.
        let sums: Vec<(f64, f64)> = values
            .iter()
            .map(|&(value, mass)| {
                sum += mass;
                (value, sum)
            })
            .collect();
        let below = move |y: f64| {
            let smaller = sums.partition_point(|&(value, _)| value < y);
            smaller.checked_sub(1).map_or(0.0, |last| sums[last].1)
        };
        Self { count, most, mean, below: Box::new(below) }
    }

    /// Masses at `0, step, 2·step, …`, every value rounded down.
    fn masses(&self, step: f64) -> Vec<f64> {
        let last = (self.most / step).floor() as usize;
        let mut sums: Vec<f64> =
            (0..=last).map(|i| if i == 0 { 0.0 } else { (self.below)(i as f64 * step) }).collect();
        sums.push(1.0);
        sums.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).collect()
    }
}

/// A law of `ν²`, as values with their masses, in ascending order; what is missing to 1 is without noise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Noise {
    values: Vec<(f64, f64)>,
    /// The share that is counted as no noise at all.
    pub(crate) none: f64,
    /// By how much `1/ν` may be too large, relatively, because of rounding.
    pub(crate) slack: f64,
}

impl Noise {
    /// Values with their masses; those close together become the lowest of them.
    pub(crate) fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut all: Vec<(f64, f64)> = values.into_iter().filter(|&(_, mass)| mass > 0.0).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut values: Vec<(f64, f64)> = Vec::new();
        for (value, mass) in all {
            match values.last_mut() {
                Some((lowest, sum))
                    if value <= *lowest * (1.0 + if *sum < HARDLY_ANYTHING { WIDE } else { WIDTH }) =>
                {
                    *sum += mass;
                }
                _ => values.push((value, mass)),
            }
        }
        Self { values, none: 0.0, slack: 0.5 * WIDTH }
    }

    /// `(scale/G)²` with a standard normal `G`: spherical Cauchy noise.
    pub(crate) fn cauchy(scale: f64) -> Self {
        // Small |G| make much noise and little else.
        let points =
            [0.0, 0.02, 0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0];
        let nodes = narrow_panels(&points, f64::INFINITY).into_iter();
        let mut noise =
            Self::new(nodes.map(|(r, weight)| ((scale / r).powi(2), 2.0 * weight * normal::density(r))));
        noise.none = pilot::BEYOND_REACH;
        noise.slack = 0.0;
        noise
    }

    /// The law of a sum of independent terms.
    pub(crate) fn of_sum(terms: &[Term]) -> Self {
        if terms.iter().all(|term| term.count == 0) {
            return Self { values: vec![(0.0, 1.0)], none: 0.0, slack: 0.0 };
        }
        let sketch = SumSketch::new(terms);
        let number: f64 = terms.iter().map(|term| term.count as f64).sum();
        let below = (sketch.mean() - sketch.quantile(-1.0, BELOW)).max(0.0);
        let above = (sketch.quantile(1.0, ABOVE) - sketch.mean()).max(0.0);
        let count = fast_length(POINTS);
        // Rounding spreads the sum by less than half a step a term, at random.
        let spread = (8.0 * number.sqrt() + 8.0).min(count as f64 / 4.0);
        // A term has to fit too, or it would be folded onto itself.
        let largest = terms.iter().map(|term| term.most).fold(0.0, f64::max);
        let step = (1.05 * (below + above)).max(largest) / (count as f64 - 2.0 * spread - 2.0);
        let parts: Vec<(u64, Vec<f64>)> = terms.iter().map(|term| (term.count, term.masses(step))).collect();
        // Rounded down, the sum lies elsewhere than the sketch; its own mean says where.
        let mean: f64 = parts.iter().map(|(times, masses)| *times as f64 * mean_index(masses)).sum();
        let start = (mean - 1.025 * below / step - spread).floor() as i64;
        let shift = regained(terms, &parts, step);
        let lost =
            2.0 * luck(terms, step).min(terms.iter().map(|term| term.count as f64).sum::<f64>() * step);
        let tilts = TILTS.map(|rate| Tilted::new(&parts, step, sketch.theta_of_rate(rate), count));
        let value_of = |index: i64| index as f64 * step + shift;
        let mass_of = |index: i64| {
            let slot = index.rem_euclid(count as i64) as usize;
            let at = |tilt: &Tilted| tilt.log_moment - tilt.theta * index as f64 * step;
            let best = tilts.iter().min_by(|a, b| at(a).total_cmp(&at(b)));
            best.map_or(0.0, |tilt| (tilt.masses[slot].max(0.0) + tilt.rounding) * at(tilt).exp())
        };
        let indices = start..start + count as i64;
        let mut noise = Self::new(indices.map(|index| (value_of(index), mass_of(index))));
        noise.none = 2.0 * (-BELOW).exp();
        noise.slack += 0.5 * lost / noise.quantile(1e-9).max(lost);
        noise
    }

    /// The same with fewer values, for use in sums over many other things.
    pub(crate) fn coarse(self) -> Self {
        let mut values: Vec<(f64, f64)> = Vec::new();
        for (value, mass) in self.values {
            match values.last_mut() {
                Some((lowest, sum)) if value <= *lowest * (1.0 + COARSE_WIDTH) => *sum += mass,
                _ => values.push((value, mass)),
            }
        }
        Self { values, none: self.none, slack: self.slack + 0.5 * COARSE_WIDTH }
    }

    /// Values with their masses.
    pub(crate) fn values(&self) -> &[(f64, f64)] {
        &self.values
    }

    /// The value that the given share lies at or below.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sum = self.none;
        let found = self.values.iter().find(|&&(_, mass)| {
            sum += mass;
            sum >= share
        });
        found.or(self.values.last()).map_or(0.0, |&(value, _)| value)
    }

    /// The law of the sum of two independent ones.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let sums =
            self.values.iter().flat_map(|&(a, p)| other.values.iter().map(move |&(b, q)| (a + b, p * q)));
        let mut sum = Self::new(sums);
        sum.none = self.none + other.none;
        let [own, others] = [self, other].map(|noise| noise.quantile(0.5));
        sum.slack += (self.slack * own + other.slack * others) / (own + others);
        sum
    }
}

/// The mean of a law on the grid, in steps.
fn mean_index(masses: &[f64]) -> f64 {
    masses.iter().enumerate().map(|(i, mass)| i as f64 * mass).sum()
}

/// What rounding down loses on average, less what bad luck may take: `Σ E[Y − ⌊Y⌋] − h·√(n·ln(1/ξ)/2)`, if positive.
fn regained(terms: &[Term], parts: &[(u64, Vec<f64>)], step: f64) -> f64 {
    let mut mean = 0.0;
    for (term, (count, masses)) in terms.iter().zip(parts) {
        let rounded = step * mean_index(masses);
        // A little less than the mean, which is a difference of nearly equal numbers.
        mean += *count as f64 * (term.mean * (1.0 - 1e-12) - rounded);
    }
    (mean - luck(terms, step)).max(0.0)
}

/// How far the sum of what rounding loses may be off its mean, by Hoeffding's inequality.
fn luck(terms: &[Term], step: f64) -> f64 {
    let number: f64 = terms.iter().map(|term| term.count as f64).sum();
    step * (0.5 * number * BELOW).sqrt()
}

/// The sum's law under `e^{θν²}`, `θ ≤ 0`, folded onto the grid.
struct Tilted {
    theta: f64,
    log_moment: f64,
    masses: Vec<f64>,
    rounding: f64,
}

impl Tilted {
    fn new(parts: &[(u64, Vec<f64>)], step: f64, theta: f64, count: usize) -> Self {
        let mut product: Option<Vec<fourier::Complex64>> = None;
        let mut log_moment = 0.0;
        for (times, masses) in parts.iter().filter(|(times, _)| *times > 0) {
            let mut tilted = vec![0.0; count];
            let exponent = |i: usize| theta * i as f64 * step;
            let positive = || masses.iter().enumerate().filter(|&(_, &mass)| mass > 0.0);
            let total = log_sum_exp(positive().map(|(i, mass)| mass.ln() + exponent(i)));
            for (i, mass) in positive() {
                tilted[i % count] += mass * (exponent(i) - total).exp();
            }
            log_moment += *times as f64 * total;
            let powered =
                fourier::forward(&mut tilted).into_iter().map(|value| fourier::power(value, *times));
            product = Some(match product {
                None => powered.collect(),
                Some(product) => product.into_iter().zip(powered).map(|(a, b)| a * b).collect(),
            });
        }
        let mut masses = vec![0.0; count];
        masses[0] = 1.0;
        if let Some(product) = product {
            masses = fourier::inverse(product, count);
        }
        let terms: u64 = parts.iter().map(|(times, _)| times).sum();
        let size: f64 = masses.iter().map(|mass| mass * mass).sum();
        let digits = f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        Self { theta, log_moment, masses, rounding: digits * (1.0 + terms as f64 * size.sqrt()) }
    }
}

/// The terms' laws in few points: for Chernoff's bounds.
struct SumSketch(Vec<(f64, Vec<(f64, f64)>)>);

impl SumSketch {
    fn new(terms: &[Term]) -> Self {
        let sketch = |term: &Term| {
            let step = term.most / SKETCH as f64;
            let masses = term.masses(step).into_iter().enumerate();
            (
                term.count as f64,
                masses.filter(|&(_, mass)| mass > 0.0).map(|(i, mass)| (i as f64 * step, mass)).collect(),
            )
        };
        Self(terms.iter().filter(|term| term.count > 0).map(sketch).collect())
    }

    fn log_moment(&self, theta: f64) -> f64 {
        let of = |values: &[(f64, f64)]| {
            log_sum_exp(values.iter().map(|&(value, mass)| mass.ln() + theta * value))
        };
        self.0.iter().map(|(count, values)| count * of(values)).sum()
    }

    fn mean(&self) -> f64 {
        let of = |values: &[(f64, f64)]| values.iter().map(|&(value, mass)| value * mass).sum::<f64>();
        self.0.iter().map(|(count, values)| count * of(values)).sum()
    }

    fn scale(&self) -> f64 {
        self.0.iter().filter_map(|(_, values)| values.last()).map(|&(value, _)| value).fold(1e-300, f64::max)
    }

    /// What the sum exceeds (or for `sign = −1` falls below) with a chance of at most `e^{−rate}`.
    fn quantile(&self, sign: f64, rate: f64) -> f64 {
        let bound = |log_theta: f64| {
            let theta = log_theta.exp() / self.scale();
            (self.log_moment(sign * theta) + rate) / theta
        };
        sign * bound(least_at(bound, -16.0, 16.0, 40))
    }

    /// The `θ ≤ 0` under which the mean lies where the sum falls below with a chance of about `e^{−rate}`.
    fn theta_of_rate(&self, rate: f64) -> f64 {
        if rate == 0.0 {
            return 0.0;
        }
        let bound = |log_theta: f64| {
            let theta = log_theta.exp() / self.scale();
            (self.log_moment(-theta) + rate) / theta
        };
        -least_at(bound, -16.0, 16.0, 40).exp() / self.scale()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiver::{Receiver, clipped_mean};

    /// From one term to a billion, from levels that nearly every estimate exceeds to levels that none does.
    #[test]
    fn a_sum_has_unit_mass_and_nearly_its_mean_and_never_more() {
        for (c, count) in [
            (50.0, 54),
            (8.0, 10),
            (1.0, 1),
            (1.0, 3),
            (1.0, 1000),
            (1.0, 1_000_000),
            (0.02, 10),
            (3.0, 1_000_000_000),
        ] {
            let noise = Receiver::Clipped(c).noise_of_unused(count);
            let total: f64 = noise.values().iter().map(|&(_, mass)| mass).sum();
            let mean: f64 = noise.values().iter().map(|&(value, mass)| value * mass).sum();
            let expected = count as f64 * clipped_mean(c);
            assert!((total - 1.0).abs() < 2e-5, "c = {c}, {count} terms: {total}");
            let ratio = mean / total / expected;
            assert!(ratio <= 1.0 + 1e-9 && ratio > 0.995, "c = {c}, {count} terms: {ratio}");
        }
    }
}
