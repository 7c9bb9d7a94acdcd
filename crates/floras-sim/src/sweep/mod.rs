//! A sweep: one run per point of a grid over any keys.
//!
//! A sweep file is an experiment file with a section `[sweep]`, which lists values of some of the experiment's keys:
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
//! Settings that belong together vary together, as named cases. The name of the axis (`task` here) is free:
//!
//! ```toml
//! [[sweep.task]]
//! name = "one label each"
//! data.partition = "one-label"
//! local.rate = 0.001
//! ```
//!
//! The last key varies fastest. Points whose experiments are equal, because a key has no effect there, share one run.
//! Every other point has its own run directory, and `sweep.csv` has one row per point.

mod drive;
mod grid;
mod table;

pub use drive::{PreparedSweep, SweepEvent};
pub use grid::{Point, Sweep};
pub use table::{PointPrivacy, SweepRow, SweepTable};
