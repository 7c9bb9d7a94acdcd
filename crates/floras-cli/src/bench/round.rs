//! `floras bench round`: the time of one learning round, from selection to evaluation.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use floras_sim::{Experiment, ExperimentBuilder, Federation, Trial};
use serde::Serialize;

use super::resources::Usage;
use super::{median, progress_bar};
use crate::command::{integer, thread_count, threads_or_all_cores};
use crate::failure::Failure;

/// 20 clients, 4 steps of 50 samples each, FLORAS at the symbol level, a test on 1,000 samples.
const REFERENCE: &str = r#"
name = "reference-round"
trials = 1
rounds = 1000000

[local]
batch = 50

[uplink]
truncate = 6.0

[privacy]
clip = 6.33
normalise = "paper"

[record]
test_every = 1
train_every = 1000000
"#;

/// Rounds of the reference that are not timed.
const WARM_UP: u32 = 10;
/// Rounds of other experiments that are not timed.
const SHORT_WARM_UP: u32 = 2;

/// Options of `floras bench round`.
#[derive(Debug, Args)]
#[command(after_help = "\
The reference round: 20 clients with 200 digits each take 4 steps of 50 samples on a logistic
regression from 400 features to 10 classes, send their updates with FLORAS at the symbol level, and
the result is tested on 1,000 digits.

Examples:

  floras bench round --threads 1 --json
  floras bench round my-experiment.toml --rounds 20")]
pub(crate) struct Options {
    /// A file or preset whose rounds are timed; the reference round if absent.
    experiment: Option<String>,

    /// Rounds to time.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>, default_value_t = 300)]
    rounds: u32,

    /// Threads; all cores if absent.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// The measurement, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Measurement {
    rounds: u32,
    threads: usize,
    /// Median time of a round, in seconds.
    seconds_per_round: f64,
    /// Mean processor time of a round, over all threads, in seconds.
    cpu_seconds_per_round: Option<f64>,
    rounds_per_second: f64,
    /// Largest memory of the process, in bytes.
    peak_bytes: Option<u64>,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if options.rounds == 0 || options.rounds > 900_000 {
        let value = options.rounds.to_string();
        return Err(Failure::option("--rounds", "between 1 and 900000", value));
    }
    let experiment = match &options.experiment {
        None => Experiment::parse("the reference round", REFERENCE)?,
        // More than are timed: the last round of a trial evaluates the model.
        source => {
            let rounds = options.rounds + SHORT_WARM_UP + 1;
            ExperimentBuilder::open(source.as_deref())?.rounds(rounds).build()?
        }
    };
    let federation = Federation::new(&experiment)?;
    let threads = threads_or_all_cores(options.threads);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let measurement = pool.install(|| options.measure(&federation, threads))?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&measurement)?)?;
    } else {
        measurement.print(&federation, options.experiment.as_deref(), &mut out)?;
    }
    Ok(())
}

impl Options {
    fn measure(&self, federation: &Federation, threads: usize) -> Result<Measurement, Failure> {
        let mut trial = Trial::begin(federation, 0)?;
        let warm_up = if self.experiment.is_some() { SHORT_WARM_UP } else { WARM_UP };
        for _ in 0..warm_up {
            trial.step()?;
        }
        let bar = progress_bar(self.rounds);
        let (before, mut times) = (Usage::now(), Vec::new());
        for _ in 0..self.rounds {
            let start = Instant::now();
            trial.step()?;
            times.push(start.elapsed());
            bar.inc(1);
        }
        let after = Usage::now();
        bar.finish_and_clear();
        let cpu_seconds = before.cpu_seconds.zip(after.cpu_seconds);
        let total: Duration = times.iter().sum();
        times.sort_unstable();
        Ok(Measurement {
            rounds: self.rounds,
            threads,
            seconds_per_round: median(&times),
            cpu_seconds_per_round: cpu_seconds.map(|(from, to)| (to - from) / f64::from(self.rounds)),
            rounds_per_second: f64::from(self.rounds) / total.as_secs_f64(),
            peak_bytes: after.peak_bytes,
        })
    }
}

impl Measurement {
    fn print(&self, federation: &Federation, source: Option<&str>, out: &mut impl Write) -> io::Result<()> {
        match source {
            None => writeln!(
                out,
                "round        20 clients × 4 steps of 50, 4010 parameters, FLORAS, test on 1,000"
            )?,
            Some(source) => {
                let clients = federation.experiment().settings().clients.per_round;
                let parameters = federation.model().parameters();
                writeln!(out, "round        {source}: {clients} clients, {parameters} parameters")?;
            }
        }
        writeln!(out, "one round    {:.3} ms (median of {})", self.seconds_per_round * 1e3, self.rounds)?;
        if let Some(cpu_seconds) = self.cpu_seconds_per_round {
            let threads = if self.threads == 1 { "thread" } else { "threads" };
            writeln!(
                out,
                "processor    {:.3} ms per round, on {} {threads}",
                cpu_seconds * 1e3,
                self.threads
            )?;
        }
        writeln!(out, "speed        {:.0} rounds/s", self.rounds_per_second)
    }
}
