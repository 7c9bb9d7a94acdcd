//! The files of a run.

mod atomic;
mod checkpoint;
mod directory;
mod json_lines;
mod ledger_entry;
mod log;
mod read;
mod recorded;
mod signal;
mod spent;
mod tensorboard;
mod transfer;

pub use directory::{Entry, RunDirectory, create_directory, lock as lock_directory};
pub(crate) use directory::{has_other_files, lock, require_directory, take_lock};

pub(crate) use atomic::sync_directory;
pub use atomic::write as write_atomically;
pub(crate) use checkpoint::{Checkpoint, Mark, load, save};
pub(crate) use json_lines::{JsonLines, RawLine};
pub use ledger_entry::LedgerEntry;
pub(crate) use log::{LedgerLog, LogState, MetricsLog, each_round, last_line, read_ledger, truncate_metrics};
pub use read::read_json;
pub(crate) use read::read_text;
pub use recorded::RecordedRun;
pub(crate) use signal::SignalFile;
pub(crate) use spent::{report as spent_report, spent};
pub(crate) use tensorboard::EventFile;
pub(crate) use transfer::{put, remove_partial};
