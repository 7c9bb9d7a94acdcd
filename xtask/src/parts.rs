//! The parts of a long command: each is announced when it begins, and all are listed with their times at the end.

use std::fmt;
use std::time::{Duration, Instant};

/// Parts that are done, and the one that is being done.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    done: Vec<(&'static str, Duration)>,
    current: Option<(&'static str, Instant)>,
}

impl Parts {
    /// Ends the part before, and announces the next one.
    pub(crate) fn begin(&mut self, name: &'static str) {
        self.end();
        println!("── {name}");
        self.current = Some((name, Instant::now()));
    }

    /// Ends the last part.
    pub(crate) fn end(&mut self) {
        self.done.extend(self.current.take().map(|(name, start)| (name, start.elapsed())));
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut total = Duration::ZERO;
        for &(name, time) in &self.done {
            total += time;
            writeln!(f, "{name:<36}{:>6} s", time.as_secs())?;
        }
        write!(f, "{:<36}{:>6} s", "all parts", total.as_secs())
    }
}
