//! Integrals: composite Gauss–Legendre rules, with 16 nodes per panel.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use gauss_quad::GaussLegendre;

/// Number of nodes per panel.
pub(crate) const NODES: usize = 16;

/// Nodes and weights on `[−1, 1]`.
static RULE: LazyLock<[(f64, f64); NODES]> = LazyLock::new(rule);
/// The same with fewer nodes, for narrow panels.
static MIDDLE_RULE: LazyLock<[(f64, f64); 8]> = LazyLock::new(rule);
static SHORT_RULE: LazyLock<[(f64, f64); 4]> = LazyLock::new(rule);

fn rule<const COUNT: usize>() -> [(f64, f64); COUNT] {
    let mut rule = [(0.0, 0.0); COUNT];
    if let Some(degree) = NonZeroUsize::new(COUNT) {
        rule.copy_from_slice(GaussLegendre::new(degree).as_node_weight_pairs());
    }
    rule
}

/// Nodes and weights of one panel.
pub(crate) fn panel(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    scaled(RULE.as_slice(), from, to)
}

/// Nodes and weights of consecutive panels between the given points, each at most `widest` wide, with eight
/// nodes.
pub(crate) fn narrow_panels(points: &[f64], widest: f64) -> Vec<(f64, f64)> {
    let mut nodes = Vec::new();
    for ends in points.windows(2) {
        let count = ((ends[1] - ends[0]) / widest).ceil().max(1.0);
        let step = (ends[1] - ends[0]) / count;
        for i in 0..count as usize {
            let from = ends[0] + step * i as f64;
            nodes.extend(scaled(MIDDLE_RULE.as_slice(), from, from + step));
        }
    }
    nodes
}

/// Nodes and weights of one panel with four nodes.
pub(crate) fn short_panel(from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    scaled(SHORT_RULE.as_slice(), from, to)
}

fn scaled(rule: &'static [(f64, f64)], from: f64, to: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    rule.iter().map(move |&(node, weight)| (middle + half * node, half * weight))
}

/// Nodes and weights of consecutive panels between the given points.
pub(crate) fn panels(points: &[f64]) -> Vec<(f64, f64)> {
    points.windows(2).flat_map(|ends| panel(ends[0], ends[1])).collect()
}

/// Nodes and weights of `count` equal panels.
#[cfg(test)]
pub(crate) fn equal_panels(from: f64, to: f64, count: usize) -> Vec<(f64, f64)> {
    let step = (to - from) / count as f64;
    (0..count).flat_map(|i| panel(from + step * i as f64, from + step * (i + 1) as f64)).collect()
}
