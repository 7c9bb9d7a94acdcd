//! The privacy loss of one round on a grid: the dots of its curve, connected.
//!
//! The curve of a pair is `D(x) = Σ_i m_i·(1 − x·e^{−l_i})₊` with `x = e^ε`, a convex function of `x` whose kinks are the
//! losses `l_i` and their masses `m_i`. Conversely, chords between points of a convex curve lie above it, so the pair that
//! they describe gives away at least as much as the true one: an upper bound that survives composition.
//!
//! What is computed with is the excess `E(x) = D(x) − (1 − x)₊`, which is small wherever the loss seldom is. For a grid
//! of step `h` the masses are second differences of it,
//!
//! ```text
//! m_i = (E_{i+1} − E_i)/(e^h − 1) − (E_i − E_{i−1})/(1 − e^{−h}),     and 1 more at l = 0.
//! ```
//!
//! # Citations
//! Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, *Connect the dots: tighter discrete approximations of privacy loss
//! distributions*, PoPETs 2022.

use crate::sampling::Pair;

/// Masses of the loss at `step·(first + i)`, and at infinity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LossDistribution {
    pub(crate) step: f64,
    pub(crate) first: i64,
    pub(crate) masses: Vec<f64>,
    /// Mass at infinity.
    pub(crate) infinite: f64,
}

impl LossDistribution {
    /// The distribution on a grid that covers `[lowest, highest]`.
    pub(crate) fn on_grid(pair: &Pair<'_>, step: f64, lowest: f64, highest: f64) -> Self {
        let last = (highest / step).ceil().max(1.0) as i64;
        let first = (lowest / step).floor().min(-1.0) as i64;
        let mut positive: Vec<f64> = (0..=last).map(|i| pair.excess(i as f64 * step)).collect();
        if pair.has_wrinkles() {
            make_convex(&mut positive, step);
        }
        let negative: Vec<f64> = if pair.is_symmetric() {
            let mirrored =
                |i: i64| (-(i as f64) * step).exp() * positive.get(i as usize).copied().unwrap_or(0.0);
            (0..=-first).map(mirrored).collect()
        } else {
            let mut negative: Vec<f64> = (0..=-first).map(|i| pair.excess(-(i as f64) * step)).collect();
            if pair.has_wrinkles() {
                make_convex(&mut negative, -step);
            }
            negative
        };
        let excess = |i: i64| if i < 0 { negative[-i as usize] } else { positive[i as usize] };
        let (up, down) = (step.exp_m1(), -(-step).exp_m1());
        let mass = |i: i64| {
            let rise = if i == last { 0.0 } else { (excess(i + 1) - excess(i)) / up };
            // Below the grid, the chord to D(0) = 1.
            let fall = if i == first { excess(i) } else { (excess(i) - excess(i - 1)) / down };
            let kink = if i == 0 { 1.0 } else { 0.0 };
            // A mass can only be negative by rounding, and to leave it out makes the curve larger.
            (rise - fall + kink).max(0.0)
        };
        let masses = (first..=last).map(mass).collect();
        Self { step, first, masses, infinite: excess(last) + pair.infinite() }
    }

    /// The finite losses that have mass, with it.
    pub(crate) fn losses(&self) -> impl Iterator<Item = (f64, f64)> + Clone {
        let at = |(index, &mass): (i64, &f64)| (self.step * index as f64, mass);
        (self.first..).zip(&self.masses).map(at).filter(|&(_, mass)| mass > 0.0)
    }

    /// The smallest point of the grid.
    pub(crate) fn lowest(&self) -> f64 {
        self.step * self.first as f64
    }

    /// The largest point of the grid.
    pub(crate) fn highest(&self) -> f64 {
        self.step * (self.first + self.masses.len() as i64 - 1) as f64
    }

    /// The same on a grid of another step; it leaks at least as much.
    pub(crate) fn with_step(&self, step: f64) -> Self {
        let (first, last) = ((self.lowest() / step).floor(), (self.highest() / step).ceil());
        let points: Vec<f64> = (first as i64..=last as i64).map(|index| step * index as f64).collect();
        let masses = moved_to_points(self.losses(), &points);
        Self { step, first: first as i64, masses, infinite: self.infinite }
    }

    /// `ln Σ m e^{θl}` over the finite losses.
    pub(crate) fn log_moment(&self, theta: f64) -> f64 {
        log_sum_exp(self.losses().map(|(loss, mass)| mass.ln() + theta * loss))
    }
}

/// Replaces the values of a nearly convex function of `x = e^{step·i}` by its greatest convex minorant.
///
/// A curve that was tabulated is convex but for its tolerance, and a wrinkle would count as mass. A convex function that lies
/// below the values lies below their minorant too, so that a bound stays one.
fn make_convex(values: &mut [f64], step: f64) {
    // Corners of the minorant so far. Widths in x are taken relative to the latest corner.
    let mut corners: Vec<usize> = Vec::with_capacity(values.len());
    let slope = |values: &[f64], from: usize, to: usize, base: usize| {
        let x = |i: usize| ((i as f64 - base as f64) * step).exp_m1();
        (values[to] - values[from]) / (x(to) - x(from))
    };
    let bends_down = |values: &[f64], a: usize, b: usize, c: usize| {
        let (left, right) = (slope(values, a, b, b), slope(values, b, c, b));
        // In the order of x, which falls for a negative step.
        if step > 0.0 { left > right } else { left < right }
    };
    for i in 0..values.len() {
        while let [.., a, b] = corners[..]
            && bends_down(values, a, b, i)
        {
            corners.pop();
        }
        corners.push(i);
    }
    for ends in corners.windows(2) {
        let (from, to) = (ends[0], ends[1]);
        let (start, slope) = (values[from], slope(values, from, to, from));
        for (i, value) in values.iter_mut().enumerate().take(to).skip(from + 1) {
            *value = start + slope * ((i - from) as f64 * step).exp_m1();
        }
    }
}

/// Moves masses to the points of a coarser or finer set, in ascending order, that covers them: each to the two points around it,
/// so that `Σ m e^{−l}` stays. The curve of the result connects dots of the first one's, and is nowhere below it.
pub(crate) fn moved_to_points(losses: impl Iterator<Item = (f64, f64)>, points: &[f64]) -> Vec<f64> {
    let mut masses = vec![0.0; points.len()];
    for (loss, mass) in losses {
        let above = points.partition_point(|&point| point < loss).min(points.len() - 1);
        if above == 0 || points[above] <= loss {
            masses[above] += mass;
            continue;
        }
        let (left, right) = (points[above - 1], points[above]);
        let share = ((left - loss).exp_m1() / (left - right).exp_m1()).clamp(0.0, 1.0);
        masses[above - 1] += (1.0 - share) * mass;
        masses[above] += share * mass;
    }
    masses
}

/// By how much a sketch's dots grow further apart.
const RATIO: f64 = 1.06;

/// Losses and masses at points that lie ever denser towards 0: a sketch from which sizes and tilts are chosen.
#[derive(Clone, Debug)]
pub(crate) struct Sketch(Vec<(f64, f64)>);

impl Sketch {
    /// Connects dots whose distances from 0 grow by a constant factor.
    pub(crate) fn new(pair: &Pair<'_>, lowest: f64, highest: f64) -> Self {
        let spread =
            |end: f64| (0..400).map(move |i| end * RATIO.powi(-i)).take_while(move |&e| e > 1e-9 * end);
        let mut losses: Vec<f64> = spread(-lowest).map(|e| -e).collect();
        losses.push(0.0);
        let mut positive: Vec<f64> = spread(highest).collect();
        positive.reverse();
        losses.extend(positive);
        Self::connecting(pair, &losses)
    }

    /// Connects dots of a grid: all of them near 0, and further out those whose distances grow by a constant factor. What it
    /// gives away is not less than what the grid does.
    pub(crate) fn on_grid(pair: &Pair<'_>, step: f64, lowest: f64, highest: f64) -> Self {
        let spread = |end: f64| {
            let last = (end / step).ceil().max(1.0);
            let next = move |&i: &f64| (i < last).then(|| (RATIO * i).floor().max(i + 1.0).min(last));
            std::iter::successors(Some(1.0), next).map(move |i| step * i)
        };
        let mut losses: Vec<f64> = spread(-lowest).map(|e| -e).collect();
        losses.reverse();
        losses.push(0.0);
        losses.extend(spread(highest));
        Self::connecting(pair, &losses)
    }

    /// A sketch of a loss on a grid, which leaks at least as much.
    pub(crate) fn of(round: &LossDistribution) -> Self {
        let (lowest, highest) = (round.lowest().min(-round.step), round.highest().max(round.step));
        let spread = |end: f64| {
            let next =
                move |&loss: &f64| (loss < end).then(|| (RATIO * loss).max(loss + round.step).min(end));
            std::iter::successors(Some(round.step), next)
        };
        let mut points: Vec<f64> = spread(-lowest).map(|loss| -loss).collect();
        points.reverse();
        points.push(0.0);
        points.extend(spread(highest));
        let masses = moved_to_points(round.losses(), &points);
        Self(points.into_iter().zip(masses).filter(|&(_, mass)| mass > 0.0).collect())
    }

    /// Connects the dots at some losses in ascending order, one of which is 0.
    fn connecting(pair: &Pair<'_>, losses: &[f64]) -> Self {
        let excesses: Vec<f64> = losses.iter().map(|&loss| pair.excess(loss)).collect();
        let last = losses.len() - 1;
        let mass = |i: usize| {
            let slope = |from: usize, to: usize| {
                (excesses[to] - excesses[from]) / (losses[to] - losses[from]).exp_m1()
            };
            let rise = if i == last { 0.0 } else { slope(i, i + 1) };
            let fall = if i == 0 {
                excesses[0]
            } else {
                (excesses[i] - excesses[i - 1]) / -(losses[i - 1] - losses[i]).exp_m1()
            };
            let kink = if losses[i] == 0.0 { 1.0 } else { 0.0 };
            (rise - fall + kink).max(0.0)
        };
        let masses = (0..=last).map(|i| (losses[i], mass(i)));
        Self(masses.filter(|&(_, mass)| mass > 0.0).collect())
    }

    /// `ln Σ m e^{θl}`.
    pub(crate) fn log_moment(&self, theta: f64) -> f64 {
        log_sum_exp(self.0.iter().map(|&(loss, mass)| mass.ln() + theta * loss))
    }

    /// The mean of the loss under the measure tilted by `e^{θl}`.
    pub(crate) fn tilted_mean(&self, theta: f64) -> f64 {
        let log_moment = self.log_moment(theta);
        self.0.iter().map(|&(loss, mass)| loss * (mass.ln() + theta * loss - log_moment).exp()).sum()
    }
}

/// `ln Σ e^x`, safe from overflow.
pub(crate) fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + terms.map(|term| (term - largest).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian;
    use crate::law::{Law, Side};
    use crate::sampling::Direction;
    use crate::table::Table;

    fn convex(i: usize, step: f64) -> f64 {
        gaussian::delta(i as f64 * step, 1.0)
    }

    /// `D(x) = Σ m·(1 − x·e^{−l})₊`, what is infinite included.
    fn curve(loss: &LossDistribution, epsilon: f64) -> f64 {
        let at = |(i, mass): (i64, &f64)| -mass * (epsilon - loss.step * i as f64).min(0.0).exp_m1();
        (loss.first..).zip(&loss.masses).map(at).sum::<f64>() + loss.infinite
    }

    #[test]
    fn dots_are_on_the_curve_and_chords_above_it() {
        let law = Law::Constant(1.0);
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 1.0), 12.0, 1e-12, 0.0, Side::Upper);
        for direction in [Direction::Replace, Direction::Remove, Direction::Add] {
            for (p, step) in [(1.0, 0.25), (0.3, 0.1), (0.3, 0.01)] {
                let pair = Pair::new(&table, direction, p, &law);
                let loss = LossDistribution::on_grid(&pair, step, -10.0, 10.0);
                let total: f64 = loss.masses.iter().sum::<f64>() + loss.infinite;
                assert!((total - 1.0).abs() < 1e-12, "{direction:?}, p = {p}: {total}");
                assert!(loss.masses.iter().all(|&mass| mass >= 0.0));
                for i in -30..60 {
                    let truth = |epsilon: f64| pair.excess(epsilon) + (-epsilon.exp_m1()).max(0.0);
                    let (dot, between) = (step * f64::from(i), step * (f64::from(i) + 0.4));
                    assert!(
                        (curve(&loss, dot) - truth(dot)).abs() < 1e-12,
                        "{direction:?}, p = {p}, at {dot}"
                    );
                    assert!(
                        curve(&loss, between) >= truth(between) - 1e-13,
                        "{direction:?}, p = {p}, at {between}"
                    );
                }
            }
        }
    }

    #[test]
    fn convex_values_stay_as_they_are() {
        for step in [0.05, -0.05] {
            let before: Vec<f64> = (0..200)
                .map(
                    |i| if step > 0.0 { convex(i, step) } else { (step * i as f64).exp() * convex(i, -step) },
                )
                .collect();
            let mut after = before.clone();
            make_convex(&mut after, step);
            for (i, (before, after)) in before.iter().zip(&after).enumerate() {
                assert!((after / before - 1.0).abs() < 1e-9, "{step}, {i}: {before:e} became {after:e}");
            }
        }
    }

    #[test]
    fn wrinkles_are_smoothed_from_below() {
        let step = 0.05;
        let wrinkled: Vec<f64> = (0..200).map(|i| convex(i, step) * (1.0 + 1e-3 * (i % 7) as f64)).collect();
        let mut values = wrinkled.clone();
        make_convex(&mut values, step);
        for i in 0..200 {
            let truth = convex(i, step);
            assert!(values[i] <= wrinkled[i] * (1.0 + 1e-12) && values[i] >= truth * (1.0 - 1e-12), "{i}");
        }
        for i in 1..199 {
            let x = |i: usize| (step * i as f64).exp();
            let slope = |i: usize| (values[i + 1] - values[i]) / (x(i + 1) - x(i));
            assert!(slope(i) >= slope(i - 1) - 1e-12 * slope(i - 1).abs() - 1e-18, "a bend down at {i}");
        }
    }

    #[test]
    fn a_sketch_has_the_moments_of_a_normal_loss() {
        // The loss is N(μ²/2, μ²): ln E e^{θL} = μ²(θ + θ²)/2, and the mean under the tilt μ²(½ + θ).
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 0.5), 8.0, 1e-12, 0.0, Side::Upper);
        let sketch = Sketch::new(&Pair::new(&table, Direction::Replace, 1.0, &Law::Constant(0.5)), -8.0, 8.0);
        for theta in [0.5, 1.0, 3.0] {
            let (moment, mean) = (0.125 * (theta + theta * theta), 0.25 * (0.5 + theta));
            assert!((sketch.log_moment(theta) / moment - 1.0).abs() < 0.05, "{}", sketch.log_moment(theta));
            assert!((sketch.tilted_mean(theta) / mean - 1.0).abs() < 0.05, "{}", sketch.tilted_mean(theta));
        }
    }

    /// Some of the grid's dots, and so never less than the grid; on a coarse one, all of them.
    #[test]
    fn a_sketch_of_a_grid_has_at_least_its_moments() {
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 0.5), 8.0, 1e-12, 0.0, Side::Upper);
        let law = Law::Constant(0.5);
        for direction in [Direction::Replace, Direction::Remove, Direction::Add] {
            let pair = Pair::new(&table, direction, 0.4, &law);
            for (step, more) in [(50.0, 1e-12), (0.5, 1e-12), (0.01, 0.02), (1e-5, 0.02)] {
                let grid = LossDistribution::on_grid(&pair, step, -8.0, 8.0);
                let sketch = Sketch::on_grid(&pair, step, -8.0, 8.0);
                for theta in [0.5, 1.0, 3.0] {
                    let terms = (grid.first..).zip(&grid.masses).filter(|&(_, &mass)| mass > 0.0);
                    let exact = log_sum_exp(terms.map(|(i, mass)| mass.ln() + theta * step * i as f64));
                    let found = sketch.log_moment(theta);
                    let case = format!("{direction:?}, step {step}, θ = {theta}: {found} and {exact}");
                    assert!(found >= exact - 1e-12, "{case}");
                    assert!(found <= exact * (1.0 + more) + 1e-12, "{case}");
                }
            }
        }
    }
}
