//! `floras bench schemes`: the time of a round of every scheme, compared with one of FLORAS.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use floras_paper::benchmark::timed_experiments;
use floras_phy::{ClientMemory, Round};
use floras_sim::{Experiment, Federation, Trial, TrialOptions};
use serde::Serialize;

use super::resources::Usage;
use super::{median, progress_bar};
use crate::command::{integer, thread_count, threads_or_all_cores};
use crate::failure::Failure;

/// Rounds that are not timed.
const WARM_UP: u32 = 3;
/// Time of the rounds of FLORAS in a turn.
const TURN: Duration = Duration::from_millis(40);

/// Options of `floras bench schemes`.
#[derive(Debug, Args)]
#[command(after_help = "\
Every scheme with the settings of `floras benchmark`, without protection. In each turn, rounds of FLORAS and
rounds of the scheme are timed one after another; a ratio is the median over the turns. A round trains the
clients and sends their updates; the uplink alone clips and sends them. On one thread the times are
processor times, which other programs disturb less.

Example:

  floras bench schemes --clients 1000 --threads 1")]
pub(crate) struct Options {
    /// Clients per round (K), one or several.
    #[arg(long, value_name = "K,…", allow_negative_numbers = true, value_parser = integer::<u32>, value_delimiter = ',', default_value = "20,100,1000")]
    clients: Vec<u32>,

    /// Measurements of each scheme, in turns with FLORAS, from 1 to 1000.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>, default_value_t = 7)]
    turns: u32,

    /// Threads; all cores if absent.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// Print one JSON object per scheme and number of clients on standard output.
    #[arg(long)]
    json: bool,
}

/// The measurement of one scheme, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Measurement {
    name: String,
    clients: u32,
    threads: usize,
    /// Median time of a whole round, in seconds.
    seconds_per_round: f64,
    /// Median of the ratios of a whole round's time to that of FLORAS.
    round_ratio: f64,
    /// Median time of the uplink alone, in seconds.
    seconds_per_uplink: f64,
    /// Median of the ratios of the uplink's time to that of FLORAS.
    uplink_ratio: f64,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let out_of_range = |count: &&u32| !(1..=100_000).contains(*count);
    if let Some(count) = options.clients.iter().find(out_of_range) {
        return Err(Failure::option("--clients", "between 1 and 100000", count.to_string()));
    }
    if !(1..=1000).contains(&options.turns) {
        return Err(Failure::option("--turns", "between 1 and 1000", options.turns.to_string()));
    }
    let threads = threads_or_all_cores(options.threads);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let mut out = io::stdout().lock();
    if !options.json {
        writeln!(
            out,
            "{:<20} {:>7} {:>12} {:>7} {:>12} {:>7}",
            "scheme", "clients", "round", "ratio", "uplink", "ratio"
        )?;
    }
    for &clients in &options.clients {
        let experiments = timed_experiments(clients)?;
        let floras = Federation::new(&experiments[0])?;
        let bar = progress_bar(experiments.len() as u32);
        for experiment in &experiments {
            let measurement = pool.install(|| options.measure(&floras, experiment, threads))?;
            bar.inc(1);
            bar.suspend(|| -> Result<(), Failure> {
                if options.json {
                    writeln!(out, "{}", serde_json::to_string(&measurement)?)?;
                } else {
                    measurement.print(&mut out)?;
                }
                Ok(())
            })?;
        }
        bar.finish_and_clear();
    }
    Ok(())
}

impl Options {
    fn measure(
        &self,
        floras: &Federation,
        experiment: &Experiment,
        threads: usize,
    ) -> Result<Measurement, Failure> {
        let federation = Federation::new(experiment)?;
        let (mut reference, mut scheme) = (Timed::new(floras)?, Timed::new(&federation)?);
        let [mut rounds, mut uplinks] = [Ratios::default(), Ratios::default()];
        let counts = [reference.count(Timed::round)?, reference.count(Timed::uplink)?];
        for _ in 0..self.turns {
            rounds.add(reference.time(counts[0], Timed::round)?, scheme.time(counts[0], Timed::round)?);
            uplinks.add(reference.time(counts[1], Timed::uplink)?, scheme.time(counts[1], Timed::uplink)?);
        }
        let settings = experiment.settings();
        let ([seconds_per_round, round_ratio], [seconds_per_uplink, uplink_ratio]) =
            (rounds.medians(), uplinks.medians());
        Ok(Measurement {
            name: settings.name.clone(),
            clients: settings.clients.per_round,
            threads,
            seconds_per_round,
            round_ratio,
            seconds_per_uplink,
            uplink_ratio,
        })
    }
}

/// A trial, and the updates of its next round.
struct Timed<'a> {
    federation: &'a Federation,
    trial: Trial<'a>,
    clients: Vec<u32>,
    updates: Vec<Vec<f32>>,
    memory: ClientMemory,
    sum: Vec<f32>,
}

impl<'a> Timed<'a> {
    fn new(federation: &'a Federation) -> Result<Self, Failure> {
        let options = TrialOptions { scored: false, ..TrialOptions::default() };
        let mut trial = Trial::begin_with(federation, 0, options)?;
        for _ in 0..WARM_UP {
            trial.step()?;
        }
        let (updates, clients) = (trial.expected_updates(trial.id())?, federation.select(0, 1));
        let sum = vec![0.0; federation.model().parameters()];
        let mut timed = Self { federation, trial, clients, updates, memory: ClientMemory::default(), sum };
        for _ in 0..WARM_UP {
            timed.uplink()?;
        }
        Ok(timed)
    }

    /// Trains the clients and sends their updates.
    fn round(&mut self) -> Result<(), Failure> {
        self.trial.step()?;
        Ok(())
    }

    /// Sends the same updates again.
    fn uplink(&mut self) -> Result<(), Failure> {
        let settings = self.federation.experiment().settings();
        let round = Round::new(settings.seed, 0, self.trial.round(), &self.clients)?;
        let (uplink, sum) = (self.federation.uplink(), std::mem::take(&mut self.sum));
        let memory = Some(&mut self.memory);
        self.sum = settings.aggregation().run_in(uplink, round, &self.updates, memory, sum)?.sum;
        Ok(())
    }

    /// The time of one of `count` calls: processor time on one thread, where the system reports it.
    fn time(&mut self, count: u32, once: fn(&mut Self) -> Result<(), Failure>) -> Result<Duration, Failure> {
        let (start, before) = (Instant::now(), Usage::now().cpu_seconds);
        for _ in 0..count {
            once(self)?;
        }
        let processor = before.zip(Usage::now().cpu_seconds).filter(|_| rayon::current_num_threads() == 1);
        let spent =
            processor.map_or(start.elapsed(), |(from, to)| Duration::from_secs_f64((to - from).max(0.0)));
        Ok(spent / count)
    }

    /// Number of calls in a turn.
    fn count(&mut self, once: fn(&mut Self) -> Result<(), Failure>) -> Result<u32, Failure> {
        let one = self.time(WARM_UP, once)?;
        Ok((TURN.as_secs_f64() / one.as_secs_f64().max(1e-9)).clamp(1.0, 1000.0) as u32)
    }
}

/// The times of a scheme, and their ratios to those of FLORAS.
#[derive(Default)]
struct Ratios {
    times: Vec<Duration>,
    ratios: Vec<f64>,
}

impl Ratios {
    fn add(&mut self, floras: Duration, scheme: Duration) {
        self.times.push(scheme);
        self.ratios.push(scheme.as_secs_f64() / floras.as_secs_f64().max(1e-9));
    }

    fn medians(mut self) -> [f64; 2] {
        self.times.sort_unstable();
        self.ratios.sort_unstable_by(f64::total_cmp);
        let middle = self.ratios.len() / 2;
        [median(&self.times), 0.5 * (self.ratios[(self.ratios.len() - 1) / 2] + self.ratios[middle])]
    }
}

impl Measurement {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let Self { name, clients, seconds_per_round, round_ratio, seconds_per_uplink, uplink_ratio, .. } =
            self;
        let (round, uplink) = (1e3 * seconds_per_round, 1e3 * seconds_per_uplink);
        writeln!(
            out,
            "{name:<20} {clients:>7} {round:>9.3} ms {round_ratio:>7.2} {uplink:>9.3} ms {uplink_ratio:>7.2}"
        )
    }
}
