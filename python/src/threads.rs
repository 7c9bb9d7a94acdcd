//! The threads that Python's calls work on.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool, and the process that it belongs to.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// The pool of this process, with a thread for every core, or as many as `RAYON_NUM_THREADS` says.
///
/// A process that was forked has its parent's memory and not its threads: it needs a pool of its own, or it would wait forever.
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

/// Does some work on the pool while Python goes on.
pub(crate) fn work<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let pool = pool()?;
    Ok(py.detach(|| pool.install(work)))
}
