//! A sweep: one run for every point of a grid over any keys.
//!
//! A sweep file is an experiment file with one more section. Its keys are the experiment's, with a list of values each:
//!
//! ```toml
//! name = "unused-sequences"
//! rounds = 100
//!
//! [sweep]
//! uplink.sequences = [20, 21, 25, 30]
//! data.partition = ["iid", "one-label"]
//! ```
//!
//! Settings that belong together vary together, as cases with a name each; what they are called as a whole (`task` here)
//! is free:
//!
//! ```toml
//! [[sweep.task]]
//! name = "one label each"
//! data.partition = "one-label"
//! local.rate = 0.001
//! ```
//!
//! The last key varies fastest. Points of the same experiment, because a key has no effect there, are run once.
//! Every other point has a run directory of its own, and `sweep.csv` has one row per point.

mod drive;
mod grid;
mod table;

pub use drive::{PreparedSweep, SweepEvent};
pub use grid::{Point, Sweep};
pub use table::{SweepRow, SweepTable};
