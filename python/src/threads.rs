//! The thread pool of all calls.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool and its process.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process, with one thread per core, or `RAYON_NUM_THREADS` threads.
///
/// A forked process has its parent's memory but not its threads. It gets its own pool, because work on the parent's would never
/// run.
pub(crate) fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*pool
        && *owner == process
    {
        return Ok(Arc::clone(pool));
    }
    let made = ThreadPoolBuilder::new().thread_name(|number| format!("floras-{number}")).build();
    let made = Arc::new(made.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    // The parent's pool cannot be ended from here.
    std::mem::forget(pool.replace((process, Arc::clone(&made))));
    Ok(made)
}

/// Runs `work` on the pool without holding the interpreter.
pub(crate) fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool()?;
    Ok(py.detach(|| pool.install(work)))
}
