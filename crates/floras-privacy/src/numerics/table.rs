//! Tables of functions that are expensive to compute: piecewise polynomials for `ln f`, fitted at Chebyshev nodes.

use crate::engine::distribution::Side;

/// Number of coefficients per piece.
const ORDER: usize = 14;
/// Number of pieces at the start, each half as long as the next one, because curves change fastest near 0.
const HALVED: i32 = 8;
/// Maximum number of pieces below these, each a quarter as long as the next one.
const QUARTERED: usize = 40;
/// Maximum relative decrease of `f` within the first piece, or a tenth of the tolerance if that is larger. A larger decrease could be
/// missed.
const HIDDEN_FALL: f64 = 1e-6;
/// Maximum number of pieces. Pieces are halved until they meet the tolerance or this limit.
const MAX_PIECES: usize = 2000;

/// `ln δ` on `[0, end]`; beyond the end, [`Table::value`] returns 0.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pieces: Vec<Piece>,
    end: f64,
}

/// `ln f` of a positive function where it is smooth, without values elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct Smooth {
    from: f64,
    /// Pieces with their ends; `None` where the function is not smooth.
    pieces: Vec<(f64, Option<Piece>)>,
}

impl Smooth {
    /// Interpolates `f` on an interval to a relative `tolerance`. Pieces are at most `longest` long and, where `f` is smooth, at least a
    /// sixteenth of that.
    pub(crate) fn new(f: impl Fn(f64) -> f64, from: f64, to: f64, longest: f64, tolerance: f64) -> Self {
        let count = ((to - from) / longest).ceil().max(1.0);
        let length = (to - from) / count;
        // In descending order.
        let mut ends: Vec<f64> = (0..count as usize).rev().map(|i| from + (i + 1) as f64 * length).collect();
        let mut pieces = Vec::new();
        let mut start = from;
        while let Some(&end) = ends.last() {
            let piece = Piece::fit(&f, start, end);
            let is_good = piece.is_good(&f, start, tolerance);
            if !is_good && end - start > longest / 16.0 {
                ends.push(0.5 * (start + end));
                continue;
            }
            pieces.push((end, is_good.then_some(piece)));
            ends.pop();
            start = end;
        }
        Self { from, pieces }
    }

    /// The interpolated value; `None` where `f` is not smooth, and outside of the interval.
    pub(crate) fn value(&self, x: f64) -> Option<f64> {
        let index = self.pieces.partition_point(|&(end, _)| end < x);
        let (_, piece) = self.pieces.get(index).filter(|_| x >= self.from)?;
        piece.as_ref().map(|piece| piece.log_value(x).exp())
    }
}

#[derive(Clone, Debug)]
struct Piece {
    to: f64,
    middle: f64,
    inverse_half: f64,
    /// Coefficients of the powers of `x`, which is −1 and 1 at the ends.
    coefficients: [f64; ORDER],
    /// Magnitude of the last two Chebyshev coefficients, which estimates the truncation error from above.
    last: f64,
}

impl Table {
    /// Tabulates a decreasing positive `f` on `[0, end]`, each piece to a relative `tolerance`. A piece of length `shortest`, relative to
    /// its end, may miss the tolerance. It is then shifted by its observed error: up for an upper bound, down for a lower one.
    pub(crate) fn new(f: impl Fn(f64) -> f64, end: f64, tolerance: f64, shortest: f64, side: Side) -> Self {
        let mut ends = first_ends(&f, end, HIDDEN_FALL.max(0.1 * tolerance));
        let mut pieces: Vec<Piece> = Vec::new();
        let mut from = 0.0;
        while let Some(&to) = ends.last() {
            let mut piece = Piece::fit(&f, from, to);
            if !piece.is_good(&f, from, tolerance) {
                let width = to - from;
                if pieces.len() + ends.len() < MAX_PIECES && width > 1e-10 * to && width > shortest * to {
                    ends.push(0.5 * (from + to));
                    continue;
                }
                let error = piece.error(&f, from);
                piece.coefficients[0] += if side == Side::Upper { error } else { -error };
            }
            pieces.push(piece);
            ends.pop();
            from = to;
        }
        Self { pieces, end }
    }

    /// The tabulated value; 0 beyond the end.
    pub(crate) fn value(&self, epsilon: f64) -> f64 {
        if epsilon > self.end {
            return 0.0;
        }
        let index = self.pieces.partition_point(|piece| piece.to < epsilon);
        self.pieces.get(index).map_or(0.0, |piece| piece.log_value(epsilon).exp())
    }

    /// Replaces each `ε ≥ 0` of an ascending list by its tabulated value.
    pub(crate) fn replace_by_values(&self, epsilons: &mut [f64]) {
        let mut rest = epsilons;
        for piece in &self.pieces {
            let count = rest.partition_point(|&epsilon| epsilon <= piece.to);
            let (here, beyond) = std::mem::take(&mut rest).split_at_mut(count);
            // Two loops, of which the first has no function calls and can be vectorised.
            here.iter_mut().for_each(|epsilon| *epsilon = piece.log_value(*epsilon));
            here.iter_mut().for_each(|value| *value = value.exp());
            rest = beyond;
        }
        rest.fill(0.0);
    }
}

/// Ends of the first pieces, in descending order.
fn first_ends(f: impl Fn(f64) -> f64, end: f64, hidden_fall: f64) -> Vec<f64> {
    let mut ends: Vec<f64> = (0..HALVED).map(|power| end * 0.5_f64.powi(power)).collect();
    let at_zero = f(0.0);
    let mut last = end * 0.5_f64.powi(HALVED);
    for _ in 0..QUARTERED {
        ends.push(last);
        if f(last) >= (1.0 - hidden_fall) * at_zero {
            break;
        }
        last *= 0.25;
    }
    ends
}

impl Piece {
    fn fit(f: impl Fn(f64) -> f64, from: f64, to: f64) -> Self {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let angle = |j: usize| std::f64::consts::PI * (j as f64 + 0.5) / ORDER as f64;
        let values: [f64; ORDER] = std::array::from_fn(|j| f(middle + half * angle(j).cos()).ln());
        let chebyshev: [f64; ORDER] = std::array::from_fn(|k| {
            let sum: f64 = (0..ORDER).map(|j| values[j] * (k as f64 * angle(j)).cos()).sum();
            sum * if k == 0 { 1.0 } else { 2.0 } / ORDER as f64
        });
        let [.., before_last, last] = chebyshev;
        let last = before_last.abs().max(last.abs());
        Self { to, middle, inverse_half: 1.0 / half, coefficients: in_powers(&chebyshev), last }
    }

    fn log_value(&self, epsilon: f64) -> f64 {
        let x = (epsilon - self.middle) * self.inverse_half;
        self.coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
    }

    /// The largest observed error of `ln f` between the nodes.
    fn error(&self, f: impl Fn(f64) -> f64, from: f64) -> f64 {
        let width = self.to - from;
        let checks = (0..=ORDER).map(|j| {
            let share = 0.5 - 0.5 * (std::f64::consts::PI * j as f64 / ORDER as f64).cos();
            let epsilon = from + share * width;
            (self.log_value(epsilon) - f(epsilon).ln()).abs()
        });
        checks.fold(0.0, f64::max)
    }

    fn is_good(&self, f: impl Fn(f64) -> f64, from: f64, tolerance: f64) -> bool {
        // The ends lie outside all nodes, and the middle lies between two of them.
        self.last <= tolerance
            && [0.0, 0.003, 0.5, 1.0].iter().all(|share| {
                let epsilon = from + share * (self.to - from);
                (self.log_value(epsilon) - f(epsilon).ln()).abs() <= tolerance
            })
    }
}

/// Converts a Chebyshev series to powers; a few digits are lost only if the series hardly decreases.
fn in_powers(chebyshev: &[f64; ORDER]) -> [f64; ORDER] {
    // T_{k+1} = 2x·T_k − T_{k−1}.
    let (mut before, mut here) = ([0.0; ORDER], [0.0; ORDER]);
    (before[0], here[1]) = (1.0, 1.0);
    let mut powers = [0.0; ORDER];
    for &coefficient in chebyshev {
        for (power, factor) in powers.iter_mut().zip(before) {
            *power += coefficient * factor;
        }
        let next = std::array::from_fn(|k| if k == 0 { 0.0 } else { 2.0 * here[k - 1] } - before[k]);
        (before, here) = (here, next);
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian;

    #[test]
    fn a_table_is_as_good_as_its_tolerance() {
        let calls = std::cell::Cell::new(0);
        let f = |epsilon: f64| {
            calls.set(calls.get() + 1);
            gaussian::delta(epsilon, 0.7)
        };
        let table = Table::new(f, 12.0, 1e-11, 0.0, Side::Upper);
        assert!(calls.get() < 1000, "{} calls", calls.get());
        for i in 0..=1200 {
            let epsilon = f64::from(i) * 0.01;
            let ratio = table.value(epsilon) / gaussian::delta(epsilon, 0.7);
            assert!((ratio - 1.0).abs() < 1e-10, "at {epsilon}: {ratio}");
        }
        assert_eq!(table.value(12.1), 0.0);
    }

    /// A curve with kinks at regular distances: pieces and nodes suffice up to the end, and no value is on the wrong side.
    #[test]
    fn tables_of_non_smooth_curves_are_one_sided() {
        let f = |epsilon: f64| (-epsilon - 0.05 * (3.0 * epsilon).sin().abs()).exp();
        for (side, sign) in [(Side::Upper, 1.0), (Side::Lower, -1.0)] {
            let calls = std::cell::Cell::new(0);
            let counted = |epsilon: f64| {
                calls.set(calls.get() + 1);
                f(epsilon)
            };
            let table = Table::new(counted, 100.0, 1e-8, 1.0 / 32.0, side);
            assert!(calls.get() < 30_000, "{} calls", calls.get());
            for i in 0..=20_000 {
                let epsilon = f64::from(i) * 0.005;
                let off = (table.value(epsilon) / f(epsilon)).ln();
                assert!(sign * off > -0.005 && off.abs() < 0.06, "{side:?} at {epsilon}: {off}");
            }
        }
    }

    /// A decrease near 0 that equally spaced nodes would miss. The tolerance is small relative to the curve's end.
    #[test]
    fn a_fall_near_zero_is_not_missed() {
        for fall in [1e-6, 1e-8, 1e-12] {
            let f = |epsilon: f64| 1e-30 + 0.3 * (-200.0 * epsilon / fall).exp();
            for (side, sign, shortest) in
                [(Side::Upper, 1.0, 0.0), (Side::Upper, 1.0, 0.3), (Side::Lower, -1.0, 0.3)]
            {
                let table = Table::new(f, 1.0, 1e-9, shortest, side);
                for i in 0..4000 {
                    let epsilon = fall * f64::from(i) * 5e-4;
                    let off = (table.value(epsilon) / f(epsilon)).ln();
                    assert!(sign * off > -1e-8, "{side:?}, {fall}, at {epsilon}: {off}");
                    if shortest == 0.0 || epsilon == 0.0 {
                        assert!(off.abs() < 1e-8, "{side:?}, {fall}, at {epsilon}: {off}");
                    }
                }
            }
        }
    }

    /// A function with a kink, a jump to 0 and smooth parts: no value near the kink and beyond the jump, elsewhere the tolerance holds.
    #[test]
    fn smooth_parts_are_interpolated_and_others_are_not() {
        let f = |x: f64| if x > 7.3 { 0.0 } else { (x - 3.7).abs().exp() * (2.0 + x.sin()) };
        let smooth = Smooth::new(f, -1.0, 9.0, 1.0, 1e-11);
        let mut count = 0;
        for i in 0..=1100 {
            let x = -1.5 + 0.01 * f64::from(i);
            let is_smooth = (-1.0..=7.2).contains(&x) && (x - 3.7).abs() > 0.07;
            match smooth.value(x) {
                Some(value) => assert!((value / f(x) - 1.0).abs() < 1e-10, "at {x}: {value}"),
                None => assert!(!is_smooth, "at {x}"),
            }
            count += usize::from(smooth.value(x).is_some());
            assert!(smooth.value(x).is_none() || (-1.0..=7.3).contains(&x), "at {x}");
        }
        assert!(count > 790, "{count}");
    }

    #[test]
    fn values_in_order_are_those_one_by_one() {
        let table = Table::new(|epsilon| gaussian::delta(epsilon, 0.7), 12.0, 1e-11, 0.0, Side::Upper);
        let epsilons: Vec<f64> = (0..5000).map(|i| f64::from(i) * 0.0025).collect();
        let mut values = epsilons.clone();
        table.replace_by_values(&mut values);
        for (epsilon, value) in epsilons.into_iter().zip(values) {
            assert_eq!(value, table.value(epsilon), "at {epsilon}");
        }
    }
}
