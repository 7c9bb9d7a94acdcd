//! The distribution of `ν²`, the square of the decoder's noise in units of `s²`: a sum of independent bounded terms.
//!
//! The result is a list of [`NoiseCell`]s: masses with the range and the mean of `ν²`. `1/√(a + ν²)` is convex in `ν²`, so its mean over a
//! cell is at most the chord at the cell's mean. The error of that bound is quadratic in the width of the cell.
//!
//! A term's distribution is put on a grid, with every value rounded *down*, and convolved by FFT once per term. Smaller noise hides less,
//! so rounding down is safe. The mean loss from rounding is then added again, minus the deviation that Hoeffding's inequality permits. The
//! result is safe except for a share of 1e-30 of the distribution, and that share counts as no noise at all.
//!
//! A lower bound on the leakage needs the noise rounded *up*. The maximum loss from rounding down is added to every value, masses are
//! rounded down, and missing mass counts as unlimited noise. With probability at most 1e-30 there is more noise than that.
//!
//! Small `δ` depend on the lower end of the distribution, which a plain transform resolves to about 1e-16 of the total only. So the
//! transform is computed under several tilts `e^{−θν²}`, each of which resolves another part of the lower end.

use std::slice::from_ref;

use crate::engine::distribution::Side;
use crate::engine::loss::log_sum_exp;
use crate::numerics::fourier::{self, close_fast_length};
use crate::numerics::normal;
use crate::numerics::parallel::in_parallel;
use crate::numerics::pool::{self, Pooled};
use crate::numerics::quadrature::short_panel;
use crate::numerics::solve::least_at;
use crate::views::few::{Few, LogSum};
use crate::views::pilot;

/// Minimum and maximum number of points of the grid.
const POINTS: (usize, usize) = (1 << 15, 1 << 18);
/// Rounding to the grid should change small values of the noise by at most this, relatively. `ε` then grows by at most 0.07%.
const ROUNDING: f64 = 7e-4;
/// The same for rare small values, as long as the grid need not be finer than for the bound on the rounding of all values.
const RARE_ROUNDING: f64 = 1e-3;
/// An even grid is not used if rounding may move the sum's `e^{−FEW_BELOW}` quantile by more than this, relatively.
const FEW_ROUNDING: f64 = 2e-2;
/// `−ln` of the probability of the quantile in [`FEW_ROUNDING`].
const FEW_BELOW: f64 = 25.0;
/// Sums of fewer terms are then computed on a grid that grows by a constant factor.
const MAX_FEW: f64 = 100.0;
/// Number of points of the sketch, from which sizes and tilts are chosen.
const SKETCH: usize = 1 << 10;
/// Number of steps in the search for the tightest of Chernoff's bounds; every tilt gives a valid one.
const SEARCH: usize = 16;
/// `−ln` of the probability that may be above the grid.
const ABOVE: f64 = 45.0;
/// `−ln` of the probability that is neglected at the lower end, and of larger deviations of the rounding loss than permitted.
const BELOW: f64 = 69.0;
/// `−ln` of the lower-tail probability at which each tilt centres the distribution.
const TILTS: [f64; 3] = [0.0, 20.0, 48.0];
/// `−ln` of the lower-tail probabilities whose quantiles limit the second and the third tilt. Mass from below the grid is folded to the
/// range above them.
const TILT_LIMITS: [f64; 2] = [14.0, 40.0];
/// Number of points whose exponentials follow from the first one.
const BLOCK: usize = 16;
/// The strongest tilt, times the mean.
const MAX_TILT: f64 = 1e5;
/// Neighbouring values are merged until they span this relative width.
const WIDTH: f64 = 0.02;
/// Sums of cells are merged if they begin within this relative width.
const SUM_WIDTH: f64 = 0.01;
/// Lower limit of `|G|`: Cauchy noise with a smaller `|G|` is at least as large as with this one.
const MIN_ABS_NORMAL: f64 = 0.01;

/// Independent terms with the same distribution.
pub(crate) struct Term {
    count: u64,
    /// Maximum value of a term.
    most: f64,
    mean: f64,
    /// `P(Y < y)`, with small relative error for small values: small noise matters most.
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

    /// `count` terms with discrete values and their probabilities.
    pub(crate) fn discrete(count: u64, mut values: Vec<(f64, f64)>) -> Self {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mean = values.iter().map(|&(value, mass)| value * mass).sum();
        let most = values.last().map_or(0.0, |&(value, _)| value);
        let mut sum = 0.0;
        // In ascending order, each with the mass of all values up to it.
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

    /// Mean of one term, `E[Y]`.
    pub(crate) fn mean(&self) -> f64 {
        self.mean
    }

    /// Masses at `0, step, 2·step, …`, with every value rounded down.
    fn masses(&self, step: f64) -> Vec<f64> {
        let last = (self.most / step).floor() as usize;
        let mut below: Vec<f64> =
            (0..=last).map(|i| if i == 0 { 0.0 } else { (self.below)(i as f64 * step) }).collect();
        below.push(1.0);
        below.windows(2).map(|pair| (pair[1] - pair[0]).max(0.0)).collect()
    }
}

/// A range of values of `ν²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NoiseCell {
    pub(crate) mass: f64,
    pub(crate) least: f64,
    pub(crate) largest: f64,
    pub(crate) mean: f64,
}

impl NoiseCell {
    fn of(value: f64, mass: f64) -> Self {
        Self { mass, least: value, largest: value, mean: value }
    }

    fn add(&mut self, other: Self) {
        self.mean = (self.mass * self.mean + other.mass * other.mean) / (self.mass + other.mass);
        self.mass += other.mass;
        self.least = self.least.min(other.least);
        self.largest = self.largest.max(other.largest);
    }

    /// Position of the mean between the smallest value (0) and the largest value (1).
    fn share(&self) -> f64 {
        if self.least == self.largest { 0.0 } else { (self.mean - self.least) / (self.largest - self.least) }
    }

    /// A bound on the mean of a convex decreasing function, from its values at the smallest and at the largest noise.
    pub(crate) fn chord(&self, at_least: f64, at_largest: f64) -> f64 {
        at_least + self.share() * (at_largest - at_least)
    }
}

/// A distribution of `ν²` in cells, in ascending order. For an upper bound on the leakage it is rounded down, and missing mass counts as no
/// noise. For a lower bound it is rounded up, and missing mass counts as unlimited noise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Noise {
    cells: Vec<NoiseCell>,
    /// Rounded down, the probability that counts as no noise at all. Rounded up, the probability of more noise than in the cells.
    pub(crate) none: f64,
}

impl Noise {
    /// From cells in ascending order; neighbouring cells are merged.
    fn ascending(all: impl IntoIterator<Item = NoiseCell>) -> Self {
        let mut cells: Vec<NoiseCell> = Vec::new();
        for mut cell in all.into_iter().filter(|cell| cell.mass > 0.0) {
            // Times the mass, until all cells are known.
            cell.mean *= cell.mass;
            match cells.last_mut() {
                Some(last) if cell.largest <= last.least * (1.0 + WIDTH) => {
                    last.mass += cell.mass;
                    last.mean += cell.mean;
                    last.largest = last.largest.max(cell.largest);
                }
                _ => cells.push(cell),
            }
        }
        cells.iter_mut().for_each(|cell| cell.mean = (cell.mean / cell.mass).clamp(cell.least, cell.largest));
        Self { cells, none: 0.0 }
    }

    /// Noise without a known upper limit.
    pub(crate) fn unlimited() -> Self {
        Self { cells: Vec::new(), none: 0.0 }
    }

    /// `(scale/G)²` with a standard normal `G`: spherical Cauchy noise.
    pub(crate) fn cauchy(scale: f64, side: Side) -> Self {
        let mut cells = Vec::new();
        // From large |G|, with little noise, to small |G|.
        let mut upper = pilot::REACH;
        while upper > MIN_ABS_NORMAL {
            let lower = upper / (1.0 + 0.5 * WIDTH);
            let mass = 2.0 * normal::between(lower, upper);
            let nodes = short_panel(lower, upper);
            let weighted: f64 = nodes.map(|(r, w)| 2.0 * w * normal::density(r) / (r * r)).sum();
            let (from, to) = ((scale / upper).powi(2), (scale / lower).powi(2));
            // A smaller mean is safe for an upper bound, a larger mean for a lower bound.
            let digits = if side == Side::Upper { 1.0 - 1e-9 } else { 1.0 + 1e-9 };
            let mean = (scale * scale * weighted / mass * digits).clamp(from, to);
            cells.push(NoiseCell { mass, least: from, largest: to, mean });
            upper = lower;
        }
        if side == Side::Lower {
            return Self { cells, none: 0.0 };
        }
        // All larger noise hides at least as much as the cell with the largest noise.
        cells.push(NoiseCell::of((scale / upper).powi(2), 2.0 * normal::between(0.0, upper)));
        Self { cells, none: pilot::BEYOND_REACH }
    }

    /// The distribution of a sum of independent terms.
    pub(crate) fn of_sum(terms: &[Term], side: Side) -> Self {
        Sum::new(terms).rounded(side)
    }

    /// The cells, in ascending order.
    pub(crate) fn cells(&self) -> &[NoiseCell] {
        &self.cells
    }

    /// A value that the given share of the distribution is at or below: the mean of a cell.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sum = self.none;
        let found = self.cells.iter().find(|cell| {
            sum += cell.mass;
            sum >= share
        });
        found.or(self.cells.last()).map_or(0.0, |cell| cell.mean)
    }

    /// The distribution of the sum of two independent variables, rounded in the same direction.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let sum = |a: &NoiseCell, b: &NoiseCell| NoiseCell {
            mass: a.mass * b.mass,
            least: a.least + b.least,
            largest: a.largest + b.largest,
            mean: a.mean + b.mean,
        };
        // Grouped by the lower end, because sorting all sums would dominate the run time.
        let index = |least: f64| (least.max(1e-300).ln() / SUM_WIDTH).floor() as i64;
        let least = |of: fn(&[NoiseCell]) -> Option<&NoiseCell>| {
            [self, other].iter().filter_map(|noise| of(&noise.cells)).map(|cell| cell.least).sum::<f64>()
        };
        let (first, last) = (index(least(<[_]>::first)), index(least(<[_]>::last)));
        let mut cells: Vec<Option<NoiseCell>> = vec![None; (last - first + 1).max(1) as usize];
        for a in &self.cells {
            for b in &other.cells {
                let cell = sum(a, b);
                if cell.mass == 0.0 {
                    continue;
                }
                match &mut cells[(index(cell.least) - first).clamp(0, (last - first).max(0)) as usize] {
                    Some(known) => known.add(cell),
                    empty => *empty = Some(cell),
                }
            }
        }
        let cells = cells.into_iter().flatten().collect();
        Self { cells, none: self.none + other.none }
    }
}

/// A sum of independent terms; both rounded distributions follow from it.
pub(crate) enum Sum {
    /// No terms, or terms that are all 0.
    Zero,
    Even(EvenSum),
    Few(LogSum),
    /// Two kinds of terms, each on its own grid.
    Two(Box<[Sum; 2]>),
}

impl Sum {
    pub(crate) fn new(terms: &[Term]) -> Self {
        if terms.iter().all(|term| term.count == 0 || term.most == 0.0) {
            return Self::Zero;
        }
        let terms: Vec<&Term> = terms.iter().filter(|term| term.count > 0).collect();
        let number: f64 = terms.iter().map(|term| term.count as f64).sum();
        if number == 1.0 {
            return Self::Few(few(&terms));
        }
        let sketch = SumSketch::new(&terms);
        let below = (sketch.mean() - sketch.quantile(-1.0, BELOW)).max(0.0);
        let above = (sketch.quantile(1.0, ABOVE) - sketch.mean()).max(0.0);
        let largest = terms.iter().map(|term| term.most).fold(0.0, f64::max);
        let finest = rounding_deviation(&terms, (below + above).max(largest) / POINTS.1 as f64);
        if finest > FEW_ROUNDING * sketch.quantile(-1.0, FEW_BELOW) {
            if number < MAX_FEW {
                return Self::Few(few(&terms));
            }
            // Many small terms together with a few large ones.
            if let [one, other] = terms[..] {
                return Self::Two(Box::new([one, other].map(|term| Self::new(from_ref(term)))));
            }
        }
        Self::Even(EvenSum::new(&terms, &sketch, below, above))
    }

    /// The distribution, rounded down for an upper bound and up for a lower one.
    pub(crate) fn rounded(&self, side: Side) -> Noise {
        match self {
            Self::Zero => Noise { cells: vec![NoiseCell::of(0.0, 1.0)], none: 0.0 },
            Self::Even(sum) => sum.rounded(side),
            Self::Few(sum) => rounded_few(sum, side),
            Self::Two(sums) => sums[0].rounded(side).plus(&sums[1].rounded(side)),
        }
    }
}

/// A sum of a few terms that may be close to 0.
fn few(terms: &[&Term]) -> LogSum {
    let few = terms.iter().map(|term| Few { count: term.count, most: term.most, below: &*term.below });
    LogSum::new(&few.collect::<Vec<_>>())
}

fn rounded_few(sum: &LogSum, side: Side) -> Noise {
    if side == Side::Lower {
        return Noise::ascending(
            sum.values().map(|(value, mass)| NoiseCell::of(sum.rounded_up(value), mass)),
        );
    }
    let mut noise = Noise::ascending(sum.values().map(|(value, mass)| NoiseCell::of(value, mass)));
    noise.none = sum.zero;
    noise
}

/// A sum on an equally spaced grid, under several tilts.
pub(crate) struct EvenSum {
    step: f64,
    /// Grid index of the smallest value.
    start: i64,
    /// Lower and upper bound on the loss from rounding down.
    lost: (f64, f64),
    tilts: [Tilted; TILTS.len()],
    /// Grid indices below which the second and the third tilt are used.
    limits: [f64; TILT_LIMITS.len()],
}

impl EvenSum {
    fn new(terms: &[&Term], sketch: &SumSketch, below: f64, above: f64) -> Self {
        let number: f64 = terms.iter().map(|term| term.count as f64).sum();
        let largest = terms.iter().map(|term| term.most).fold(0.0, f64::max);
        let little = (sketch.mean() - 0.5 * below).max(1e-300);
        let range = below + above;
        // A term loses half a step on average, and the loss of few terms has no bound but 0.
        let lost = rounding_deviation(terms, range).min(0.5 * number * range);
        let rare = sketch.quantile(-1.0, TILT_LIMITS[1]).max(1e-300);
        let enough_for_rare =
            (lost / (RARE_ROUNDING * rare)).min(rounding_deviation(terms, range) / (RARE_ROUNDING * little));
        let enough = (lost / (ROUNDING * little)).max(enough_for_rare);
        let count = close_fast_length((enough as usize).clamp(POINTS.0, POINTS.1));
        // Rounding adds a random deviation from the mean loss, with a standard deviation of at most half a step per term.
        let spread = (8.0 * number.sqrt() + 8.0).min(count as f64 / 4.0);
        // A single term must also fit, or it would be folded onto itself.
        let step = (1.05 * (below + above)).max(largest) / (count as f64 - 2.0 * spread - 2.0);
        let parts: Vec<(u64, Vec<f64>)> = terms.iter().map(|term| (term.count, term.masses(step))).collect();
        // Rounding down moves the sum away from the sketch; the mean of the rounded terms locates it.
        let mean: f64 = parts.iter().map(|(times, masses)| *times as f64 * mean_index(masses)).sum();
        let start = ((mean - 1.025 * below / step - spread).floor() as i64).max(0);
        let lost = rounding_loss(terms, &parts, step);
        let tilts = in_parallel(TILTS, |rate| Tilted::new(&parts, step, sketch.theta_of_rate(rate), count));
        let limits = TILT_LIMITS.map(|rate| mean + (sketch.quantile(-1.0, rate) - sketch.mean()) / step);
        Self { step, start, lost, tilts, limits }
    }

    fn rounded(&self, side: Side) -> Noise {
        let Self { step, start, lost: (least, most), tilts, limits } = self;
        let shift = if side == Side::Upper { least } else { most };
        let count = tilts[0].masses.len() as i64;
        let (from, to) = (*start, *start + count);
        let blocks = (from..to).step_by(BLOCK).flat_map(|first| {
            let last = (first + BLOCK as i64).min(to) - 1;
            // Tilts whose limit the whole block is below.
            let allowed = 1 + limits.iter().filter(|&&limit| (last as f64) < limit).count();
            // Exponentials of neighbouring points are multiplied from one to the next.
            let mut back =
                tilts.each_ref().map(|tilt| (tilt.log_moment - tilt.theta * first as f64 * step).exp());
            let ratios = tilts.each_ref().map(|tilt| (-tilt.theta * step).exp());
            (first..=last).map(move |index| {
                let best =
                    (1..allowed).fold(0, |best, tilt| if back[tilt] < back[best] { tilt } else { best });
                let tilted = tilts[best].masses[index.rem_euclid(count) as usize];
                let mass = match side {
                    Side::Upper => tilted.max(0.0) + tilts[best].rounding,
                    Side::Lower => (tilted - tilts[best].rounding).max(0.0),
                };
                let cell = NoiseCell::of(index as f64 * step + shift, back[best] * mass);
                back.iter_mut().zip(ratios).for_each(|(factor, ratio)| *factor *= ratio);
                cell
            })
        });
        let mut noise = Noise::ascending(blocks);
        noise.none = 2.0 * (-BELOW).exp();
        if side == Side::Upper {
            // Missing mass counts as no noise.
            let total: f64 = noise.cells.iter().map(|cell| cell.mass).sum();
            noise.none += (1.0 - total).max(0.0);
        }
        noise
    }
}

/// The mean of a distribution on the grid, in steps.
fn mean_index(masses: &[f64]) -> f64 {
    masses.iter().enumerate().map(|(i, mass)| i as f64 * mass).sum()
}

/// Lower and upper bound on the loss from rounding down, each except with probability `ξ`:
/// `Σ E[Y − ⌊Y⌋] ∓ h·√(n·ln(1/ξ)/2)`, between 0 and `h` for each term.
fn rounding_loss(terms: &[&Term], parts: &[(u64, Vec<f64>)], step: f64) -> (f64, f64) {
    let (mut mean, mut most, mut number) = (0.0, 0.0, 0.0);
    for (term, (count, masses)) in terms.iter().zip(parts) {
        let rounded = step * mean_index(masses);
        // Slightly below the mean, which is a difference of nearly equal numbers.
        mean += *count as f64 * (term.mean * (1.0 - 1e-12) - rounded);
        most += *count as f64 * (term.mean * (1.0 + 1e-12) - rounded);
        number += *count as f64;
    }
    let rounding_deviation = rounding_deviation(terms, step);
    ((mean - rounding_deviation).max(0.0), (most + rounding_deviation).min(number * step))
}

/// Deviation of the total rounding loss from its mean, by Hoeffding's inequality.
fn rounding_deviation(terms: &[&Term], step: f64) -> f64 {
    let number: f64 = terms.iter().map(|term| term.count as f64).sum();
    step * (0.5 * number * BELOW).sqrt()
}

/// The distribution of the sum under `e^{θν²}`, `θ ≤ 0`, folded onto the grid.
struct Tilted {
    theta: f64,
    log_moment: f64,
    masses: Pooled<f64>,
    rounding: f64,
}

impl Tilted {
    fn new(parts: &[(u64, Vec<f64>)], step: f64, theta: f64, count: usize) -> Self {
        let mut product: Option<Pooled<fourier::Complex64>> = None;
        let mut log_moment = 0.0;
        for (times, masses) in parts.iter().filter(|(times, _)| *times > 0) {
            let mut tilted = pool::REALS.zeros(count);
            // Relative to the smallest value with positive mass, so that strong tilts do not underflow.
            let lowest = masses.iter().position(|&mass| mass > 0.0).unwrap_or(0);
            for (i, mass) in masses.iter().enumerate().skip(lowest).filter(|&(_, &mass)| mass > 0.0) {
                let factor = if theta == 0.0 { 1.0 } else { (theta * (i - lowest) as f64 * step).exp() };
                tilted[i % count] += mass * factor;
            }
            let total: f64 = tilted.iter().sum();
            tilted.iter_mut().for_each(|mass| *mass /= total);
            log_moment += *times as f64 * (total.ln() + theta * lowest as f64 * step);
            let mut powered = fourier::forward(&mut tilted);
            fourier::raise(&mut powered, *times);
            product = Some(match product {
                None => powered,
                Some(mut product) => {
                    product.iter_mut().zip(powered.iter()).for_each(|(a, b)| *a *= b);
                    product
                }
            });
        }
        let masses = match product {
            Some(product) => fourier::inverse(product, count),
            None => {
                let mut masses = pool::REALS.zeros(count);
                masses[0] = 1.0;
                masses
            }
        };
        let terms: u64 = parts.iter().map(|(times, _)| times).sum();
        let size: f64 = masses.iter().map(|mass| mass * mass).sum();
        let digits = f64::EPSILON * (count as f64).log2() / (count as f64).sqrt();
        Self { theta, log_moment, masses, rounding: digits * (1.0 + terms as f64 * size.sqrt()) }
    }
}

/// The terms' distributions in few points, for Chernoff's bounds: the number of terms, and the points of one term.
struct SumSketch(Vec<(f64, Vec<SketchPoint>)>);

struct SketchPoint {
    value: f64,
    mass: f64,
    log_mass: f64,
}

impl SumSketch {
    fn new(terms: &[&Term]) -> Self {
        let sketch = |term: &&Term| {
            let step = term.most / SKETCH as f64;
            let masses = term.masses(step).into_iter().enumerate();
            let point =
                |(i, mass): (usize, f64)| SketchPoint { value: i as f64 * step, mass, log_mass: mass.ln() };
            (term.count as f64, masses.filter(|&(_, mass)| mass > 0.0).map(point).collect())
        };
        Self(terms.iter().map(sketch).collect())
    }

    fn log_moment(&self, theta: f64) -> f64 {
        let of = |points: &[SketchPoint]| {
            log_sum_exp(points.iter().map(|point| point.log_mass + theta * point.value))
        };
        self.0.iter().map(|(count, values)| count * of(values)).sum()
    }

    fn mean(&self) -> f64 {
        let of = |points: &[SketchPoint]| points.iter().map(|point| point.value * point.mass).sum::<f64>();
        self.0.iter().map(|(count, values)| count * of(values)).sum()
    }

    fn scale(&self) -> f64 {
        self.0.iter().filter_map(|(_, points)| points.last()).map(|point| point.value).fold(1e-300, f64::max)
    }

    /// A value that the sum exceeds (or, for `sign = −1`, falls below) with probability at most `e^{−rate}`.
    fn quantile(&self, sign: f64, rate: f64) -> f64 {
        let bound = |log_theta: f64| {
            let theta = log_theta.exp() / self.scale();
            (self.log_moment(sign * theta) + rate) / theta
        };
        sign * bound(least_at(bound, -16.0, 16.0, SEARCH))
    }

    /// The `θ ≤ 0` that moves the mean to the value below which the sum falls with probability about `e^{−rate}`.
    fn theta_of_rate(&self, rate: f64) -> f64 {
        if rate == 0.0 {
            return 0.0;
        }
        let bound = |log_theta: f64| {
            let theta = log_theta.exp() / self.scale();
            (self.log_moment(-theta) + rate) / theta
        };
        let theta = least_at(bound, -16.0, 16.0, SEARCH).exp() / self.scale();
        // A sum with little variation needs no tilt, and a strong tilt would only lose digits.
        -theta.min(MAX_TILT / self.mean())
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::LN_2;

    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;

    use super::*;
    use crate::numerics::quadrature::equal_panels;
    use crate::views::receiver::{clipped_mean, noise_of_unused, unused_term};
    use floras_core::Receiver;

    /// Factor by which a value may be rounded down: the width of the cells, and the permitted deviation of rounding losses.
    const ROUNDED: f64 = 1.03;

    fn share_up_to(noise: &Noise, most: f64) -> f64 {
        noise.none + noise.cells().iter().filter(|cell| cell.least <= most).map(|cell| cell.mass).sum::<f64>()
    }

    /// `P(|G| ≥ x)`.
    fn beyond(x: f64) -> f64 {
        libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2)
    }

    /// `P(1/max(|G|, c)² ≤ y)`.
    fn one_clipped(c: f64, y: f64) -> f64 {
        if y >= 1.0 / (c * c) {
            1.0
        } else if y <= 0.0 {
            0.0
        } else {
            beyond(1.0 / y.sqrt())
        }
    }

    /// Never below the true probability, and at most the true probability of a slightly larger value.
    #[track_caller]
    fn is_rounded_down(noise: &Noise, truth: impl Fn(f64) -> f64, values: &[f64]) {
        for &value in values {
            let (ours, least) = (share_up_to(noise, value), truth(value));
            let most = truth(value * ROUNDED);
            assert!(ours >= least * (1.0 - 1e-9), "P(ν² ≤ {value}) is {ours:e}, but {least:e} in truth");
            assert!(ours <= most * (1.0 + 1e-6) + 4e-30, "P(ν² ≤ {value}) is {ours:e}, above {most:e}");
        }
    }

    #[test]
    fn one_unused_sequence_has_its_weight_s_distribution() {
        for c in [0.5, 1.0, 2.0] {
            let noise = noise_of_unused(Receiver::clipped(c).unwrap(), 1, Side::Upper);
            let most = 1.0 / (c * c);
            let values = [0.01, 0.015, 0.02, 0.03, 0.06, 0.1, 0.2, 0.5, 0.9, 0.999, 1.01];
            let values = values.map(|share| if share < 0.1 { share } else { share * most });
            is_rounded_down(&noise, |v| one_clipped(c, v), &values);
        }
    }

    /// By a direct convolution: given `|G_1| = g ≥ c`, the other term has `v − 1/g²` left.
    #[test]
    fn two_unused_sequences_agree_with_a_convolution() {
        for c in [0.5, 1.0, 2.0] {
            let noise = noise_of_unused(Receiver::clipped(c).unwrap(), 2, Side::Upper);
            let truth = |v: f64| {
                // Panels end at the atom of the other term's distribution.
                let mut points = vec![f64::max(c, 1.0 / v.sqrt()), 40.0];
                let left = v - 1.0 / (c * c);
                if left > 0.0 && left < 1.0 / (c * c) {
                    points.insert(1, 1.0 / left.sqrt());
                }
                let nodes = points.windows(2).flat_map(|ends| equal_panels(ends[0], ends[1], 100));
                let spread =
                    nodes.map(|(g, w)| 2.0 * w * normal::density(g) * one_clipped(c, v - 1.0 / (g * g)));
                (1.0 - beyond(c)) * one_clipped(c, left) + spread.sum::<f64>()
            };
            let values = [0.04, 0.06, 0.1, 0.2, 0.4, 0.45, 0.7, 1.2, 1.9];
            let values = values.map(|v| if v < 0.4 { v } else { v / (c * c) });
            is_rounded_down(&noise, truth, &values);
        }
    }

    /// 400,000 draws and 5 standard errors on both sides: for each of 30 values, one false alarm in 1.7 million runs. A distribution that
    /// is off by 2% in `ν²` fails at the median.
    #[test]
    fn sums_of_many_terms_follow_samples() {
        const DRAWS: usize = 400_000;
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(11);
        for (receiver, unused) in [
            (Receiver::clipped(1.0).unwrap(), 3),
            (Receiver::clipped(1.0).unwrap(), 10),
            (Receiver::clipped(0.2).unwrap(), 10),
            (Receiver::Mmse, 1),
            (Receiver::Mmse, 10),
            (Receiver::Paper, 10),
        ] {
            let mut squares: Vec<f64> = (0..DRAWS)
                .map(|_| {
                    let one = |_| receiver.weight(generator.sample(StandardNormal), 1.0).powi(2);
                    (0..unused).map(one).sum()
                })
                .collect();
            squares.sort_by(f64::total_cmp);
            let truth = |v: f64| squares.partition_point(|&square| square <= v) as f64 / DRAWS as f64;
            let noise = noise_of_unused(receiver, unused, Side::Upper);
            for rank in [400, 20_000, 200_000, 300_000, 396_000] {
                let value = squares[rank];
                let ours = share_up_to(&noise, value);
                let error = |share: f64| 5.0 * (share * (1.0 - share) / DRAWS as f64).sqrt() + 1e-9;
                // The paper's distribution is integrated with few nodes, each of which represents a range.
                let (lower, upper) = if receiver == Receiver::Paper {
                    (value / 1.4, value * 1.4)
                } else {
                    (value, value * ROUNDED)
                };
                let (least, most) = (truth(lower), truth(upper));
                assert!(ours >= least - error(least), "{receiver:?}, γ = {unused}: {ours} and {least}");
                assert!(ours <= most + error(most), "{receiver:?}, γ = {unused}: {ours} and {most}");
            }
        }
    }

    /// In the far lower tail, 1e-7 to 1e-21 here, by importance sampling: normal draws around the likeliest values, with weights. 5
    /// standard errors are below 5%, and a distribution that is off by 1% in `ν²` fails.
    #[test]
    fn the_lower_tail_follows_weighted_samples() {
        const DRAWS: usize = 400_000;
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(12);
        let noise = noise_of_unused(Receiver::clipped(1.0).unwrap(), 3, Side::Upper);
        for v in [0.1, 0.15, 0.3] {
            let likeliest = (3.0_f64 / v).sqrt();
            let mut draw = |limit: f64| {
                let (mut square, mut log_weight) = (0.0, 0.0);
                for _ in 0..3 {
                    let z: f64 = generator.sample(StandardNormal);
                    let g = likeliest + z;
                    square += 1.0 / g.max(1.0).powi(2);
                    // 2φ(g)/φ(z), for both signs of g.
                    log_weight += LN_2 + 0.5 * (z * z - g * g);
                }
                if square <= limit { log_weight.exp() } else { 0.0 }
            };
            let mut estimate = |limit: f64| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for _ in 0..DRAWS {
                    let weight = draw(limit);
                    sum += weight;
                    squares += weight * weight;
                }
                let mean = sum / DRAWS as f64;
                (mean, 5.0 * (squares / DRAWS as f64 - mean * mean).sqrt() / (DRAWS as f64).sqrt())
            };
            let ours = share_up_to(&noise, v);
            let ((least, error), (most, other_error)) = (estimate(v), estimate(ROUNDED * v));
            assert!(error < 0.05 * least, "the estimate is precise: {least:e} ± {error:e}");
            assert!(ours >= least - error && ours <= most + other_error, "{ours:e}, {least:e}, {most:e}");
        }
    }

    #[test]
    fn no_mass_gets_lost() {
        for unused in [1, 2, 10, 1000] {
            for receiver in [
                Receiver::clipped(1e-6).unwrap(),
                Receiver::clipped(1.0).unwrap(),
                Receiver::clipped(1e6).unwrap(),
                Receiver::Mmse,
            ] {
                let noise = noise_of_unused(receiver, unused, Side::Upper);
                let total = share_up_to(&noise, f64::INFINITY);
                assert!((total - 1.0).abs() < 1e-8, "{receiver:?}, γ = {unused}: {total}");
                assert!(
                    noise.none < 1e-25,
                    "{receiver:?}, γ = {unused}: {:e} is left without noise",
                    noise.none
                );
                assert!(noise.cells().is_sorted_by(|a, b| a.least < b.least));
            }
        }
    }

    /// Two values each: a binomial distribution.
    #[test]
    fn discrete_terms_have_a_binomial_sum() {
        let noise = Noise::of_sum(&[Term::discrete(4, vec![(3.0, 0.25), (1.0, 0.75)])], Side::Upper);
        let mut below = 0.0;
        for (successes, ways) in [1.0, 4.0, 6.0, 4.0, 1.0].into_iter().enumerate() {
            let value = 4.0 + 2.0 * successes as f64;
            // The cell of a value begins at most one width below it, and no other mass is in between.
            assert!((share_up_to(&noise, value * 0.975) - below).abs() < 1e-9, "below {value}");
            below += ways * 0.25_f64.powi(successes as i32) * 0.75_f64.powi(4 - successes as i32);
            assert!((share_up_to(&noise, value) - below).abs() < 1e-9, "up to {value}");
        }
        let none = Noise::of_sum(&[Term::discrete(0, vec![(1.0, 1.0)])], Side::Upper);
        assert_eq!(none.cells(), [NoiseCell::of(0.0, 1.0)]);
    }

    /// One unused sequence with a large weight and many used ones with small weights: a grid for the large weight keeps the small ones. A
    /// kind without terms does not widen the grid.
    #[test]
    fn small_terms_count_beside_large_ones() {
        let large = Receiver::clipped(0.01).unwrap();
        for count in [9, 89, 200] {
            let terms = [unused_term(large, 1), Term::discrete(count, vec![(0.01, 1.0)])];
            let noise = Noise::of_sum(&terms, Side::Upper);
            let least = noise.cells().iter().find(|cell| cell.mass > 1e-25).unwrap().least;
            // P(1/G² < 0.01) = P(|G| > 10) is about 1e-23.
            let expected = 0.01 * (count as f64 + 1.0);
            assert!(least > 0.8 * expected && least < 1.2 * expected, "{count}: {least} and {expected}");
        }
        let terms = [Term::discrete(100, vec![(1.0, 1.0)]), Term::discrete(0, vec![(1e6, 1.0)])];
        for side in [Side::Upper, Side::Lower] {
            let noise = Noise::of_sum(&terms, side);
            assert!((noise.quantile(0.5) / 100.0 - 1.0).abs() < 1e-2, "{}", noise.quantile(0.5));
        }
    }

    #[test]
    fn two_distributions_add_up() {
        let one = Noise::ascending([NoiseCell::of(1.0, 0.5), NoiseCell::of(2.0, 0.5)]);
        let other = Noise::ascending([NoiseCell::of(10.0, 0.25), NoiseCell::of(20.0, 0.75)]);
        let sum = one.plus(&other);
        let expected = [(11.0, 0.125), (12.0, 0.125), (21.0, 0.375), (22.0, 0.375)];
        assert_eq!(sum.cells(), expected.map(|(value, mass)| NoiseCell::of(value, mass)));
        assert_eq!(sum.quantile(0.2), 12.0);
    }

    /// From one term to a billion, and from levels that nearly every estimate exceeds to levels that no estimate exceeds.
    #[test]
    fn a_sum_has_unit_mass_and_its_mean() {
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
            let noise = noise_of_unused(Receiver::clipped(c).unwrap(), count, Side::Upper);
            let total: f64 = noise.cells().iter().map(|cell| cell.mass).sum();
            let mean: f64 = noise.cells().iter().map(|cell| cell.mean * cell.mass).sum();
            let expected = count as f64 * clipped_mean(c);
            assert!((total - 1.0).abs() < 2e-5, "c = {c}, {count} terms: {total}");
            let ratio = mean / total / expected;
            assert!(ratio <= 1.0 + 1e-9 && ratio > 0.995, "c = {c}, {count} terms: {ratio}");
        }
    }
}
