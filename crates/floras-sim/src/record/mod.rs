//! What a run leaves on the disk.

mod atomic;
mod checkpoint;
mod directory;
mod log;
mod tensorboard;

pub(crate) use directory::lock;
pub use directory::{Entry, RunDirectory};

pub(crate) use atomic::sync_folder;
pub use atomic::write as write_atomically;
pub(crate) use checkpoint::{Checkpoint, Mark, load, save};
pub(crate) use log::{LedgerLog, Line, LogState, MetricsLog, cut_back, last_line, read_all};
pub(crate) use tensorboard::EventFile;
