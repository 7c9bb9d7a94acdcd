//! What a run leaves on the disk.

mod atomic;
mod checkpoint;
mod directory;
mod log;
mod tensorboard;

pub(crate) use directory::lock;
pub use directory::{Entry, RunDirectory};

pub(crate) use atomic::write as write_atomically;
pub(crate) use checkpoint::{Checkpoint, Mark, load, save};
pub(crate) use log::{LogState, MetricsLog, cut_back, last_line};
pub(crate) use tensorboard::EventFile;
