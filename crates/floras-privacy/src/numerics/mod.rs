//! Numerical tools: the normal and the chi distribution with their tails, Fourier transforms, quadrature, searches, tables, sums of
//! products, threads, memory that is used again.

pub(crate) mod chi;
pub(crate) mod fourier;
pub mod gaussian;
pub mod normal;
pub(crate) mod parallel;
pub(crate) mod pool;
pub(crate) mod quadrature;
pub(crate) mod solve;
pub(crate) mod table;
pub(crate) mod vectors;
