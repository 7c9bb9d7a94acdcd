//! What the process has used so far, as the operating system counts it.

/// Processor seconds of all threads, and the largest memory held at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// `None` where the system does not tell.
    pub(crate) cpu_seconds: Option<f64>,
    /// `None` where the system does not tell.
    pub(crate) peak_bytes: Option<u64>,
}

impl Usage {
    /// Reads the counters.
    #[cfg(unix)]
    pub(crate) fn now() -> Self {
        use nix::sys::resource::{UsageWho, getrusage};
        use nix::sys::time::TimeValLike;

        // Linux counts in KiB, macOS in bytes.
        let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok();
        Self {
            cpu_seconds: usage.map(|usage| {
                let microseconds =
                    usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
                microseconds as f64 * 1e-6
            }),
            peak_bytes: usage.map(|usage| usage.max_rss().unsigned_abs() * unit),
        }
    }

    /// There are no such counters here.
    #[cfg(not(unix))]
    pub(crate) fn now() -> Self {
        Self { cpu_seconds: None, peak_bytes: None }
    }
}
