//! Many distributions of `μ` at one `ε`: `δ_G` is computed once at common nodes; each distribution then needs one dot product.
//!
//! A distribution's mass is on integer powers of `e^STEP`. The mass of every cell is split between the two nodes around it, so that its
//! mean is unchanged. For a function `f` with `f'' ≥ −κ` between two points `a` and `b`, `E[f]` is at most the chord plus
//! `κ(b − a)²/8`. As a function of `μ`, `δ_G` has `μ²f'' = zφ(z)·μ·y` with `z = ε/μ − μ/2` and `y = ε/μ + μ/2`, which is negative only
//! for `z < 0`. So the dot product of the masses with `f + κ(b − a)²/8` at the nodes bounds the curve.

use crate::engine::distribution::MuDistribution;
use crate::engine::sampling::Curve;
use crate::numerics::gaussian;
use crate::numerics::normal;
use crate::numerics::vectors::dot;

/// Distance between two nodes in `ln μ`.
pub(crate) const STEP: f64 = 0.004;
/// A cell that is wider than this in `ln μ` counts as its upper end.
const WIDEST: f64 = 0.06;
/// Maximum number of nodes that a narrower cell spans.
const REACH: usize = 17;

/// A distribution of `μ` with its masses at nodes.
pub(crate) struct NodeDistribution {
    pub(crate) distribution: MuDistribution,
    first: i64,
    masses: Vec<f64>,
    /// For each node, the sum of all masses before it.
    before: Vec<f64>,
    /// `(b − a)²/8` of the widest cell, relative to `μ²`.
    spread: f64,
}

impl NodeDistribution {
    pub(crate) fn new(distribution: MuDistribution) -> Self {
        let (first, masses, spread) = match &distribution {
            MuDistribution::Cells(cells) => {
                let (first, masses) = cells.at_nodes(STEP, WIDEST);
                let width = (cells.widest_up_to(WIDEST) + 2.0 * STEP).exp_m1();
                (first, masses, 1.1 * width * width / 8.0)
            }
            MuDistribution::Constant(_)
            | MuDistribution::HalfNormal { .. }
            | MuDistribution::Chi { .. }
            | MuDistribution::Values(_) => (0, Vec::new(), 0.0),
        };
        let mut sum = 0.0;
        let sums = masses.iter().map(|mass| {
            sum += mass;
            sum
        });
        let before = [0.0].into_iter().chain(sums).collect();
        Self { distribution, first, masses, before, spread }
    }

    /// An upper bound on the curve, with every `μ` larger by `shift` nodes.
    pub(crate) fn upper(&self, nodes: &Nodes, shift: i64) -> f64 {
        if self.masses.is_empty() {
            return self.distribution.upper(nodes.epsilon);
        }
        let start = self.first + shift - nodes.first;
        let below = (-start).clamp(0, self.masses.len() as i64) as usize;
        let masses = &self.masses[below..];
        let from = start.max(0) as usize;
        let [values, curved] =
            [&nodes.values, &nodes.curved].map(|values| dot(masses, values.get(from..).unwrap_or_default()));
        // Beyond the last node, `δ_G` counts as 1.
        let beyond = masses.get(nodes.values.len().saturating_sub(from)..).unwrap_or_default();
        // Below the first node, the curve is at most its value at that node.
        let below = self.before[below] * nodes.values.first().copied().unwrap_or(1.0);
        below + values + self.spread * curved + beyond.iter().sum::<f64>()
    }
}

/// `δ_G` is below 1e-49 where `z` exceeds this.
const MAX_Z: f64 = 15.0;

/// `δ_G(ε; μ)` at nodes, and the maximum of `−μ²f''` nearby. Smaller `μ` have at most the value of the first node, and larger ones have
/// 1.
pub(crate) struct Nodes {
    pub(crate) epsilon: f64,
    first: i64,
    values: Vec<f64>,
    curved: Vec<f64>,
}

impl Nodes {
    pub(crate) fn new(epsilon: f64) -> Self {
        /// The smallest `ln μ`.
        const LOWEST: f64 = -35.0;
        // δ_G is 1 where z is below −9.
        let mu_at = |z: f64| (z * z + 2.0 * epsilon).sqrt() - z;
        let node = |mu: f64| (mu.max(LOWEST.exp()).ln() / STEP).floor() as i64;
        let (first, last) = (node(mu_at(MAX_Z)) - 1, node(mu_at(-9.0)) + 1);
        let at = |index: i64| {
            let mu = (index as f64 * STEP).exp();
            let (z, y) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
            let concave = if z < 0.0 { -z * normal::density(z) * mu * y } else { 0.0 };
            (gaussian::delta(epsilon, mu), concave)
        };
        let exact: Vec<(f64, f64)> = (first..=last).map(at).collect();
        let peak = exact
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| a.1.total_cmp(&b.1))
            .map_or(0, |(index, _)| index);
        let nearby = |index: usize| {
            let (from, to) = (index.saturating_sub(REACH), (index + REACH).min(exact.len() - 1));
            // The function has one peak.
            if (from..=to).contains(&peak) { exact[peak].1 } else { exact[from].1.max(exact[to].1) }
        };
        let curved = (0..exact.len()).map(nearby).collect();
        Self { epsilon, first, values: exact.iter().map(|node| node.0).collect(), curved }
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};

    use super::*;
    use crate::engine::distribution::{CellsBuilder, Side};

    /// Ranges up to 15% wide at random places, with all mass at one end or the other. The bound is never too small, and for small `ε`
    /// its error is quadratic in the width.
    #[test]
    fn nodes_bound_the_curve_of_cells() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(7);
        for _ in 0..3000 {
            let epsilon = 10_f64.powf(generator.random_range(-3.0..4.0));
            let mu = (2.0 * epsilon).sqrt() * 2_f64.powf(generator.random_range(-1.5..1.5));
            let width = generator.random_range(0.0..0.15);
            let (low, high) = (mu, mu * f64::exp(width));
            let share = generator.random::<f64>();
            let mut cells = CellsBuilder::new(2.0 * high, 0.01, Side::Upper);
            cells.add_range(low + share * (high - low), (low, high), 1.0);
            let distribution = NodeDistribution::new(cells.build());
            let bound = distribution.upper(&Nodes::new(epsilon), 0);
            let two = share * gaussian::delta(epsilon, high) + (1.0 - share) * gaussian::delta(epsilon, low);
            let one = gaussian::delta(epsilon, low + share * (high - low));
            assert!(
                bound >= two.max(one) * (1.0 - 1e-9) - 1e-300,
                "ε = {epsilon}, μ = {mu}: {bound:e}, {two:e}, {one:e}"
            );
            let shifted = gaussian::delta(epsilon, (low + share * (high - low)) * (3.0 * STEP).exp());
            assert!(distribution.upper(&Nodes::new(epsilon), 3) >= shifted * (1.0 - 1e-9) - 1e-300);
        }
    }
}
