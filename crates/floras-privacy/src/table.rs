//! A curve `δ(ε)` that is dear to compute, tabulated: pieces of Chebyshev series of `ln δ`.

use crate::law::Side;

/// Coefficients in a piece.
const ORDER: usize = 14;
/// Pieces at the start: each half as long as the next one, because curves turn fastest near 0.
const FIRST_PIECES: i32 = 16;
/// A piece is halved until it is as good as its tolerance, but not more often.
const MOST_PIECES: usize = 2000;

/// `ln δ` on `[0, end]`; beyond, `δ` is taken as 0 by [`Table::value`].
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pieces: Vec<Piece>,
    end: f64,
}

#[derive(Clone, Debug)]
struct Piece {
    to: f64,
    middle: f64,
    inverse_half: f64,
    coefficients: [f64; ORDER],
}

impl Table {
    /// Tabulates a decreasing positive `f` on `[0, end]`, each piece to a relative `tolerance`. A piece that is not as good
    /// when it is as short as `shortest`, relative to its end, is moved by what it is seen to be off: up or down.
    pub(crate) fn new(f: impl Fn(f64) -> f64, end: f64, tolerance: f64, shortest: f64, side: Side) -> Self {
        let halvings = (-FIRST_PIECES..0).map(|power| end * 2_f64.powi(power));
        let mut ends: Vec<f64> = halvings.chain([end]).rev().collect();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut from = 0.0;
        while let Some(&to) = ends.last() {
            let mut piece = Piece::fit(&f, from, to);
            if !piece.is_good(&f, from, tolerance) {
                let width = to - from;
                if pieces.len() + ends.len() < MOST_PIECES && width > 1e-10 * end && width > shortest * to {
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
}

impl Piece {
    fn fit(f: impl Fn(f64) -> f64, from: f64, to: f64) -> Self {
        let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
        let angle = |j: usize| std::f64::consts::PI * (j as f64 + 0.5) / ORDER as f64;
        let values: [f64; ORDER] = std::array::from_fn(|j| f(middle + half * angle(j).cos()).ln());
        let coefficients = std::array::from_fn(|k| {
            let sum: f64 = (0..ORDER).map(|j| values[j] * (k as f64 * angle(j)).cos()).sum();
            sum * if k == 0 { 1.0 } else { 2.0 } / ORDER as f64
        });
        Self { to, middle, inverse_half: 1.0 / half, coefficients }
    }

    /// Clenshaw's recurrence.
    fn log_value(&self, epsilon: f64) -> f64 {
        let x = (epsilon - self.middle) * self.inverse_half;
        let (mut next, mut after) = (0.0, 0.0);
        for &coefficient in self.coefficients[1..].iter().rev() {
            (next, after) = (2.0 * x * next - after + coefficient, next);
        }
        x * next - after + self.coefficients[0]
    }

    /// The largest difference in `ln f` that is seen between the nodes.
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
        let [.., before_last, last] = self.coefficients;
        if before_last.abs().max(last.abs()) > tolerance {
            return false;
        }
        // The ends lie between no nodes, and the middle between two of them.
        let width = self.to - from;
        [0.003, 0.5, 0.93].iter().all(|share| {
            let epsilon = from + share * width;
            (self.log_value(epsilon) - f(epsilon).ln()).abs() <= tolerance
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian;

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

    /// A curve with a kink every so often: neither pieces nor nodes run out before the end, and no value is on the wrong side.
    #[test]
    fn a_table_of_a_curve_that_is_not_smooth_is_on_its_side_of_it() {
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
}
