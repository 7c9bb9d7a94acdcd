//! Integrals: composite Gauss–Legendre, 16 nodes a panel.

use std::sync::LazyLock;

use gauss_quad::GaussLegendre;

/// Nodes in a panel.
pub(crate) const NODES: usize = 16;

/// Nodes and weights on `[−1, 1]`.
static RULE: LazyLock<[(f64, f64); NODES]> = LazyLock::new(|| {
    let mut rule = [(0.0, 0.0); NODES];
    let degree = std::num::NonZeroUsize::new(NODES).unwrap_or(std::num::NonZeroUsize::MIN);
    for (slot, &pair) in rule.iter_mut().zip(GaussLegendre::new(degree).as_node_weight_pairs()) {
        *slot = pair;
    }
    rule
});

/// Nodes and weights of one panel.
pub(crate) fn panel(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    RULE.iter().map(move |&(node, weight)| (middle + half * node, half * weight))
}

/// Nodes and weights of consecutive panels between the given points.
pub(crate) fn panels(points: &[f64]) -> Vec<(f64, f64)> {
    points.windows(2).flat_map(|ends| panel(ends[0], ends[1])).collect()
}

/// Nodes and weights of `count` equal panels.
pub(crate) fn equal_panels(from: f64, to: f64, count: usize) -> Vec<(f64, f64)> {
    let step = (to - from) / count as f64;
    (0..count).flat_map(|i| panel(from + step * i as f64, from + step * (i + 1) as f64)).collect()
}
