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

/// Losses and masses at points that lie ever denser towards 0: a sketch from which sizes and tilts are chosen.
#[derive(Clone, Debug)]
pub(crate) struct Sketch(Vec<(f64, f64)>);

impl Sketch {
    /// Connects dots whose distances from 0 grow by a constant factor.
    pub(crate) fn new(pair: &Pair<'_>, lowest: f64, highest: f64) -> Self {
        const RATIO: f64 = 1.06;
        let spread =
            |end: f64| (0..400).map(move |i| end * RATIO.powi(-i)).take_while(move |&e| e > 1e-9 * end);
        let mut losses: Vec<f64> = spread(-lowest).map(|e| -e).collect();
        losses.push(0.0);
        let mut positive: Vec<f64> = spread(highest).collect();
        positive.reverse();
        losses.extend(positive);
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
