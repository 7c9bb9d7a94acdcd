//! The paper, reproduced: every figure next to what the paper claims about it.

mod workbench;

pub use workbench::{RunRecord, Stage, Workbench};
