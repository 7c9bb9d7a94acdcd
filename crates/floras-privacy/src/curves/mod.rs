//! Privacy curves of a view: `δ(ε)`, the trade-off function, the Rényi divergence, loss distributions, groups of clients.

pub(crate) mod delta;
pub(crate) mod group;
pub(crate) mod pld;
pub(crate) mod renyi;
pub(crate) mod tradeoff;
