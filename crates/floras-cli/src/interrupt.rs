//! Ctrl-C: the first one stops a training after its current round, a second one ends the program at once.
//!
//! While the results of a complete training are written, the first Ctrl-C has no effect. Afterwards, while a live view is open, Ctrl-C
//! is the regular end of the program.

use std::process;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of an interrupted training: 128 + SIGINT.
pub(crate) const EXIT_CODE: u8 = 130;

static STOP: AtomicBool = AtomicBool::new(false);
/// Whether the first Ctrl-C leaves the program running: during a training, and while its results are written.
static IS_HELD: AtomicBool = AtomicBool::new(false);

/// Whether all results are written, so that Ctrl-C interrupts nothing.
static IS_COMPLETE: AtomicBool = AtomicBool::new(false);

/// A training that Ctrl-C stops. Before and after it, Ctrl-C ends the program at once.
pub(crate) struct Training(Held);

/// Results that are being written, which the first Ctrl-C does not stop.
pub(crate) struct Writing(Held);

/// Holds Ctrl-C until it is dropped.
struct Held;

impl Writing {
    /// Marks that all results are written.
    pub(crate) fn written(self) {
        IS_COMPLETE.store(true, Ordering::Relaxed);
    }
}

impl Training {
    /// Marks the beginning of a training.
    pub(crate) fn begin() -> Self {
        IS_HELD.store(true, Ordering::Relaxed);
        // Without a handler, Ctrl-C ends the program at once; a run can be resumed then, too.
        let _ = ctrlc::set_handler(|| {
            if !IS_HELD.load(Ordering::Relaxed) || STOP.swap(true, Ordering::Relaxed) {
                process::exit(if IS_COMPLETE.load(Ordering::Relaxed) { 0 } else { EXIT_CODE.into() });
            }
        });
        Self(Held)
    }

    /// A flag that the first Ctrl-C sets.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &STOP
    }

    /// Marks the end of a complete training, whose results are written next. A Ctrl-C that came too late to stop it is forgotten.
    pub(crate) fn completed(self) -> Writing {
        STOP.store(false, Ordering::Relaxed);
        Writing(self.0)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        IS_HELD.store(false, Ordering::Relaxed);
    }
}
