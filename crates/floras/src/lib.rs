//! Private federated learning over the air: one library over the `floras` crates.
//!
//! | module | content |
//! |---|---|
//! | [`core`] | the vocabulary: receivers, fading, views and other choices; random streams |
//! | [`phy`] | the air interface: sequences, secret assignment, fading, noise, uplink schemes |
//! | [`privacy`] | the accounting: ε against each adversary |
//! | [`learn`] | the learning side: data sets, partitions, models, local SGD |
//! | [`sim`] | experiment files, rounds, trials, run directories |
//! | [`audit`] | attacks, and the lower bounds that they measure |
//! | [`paper`] | the paper's figures and claims, the convergence theorem |
//! | [`report`] | plots, and the HTML report of a run directory |
//! | [`prelude`] | the most used names |
//!
//! The program `floras` is the crate `floras-cli`.

pub use floras_audit as audit;
pub use floras_core as core;
pub use floras_learn as learn;
pub use floras_paper as paper;
pub use floras_phy as phy;
pub use floras_privacy as privacy;
pub use floras_report as report;
pub use floras_sim as sim;

pub mod prelude;

#[cfg(doctest)]
mod book;
