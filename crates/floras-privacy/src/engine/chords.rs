//! Chords between points of a curve that is expensive to evaluate, for compositions.
//!
//! A curve `D` is a convex function of `x = e^ε`. Take values at some points, none of them below the curve. Chords between the points
//! of their greatest convex minorant are nowhere below the curve. The minorant also removes the deviations from convexity that a
//! supremum over cells has.

use crate::engine::compose::MAX_EPSILON;

/// Decrease of `ln δ` from one point to the next, where `δ` is above the first number of a pair.
const FALLS: [(f64, f64); 3] = [(1e-3, 0.1), (1e-8, 0.2), (0.0, 0.4)];
/// Maximum number of points. If it is reached, the rest of the curve counts as an infinite loss.
const MAX_POINTS: usize = 2000;

/// Points of a curve with chords between them.
pub(crate) struct Chords {
    /// `ε` and `δ` of each point.
    points: Vec<(f64, f64)>,
    /// `δ` beyond the last point.
    pub(crate) beyond: f64,
}

impl Chords {
    /// Takes points of a decreasing `f` until it is at most `negligible`.
    pub(crate) fn new(f: impl Fn(f64) -> f64, negligible: f64) -> Self {
        let mut points = vec![(0.0, f(0.0))];
        let mut step = 1e-4;
        while let Some(&(epsilon, value)) = points.last()
            && value > negligible
            && epsilon < MAX_EPSILON
            && points.len() < MAX_POINTS
        {
            let next = (epsilon + step).min(MAX_EPSILON);
            let at_next = f(next).clamp(1e-3 * negligible, value);
            let fall = FALLS.iter().find(|&&(above, _)| value > above).map_or(0.4, |&(_, fall)| fall);
            let fallen = (value / at_next).ln();
            if fallen > 2.0 * fall && step > 1e-6 * next && at_next > negligible {
                step *= 0.5;
                continue;
            }
            points.push((next, at_next));
            let slope = fallen / (next - epsilon);
            step = (fall / slope.max(1e-30)).clamp(0.5 * step, 2.0 * step);
        }
        let beyond = points.last().map_or(0.0, |&(_, value)| value);
        Self { points: convex_minorant(points), beyond }
    }

    /// The value of the chord; 0 beyond the last point.
    pub(crate) fn upper(&self, epsilon: f64) -> f64 {
        let right = self.points.partition_point(|&(point, _)| point < epsilon);
        match (right.checked_sub(1).and_then(|left| self.points.get(left)), self.points.get(right)) {
            (None, Some(&(_, value))) => value,
            (Some(&(from, start)), Some(&(to, end))) => start + share(from, epsilon, to) * (end - start),
            (_, None) => 0.0,
        }
    }
}

/// Position of `e^epsilon` between `e^from` (0) and `e^to` (1).
fn share(from: f64, epsilon: f64, to: f64) -> f64 {
    // Relative to the far end, to avoid overflow.
    ((epsilon - to).exp() - (from - to).exp()) / -(from - to).exp_m1()
}

fn convex_minorant(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let mut corners: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for point in points {
        while let [.., before, last] = corners[..]
            && last.1 >= before.1 + share(before.0, last.0, point.0) * (point.1 - before.1)
        {
            corners.pop();
        }
        corners.push(point);
    }
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::gaussian;

    /// A curve with deviations of 2% above the true one: chords stay above the truth and remove the deviations.
    #[test]
    fn chords_are_above_the_curve_and_convex() {
        for mu in [0.05, 0.7, 3.0, 40.0] {
            let non_convex = |epsilon: f64| {
                gaussian::delta(epsilon, mu) * (1.01 + 0.01 * (40.0 * (1.0 + epsilon).ln()).sin())
            };
            let chords = Chords::new(non_convex, 1e-30);
            assert!(chords.points.len() < 500, "{}", chords.points.len());
            let end = gaussian::epsilon(1e-25, mu).unwrap();
            for i in 0..=3000 {
                let epsilon = end * f64::from(i) / 3000.0;
                let exact = gaussian::delta(epsilon, mu);
                let ratio = chords.upper(epsilon) / exact;
                // For large ε a chord in e^ε is nearly a step, whose error is the decrease of δ from point to point.
                let most = if mu > 5.0 {
                    1.7
                } else if exact > 1e-3 {
                    1.03
                } else {
                    1.15
                };
                assert!((1.0 - 1e-12..most).contains(&ratio), "μ = {mu}, ε = {epsilon}: {ratio}");
            }
        }
    }
}
