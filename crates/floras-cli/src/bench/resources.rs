//! Processor time and memory of the process.

/// Processor seconds of all threads, and the largest memory held at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// `None` where the system does not report it.
    pub(crate) cpu_seconds: Option<f64>,
    /// `None` where the system does not report it.
    pub(crate) peak_bytes: Option<u64>,
}

impl Usage {
    /// Reads the counters.
    pub(crate) fn now() -> Self {
        Self { cpu_seconds: cpu_seconds(), peak_bytes: peak_bytes() }
    }
}

#[cfg(unix)]
fn cpu_seconds() -> Option<f64> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Some(microseconds as f64 * 1e-6)
}

#[cfg(not(unix))]
fn cpu_seconds() -> Option<f64> {
    None
}

/// Not `getrusage`, whose peak a program inherits on Linux from the one that started it.
#[cfg(target_os = "linux")]
fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(not(target_os = "linux"))]
fn peak_bytes() -> Option<u64> {
    None
}
