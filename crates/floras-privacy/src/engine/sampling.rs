//! Sampling: `K` of `M` clients without replacement, and its effect on the curve of a round.
//!
//! With `p` the probability that a client's (or an item's) data enter a round, and `D₁` the curve of a round that they enter
//! for certain, as a function of `x = e^ε`:
//!
//! | neighbours | curve |
//! |---|---|
//! | replace one | `p·D₁(1 + (x − 1)/p)` for `x ≥ 1`, and the same from the other side below |
//! | remove one | `p·D₁(1 + (x − 1)/p)` for `x ≥ 1 − p`, and `1 − x` below |
//! | add one | the same from the other side |
//! | either, participation known | `p·D₁(x) + (1 − p)·(1 − x)₊` |
//!
//! The first three rows need an adversary who does not know who takes part. For an adversary who knows it, rounds without the
//! client have a loss of 0: nothing is amplified, but those rounds cost nothing.
//!
//! Poisson sampling is not an option here: `K`, and with it `γ = N − K`, is fixed.
//!
//! # Citations
//! Balle, Barthe, Gaboardi, *Privacy amplification by subsampling: tight analyses via couplings and divergences*, NeurIPS
//! 2018, theorems 2 and 9.

use crate::engine::compose::CONVEX_TOLERANCE;
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::tabulated::TOLERANCE_BELOW;
use crate::error::{PrivacyError, require};
use crate::numerics::table::Table;

/// How clients are sampled, and the neighbouring relation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sampling {
    /// Every client takes part in every round; replace-one neighbours.
    Everyone,
    /// A client takes part with this probability; replace-one neighbours.
    ReplaceOne(f64),
    /// A client takes part with this probability; one neighbour has one client more than the other. The worse of both
    /// directions counts.
    AddRemove(f64),
    /// A client takes part with this probability, and the adversary sees in which rounds; neighbours of either kind.
    Known(f64),
}

impl Sampling {
    /// Returns `Ok` if the probability is above 0 and at most 1.
    pub(crate) fn check(self) -> Result<(), PrivacyError> {
        let probability = self.probability();
        let holds = probability > 0.0 && probability <= 1.0;
        require(holds, "the probability of taking part", "above 0 and at most 1", probability)
    }

    /// Probability `p` that a client or an item takes part in a round; above 0 and at most 1.
    pub fn probability(self) -> f64 {
        match self {
            Self::Everyone => 1.0,
            Self::ReplaceOne(probability) | Self::AddRemove(probability) | Self::Known(probability) => {
                probability
            }
        }
    }

    /// A client that takes part in every round, with neighbours of the same kind.
    pub(crate) fn of_every_round(self) -> Self {
        match self {
            Self::Everyone | Self::ReplaceOne(_) => Self::Everyone,
            Self::AddRemove(_) => Self::AddRemove(1.0),
            Self::Known(_) => Self::Known(1.0),
        }
    }

    /// The directions that a composition has to cover.
    pub(crate) fn directions(self) -> &'static [Direction] {
        match self {
            Self::Everyone | Self::ReplaceOne(_) => &[Direction::Replace],
            Self::AddRemove(_) => &[Direction::Remove, Direction::Add],
            Self::Known(_) => &[Direction::Known],
        }
    }
}

/// Which of the two neighbours has the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Replace,
    Remove,
    Add,
    /// Either neighbour: the adversary sees in which rounds the data enter.
    Known,
}

impl Direction {
    /// A direction that some pair of neighbours attains in every round. The curve for replaced data bounds both directions at
    /// once, which no single pair attains in every round. A pair attains one direction if the other members of the cohort send
    /// the same as the replacement.
    pub(crate) fn realised(self) -> Self {
        if self == Self::Replace { Self::Remove } else { self }
    }
}

/// The privacy curve of one round in which the client certainly takes part.
pub trait Curve: Send + Sync {
    /// An upper bound on `δ₁(ε)` for `ε ≥ 0`, without infinite losses.
    fn upper(&self, epsilon: f64) -> f64;

    /// A lower bound on `δ₁(ε)` for `ε ≥ 0`, without infinite losses.
    fn lower(&self, epsilon: f64) -> f64;

    /// Whether lower bounds are known. Without them the lower bound is 0, and statements do not give it.
    fn has_lower(&self) -> bool {
        true
    }

    /// An upper bound on the probability of an infinite loss.
    fn infinite(&self) -> f64;

    /// The distribution of `μ` of several rounds together in which a client certainly takes part; `None` without a closed
    /// form.
    fn composed(&self, rounds: u64) -> Option<MuDistribution> {
        let _ = rounds;
        None
    }

    /// A simpler curve that is nowhere above this one, from which a search may begin.
    fn simpler(&self) -> Option<&MuDistribution> {
        None
    }

    /// Relative amount by which rounding may put the upper bound below the truth.
    fn tolerance(&self) -> f64;

    /// The same curve in a form that is faster for many evaluations, if there is one. Values below `least` may be inaccurate.
    fn for_composition(&self, least: f64) -> Option<&dyn Curve> {
        let _ = least;
        None
    }
}

pub(crate) fn value(curve: &dyn Curve, epsilon: f64, side: Side) -> f64 {
    match side {
        Side::Upper => curve.upper(epsilon),
        Side::Lower => curve.lower(epsilon),
    }
}

/// A curve with sampling, in one direction.
pub(crate) struct Pair<'a> {
    pub(crate) table: &'a Table,
    pub(crate) direction: Direction,
    pub(crate) probability: f64,
    infinite: f64,
    non_convex: bool,
    /// Factor of the curve for its tolerance: above 1 for an upper bound, below 1 for a lower one.
    pub(crate) scale: f64,
}

impl<'a> Pair<'a> {
    pub(crate) fn new(table: &'a Table, direction: Direction, probability: f64, curve: &dyn Curve) -> Self {
        // With probability 1 all directions have the same curve, and this one does not subtract large numbers.
        let direction = if probability == 1.0 { Direction::Replace } else { direction };
        let non_convex = curve.tolerance() > CONVEX_TOLERANCE;
        let scale = 1.0 + curve.tolerance();
        Self { table, direction, probability, infinite: curve.infinite(), non_convex, scale }
    }

    /// The same pair without infinite losses.
    pub(crate) fn finite(self) -> Self {
        Self { infinite: 0.0, ..self }
    }

    /// The same pair for a lower bound. Tables of curves that are not convex are less accurate for lower bounds.
    pub(crate) fn lower(self) -> Self {
        let tables = if self.non_convex { 2.0 * TOLERANCE_BELOW } else { 0.0 };
        Self { scale: 2.0 - self.scale - tables, ..self.finite() }
    }

    /// Whether the tabulated curve may fail to be convex by more than rounding.
    pub(crate) fn may_be_non_convex(&self) -> bool {
        self.non_convex
    }

    /// Whether the loss has the same distribution from both sides.
    pub(crate) fn is_symmetric(&self) -> bool {
        matches!(self.direction, Direction::Replace | Direction::Known)
    }

    /// Probability of an infinite loss, without the probability that is cut off the table.
    pub(crate) fn infinite(&self) -> f64 {
        // From the added side the loss is at most −ln(1 − p); an infinite one is still counted, which is safe.
        self.probability * self.infinite
    }

    /// `E(ε) = D(e^ε) − (1 − e^ε)₊`.
    pub(crate) fn excess(&self, epsilon: f64) -> f64 {
        match self.direction {
            Direction::Replace if epsilon < 0.0 => epsilon.exp() * self.removed(-epsilon),
            Direction::Replace | Direction::Remove => self.removed(epsilon),
            Direction::Add => epsilon.exp() * self.removed(-epsilon),
            Direction::Known => {
                let mirrored = epsilon.min(0.0).exp();
                mirrored * self.probability * self.scale * self.table.value(epsilon.abs())
            }
        }
    }

    fn removed(&self, epsilon: f64) -> f64 {
        let p = self.probability;
        if epsilon >= 0.0 {
            return p * self.scale * self.table.value(amplified(epsilon, p));
        }
        let y = 1.0 + epsilon.exp_m1() / p;
        if y <= 0.0 { 0.0 } else { p * y * self.scale * self.table.value(-y.ln()) }
    }
}

/// `ln(1 + (e^ε − 1)/p)` for `ε ≥ 0`: the loss without sampling that becomes `ε` with sampling.
pub(crate) fn amplified(epsilon: f64, probability: f64) -> f64 {
    if probability == 1.0 {
        epsilon
    } else if epsilon < 1.0 {
        (epsilon.exp_m1() / probability).ln_1p()
    } else {
        epsilon - probability.ln() + ((probability - 1.0) * (-epsilon).exp()).ln_1p()
    }
}

/// `ln(1 + p·(e^ε − 1))`, the inverse of [`amplified`].
pub(crate) fn diluted(epsilon: f64, probability: f64) -> f64 {
    if probability == 1.0 {
        epsilon
    } else if epsilon < 1.0 {
        (probability * epsilon.exp_m1()).ln_1p()
    } else {
        epsilon + probability.ln() + ((1.0 / probability - 1.0) * (-epsilon).exp()).ln_1p()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amplified_and_diluted_are_each_other_s_inverse() {
        for p in [1e-6, 0.01, 0.5, 0.999, 1.0] {
            for epsilon in [1e-9, 1e-3, 0.5, 1.0, 3.0, 100.0, 1e4] {
                for there_and_back in [diluted(amplified(epsilon, p), p), amplified(diluted(epsilon, p), p)] {
                    // For large ε, diluting to p·ε loses digits.
                    assert!(
                        (there_and_back / epsilon - 1.0).abs() < 1e-9,
                        "p = {p}, ε = {epsilon}: {there_and_back}"
                    );
                }
                assert!(amplified(epsilon, p) >= epsilon && diluted(epsilon, p) <= epsilon);
            }
            assert_eq!((amplified(0.0, p), diluted(0.0, p)), (0.0, 0.0));
        }
        assert_eq!((amplified(2.5, 1.0), diluted(2.5, 1.0)), (2.5, 2.5));
    }

    /// Randomised response: the truth with probability `a = e^{ε₀}/(1 + e^{ε₀})`, and its opposite otherwise.
    struct RandomisedResponse(f64);

    impl Curve for RandomisedResponse {
        fn upper(&self, epsilon: f64) -> f64 {
            ((self.0.exp() - epsilon.exp()) / (1.0 + self.0.exp())).max(0.0)
        }

        fn lower(&self, epsilon: f64) -> f64 {
            self.upper(epsilon)
        }

        fn infinite(&self) -> f64 {
            0.0
        }

        fn tolerance(&self) -> f64 {
            1e-10
        }
    }

    /// `Σ (P − e^ε·Q)₊` over two outcomes, each mixed with the share `1 − p` of what happens without the data: `Q` for remove
    /// one, the mixture for add one. For replace one, the other's data count with the share `p` as well.
    #[test]
    fn curves_are_those_of_mixtures_of_two_outcomes() {
        let curve = RandomisedResponse(1.2);
        let end = 1.2;
        let table = Table::new(|epsilon| curve.upper(epsilon).max(1e-12), end, 1e-6, 1e-4, Side::Upper);
        let (a, b) = (1.2_f64.exp() / (1.0 + 1.2_f64.exp()), 1.0 / (1.0 + 1.2_f64.exp()));
        for p in [0.1, 0.6, 1.0] {
            let without = [b, a];
            let mixed = [p * a + (1.0 - p) * b, p * b + (1.0 - p) * a];
            for epsilon in [-1.0_f64, -0.3, -0.05, 0.0, 0.02, 0.1, 0.4, 1.0, 1.5] {
                let hockey_stick = |one: [f64; 2], other: [f64; 2]| -> f64 {
                    one.iter().zip(other).map(|(one, other)| (one - epsilon.exp() * other).max(0.0)).sum()
                };
                let ours = |direction| {
                    let pair = Pair::new(&table, direction, p, &curve);
                    pair.excess(epsilon) + (-epsilon.exp_m1()).max(0.0)
                };
                let removed = hockey_stick(mixed, without);
                let added = hockey_stick(without, mixed);
                let case = format!("p = {p}, ε = {epsilon}");
                assert!(
                    (ours(Direction::Remove) - removed).abs() < 1e-6,
                    "{case}: {}, {removed}",
                    ours(Direction::Remove)
                );
                assert!(
                    (ours(Direction::Add) - added).abs() < 1e-6,
                    "{case}: {}, {added}",
                    ours(Direction::Add)
                );
                // Replace one: from above the same as remove one, and symmetric.
                let replaced = if epsilon >= 0.0 {
                    removed
                } else {
                    let mirrored: f64 = mixed
                        .iter()
                        .zip(without)
                        .map(|(one, other)| (one - (-epsilon).exp() * other).max(0.0))
                        .sum();
                    1.0 - epsilon.exp() + epsilon.exp() * mirrored
                };
                assert!((ours(Direction::Replace) - replaced).abs() < 1e-6, "{case}");
            }
        }
    }

    #[test]
    fn a_probability_out_of_range_is_refused() {
        for probability in [0.0, -0.1, 1.1, f64::NAN] {
            assert!(
                Sampling::ReplaceOne(probability).check().is_err()
                    && Sampling::AddRemove(probability).check().is_err()
            );
        }
        assert!(Sampling::Everyone.check().is_ok() && Sampling::ReplaceOne(1.0).check().is_ok());
    }
}
