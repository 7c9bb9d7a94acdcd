//! Ctrl-C: the first one stops a training after its current round, a second one ends the program at once.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of an interrupted training: 128 + SIGINT.
pub(crate) const EXIT_CODE: u8 = 130;

static STOP: AtomicBool = AtomicBool::new(false);
static IS_TRAINING: AtomicBool = AtomicBool::new(false);

/// A training that Ctrl-C stops. Before and after it, Ctrl-C ends the program at once.
pub(crate) struct Training(());

impl Training {
    /// Marks the beginning of a training.
    pub(crate) fn begin() -> Self {
        IS_TRAINING.store(true, Ordering::Relaxed);
        // Without a handler, Ctrl-C ends the program at once; a run can be resumed then, too.
        let _ = ctrlc::set_handler(|| {
            if !IS_TRAINING.load(Ordering::Relaxed) || STOP.swap(true, Ordering::Relaxed) {
                process::exit(EXIT_CODE.into());
            }
        });
        Self(())
    }

    /// A flag that the first Ctrl-C sets.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &STOP
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        IS_TRAINING.store(false, Ordering::Relaxed);
    }
}
