//! Long work that Python watches and that Ctrl-C stops.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use floras_sim::SimError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::convert;
use crate::error::ToPython;

/// How often work looks whether it was interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Who watches some work, and whether it is to stop.
pub(crate) struct Observer {
    watch: Option<Py<PyAny>>,
    stop: AtomicBool,
    raised: Mutex<Option<PyErr>>,
}

impl Observer {
    /// For a function that is called with what happens.
    pub(crate) fn new(watch: Option<Py<PyAny>>) -> Self {
        Self { watch, stop: AtomicBool::new(false), raised: Mutex::new(None) }
    }

    /// Set when the work is to stop.
    pub(crate) fn stop(&self) -> &AtomicBool {
        &self.stop
    }

    /// Calls the watcher. What it raises stops the work, and is raised again where the work was called.
    pub(crate) fn tell(&self, what: &impl Serialize) {
        let Some(watch) = &self.watch else { return };
        let told = Python::attach(|py| watch.call1(py, (convert::python(py, what)?,)));
        if let Err(error) = told {
            self.stop.store(true, Ordering::Relaxed);
            self.raised.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    }

    /// Works on a thread of its own, so that this one can look for an interruption from the keyboard.
    pub(crate) fn observe<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&Self) -> Result<T, SimError> + Send,
    ) -> PyResult<T> {
        let (outcome, interrupted) = thread::scope(|scope| {
            let worker = scope.spawn(|| work(&self));
            let mut interrupted = None;
            while !worker.is_finished() {
                py.detach(|| thread::park_timeout(LOOK_EVERY));
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
