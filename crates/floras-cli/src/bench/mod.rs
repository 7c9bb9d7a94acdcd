//! `floras bench`: how fast this machine is.

mod resources;
mod round;
mod schemes;
mod uplink;

use std::time::Duration;

use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// One round of the air interface.
    Uplink(uplink::Options),
    /// One learning round, from selection to evaluation.
    Round(round::Options),
    /// Rounds of every scheme, compared with those of FLORAS.
    Schemes(schemes::Options),
}

/// Runs a benchmark and prints its result.
pub(crate) fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Uplink(options) => uplink::run(options),
        What::Round(options) => round::run(options),
        What::Schemes(options) => schemes::run(options),
    }
}

/// The median of sorted times, in seconds.
fn median(times: &[Duration]) -> f64 {
    let (lower, upper) = (times[(times.len() - 1) / 2], times[times.len() / 2]);
    (lower + upper).as_secs_f64() / 2.0
}

/// A progress bar on standard error, hidden in a pipe.
fn progress_bar(rounds: u32) -> ProgressBar {
    let style = ProgressStyle::with_template("round {pos}/{len} {wide_bar} {eta} left")
        .expect("the template is well-formed");
    let bar = ProgressBar::new(rounds.into()).with_style(style);
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
