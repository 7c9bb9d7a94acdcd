//! Properties of the accounting for all numbers in range.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::{Bounds, Composition, Curve, Grid, MAX_EPSILON, MuDistribution, PrivacyError, Sampling};
use proptest::prelude::*;

/// Relative tolerance for monotonicity: the upper bounds of two problems use two grids.
const SLACK: f64 = 2e-3;

/// A problem within the ranges that the accounting supports.
#[derive(Clone, Copy, Debug)]
struct Problem {
    clip: f64,
    gamma: f64,
    sampling: Sampling,
    rounds: u64,
    delta: f64,
}

fn ten_to(range: std::ops::Range<f64>) -> impl Strategy<Value = f64> {
    range.prop_map(|power| 10_f64.powf(power))
}

fn problems() -> impl Strategy<Value = Problem> {
    let sampling = (0..3, ten_to(-6.0..0.0)).prop_map(|(kind, p)| match kind {
        0 => Sampling::Everyone,
        1 => Sampling::ReplaceOne(p),
        _ => Sampling::AddRemove(p),
    });
    (ten_to(-1.0..0.3), ten_to(0.0..6.0), sampling, ten_to(0.0..6.0), ten_to(-15.0..-0.3)).prop_map(
        |(clip, gamma, sampling, rounds, delta)| Problem {
            clip,
            gamma: gamma.round(),
            sampling,
            rounds: rounds.round() as u64,
            delta,
        },
    )
}

impl Problem {
    fn distribution(self) -> MuDistribution {
        MuDistribution::HalfNormal { scale: 2.0 * self.clip / self.gamma }
    }

    fn epsilon(self, grid: Grid) -> Bounds {
        let distribution = self.distribution();
        let composition = Composition::new(&distribution, self.sampling, self.rounds).unwrap();
        match composition.on_grid(grid).unwrap().epsilon(self.delta) {
            // No bounds at all.
            Err(PrivacyError::EpsilonOutOfReach { .. }) => Bounds { lower: 0.0, upper: f64::INFINITY },
            other => other.unwrap(),
        }
    }

    fn delta_at(self, epsilon: f64) -> Bounds {
        let distribution = self.distribution();
        Composition::new(&distribution, self.sampling, self.rounds).unwrap().delta(epsilon).unwrap()
    }

    /// Asserts that the true value of another problem is not above this one's.
    fn is_above(self, other: Self) -> Result<(), TestCaseError> {
        let (here, there) = (self.epsilon(Grid::Auto), other.epsilon(Grid::Auto));
        let is_in_reach = there.upper.is_finite() || here.upper > 0.99 * MAX_EPSILON;
        prop_assert!(is_in_reach, "{other:?}: {there:?}, above {here:?}");
        prop_assert!(there.lower <= here.upper * (1.0 + 1e-9), "{other:?}: {there:?}, above {here:?}");
        // If the bounds are close together, they must have the same order.
        if here.upper - here.lower < 0.01 * here.upper {
            prop_assert!(
                there.upper <= here.upper * (1.0 + SLACK) + (there.upper - there.lower),
                "{other:?}: {there:?}, above {here:?}"
            );
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_are_numbers_in_order(problem in problems(), epsilon in ten_to(-6.0..4.0)) {
        let found = problem.epsilon(Grid::Auto);
        prop_assert!(0.0 <= found.lower && found.lower <= found.upper, "{found:?}");
        let found = problem.delta_at(epsilon);
        prop_assert!(0.0 <= found.lower && found.lower <= found.upper && found.upper <= 1.0, "{found:?}");
    }

    #[test]
    fn all_upper_bounds_are_above_all_lower_bounds(problem in problems(), steps in [ten_to(-5.0..0.0), ten_to(-5.0..0.0)]) {
        let grids = [Grid::Auto, Grid::Step(steps[0]), Grid::Step(steps[1])];
        let all = grids.map(|grid| problem.epsilon(grid));
        for one in all {
            for other in all {
                prop_assert!(one.upper >= other.lower * (1.0 - 1e-9), "{all:?}");
            }
        }
    }

    #[test]
    fn epsilon_is_monotone_in_every_parameter(
        problem in problems(),
        factor in 1.05_f64..3.0,
        which in 0..5,
    ) {
        let mut larger = problem;
        match which {
            0 => larger.delta /= factor,
            1 => larger.gamma /= factor,
            2 => larger.rounds = (problem.rounds as f64 * factor).ceil() as u64,
            3 => larger.clip *= factor,
            _ => {
                let more = (problem.sampling.probability() * factor).min(1.0);
                larger.sampling = match problem.sampling {
                    Sampling::AddRemove(_) => Sampling::AddRemove(more),
                    Sampling::Known(_) => Sampling::Known(more),
                    Sampling::Everyone | Sampling::ReplaceOne(_) => Sampling::ReplaceOne(more),
                };
            }
        }
        larger.is_above(problem)?;
    }

    #[test]
    fn delta_falls_with_epsilon(problem in problems(), epsilon in ten_to(-6.0..4.0), factor in 1.05_f64..3.0) {
        let (here, further) = (problem.delta_at(epsilon), problem.delta_at(epsilon * factor));
        prop_assert!(further.lower <= here.upper * (1.0 + 1e-9), "{further:?}, above {here:?}");
        if here.lower > 0.99 * here.upper {
            let gap = further.upper - further.lower;
            prop_assert!(further.upper <= here.upper * (1.0 + SLACK) + gap, "{further:?}, above {here:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    /// One round, without a grid: monotone to the last digits.
    #[test]
    fn one_round_s_curve_falls_to_zero(
        scale in ten_to(-6.0..4.0),
        epsilon in ten_to(-6.0..4.0),
        rounds in ten_to(0.0..6.0),
        factor in 1.0_f64..3.0,
    ) {
        let distribution = MuDistribution::HalfNormal { scale }.composed(rounds.round() as u64).unwrap();
        let at = |epsilon: f64| distribution.delta_upper(epsilon);
        prop_assert!(at(0.0) <= 1.0 && at(epsilon) <= at(0.0) * (1.0 + 1e-9));
        prop_assert!(at(epsilon * factor) <= at(epsilon) * (1.0 + 1e-9));
        let more = MuDistribution::HalfNormal { scale: scale * factor }.composed(rounds.round() as u64).unwrap();
        prop_assert!(more.delta_upper(epsilon) >= at(epsilon) * (1.0 - 1e-9));
    }
}
