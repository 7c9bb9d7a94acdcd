//! Private federated learning over the air: the facade of the `floras` crates.
//!
//! [`core`] is the vocabulary: receivers, fading, views and other choices; random streams. [`phy`] is the air interface: sequences, secret assignment, fading, noise and uplink schemes. [`privacy`] is the
//! accounting: who can learn how much. [`learn`] is the learning side: data sets, partitions, models, local SGD. [`sim`] joins
//! them: experiment files, rounds, trials, run directories. [`report`] draws: plots, and the HTML report of a run directory.

pub use floras_core as core;
pub use floras_learn as learn;
pub use floras_phy as phy;
pub use floras_privacy as privacy;
pub use floras_report as report;
pub use floras_sim as sim;

/// The examples of the README and of the book, run as documentation tests.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../../../README.md")]
    struct Readme;
    #[doc = include_str!("../../../docs/how-floras-works.md")]
    struct HowFlorasWorks;
    #[doc = include_str!("../../../docs/air-interface.md")]
    struct AirInterface;
    #[doc = include_str!("../../../docs/accounting.md")]
    struct Accounting;
    #[doc = include_str!("../../../docs/audit.md")]
    struct Audit;
    #[doc = include_str!("../../../docs/randomness.md")]
    struct Randomness;
}
