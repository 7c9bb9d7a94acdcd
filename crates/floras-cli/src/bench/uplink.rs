//! `floras bench uplink`: the time and memory of one round on the air.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use clap::Args;
use floras_core::random::{Purpose, StreamName, TILE};
use floras_core::{Choice, Fading, Fidelity, Modulation, Receiver, SequenceSource, Snr, SnrConvention};
use floras_phy::{Aggregation, Floras, FlorasSettings, Round, SequenceSet, UplinkError};
use rayon::prelude::*;
use serde::Serialize;

use super::resources::Usage;
use super::{median, progress_bar};
use crate::command::{choice, integer, number};
use crate::failure::Failure;

const SEED: u64 = 1;
const SNR_DB: f64 = 20.0;
const MAX_BYTES: usize = 16 << 30;

/// Options of `floras bench uplink`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example: 20 clients with a million parameters each, every chip on the air

  floras bench uplink --per-round 20 --sequences 32 --length 32 --fidelity chip")]
pub(crate) struct Options {
    /// Clients per round (K).
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = integer::<usize>, default_value_t = 20)]
    per_round: usize,

    /// Spreading sequences (N), at least as many as clients.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = integer::<usize>, default_value_t = 32)]
    sequences: usize,

    /// Chips in a sequence (L).
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = integer::<usize>, default_value_t = 32)]
    length: usize,

    /// Parameters in an update (d).
    #[arg(long, value_name = "d", allow_negative_numbers = true, value_parser = integer::<usize>, default_value_t = 1_000_000)]
    dim: usize,

    /// Draw one Gaussian per parameter, or simulate every chip.
    #[arg(long, value_parser = choice::<Fidelity>(), default_value_t)]
    fidelity: Fidelity,

    /// Kind of spreading sequence.
    #[arg(long, value_parser = choice::<SequenceSource>(), default_value_t)]
    family: SequenceSource,

    /// Clip every update to this norm (C) while it is sent, without a copy.
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = number)]
    clip: Option<f64>,

    /// Rounds to time, after one that is not timed.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>, default_value_t = 10)]
    repeat: u32,

    /// Threads; all cores if absent.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<usize>)]
    threads: Option<usize>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// The measurement, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Measurement {
    fidelity: Fidelity,
    family: SequenceSource,
    per_round: usize,
    sequences: usize,
    length: usize,
    dim: usize,
    threads: usize,
    repeat: u32,
    clip: Option<f64>,
    snr_db: f64,
    snr_convention: String,
    fading: String,
    /// Median time of a round, in seconds.
    seconds_per_round: f64,
    fastest_seconds_per_round: f64,
    slowest_seconds_per_round: f64,
    /// Mean processor time of a round, over all threads, in seconds.
    cpu_seconds_per_round: Option<f64>,
    /// Largest memory of the process in bytes, including the updates and the decoded sum.
    peak_bytes: Option<u64>,
    /// Size of the updates and of the decoded sum, in bytes.
    data_bytes: usize,
}

/// Measures and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    options.check()?;
    let uplink = options.uplink()?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(options.threads.unwrap_or(0)).build()?;
    let measurement = pool.install(|| options.measure(&uplink))?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&measurement)?)?;
    } else {
        measurement.print(&mut out, uplink.settings())?;
    }
    Ok(())
}

impl Options {
    fn check(&self) -> Result<(), Failure> {
        let wrong = |option: &'static str, allowed: &'static str, value: usize| {
            Err(Failure::option(option, allowed, value))
        };
        let max_clients = u32::MAX as usize;
        if self.per_round == 0 || self.per_round > max_clients {
            return wrong("--per-round", "between 1 and 4294967295", self.per_round);
        }
        if self.dim == 0 {
            return wrong("--dim", "at least 1", self.dim);
        }
        if self.threads == Some(0) || self.threads.is_some_and(|threads| threads > 1024) {
            return wrong("--threads", "between 1 and 1024", self.threads.unwrap_or(0));
        }
        let bytes = self.bytes_needed();
        if bytes > MAX_BYTES {
            let memory = "the memory for --per-round updates of --dim parameters and for --length chips on every thread";
            return Err(Failure::option(memory, "at most 16 GiB", format!("{} GiB", bytes >> 30)));
        }
        if self.repeat == 0 {
            return wrong("--repeat", "at least 1", 0);
        }
        Ok(())
    }

    /// Memory in bytes of the updates, the decoded sum, and at the chip level the chips of each thread.
    fn bytes_needed(&self) -> usize {
        let vectors = (self.per_round + 1).saturating_mul(self.dim).saturating_mul(size_of::<f32>());
        let air = match self.fidelity {
            Fidelity::Symbol => 0,
            Fidelity::Chip => self.length.saturating_mul(TILE * size_of::<f32>()),
        };
        let threads = self.threads.unwrap_or_else(rayon::current_num_threads);
        vectors.saturating_add(air.saturating_mul(threads))
    }

    fn uplink(&self) -> Result<Floras, UplinkError> {
        if self.sequences < self.per_round {
            return Err(UplinkError::TooFewSequences { sequences: self.sequences, clients: self.per_round });
        }
        Ok(Floras::new(FlorasSettings {
            sequences: SequenceSet::open(&self.family, self.sequences, self.length, SEED)?,
            modulation: Modulation::Real,
            receiver: Receiver::Paper,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(SNR_DB, SnrConvention::Symbol)?,
            ..FlorasSettings::default()
        }))
    }

    fn measure(&self, uplink: &Floras) -> Result<Measurement, Failure> {
        let clients: Vec<u32> = (0..self.per_round as u32).collect();
        let updates = self.generated_updates(&clients);
        let mut decoded = vec![0.0; self.dim];
        let aggregation = Aggregation { clip: self.clip, fidelity: self.fidelity, ..Aggregation::default() };
        let bar = progress_bar(self.repeat);
        let mut times = Vec::new();
        let mut before = Usage::now();
        for number in 0..=self.repeat {
            let start = Instant::now();
            let round = Round::new(SEED, 0, number + 1, &clients)?;
            decoded = aggregation.run_in(uplink, round, &updates, None, decoded)?.sum;
            // The first round allocates memory that the others reuse.
            match number {
                0 => before = Usage::now(),
                _ => times.push(start.elapsed()),
            }
            bar.set_position(number.into());
        }
        let after = Usage::now();
        bar.finish_and_clear();
        Ok(self.summarise(times, before, after))
    }

    fn generated_updates(&self, clients: &[u32]) -> Vec<Vec<f32>> {
        let make = |&client: &u32| {
            let mut update = vec![0.0; self.dim];
            StreamName::new(SEED, Purpose::BENCHMARK).client(client).normals().fill(0, &mut update);
            update
        };
        clients.par_iter().map(make).collect()
    }

    fn summarise(&self, mut times: Vec<Duration>, before: Usage, after: Usage) -> Measurement {
        times.sort_unstable();
        let cpu_seconds = before.cpu_seconds.zip(after.cpu_seconds);
        Measurement {
            fidelity: self.fidelity,
            family: self.family.clone(),
            per_round: self.per_round,
            sequences: self.sequences,
            length: self.length,
            dim: self.dim,
            threads: rayon::current_num_threads(),
            repeat: self.repeat,
            clip: self.clip,
            snr_db: SNR_DB,
            snr_convention: SnrConvention::Symbol.label(),
            fading: Fading::Rayleigh.label(),
            seconds_per_round: median(&times),
            fastest_seconds_per_round: times[0].as_secs_f64(),
            slowest_seconds_per_round: times[times.len() - 1].as_secs_f64(),
            cpu_seconds_per_round: cpu_seconds.map(|(from, to)| (to - from) / f64::from(self.repeat)),
            peak_bytes: after.peak_bytes,
            data_bytes: (self.per_round + 1) * self.dim * size_of::<f32>(),
        }
    }
}

impl Measurement {
    fn print(&self, out: &mut impl Write, settings: &FlorasSettings) -> io::Result<()> {
        let milliseconds = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
        let fidelity = match self.fidelity {
            Fidelity::Symbol => "symbol level (one Gaussian per parameter)",
            Fidelity::Chip => "chip level (every chip on the air)",
        };
        writeln!(out, "uplink       FLORAS, {fidelity}")?;
        writeln!(
            out,
            "clients      K = {}, {} each",
            self.per_round,
            crate::table::count(self.dim, "parameter")
        )?;
        if let Some(clip) = self.clip {
            writeln!(out, "clipped      to norm C = {clip}")?;
        }
        let unused = self.sequences - self.per_round;
        writeln!(out, "sequences    {} (N and L), γ = N − K = {unused} unused", settings.sequences)?;
        writeln!(out, "channel      {}, SNR {}", settings.channels, settings.snr)?;
        let (median, fastest, slowest) = (
            milliseconds(self.seconds_per_round),
            milliseconds(self.fastest_seconds_per_round),
            milliseconds(self.slowest_seconds_per_round),
        );
        writeln!(out, "one round    {median} (median of {}; {fastest} to {slowest})", self.repeat)?;
        if let Some(cpu_seconds) = self.cpu_seconds_per_round {
            let threads = if self.threads == 1 { "thread" } else { "threads" };
            writeln!(
                out,
                "processor    {} per round, on {} {threads}",
                milliseconds(cpu_seconds),
                self.threads
            )?;
        }
        if let Some(peak_bytes) = self.peak_bytes {
            let mib = |bytes: f64| bytes / f64::from(1 << 20);
            let (peak, data) = (mib(peak_bytes as f64), mib(self.data_bytes as f64));
            writeln!(
                out,
                "memory       {peak:.1} MiB at peak, of which {data:.1} MiB are updates and decoded sum"
            )?;
        }
        Ok(())
    }
}
