//! A distribution of `μ`: the form of every rigorous view.
//!
//! Given the channels and the pilot's noise, which do not depend on anyone's data, a round is a Gaussian mechanism with some `μ`. The
//! view determines the distribution of `μ`; the curve of one round is
//!
//! ```text
//! δ₁(ε) = E_μ[δ_G(ε; μ)]
//! ```
//!
//! If the distribution is a sum or an integral over many variables, it is kept in cells of `μ`, each with its mass and its mean.
//! Because `∂δ_G/∂μ = φ(μ/2 − ε/μ)`, the curve is convex in `μ` below `√(2ε)` and concave above. So the curve only grows if a convex
//! cell's mass moves to its two ends, and a concave cell's mass to its mean. The error of this bound is quadratic in the width of the
//! cell. Each contribution to a cell is itself a range of `μ` with a mass and a mean, so no integration rule has to resolve the
//! transition of `δ_G`.
//!
//! The lower bound has cells of its own, from noise and estimates that are rounded the other way. In them, no `μ`, no mass and no mean
//! is too large. A convex cell's mass counts at its mean, and a concave cell's at its ends. Missing mass counts as `μ = 0`. These
//! cells are computed at the first request for a lower bound, because many callers, such as a calibration, use upper bounds only.

use std::sync::{Arc, LazyLock};

use crate::engine::sampling::Curve;
use crate::numerics::gaussian;
use crate::numerics::normal;
use crate::numerics::quadrature::panels;

/// Width of a cell in `ln μ`.
pub(crate) const FINE_CELL: f64 = 0.005;
/// The same for distributions that are computed from many integrals.
pub(crate) const COARSE_CELL: f64 = 0.01;
/// Depth of the cells in `ln μ`, below 1 or below the largest `μ` if that is smaller.
const DEPTH: f64 = 20.0;
/// A range counts as its end on the safe side if its ends differ by more than this factor.
const WIDE_RANGE: f64 = 1.2;
/// A cell with less mass is dropped, and its mass is added to the exception.
const MIN_MASS: f64 = 1e-38;
/// The smallest `μ` are one cell, as long as their share of the mean of `μ` is below this. Such a cell is wide, but `δ_G/μ` is larger for larger
/// `μ` where the curve is convex. So the bound grows by at most about the same share.
const FAINT_SHARE: f64 = 1e-6;
/// Relative error of masses and means, which are differences of nearly equal numbers. Lower bounds are reduced by it.
const DIGITS: f64 = 1e-9;
/// The smallest `μ` are not evaluated one by one if together they add less than this share to the curve: in an upper bound they count as the
/// largest of them, in a lower bound as 0.
const LEFT_OUT: f64 = 1e-8;
/// From this `ε/μ − μ/2` on, `δ_G` is below 1e-300.
const NEGLIGIBLE: f64 = 37.5;

/// A distribution of `μ ≥ 0`.
#[derive(Clone, Debug, PartialEq)]
pub enum MuDistribution {
    /// The same `μ` in every round, as in the central Gaussian mechanism.
    Constant(f64),
    /// `a·|G|` with a standard normal `G`: the unused sequences' noise under the paper's receiver.
    HalfNormal {
        /// `a = Δ/γ`.
        scale: f64,
    },
    /// `a·R` with `R ~ χ_T`: `T` rounds of the distribution above.
    Chi {
        /// `a = Δ/γ`.
        scale: f64,
        /// Number of rounds `T`, the degrees of freedom of `R`.
        rounds: u64,
    },
    /// Weighted values, exact up to the error of the integration rule that they come from.
    Values(Values),
    /// Cells, rounded so that the upper bound on the curve is never too small.
    Cells(Cells),
}

/// Weighted values of `μ`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<(f64, f64)>);

/// Cells of `μ` in ascending order, with the probability of `μ = ∞`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// Cells for the upper bound.
    cells: Vec<Cell>,
    /// For each cell, its mass and that of all cells before it, and the largest `μ` of these cells.
    up_to: Vec<(f64, f64)>,
    infinite: f64,
    below: Below,
}

/// Cells for the lower bound, computed at the first request.
#[derive(Clone, Debug)]
struct Below(Arc<LazyLock<CellsBelow, MakeBelow>>);

type MakeBelow = Box<dyn FnOnce() -> CellsBelow + Send>;

/// Cells of `μ` for a lower bound, in ascending order; empty without a lower bound.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CellsBelow {
    cells: Vec<Cell>,
    /// As in [`Cells`].
    up_to: Vec<(f64, f64)>,
    /// Probability that `μ` is smaller than in the cells.
    exception: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Cell {
    lower: f64,
    upper: f64,
    mass: f64,
    mean: f64,
}

/// Upper or lower bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Upper,
    Lower,
}

impl MuDistribution {
    /// An upper bound on `δ₁(ε)` for `ε ≥ 0`.
    pub fn delta_upper(&self, epsilon: f64) -> f64 {
        self.infinite() + self.finite(epsilon, Side::Upper)
    }

    /// A lower bound on `δ₁(ε)` for `ε ≥ 0`.
    pub fn delta_lower(&self, epsilon: f64) -> f64 {
        self.finite(epsilon, Side::Lower)
    }

    /// The curve without infinite losses.
    fn finite(&self, epsilon: f64, side: Side) -> f64 {
        match self {
            Self::Constant(mu) => gaussian::delta(epsilon, *mu),
            Self::HalfNormal { scale } => chi_mean(epsilon, *scale, 1),
            Self::Chi { scale, rounds } => chi_mean(epsilon, *scale, *rounds),
            Self::Values(values) => values.delta(epsilon),
            Self::Cells(cells) => cells.delta(epsilon, side),
        }
    }

    /// The distribution of `√(μ_1² + … + μ_T²)`, if it has a closed form: `T` rounds are a Gaussian mechanism with that `μ`.
    fn of_rounds(&self, rounds: u64) -> Option<Self> {
        match self {
            Self::Constant(mu) => Some(Self::Constant(mu * (rounds as f64).sqrt())),
            // The same nodes serve for every ε, unless the transition of the curve is sharper than the distribution.
            Self::HalfNormal { scale } if *scale <= SHARP => {
                let nodes = chi_nodes(&chi_points(rounds), rounds).into_iter();
                Some(Self::Values(Values::new(nodes.map(|(r, weight)| (scale * r, weight)))))
            }
            Self::HalfNormal { scale } => Some(Self::Chi { scale: *scale, rounds }),
            Self::Chi { scale, rounds: each } => {
                each.checked_mul(rounds).map(|rounds| Self::Chi { scale: *scale, rounds })
            }
            Self::Values(_) | Self::Cells(_) => (rounds == 1).then(|| self.clone()),
        }
    }
}

impl Curve for MuDistribution {
    fn upper(&self, epsilon: f64) -> f64 {
        self.finite(epsilon, Side::Upper)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.finite(epsilon, Side::Lower)
    }

    fn infinite(&self) -> f64 {
        match self {
            Self::Cells(cells) => cells.infinite,
            Self::Constant(_) | Self::HalfNormal { .. } | Self::Chi { .. } | Self::Values(_) => 0.0,
        }
    }

    fn composed(&self, rounds: u64) -> Option<MuDistribution> {
        self.of_rounds(rounds)
    }

    fn tolerance(&self) -> f64 {
        match self {
            // The boundaries of cells have a small effect.
            Self::Cells(_) => 5e-5,
            Self::Constant(_) | Self::HalfNormal { .. } | Self::Chi { .. } | Self::Values(_) => 1e-10,
        }
    }
}

impl Values {
    /// Values of `μ` with their weights. Values with weight 0 are dropped, and the weights are scaled to sum to 1.
    pub fn new(values: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let mut values: Vec<(f64, f64)> = values.into_iter().filter(|&(_, weight)| weight > 0.0).collect();
        let total: f64 = values.iter().map(|&(_, weight)| weight).sum();
        values.iter_mut().for_each(|(_, weight)| *weight /= total);
        Self(values)
    }

    fn delta(&self, epsilon: f64) -> f64 {
        let sum: f64 = self.0.iter().map(|&(mu, weight)| weight * delta_or_zero(epsilon, mu)).sum();
        sum.min(1.0)
    }
}

/// Builder of cells.
pub(crate) struct CellsBuilder {
    top: f64,
    width: f64,
    /// Upper end of the lowest cell.
    floor: f64,
    /// Cells in descending order.
    cells: Vec<Cell>,
    /// For an upper bound, the probability of `μ = ∞`. For a lower bound, the probability that `μ` is smaller than in the cells.
    exception: f64,
    side: Side,
}

impl CellsBuilder {
    /// Cells for finite values up to `largest`, with this width in `ln μ`.
    pub(crate) fn new(largest: f64, width: f64, side: Side) -> Self {
        let count = ((DEPTH + largest.ln().max(0.0)) / width) as usize;
        let empty = Cell { lower: f64::INFINITY, upper: 0.0, mass: 0.0, mean: 0.0 };
        let top = largest.ln();
        let floor = (top - count as f64 * width).exp();
        Self { top, width, floor, cells: vec![empty; count + 1], exception: 0.0, side }
    }

    /// Adds a mass that lies between two values. For an upper bound the mean must not be below the true one, for a lower bound not
    /// above it. Masses need not sum to 1: missing mass counts as `μ = 0`.
    pub(crate) fn add_range(&mut self, mean: f64, range: (f64, f64), mass: f64) {
        self.add_near(mean.ln(), mean, range, mass);
    }

    /// The same with about the logarithm of the mean, which chooses the cell.
    pub(crate) fn add_near(&mut self, log_mean: f64, mean: f64, (lower, upper): (f64, f64), mass: f64) {
        // A wide range would widen the cell for its other masses; it counts as its end on the safe side.
        let (mean, lower, upper) = match self.side {
            _ if upper <= WIDE_RANGE * lower => (mean, lower, upper),
            Side::Upper => (upper, upper, upper),
            Side::Lower => (lower, lower, lower),
        };
        let index = ((self.top - log_mean) / self.width).max(0.0) as usize;
        let lowest = self.cells.len() - 1;
        // A value below the lowest cell counts at least as its upper end in an upper bound, and as 0 in a lower bound.
        if index >= lowest && self.side == Side::Lower {
            return;
        }
        let floor = self.floor.max(upper);
        let (mean, lower, upper) = if index >= lowest { (floor, floor, floor) } else { (mean, lower, upper) };
        let cell = &mut self.cells[index.min(lowest)];
        cell.lower = cell.lower.min(lower);
        cell.upper = cell.upper.max(upper);
        cell.mass += mass;
        cell.mean += mass * mean;
    }

    /// Adds the masses of another builder with the same cells.
    pub(crate) fn add_all(&mut self, other: &Self) {
        for (cell, other) in self.cells.iter_mut().zip(&other.cells) {
            cell.lower = cell.lower.min(other.lower);
            cell.upper = cell.upper.max(other.upper);
            cell.mass += other.mass;
            cell.mean += other.mean;
        }
        self.exception += other.exception;
    }

    /// Adds the mass of `μ = ∞` to an upper bound.
    pub(crate) fn add_infinite(&mut self, mass: f64) {
        self.exception += mass;
    }

    /// Adds to the probability that `μ` is smaller than in the cells of a lower bound.
    pub(crate) fn add_exception(&mut self, probability: f64) {
        self.exception += probability;
    }

    /// The cells with positive mass, in ascending order, and the exception.
    fn finished(self) -> (Vec<Cell>, f64) {
        let mut exception = self.exception;
        let mut cells: Vec<Cell> = Vec::new();
        let few = FAINT_SHARE * self.cells.iter().map(|cell| cell.mean).sum::<f64>();
        // Neighbouring cells together are a cell too, with the range and the mean of all.
        let mut faint = Cell { lower: f64::INFINITY, upper: 0.0, mass: 0.0, mean: 0.0 };
        for cell in self.cells.iter().rev().filter(|cell| cell.mass > 0.0) {
            // A cell of negligible mass would take as much time as any other.
            if cell.mass < MIN_MASS {
                exception += cell.mass;
                continue;
            }
            if cells.is_empty() && faint.mean + cell.mean <= few {
                faint.lower = faint.lower.min(cell.lower);
                faint.upper = faint.upper.max(cell.upper);
                faint.mass += cell.mass;
                faint.mean += cell.mean;
                continue;
            }
            if faint.mass > 0.0 {
                let mean = (faint.mean / faint.mass).clamp(faint.lower, faint.upper);
                cells.push(Cell { mean, ..std::mem::take(&mut faint) });
            }
            cells.push(Cell { mean: (cell.mean / cell.mass).clamp(cell.lower, cell.upper), ..*cell });
        }
        (cells, exception)
    }

    /// A distribution with an upper bound only; its lower bound is 0.
    pub(crate) fn build(self) -> MuDistribution {
        self.with_below(Below::default())
    }

    /// A distribution with both bounds; the cells of the lower bound are computed at the first request.
    pub(crate) fn build_above(self, below: impl FnOnce() -> Self + Send + 'static) -> MuDistribution {
        self.with_below(Below::new(|| below().build_below()))
    }

    fn with_below(self, below: Below) -> MuDistribution {
        let (cells, infinite) = self.finished();
        MuDistribution::Cells(Cells { up_to: sums_up_to(&cells), cells, infinite, below })
    }

    /// The cells of a lower bound.
    pub(crate) fn build_below(self) -> CellsBelow {
        let (cells, exception) = self.finished();
        CellsBelow { up_to: sums_up_to(&cells), cells, exception }
    }
}

impl Below {
    fn new(make: impl FnOnce() -> CellsBelow + Send + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl Default for Below {
    fn default() -> Self {
        Self::new(CellsBelow::default)
    }
}

impl PartialEq for Below {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self.0 == **other.0
    }
}

impl Cells {
    fn delta(&self, epsilon: f64, side: Side) -> f64 {
        match side {
            Side::Upper => self.upper(epsilon),
            Side::Lower => self.below.0.delta(epsilon),
        }
    }

    fn upper(&self, epsilon: f64) -> f64 {
        let turn = (2.0 * epsilon).sqrt();
        let mut sum = 0.0;
        for (cell, &(mass, largest)) in self.cells.iter().zip(&self.up_to).rev() {
            if is_negligible(epsilon, largest) {
                break;
            }
            sum += cell.mass
                * if cell.lower >= turn || cell.lower == cell.upper {
                    gaussian::delta(epsilon, cell.mean)
                } else {
                    let at_upper = gaussian::delta(epsilon, cell.upper);
                    if cell.upper <= turn {
                        if mass * at_upper <= LEFT_OUT * sum {
                            return sum + mass * gaussian::delta(epsilon, largest);
                        }
                        let at_lower = delta_or_zero(epsilon, cell.lower);
                        at_lower + cell.share() * (at_upper - at_lower)
                    } else {
                        cell.envelope(epsilon, turn, at_upper)
                    }
                };
        }
        sum
    }

    /// Masses at integer powers of `e^step`. The mass of every cell is split between the two nodes around it, so that its mean is
    /// unchanged. A cell that is wider than `widest` counts as its upper end. Returns the index of the first node, and the masses.
    pub(crate) fn at_nodes(&self, step: f64, widest: f64) -> (i64, Vec<f64>) {
        let node = |mu: f64| (mu.max(1e-300).ln() / step).floor() as i64;
        let ends = |cell: &Cell| {
            let upper = node(cell.upper) + 1;
            (if cell.width() > widest { upper - 1 } else { node(cell.lower) }, upper)
        };
        let ends: Vec<(i64, i64)> = self.cells.iter().map(ends).collect();
        let first = ends.iter().map(|&(from, _)| from).min().unwrap_or(0);
        let last = ends.iter().map(|&(_, to)| to).max().unwrap_or(0);
        let mut masses = vec![0.0; (last - first + 1) as usize];
        for (cell, &(from, to)) in self.cells.iter().zip(&ends) {
            let [low, high] = [from, to].map(|node| (node as f64 * step).exp());
            let mean = if cell.width() > widest { cell.upper } else { cell.mean };
            let share = ((mean - low) / (high - low)).clamp(0.0, 1.0);
            masses[(to - first) as usize] += share * cell.mass;
            masses[(from - first) as usize] += (1.0 - share) * cell.mass;
        }
        (first, masses)
    }

    /// Width in `ln μ` of the widest cell that is at most `most` wide.
    pub(crate) fn widest_up_to(&self, most: f64) -> f64 {
        self.cells.iter().map(Cell::width).filter(|&width| width <= most).fold(0.0, f64::max)
    }
}

impl CellsBelow {
    /// A lower bound on `δ₁(ε)` for `ε ≥ 0`: a convex cell's mass counts at its mean, a concave cell's at its ends.
    pub(crate) fn delta(&self, epsilon: f64) -> f64 {
        let turn = (2.0 * epsilon).sqrt();
        let at = |mu: f64| delta_or_zero(epsilon, mu);
        let mut sum = 0.0;
        for (cell, &(mass, largest)) in self.cells.iter().zip(&self.up_to).rev() {
            if is_negligible(epsilon, largest) {
                break;
            }
            let cell = cell.scaled(1.0 - DIGITS);
            sum += (1.0 - DIGITS)
                * cell.mass
                * if cell.upper <= turn || cell.lower == cell.upper {
                    let at_mean = at(cell.mean);
                    if mass * at_mean <= LEFT_OUT * sum {
                        break;
                    }
                    at_mean
                } else if cell.lower >= turn {
                    at(cell.lower) + cell.share() * (at(cell.upper) - at(cell.lower))
                } else {
                    cell.minorant(epsilon, turn)
                };
        }
        (sum - self.exception).max(0.0)
    }
}

impl Cell {
    fn scaled(&self, factor: f64) -> Self {
        let Self { lower, upper, mass, mean } = *self;
        Self { lower: factor * lower, upper: factor * upper, mass, mean: factor * mean }
    }

    /// Width in `ln μ`.
    fn width(&self) -> f64 {
        (self.upper / self.lower.max(1e-300)).ln()
    }

    /// Position of the mean between the lower end (0) and the upper end (1).
    fn share(&self) -> f64 {
        (self.mean - self.lower) / (self.upper - self.lower)
    }

    /// The least concave function above the curve, at the mean of a cell in which the curve changes from convex to concave. It is the
    /// line from the lower end that touches the curve, and beyond the point of contact the curve itself.
    fn envelope(&self, epsilon: f64, turn: f64, at_upper: f64) -> f64 {
        let at_lower = delta_or_zero(epsilon, self.lower);
        // Positive while the line from the lower end is steeper than the curve.
        let gap =
            |mu: f64, at: f64| at - at_lower - (mu - self.lower) * normal::density(0.5 * mu - epsilon / mu);
        let line = |slope: f64| at_lower + slope * (self.mean - self.lower);
        if gap(self.upper, at_upper) < 0.0 {
            return line((at_upper - at_lower) / (self.upper - self.lower));
        }
        let (mut from, mut to) = (turn, self.upper);
        while to - from > 1e-6 * (self.upper - self.lower) {
            let middle = 0.5 * (from + to);
            if gap(middle, gaussian::delta(epsilon, middle)) < 0.0 { from = middle } else { to = middle }
        }
        if self.mean >= to {
            return gaussian::delta(epsilon, self.mean);
        }
        // The slope falls from `from` to the point of contact, so this line is not below the touching line.
        line(normal::density(0.5 * from - epsilon / from))
    }

    /// A convex function below the curve, at the mean of a cell in which the curve changes from convex to concave. It is the curve up
    /// to the point from which a line to the upper end stays below it, and beyond that point the line.
    fn minorant(&self, epsilon: f64, turn: f64) -> f64 {
        let at = |mu: f64| delta_or_zero(epsilon, mu);
        let at_upper = at(self.upper);
        let slope = |mu: f64| (at_upper - at(mu)) / (self.upper - mu);
        // Left of the point of contact, the curve is flatter than the line to the upper end.
        let is_left = |mu: f64| normal::density(0.5 * mu - epsilon / mu) < slope(mu);
        let (mut from, mut to) = (self.lower, turn);
        if is_left(from) {
            for _ in 0..20 {
                let middle = 0.5 * (from + to);
                if is_left(middle) { from = middle } else { to = middle }
            }
        }
        // A line from a point on the left would cut the curve. The tangent there stays below the curve, and below the upper end.
        if self.mean <= from {
            return at(self.mean);
        }
        let tangent = normal::density(0.5 * from - epsilon / from);
        at(from) + tangent.min(slope(from)) * (self.mean - from)
    }
}

/// For each of some cells in ascending order, the mass of the cells up to it, and their largest `μ`.
fn sums_up_to(cells: &[Cell]) -> Vec<(f64, f64)> {
    let (mut mass, mut largest) = (0.0, 0.0_f64);
    let sums = cells.iter().map(|cell| {
        (mass, largest) = (mass + cell.mass, largest.max(cell.upper));
        (mass, largest)
    });
    sums.collect()
}

fn is_negligible(epsilon: f64, mu: f64) -> bool {
    epsilon > mu * (NEGLIGIBLE + 0.5 * mu)
}

fn delta_or_zero(epsilon: f64, mu: f64) -> f64 {
    if is_negligible(epsilon, mu) { 0.0 } else { gaussian::delta(epsilon, mu) }
}

/// `E_{R~χ_T}[δ_G(ε; a·R)]`, with panels that resolve the distribution of `R`, and the transition of the curve if it is sharper.
fn chi_mean(epsilon: f64, scale: f64, rounds: u64) -> f64 {
    let mean = |nodes: &[(f64, f64)]| -> f64 {
        nodes.iter().map(|&(r, weight)| weight * delta_or_zero(epsilon, scale * r)).sum()
    };
    if scale <= SHARP && rounds == 1 {
        return mean(half_normal_nodes());
    }
    let mut points = chi_points(rounds);
    let total: f64 = chi_nodes(&points, rounds).iter().map(|&(_, weight)| weight).sum();
    if scale > SHARP {
        // The curve rises with μ as Φ does, with a standard deviation of at most 1 below its transition and at most 2 above.
        let turn = (2.0 * epsilon).sqrt();
        let (from, to) = (points[0], points[points.len() - 1]);
        let around = (-8..=16).map(|i| (turn + 1.25 * f64::from(i)) / scale);
        points.extend(around.filter(|r| (from..to).contains(r)));
        points.sort_by(f64::total_cmp);
    }
    mean(&chi_nodes(&points, rounds)) / total
}

/// With a larger `a`, the transition of `δ_G(ε; a·r)` in `r` is sharper than the distribution of `R`.
const SHARP: f64 = 5.0;

/// Nodes of `|G|` with their weights.
fn half_normal_nodes() -> &'static [(f64, f64)] {
    static NODES: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| {
        let mut nodes = chi_nodes(&chi_points(1), 1);
        let total: f64 = nodes.iter().map(|&(_, weight)| weight).sum();
        nodes.iter_mut().for_each(|(_, weight)| *weight /= total);
        nodes
    });
    &NODES
}

/// Ends of panels for `R ~ χ_T`. They cover all but 1e-43 of it, and are finer towards 0, where the transition of the curve is within
/// `ε/a`.
fn chi_points(rounds: u64) -> Vec<f64> {
    let mode = (rounds as f64 - 1.0).sqrt();
    let from = mode - 14.0;
    let equal = (0..=28).map(|i| from + f64::from(i));
    if from > 0.0 {
        return equal.collect();
    }
    let fine = (0..24).rev().map(|power| 0.5_f64.powi(power));
    [0.0].into_iter().chain(fine).chain(equal.filter(|&r| r > 1.0)).collect()
}

/// Nodes of `R ~ χ_T` with their weights, up to a common factor.
fn chi_nodes(points: &[f64], rounds: u64) -> Vec<(f64, f64)> {
    let degrees = rounds as f64;
    let mode = (degrees - 1.0).sqrt();
    // The density falls at least as fast as a normal one on both sides of its mode.
    let log_density = |r: f64| {
        let power = if rounds == 1 { 0.0 } else { (degrees - 1.0) * (r / mode).ln() };
        power - 0.5 * (r - mode) * (r + mode)
    };
    panels(points).into_iter().map(|(r, weight)| (r, weight * log_density(r).exp())).collect()
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;

    /// Masses at values, in cells of some width.
    fn cells(values: &[(f64, f64)], width: f64) -> MuDistribution {
        let largest = values.iter().map(|&(mu, _)| mu).fold(0.0, f64::max);
        let [above, below] = [Side::Upper, Side::Lower].map(|side| {
            let mut cells = CellsBuilder::new(largest, width, side);
            values.iter().for_each(|&(mu, mass)| cells.add_range(mu, (mu, mu), mass));
            cells
        });
        above.build_above(|| below)
    }

    fn exact(values: &[(f64, f64)], epsilon: f64) -> f64 {
        values.iter().map(|&(mu, mass)| mass * gaussian::delta(epsilon, mu)).sum()
    }

    /// Cells wide enough to contain both values, at random places around the transition.
    #[test]
    fn cells_of_two_values_enclose_their_curve() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(51);
        for _ in 0..20_000 {
            let epsilon = 10_f64.powf(generator.random_range(-3.0..2.5));
            let mu = (2.0 * epsilon).sqrt() * generator.random_range(0.3..2.0);
            let width = 10_f64.powf(generator.random_range(-3.0..0.0));
            let share = generator.random::<f64>();
            let values = [(mu, share), (mu * (-width * generator.random::<f64>()).exp(), 1.0 - share)];
            let distribution = cells(&values, width);
            let (lower, truth, upper) =
                (distribution.lower(epsilon), exact(&values, epsilon), distribution.upper(epsilon));
            let rounding = 1e-12 * truth + 1e-300;
            assert!(
                lower <= truth + rounding && truth <= upper + rounding,
                "ε = {epsilon}, width {width}, {values:?}: {lower:e} ≤ {truth:e} ≤ {upper:e}"
            );
        }
    }

    /// `|G|` by its nodes: with half the cell width, the difference is a quarter.
    #[test]
    fn bounds_converge_quadratically_in_the_cell_width() {
        let distribution = MuDistribution::HalfNormal { scale: 1.0 };
        for epsilon in [0.1, 1.0, 5.0] {
            let gap = |width: f64| {
                let distribution = cells(half_normal_nodes(), width);
                distribution.upper(epsilon) - distribution.lower(epsilon)
            };
            let (wide, narrow) = (gap(0.04), gap(0.01));
            assert!(wide < 2e-2 * distribution.upper(epsilon), "{wide}");
            // There are few nodes, so the order is seen only roughly.
            assert!(narrow < wide / 8.0, "{wide} and {narrow}");
            let fine = cells(half_normal_nodes(), 0.001);
            assert!((fine.upper(epsilon) / distribution.upper(epsilon) - 1.0).abs() < 1e-5);
        }
    }

    #[test]
    fn infinite_mass_counts_only_in_the_upper_bound() {
        let [mut above, mut below] =
            [Side::Upper, Side::Lower].map(|side| CellsBuilder::new(1.0, FINE_CELL, side));
        above.add_range(1.0, (1.0, 1.0), 0.9);
        above.add_infinite(0.1);
        below.add_range(0.99, (0.99, 0.99), 0.9);
        below.add_exception(1e-3);
        let distribution = above.build_above(|| below);
        assert!(
            (distribution.delta_upper(100.0) - 0.1).abs() < 1e-15 && distribution.delta_lower(100.0) < 1e-15
        );
        let expected = 0.9 * gaussian::delta(0.5, 0.99) - 1e-3;
        assert!((distribution.delta_lower(0.5) / expected - 1.0).abs() < 1e-7);
    }

    #[test]
    fn lower_cells_are_made_once_and_when_asked() {
        let made = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = || made.load(std::sync::atomic::Ordering::Relaxed);
        let [mut above, mut below] =
            [Side::Upper, Side::Lower].map(|side| CellsBuilder::new(1.0, FINE_CELL, side));
        above.add_range(1.0, (1.0, 1.0), 1.0);
        below.add_range(1.0, (1.0, 1.0), 1.0);
        let makes = made.clone();
        let distribution = above.build_above(move || {
            makes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            below
        });
        let copy = distribution.clone();
        assert!(distribution.delta_upper(0.5) > 0.0 && copy.delta_upper(1.0) > 0.0 && count() == 0);
        assert!(distribution.delta_lower(0.5) > 0.0 && copy.delta_lower(1.0) > 0.0 && count() == 1);
    }

    /// Sharp transitions too, compared with a midpoint rule of 400,000 points: relative error below 1e-8.
    #[test]
    fn rounds_of_any_scale_match_the_chi_average() {
        for (scale, rounds, r) in
            [(0.4, 1, 1.0), (50.0, 1, 2.8), (50.0, 10, 4.0), (2.0, 3, 0.5), (300.0, 1000, 32.0)]
        {
            let epsilon = 0.5 * f64::powi(scale * r, 2);
            let mode = (rounds as f64 - 1.0).sqrt();
            let (from, width) = ((mode - 14.0).max(0.0), 28.0_f64.min(mode + 14.0));
            let (mut sum, mut total) = (0.0, 0.0);
            const POINTS: u32 = 400_000;
            for i in 0..POINTS {
                let r = from + width * (f64::from(i) + 0.5) / f64::from(POINTS);
                let power = if rounds == 1 { 0.0 } else { (rounds as f64 - 1.0) * (r / mode).ln() };
                let density = (power - 0.5 * (r * r - mode * mode)).exp();
                total += density;
                sum += density * gaussian::delta(epsilon, scale * r);
            }
            let distribution = MuDistribution::HalfNormal { scale }.of_rounds(rounds).unwrap();
            let error = distribution.upper(epsilon) * total / sum - 1.0;
            assert!(error.abs() < 1e-8, "a = {scale}, T = {rounds}: off by {error:e}");
        }
        let twice = MuDistribution::Chi { scale: 1.0, rounds: 3 }.of_rounds(4);
        assert_eq!(twice, Some(MuDistribution::Chi { scale: 1.0, rounds: 12 }));
        assert_eq!(MuDistribution::Constant(3.0).of_rounds(4), Some(MuDistribution::Constant(6.0)));
    }
}
