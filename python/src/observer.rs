//! Long work with a Python callback, stopped by Ctrl-C.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use floras_sim::SimError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::convert;
use crate::error::ToPython;

/// Time between checks for an interruption.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The callback of some work, and a flag to stop the work.
pub(crate) struct Observer {
    watch: Option<Py<PyAny>>,
    stop: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Observer {
    /// Creates an observer with a callback.
    pub(crate) fn new(watch: Option<Py<PyAny>>) -> Self {
        Self { watch, stop: AtomicBool::new(false), raised: Mutex::new(None) }
    }

    /// The flag that stops the work.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Calls the callback. An exception stops the work and is raised again by `observe`.
    pub(crate) fn notify(&self, event: &impl Serialize) {
        let Some(watch) = &self.watch else { return };
        let result = Python::attach(|py| watch.call1(py, (convert::python(py, event)?,)));
        if let Err(error) = result {
            self.stop.store(true, Ordering::Relaxed);
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Runs `work` on another thread, and checks for Ctrl-C on this one.
    pub(crate) fn observe<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&Self) -> Result<T, SimError> + Send,
    ) -> PyResult<T> {
        let (outcome, interrupted) = thread::scope(|scope| {
            let worker = scope.spawn(|| work(&self));
            let mut interrupted = None;
            while !worker.is_finished() {
                py.detach(|| thread::park_timeout(CHECK_INTERVAL));
                if let Err(error) = py.check_signals() {
                    self.stop.store(true, Ordering::Relaxed);
                    interrupted.get_or_insert(error);
                }
            }
            (py.detach(|| worker.join()), interrupted)
        });
        let raised = self.raised.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = interrupted.or(raised) {
            return Err(error);
        }
        match outcome {
            Ok(outcome) => outcome.map_err(ToPython::to_python),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
