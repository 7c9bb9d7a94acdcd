//! The privacy loss of one round on a grid: the dots of its curve, connected.
//!
//! The curve of a pair is `D(x) = Σ_i m_i·(1 − x·e^{−l_i})₊` with `x = e^ε`, a convex function of `x` whose kinks are the
//! losses `l_i` and their masses `m_i`. Conversely, chords between points of a convex curve lie above it, so the pair that
//! they describe leaks at least as much as the true one: an upper bound that survives composition.
//!
//! The computation uses the excess `E(x) = D(x) − (1 − x)₊`, which is small wherever losses are improbable. For a grid
//! of step `h` the masses are second differences of it,
//!
//! ```text
//! m_i = (E_{i+1} − E_i)/(e^h − 1) − (E_i − E_{i−1})/(1 − e^{−h}),     and 1 more at l = 0.
//! ```
//!
//! # Citations
//! Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, *Connect the dots: tighter discrete approximations of privacy loss
//! distributions*, PoPETs 2022.

use crate::engine::sampling::{Direction, Pair};

/// Masses of the loss at `step·(first + i)`, and at infinity.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LossDistribution {
    pub(crate) step: f64,
    pub(crate) first: i64,
    pub(crate) masses: Vec<f64>,
    /// Probability of an infinite loss.
    pub(crate) infinite: f64,
}

impl LossDistribution {
    /// The distribution on a grid that covers `[lowest, highest]`.
    pub(crate) fn on_grid(pair: &Pair<'_>, step: f64, lowest: f64, highest: f64) -> Self {
        let last = (highest / step).ceil().max(1.0) as usize;
        let first = (-lowest / step).ceil().max(1.0) as usize;
        let positive = excesses(pair, step, last + 1);
        let negative = if pair.is_symmetric() {
            let mut negative = positive.clone();
            negative.resize(first + 1, 0.0);
            multiply_by_exponentials(&mut negative, -step);
            negative
        } else {
            excesses(pair, -step, first + 1)
        };
        let infinite = positive[last] + pair.infinite();
        // In ascending order; both halves contain the point 0, which is kept once.
        let mut excess = negative;
        excess.reverse();
        excess.extend(&positive[1..]);
        if pair.may_be_non_convex() {
            make_convex(&mut excess, step, first);
        }
        let (up, down) = (1.0 / step.exp_m1(), -1.0 / (-step).exp_m1());
        // Only rounding makes a mass negative; replacing it by 0 raises the curve.
        let mass = |rise: f64, fall: f64| (rise * up - fall * down).max(0.0);
        let mut masses = Vec::with_capacity(excess.len());
        // Below the grid, the chord to D(0) = 1.
        masses.push(((excess[1] - excess[0]) * up - excess[0]).max(0.0));
        masses.extend(excess.windows(3).map(|dots| mass(dots[2] - dots[1], dots[1] - dots[0])));
        masses.push(mass(0.0, excess[first + last] - excess[first + last - 1]));
        // The kink of (1 − x)₊ adds to a term that may be negative without it.
        let rise = (excess[first + 1] - excess[first]) * up;
        masses[first] = (rise - (excess[first] - excess[first - 1]) * down + 1.0).max(0.0);
        Self { step, first: -(first as i64), masses, infinite }
    }

    /// Removes the excess of the total mass over 1, which deviations from convexity can leave, from the lowest losses. Below the
    /// lowest remaining loss the curve is then the chord to `D(0) = 1`, which no convex curve exceeds. Above, it is unchanged.
    pub(crate) fn remove_excess(&mut self) {
        let mut excess = self.masses.iter().sum::<f64>() + self.infinite - 1.0;
        for mass in &mut self.masses {
            let removed = mass.min(excess.max(0.0));
            *mass -= removed;
            excess -= removed;
        }
    }

    /// The finite losses with positive mass, and their masses.
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

    /// The same loss on a grid of another step, which leaks at least as much.
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

/// Exponentials of equidistant points are multiplied from one to the next, and computed exactly after each block.
const BLOCK: usize = 16;

/// Multiplies the values by `1, e^s, e^{2s}, …`.
fn multiply_by_exponentials(values: &mut [f64], step: f64) {
    let ratio = step.exp();
    for (block, values) in values.chunks_mut(BLOCK).enumerate() {
        let mut factor = (step * (block * BLOCK) as f64).exp();
        for value in values {
            // A zero stays zero, even if the factor overflows.
            if *value != 0.0 {
                *value *= factor;
            }
            factor *= ratio;
        }
    }
}

/// `E` at `count` losses `0, s, 2s, …`; single values are [`Pair::excess`].
fn excesses(pair: &Pair<'_>, step: f64, count: usize) -> Vec<f64> {
    let is_removed_above = match pair.direction {
        // The loss has the same distribution in both directions.
        Direction::Replace | Direction::Known => true,
        Direction::Remove => step > 0.0,
        Direction::Add => step < 0.0,
    };
    let mut values =
        if is_removed_above { above(pair, step.abs(), count) } else { below(pair, step.abs(), count) };
    if pair.direction == Direction::Add || (pair.is_symmetric() && step < 0.0) {
        multiply_by_exponentials(&mut values, step);
    }
    values
}

/// `p·D₁(1 + (x − 1)/p)` for `x = 1, e^h, e^{2h}, …`; `p·D₁(x)` if participation is known.
fn above(pair: &Pair<'_>, step: f64, count: usize) -> Vec<f64> {
    /// From this exponent on, `x − 1` equals `x` up to rounding.
    const LARGE: f64 = 40.0;
    let p = pair.probability;
    let mut values: Vec<f64> = (0..count).map(|i| i as f64 * step).collect();
    if p < 1.0 && pair.direction != Direction::Known {
        let (ratio, rise) = (step.exp(), step.exp_m1());
        for losses in values.chunks_mut(BLOCK) {
            let mut excess = losses[0].exp_m1();
            for loss in losses {
                *loss = if *loss > LARGE { *loss - p.ln() } else { log_one_plus(excess / p) };
                excess = excess * ratio + rise;
            }
        }
    }
    pair.table.replace_by_values(&mut values);
    values.iter_mut().for_each(|value| *value *= p * pair.scale);
    values
}

/// `p·y·D₁(1/y)` with `y = 1 − (1 − x)/p`, for `x = 1, e^{−h}, e^{−2h}, …`.
fn below(pair: &Pair<'_>, step: f64, count: usize) -> Vec<f64> {
    let p = pair.probability;
    let (ratio, fall) = ((-step).exp(), (-step).exp_m1());
    let mut sizes = Vec::with_capacity(count);
    let mut excess = 0.0;
    for i in 0..count {
        if i.is_multiple_of(BLOCK) {
            excess = (-(i as f64) * step).exp_m1();
        }
        let size = 1.0 + excess / p;
        if size <= 0.0 {
            break;
        }
        sizes.push((size, -log_one_plus(excess / p)));
        excess = excess * ratio + fall;
    }
    let mut values: Vec<f64> = sizes.iter().map(|&(_, loss)| loss).collect();
    pair.table.replace_by_values(&mut values);
    for (value, (size, _)) in values.iter_mut().zip(sizes) {
        *value *= p * pair.scale * size;
    }
    values.resize(count, 0.0);
    values
}

/// `ln(1 + x)`, by the faster logarithm where it is exact.
fn log_one_plus(x: f64) -> f64 {
    if x.abs() < 0.5 { x.ln_1p() } else { (1.0 + x).ln() }
}

/// Replaces the excess `E` of a nearly convex `D(x) = E(x) + (1 − x)₊`, `x = e^{step·(i − zero)}`, by that of the greatest convex
/// minorant of `D`.
///
/// A tabulated curve is convex up to its tolerance, and a deviation would count as mass. A convex function below the values is also
/// below their minorant. So an upper bound remains an upper bound, and a lower bound a lower bound.
fn make_convex(values: &mut [f64], step: f64, zero: usize) {
    // (1 − x)₊, whose kink is at 0.
    let kink = |i: usize| if i < zero { -((i as f64 - zero as f64) * step).exp_m1() } else { 0.0 };
    // Corners of the minorant so far. Widths in x are relative to the middle corner; most span one step.
    let mut corners: Vec<usize> = Vec::with_capacity(values.len());
    let (one_left, one_right) = (-(-step).exp_m1(), step.exp_m1());
    let left_of = |count: usize| if count == 1 { one_left } else { -(-(count as f64) * step).exp_m1() };
    let right_of = |count: usize| if count == 1 { one_right } else { (count as f64 * step).exp_m1() };
    let bends_down = |values: &[f64], a: usize, b: usize, c: usize| {
        let left = (values[b] - values[a]) / left_of(b - a);
        let right = (values[c] - values[b]) / right_of(c - b);
        if c <= zero || a >= zero {
            return left > right;
        }
        left + (kink(b) - kink(a)) / left_of(b - a) > right + (kink(c) - kink(b)) / right_of(c - b)
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
        if to == from + 1 {
            continue;
        }
        // In D, a segment across 0 is straight; the other segments are straight in E too.
        let of_kink = |i: usize| if from < zero && zero < to { kink(i) } else { 0.0 };
        let start = values[from] + of_kink(from);
        let slope = (values[to] + of_kink(to) - start) / right_of(to - from);
        for (i, value) in values.iter_mut().enumerate().take(to).skip(from + 1) {
            *value = start + slope * right_of(i - from) - of_kink(i);
        }
    }
}

/// Moves masses to the points of another set, in ascending order, that covers them. Each mass is split between the two points
/// around it, so that `Σ m e^{−l}` is unchanged. The curve of the result connects dots of the first curve, and is nowhere below it.
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

/// Ratio of successive distances between the dots of a sketch.
const RATIO: f64 = 1.1;
/// Maximum distance between dots, relative to the largest loss: large losses may all be nearly equal.
const MAX_DISTANCE: f64 = 1.0 / 200.0;

/// Losses and masses at points that are denser towards 0: a sketch for the choice of grid sizes and tilts.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    /// Losses with the logarithms of their masses.
    dots: Vec<(f64, f64)>,
}

/// `K(θ) = ln Σ m e^{θl}`, and its derivatives `K'` and `K''`: mean and variance of the loss under the measure tilted by `e^{θl}`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moments {
    pub(crate) log_moment: f64,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
}

impl Sketch {
    /// Connects dots whose distances from 0 grow by a constant factor, and further out by a constant distance.
    pub(crate) fn new(pair: &Pair<'_>, lowest: f64, highest: f64) -> Self {
        let spread = |end: f64| {
            let next = move |&e: &f64| (e < end).then(|| (RATIO * e).min(e + MAX_DISTANCE * end).min(end));
            std::iter::successors(Some(1e-9 * end), next)
        };
        let mut losses: Vec<f64> = spread(-lowest).map(|e| -e).collect();
        losses.reverse();
        losses.push(0.0);
        losses.extend(spread(highest));
        Self::connecting(pair, &losses)
    }

    /// Connects dots of a grid: all dots near 0, and further out those whose distances grow by a constant factor. The result leaks
    /// at least as much as the grid.
    pub(crate) fn on_grid(pair: &Pair<'_>, step: f64, lowest: f64, highest: f64) -> Self {
        let spread = |end: f64| {
            let last = (end / step).ceil().max(1.0);
            let furthest = MAX_DISTANCE * last;
            let further = move |i: f64| (RATIO * i).min(i + furthest).floor().max(i + 1.0).min(last);
            let next = move |&i: &f64| (i < last).then(|| further(i));
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
        let dots = points.into_iter().zip(masses).filter(|&(_, mass)| mass > 0.0);
        Self { dots: dots.map(|(loss, mass)| (loss, mass.ln())).collect() }
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
        Self { dots: masses.filter(|&(_, mass)| mass > 0.0).map(|(loss, mass)| (loss, mass.ln())).collect() }
    }

    /// `K`, `K'` and `K''` at `θ`.
    pub(crate) fn moments(&self, theta: f64) -> Moments {
        let exponent = |&(loss, log_mass): &(f64, f64)| log_mass + theta * loss;
        let largest = self.dots.iter().map(exponent).fold(f64::NEG_INFINITY, f64::max);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for dot in &self.dots {
            let exponent = exponent(dot) - largest;
            // Smaller terms are negligible.
            if exponent > -40.0 {
                let weight = exponent.exp();
                sum += weight;
                first += weight * dot.0;
                second += weight * dot.0 * dot.0;
            }
        }
        let mean = first / sum;
        Moments {
            log_moment: largest + sum.ln(),
            mean,
            variance: (second / sum - mean * mean).max(1e-14 * mean * mean),
        }
    }
}

/// `ln Σ e^x` without overflow.
pub(crate) fn log_sum_exp(terms: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = terms.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    // Smaller terms are negligible.
    let exponents = terms.map(|term| term - largest).filter(|&exponent| exponent > -100.0);
    largest + exponents.map(f64::exp).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::distribution::{MuDistribution, Side};
    use crate::numerics::gaussian;
    use crate::numerics::table::Table;

    fn convex(i: usize, step: f64) -> f64 {
        gaussian::delta(i as f64 * step, 1.0)
    }

    /// `D(x) = Σ m·(1 − x·e^{−l})₊`, with infinite losses.
    fn curve(loss: &LossDistribution, epsilon: f64) -> f64 {
        let at = |(i, mass): (i64, &f64)| -mass * (epsilon - loss.step * i as f64).min(0.0).exp_m1();
        (loss.first..).zip(&loss.masses).map(at).sum::<f64>() + loss.infinite
    }

    #[test]
    fn dots_are_on_the_curve_and_chords_above() {
        let distribution = MuDistribution::Constant(1.0);
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 1.0), 12.0, 1e-12, 0.0, Side::Upper);
        for direction in [Direction::Replace, Direction::Remove, Direction::Add, Direction::Known] {
            for (p, step) in [(1.0, 0.25), (0.3, 0.1), (0.3, 0.01)] {
                let pair = Pair::new(&table, direction, p, &distribution);
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
    fn grid_excesses_equal_the_pointwise_ones() {
        let distribution = MuDistribution::Constant(1.0);
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 1.0), 30.0, 1e-12, 0.0, Side::Upper);
        for direction in [Direction::Replace, Direction::Remove, Direction::Add, Direction::Known] {
            for (p, step) in [(1.0, 0.013), (0.3, 0.013), (1e-3, 1e-4), (0.999, 0.5)] {
                let pair = Pair::new(&table, direction, p, &distribution);
                for step in [step, -step] {
                    for (i, found) in excesses(&pair, step, 110).into_iter().enumerate() {
                        let exact = pair.excess(i as f64 * step);
                        let case = format!("{direction:?}, p = {p}, step {step}, {i}: {found:e}, {exact:e}");
                        assert!((found - exact).abs() <= 1e-11 * exact + 1e-300, "{case}");
                    }
                }
            }
        }
    }

    /// The total is 0.02 too large: it is reduced at the lowest losses, so that the total is 1 and the curve above them is
    /// unchanged.
    #[test]
    fn excess_mass_is_taken_off_the_lowest_losses() {
        let mut loss =
            LossDistribution { step: 0.1, first: -2, masses: vec![0.01, 0.5, 0.01, 0.4], infinite: 0.1 };
        let before = loss.clone();
        loss.remove_excess();
        assert!((loss.masses.iter().sum::<f64>() + loss.infinite - 1.0).abs() < 1e-15);
        assert!((loss.masses[1] - 0.49).abs() < 1e-15 && loss.masses[0] == 0.0);
        assert!((curve(&loss, -0.1) - curve(&before, -0.1)).abs() < 1e-15);
        let kept = loss.clone();
        loss.remove_excess();
        assert!(loss.masses.iter().zip(&kept.masses).all(|(a, b)| (a - b).abs() < 1e-15));
    }

    /// The excess of a Gaussian mechanism from `−zero` steps to as many.
    fn excess(zero: usize, step: f64) -> Vec<f64> {
        let at = |i: usize| {
            if i >= zero {
                convex(i - zero, step)
            } else {
                (-(step * (zero - i) as f64)).exp() * convex(zero - i, step)
            }
        };
        (0..=2 * zero).map(at).collect()
    }

    /// Masses of the losses, and one more at 0.
    fn second_differences(values: &[f64], step: f64, zero: usize) -> Vec<f64> {
        let (up, down) = (1.0 / step.exp_m1(), -1.0 / (-step).exp_m1());
        let masses = values.windows(3).map(|dots| (dots[2] - dots[1]) * up - (dots[1] - dots[0]) * down);
        masses.enumerate().map(|(i, mass)| if i + 1 == zero { mass + 1.0 } else { mass }).collect()
    }

    #[test]
    fn convex_values_stay_as_they_are() {
        let before = excess(200, 0.05);
        let mut after = before.clone();
        make_convex(&mut after, 0.05, 200);
        for (i, (before, after)) in before.iter().zip(&after).enumerate() {
            assert!((after / before - 1.0).abs() < 1e-9, "{i}: {before:e} became {after:e}");
        }
    }

    /// Deviations from convexity everywhere, and values at and around 0 that are too large: a steep decrease there would be a
    /// negative mass at 0.
    #[test]
    fn non_convex_values_are_smoothed_from_below() {
        let (step, zero) = (0.005, 400);
        let truth = excess(zero, step);
        for around_zero in [0, 1, 5] {
            let deviation =
                |i: usize| 1e-3 * (i % 7) as f64 + if i.abs_diff(zero) <= around_zero { 0.02 } else { 0.0 };
            let non_convex: Vec<f64> =
                truth.iter().enumerate().map(|(i, value)| value * (1.0 + deviation(i))).collect();
            let mut values = non_convex.clone();
            make_convex(&mut values, step, zero);
            for i in 0..values.len() {
                let (least, most) = (truth[i] * (1.0 - 1e-12), non_convex[i] * (1.0 + 1e-12));
                assert!((least..=most).contains(&values[i]), "{i}: {least}, {}, {most}", values[i]);
            }
            let masses = second_differences(&values, step, zero);
            // A value that is too large only at 0 would be a negative mass there.
            assert!(around_zero > 0 || second_differences(&non_convex, step, zero)[zero - 1] < -0.1);
            assert!(
                masses.iter().all(|&mass| mass > -1e-11),
                "{:?}",
                masses.iter().copied().fold(0.0, f64::min)
            );
        }
    }

    #[test]
    fn a_sketch_has_a_normal_loss_s_moments() {
        // The loss is N(μ²/2, μ²): ln E e^{θL} = μ²(θ + θ²)/2, and the mean under the tilt μ²(½ + θ).
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 0.5), 8.0, 1e-12, 0.0, Side::Upper);
        let sketch = Sketch::new(
            &Pair::new(&table, Direction::Replace, 1.0, &MuDistribution::Constant(0.5)),
            -8.0,
            8.0,
        );
        for theta in [0.5, 1.0, 3.0] {
            let (moment, mean) = (0.125 * (theta + theta * theta), 0.25 * (0.5 + theta));
            assert!(
                (sketch.moments(theta).log_moment / moment - 1.0).abs() < 0.05,
                "{}",
                sketch.moments(theta).log_moment
            );
            assert!((sketch.moments(theta).mean / mean - 1.0).abs() < 0.05, "{}", sketch.moments(theta).mean);
        }
    }

    /// Some of the grid's dots, and so never less than the grid; on a coarse one, all of them.
    #[test]
    fn a_grid_sketch_has_at_least_its_moments() {
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 0.5), 8.0, 1e-12, 0.0, Side::Upper);
        let distribution = MuDistribution::Constant(0.5);
        for direction in [Direction::Replace, Direction::Remove, Direction::Add, Direction::Known] {
            let pair = Pair::new(&table, direction, 0.4, &distribution);
            for (step, more) in [(50.0, 1e-12), (0.5, 1e-12), (0.01, 0.02), (1e-5, 0.02)] {
                let grid = LossDistribution::on_grid(&pair, step, -8.0, 8.0);
                let sketch = Sketch::on_grid(&pair, step, -8.0, 8.0);
                for theta in [0.5, 1.0, 3.0] {
                    let terms = (grid.first..).zip(&grid.masses).filter(|&(_, &mass)| mass > 0.0);
                    let exact = log_sum_exp(terms.map(|(i, mass)| mass.ln() + theta * step * i as f64));
                    let found = sketch.moments(theta).log_moment;
                    let case = format!("{direction:?}, step {step}, θ = {theta}: {found} and {exact}");
                    assert!(found >= exact - 1e-12, "{case}");
                    assert!(found <= exact * (1.0 + more) + 1e-12, "{case}");
                }
            }
        }
    }
}
