//! A run: all trials of an experiment, recorded in a run directory.
//!
//! Each trial has its own thread, and at most as many trials run at once as there are threads. The computation of all rounds is
//! done by one shared pool, so that the last trial uses all cores.
//!
//! The ledger entry of a round is synced to the disk before the round's result is released. A sync per round would take longer
//! than the round. Results are therefore held back for a moment, their ledger entries are synced together, and then the results
//! are released.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use floras_core::View;
use floras_privacy::ledger::{Ledger, Worst};
use rayon::ThreadPool;

use crate::accounting::{Accounting, PrivacyReport};
use crate::cost::TrialCost;
use crate::error::SimError;
use crate::experiment::Experiment;
use crate::federation::{Federation, RoundMetrics, RoundOutcome, Status, Trial, TrialOptions};
use crate::record::{
    self, Checkpoint, Entry, EventFile, LedgerEntry, LedgerLog, LogState, Mark, MetricsLog, RunDirectory,
    SignalFile,
};
use crate::summary::Summary;

/// Time between checkpoints; longer if they take long.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// Maximum share of the time that checkpoints take.
const CHECKPOINT_SHARE: f64 = 0.02;
/// Results are held back for this long before their ledger entries are synced.
const HOLD_BACK: Duration = Duration::from_millis(100);
/// Recorded signals are held back up to this size.
const HOLD_BACK_BYTES: usize = 16 << 20;
/// Maximum number of trials whose label counts are recorded.
const MAX_PARTITIONS: u32 = 100;

/// A step of a run, for progress displays.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A trial begins or is resumed.
    TrialBegins {
        /// The trial, counted from 0.
        trial: u32,
        /// Number of rounds that were done before.
        done: u32,
    },
    /// A round is done.
    Round(Box<RoundMetrics>),
    /// A trial has ended.
    TrialEnds {
        /// The trial, counted from 0.
        trial: u32,
        /// How the trial ended: finished or diverged.
        status: Status,
    },
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The summary of all trials.
    pub summary: Summary,
    /// Number of rounds that this process did, over all trials.
    pub rounds_done: u64,
    /// Elapsed time of the rounds.
    pub elapsed: Duration,
}

impl Outcome {
    /// Rounds per second, of all trials together; `None` if the run was already complete.
    pub fn rounds_per_second(&self) -> Option<f64> {
        (self.rounds_done > 0).then(|| self.rounds_done as f64 / self.elapsed.as_secs_f64())
    }
}

/// An experiment that is ready to run: its data are loaded and its directory is locked.
#[derive(Debug)]
pub struct PreparedRun {
    federation: Federation,
    directory: RunDirectory,
    threads: usize,
}

impl PreparedRun {
    /// Loads the data, checks the memory that `threads` need, and enters the directory.
    pub fn new(experiment: &Experiment, path: &Path, entry: Entry, threads: usize) -> Result<Self, SimError> {
        Self::of(Federation::new(experiment)?, path, entry, threads)
    }

    /// Like [`new`](Self::new), for a federation whose data are loaded.
    pub fn of(federation: Federation, path: &Path, entry: Entry, threads: usize) -> Result<Self, SimError> {
        federation.check_memory(threads)?;
        let directory = RunDirectory::enter(path, federation.experiment(), entry)?;
        Ok(Self { federation, directory, threads })
    }

    /// The federation that is run.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// The federation that was run.
    pub fn into_federation(self) -> Federation {
        self.federation
    }

    /// The directory in which the run is recorded.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// Notes for the user about recorded signals and the privacy budget, before the first round.
    pub fn notes(&self) -> Vec<String> {
        let settings = self.federation.experiment().settings();
        let mut notes = Vec::new();
        let signals = settings.record.signal.count(self.federation.rounds());
        if signals > 0 {
            // Two sums, seven numbers per client, two per sequence, and headers.
            let (clients, parameters) =
                (settings.clients.per_round as usize, self.federation.model().parameters());
            let sequences = settings.uplink.scheme.sequences().unwrap_or(0);
            let bytes = 8 * parameters + 64 * clients + 16 * sequences + (5 << 10);
            let megabytes = bytes as f64 * f64::from(signals) * f64::from(settings.trials) / 1e6;
            notes.push(format!(
                "recorded signals: {signals} per trial, about {megabytes:.1} MB in all; they are not private"
            ));
        }
        let (view, Some(epsilon)) = (settings.privacy.view, settings.privacy.budget) else { return notes };
        if !self.is_guarantee(view) {
            notes.push("the budget is enforced in a view whose epsilon is not a guarantee here".to_owned());
        }
        let (affordable, rounds) = (self.federation.rounds(), settings.rounds);
        if affordable < rounds {
            notes.push(format!(
                "the budget of {epsilon} in the {view} view allows {affordable} of {rounds} rounds; the run stops there"
            ));
        }
        notes
    }

    /// The privacy statements about the rounds done so far; `None` before the first round. For a run that was stopped.
    pub fn privacy_so_far(&self) -> Result<Option<PrivacyReport>, SimError> {
        if let Some(summary) = self.directory.summary()? {
            return Ok(Some(summary.privacy));
        }
        let trials = self.federation.experiment().settings().trials;
        let spent = record::spent(self.directory.path(), trials)?;
        spent.map(|spent| record::spent_report(&self.federation, spent)).transpose()
    }

    /// Whether a view's `ε` is a guarantee: not that of a published formula, an estimate or a view with a caveat.
    fn is_guarantee(&self, view: View) -> bool {
        let statement = self
            .federation
            .accounting()
            .and_then(|accounting| Ok(accounting.account().statement(view, 1)?));
        statement.is_ok_and(|statement| statement.is_some_and(|statement| statement.guarantee))
    }

    /// Runs all unfinished trials until `stop` is set. A stopped run can be resumed.
    pub fn run(&self, watch: &(dyn Fn(Event) + Sync), stop: &AtomicBool) -> Result<Outcome, SimError> {
        run_until(&self.federation, &self.directory, self.threads, watch, stop)
    }
}

fn run_until(
    federation: &Federation,
    directory: &RunDirectory,
    threads: usize,
    watch: &(dyn Fn(Event) + Sync),
    stop: &AtomicBool,
) -> Result<Outcome, SimError> {
    if let Some(summary) = directory.summary()? {
        directory.remove_logs(summary.trials.len())?;
        return Ok(Outcome { summary, rounds_done: 0, elapsed: Duration::ZERO });
    }
    federation.accounting()?;
    let settings = federation.experiment().settings();
    let at_once = threads.min(settings.trials as usize).max(1);
    let partitions: Result<Vec<_>, SimError> = (0..settings.trials.min(MAX_PARTITIONS))
        .map(|trial| federation.partition_record(trial as u16))
        .collect();
    let path = RunDirectory::partition_file(directory.path());
    let partitions = serde_json::to_vec(&partitions?).map_err(|error| SimError::encoding(&path, error))?;
    record::write_atomically(&path, &partitions)?;

    let starts = (0..settings.trials)
        .map(|trial| Start::find(federation, directory, trial as u16))
        .collect::<Result<Vec<Start>, SimError>>()?;
    // The ledgers' files exist now; sync their names.
    record::sync_directory(&directory.trial_ledger(0))?;
    let logs: Vec<LogState> = starts.iter().map(|start| start.log).collect();
    let (metrics, checkpoints) =
        (RunDirectory::metrics_file(directory.path()), directory.checkpoint_directory());
    let log = MetricsLog::open(&metrics, &checkpoints, &logs)?;
    let ledger = LedgerLog::open(&directory.ledger_file(), &checkpoints, &logs)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let driver = Driver {
        federation,
        directory,
        pool,
        log: Mutex::new(log),
        ledger: Mutex::new(ledger),
        starts,
        next: AtomicU32::new(0),
        ended: AtomicU32::new(0),
        stop,
        watch,
    };
    let start = Instant::now();
    let rounds_done = driver.work(at_once)?;
    let elapsed = start.elapsed();
    // A stop after the last round is too late: the run is complete.
    if driver.ended.load(Ordering::Relaxed) < settings.trials {
        return Err(SimError::Stopped { directory: directory.path().to_path_buf() });
    }
    Ok(Outcome { summary: driver.finish()?, rounds_done, elapsed })
}

/// Where a trial begins or resumes.
struct Start {
    round: u32,
    log: LogState,
    has_checkpoint: bool,
}

impl Start {
    /// Finds a trial's last checkpoint and truncates its log to that round. If the log does not match the checkpoint, or a
    /// recorded signal is missing, the trial starts again from round 1, with the same results. The ledger is never truncated.
    fn find(federation: &Federation, directory: &RunDirectory, trial: u16) -> Result<Self, SimError> {
        let log = directory.trial_log(trial.into());
        let in_ledger = record::read_ledger(&directory.trial_ledger(trial.into()), trial, |_| {})?;
        if let Some(found) = record::load(&directory.checkpoint_file(trial), federation, trial)? {
            let Mark { round, status, log_crc, .. } = found.mark;
            let has_signals = has_signals(federation, directory, trial, (round, status));
            if has_signals
                && in_ledger >= round
                && record::truncate_metrics(&log, trial, round)? == Some(log_crc)
            {
                let log = LogState { crc: log_crc, ended: status != Status::Running };
                return Ok(Self { round, log, has_checkpoint: true });
            }
        }
        record::truncate_metrics(&log, trial, 0)?;
        Ok(Self { round: 0, log: LogState::default(), has_checkpoint: false })
    }
}

/// Whether all signal files of a trial exist up to a round. A round in which training diverged may lack one, and a round in which
/// all selected clients are silent has none.
fn has_signals(
    federation: &Federation,
    directory: &RunDirectory,
    trial: u16,
    (round, status): (u32, Status),
) -> bool {
    let recorded = &federation.experiment().settings().record.signal;
    let last = if status == Status::Diverged { round.saturating_sub(1) } else { round };
    let is_there = |round| {
        RunDirectory::signal_file(directory.path(), trial.into(), round).is_file()
            || federation.senders(trial, round, &federation.select(trial, round)).is_empty()
    };
    recorded.is_none() || (1..=last).filter(|&round| recorded.contains(round)).all(is_there)
}

/// Drives the trials of a run; shared by its threads.
struct Driver<'a> {
    federation: &'a Federation,
    directory: &'a RunDirectory,
    pool: ThreadPool,
    log: Mutex<MetricsLog>,
    ledger: Mutex<LedgerLog>,
    starts: Vec<Start>,
    next: AtomicU32,
    /// Trials that have ended.
    ended: AtomicU32,
    stop: &'a AtomicBool,
    watch: &'a (dyn Fn(Event) + Sync),
}

impl Driver<'_> {
    /// Drives all trials on `at_once` threads and returns the number of rounds done.
    fn work(&self, at_once: usize) -> Result<u64, SimError> {
        let results: Vec<Result<u64, SimError>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(|| self.drive())).collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            threads.into_iter().map(join).collect()
        });
        results.into_iter().sum()
    }

    /// Drives one trial after another until all are taken, or until one has failed.
    fn drive(&self) -> Result<u64, SimError> {
        let mut rounds_done = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let trial = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(start) = self.starts.get(trial as usize) else { break };
            match self.drive_trial(trial as u16, start) {
                Ok(rounds) => rounds_done += rounds,
                Err(error) => {
                    self.stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(rounds_done)
    }

    fn drive_trial(&self, number: u16, start: &Start) -> Result<u64, SimError> {
        (self.watch)(Event::TrialBegins { trial: number.into(), done: start.round });
        let mut trial = self.trial_at(number, start)?;
        let mut rounds_done = 0;
        if trial.status() == Status::Running {
            let settings = self.federation.experiment().settings();
            let mut events = EventFile::open(&self.directory.events_file(number)?, trial.round())?;
            let mut ledger = TrialLedger::open(self.federation, self.directory, number, trial.round())?;
            let mut held_back = HeldBack::new();
            let mut clock = CheckpointClock::new();
            while trial.status() == Status::Running && !self.stop.load(Ordering::Relaxed) {
                let outcome = self.pool.install(|| trial.step())?;
                rounds_done += 1;
                let entry = ledger.enter(&outcome)?;
                let signal = match settings.record.signal.contains(outcome.metrics.round) {
                    true => SignalFile::new(self.directory, &outcome)?,
                    false => None,
                };
                held_back.results.push(HeldRound { metrics: outcome.metrics, entry, signal });
                let checkpoint = clock.is_due() && trial.status() == Status::Running;
                if checkpoint || held_back.is_due() || trial.status() != Status::Running {
                    self.release(number, &mut held_back, &mut events)?;
                }
                if checkpoint {
                    clock.time(|| self.checkpoint(&trial))?;
                }
            }
            if trial.status() == Status::Running && rounds_done > 0 {
                // Stopped: every round that was done is kept.
                self.release(number, &mut held_back, &mut events)?;
                self.checkpoint(&trial)?;
            }
        }
        if trial.status() != Status::Running {
            self.end_trial(&trial)?;
            self.ended.fetch_add(1, Ordering::Relaxed);
            (self.watch)(Event::TrialEnds { trial: number.into(), status: trial.status() });
        }
        Ok(rounds_done)
    }

    /// Syncs the ledger entries of the results, then releases the results.
    fn release(&self, trial: u16, held_back: &mut HeldBack, events: &mut EventFile) -> Result<(), SimError> {
        let to_sync = {
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            for entry in held_back.results.iter().filter_map(|round| round.entry.as_ref()) {
                ledger.append(entry)?;
            }
            ledger.lines_of(trial)?
        };
        sync(to_sync, self.directory)?;
        for HeldRound { metrics, signal, .. } in held_back.take() {
            if let Some(signal) = signal {
                signal.write()?;
            }
            self.log().append(&metrics)?;
            events.append_round(&metrics)?;
            (self.watch)(Event::Round(Box::new(metrics)));
        }
        Ok(())
    }

    fn trial_at(&self, number: u16, start: &Start) -> Result<Trial<'_>, SimError> {
        if !start.has_checkpoint {
            return Trial::begin(self.federation, number);
        }
        let path = self.directory.checkpoint_file(number);
        match record::load(&path, self.federation, number)? {
            Some(Checkpoint { mark, parameters, memory }) if mark.round == start.round => {
                let (options, at) = (TrialOptions::default(), (mark.round, mark.status));
                Ok(Trial::at(self.federation, number, options, at, parameters)?.with_memory(memory))
            }
            _ => Err(SimError::damaged(&path, "it was changed during the run")),
        }
    }

    /// Syncs the log, then writes the checkpoint that refers to its lines.
    fn checkpoint(&self, trial: &Trial<'_>) -> Result<(), SimError> {
        // Not while the log is locked: a sync takes long.
        let to_sync = self.log().lines_of(trial.number())?;
        sync(to_sync, self.directory)?;
        self.save(&self.directory.checkpoint_file(trial.number()), trial)
    }

    fn save(&self, path: &Path, trial: &Trial<'_>) -> Result<(), SimError> {
        let log_crc = self.log().crc(trial.number());
        record::save(path, self.federation, trial, log_crc)
    }

    fn end_trial(&self, trial: &Trial<'_>) -> Result<(), SimError> {
        self.save(&self.directory.parameters_file(trial.number()), trial)?;
        self.checkpoint(trial)?;
        self.log().end(trial.number())?;
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).end(trial.number())
    }

    fn finish(&self) -> Result<Summary, SimError> {
        self.log().sync_all()?;
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).sync_all()?;
        let (mut last_lines, mut costs, mut worst) = (Vec::new(), Vec::new(), None::<Worst>);
        for trial in 0..self.starts.len() {
            let log = self.directory.trial_log(trial);
            last_lines.push(record::last_line::<RoundMetrics>(&log)?);
            let mut cost = TrialCost::default();
            record::each_round(&log, |line| cost.add(line))?;
            costs.push(cost.total());
            let in_ledger = record::last_line::<LedgerEntry>(&self.directory.trial_ledger(trial))?;
            worst = worst.into_iter().chain(in_ledger.worst).max_by(|a, b| a.mu.total_cmp(&b.mu));
        }
        let settings = self.federation.experiment().settings();
        let done = last_lines.iter().map(|last| last.round).max().unwrap_or(0);
        let accounting = self.federation.accounting()?;
        let privacy = self.pool.install(|| accounting.report(settings, done, worst))?;
        let summary = Summary::new(settings, self.federation.rounds(), &last_lines, &costs, privacy);
        self.directory.complete(&summary)?;
        Ok(summary)
    }

    fn log(&self) -> std::sync::MutexGuard<'_, MetricsLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Syncs a log, if it is open.
fn sync(file: Option<File>, directory: &RunDirectory) -> Result<(), SimError> {
    let synced = file.map_or(Ok(()), |file| file.sync_data());
    synced.map_err(SimError::file("write", directory.path()))
}

/// Results that are not released yet.
struct HeldBack {
    results: Vec<HeldRound>,
    since: Instant,
}

/// The result of a round that is not released yet, with its new ledger entry and its recorded signal.
struct HeldRound {
    metrics: RoundMetrics,
    entry: Option<LedgerEntry>,
    signal: Option<SignalFile>,
}

impl HeldBack {
    fn new() -> Self {
        Self { results: Vec::new(), since: Instant::now() }
    }

    fn is_due(&self) -> bool {
        let signals = self.results.iter().filter_map(|round| round.signal.as_ref());
        self.since.elapsed() >= HOLD_BACK || signals.map(SignalFile::size).sum::<usize>() >= HOLD_BACK_BYTES
    }

    fn take(&mut self) -> Vec<HeldRound> {
        self.since = Instant::now();
        std::mem::take(&mut self.results)
    }
}

/// A trial's ledger, including the entries that are already on the disk.
struct TrialLedger<'a> {
    accounting: &'a Accounting,
    ledger: Ledger,
    /// Total number of clients `M`, if the run has dropouts.
    among: Option<u32>,
    /// Entries of rounds that were recorded before an interruption and are run again.
    recorded: VecDeque<LedgerEntry>,
    directory: &'a RunDirectory,
}

impl<'a> TrialLedger<'a> {
    /// Reads the ledger of a trial that resumes after round `round`.
    fn open(
        federation: &'a Federation,
        directory: &'a RunDirectory,
        trial: u16,
        round: u32,
    ) -> Result<Self, SimError> {
        let settings = federation.experiment().settings();
        let mut ledger = Ledger::new(settings.privacy.delta)?;
        let mut recorded = VecDeque::new();
        record::read_ledger(&directory.trial_ledger(trial.into()), trial, |entry| {
            if entry.round <= round {
                ledger.add(&entry.clients, &entry.mu);
            } else {
                recorded.push_back(entry);
            }
        })?;
        let among = Some(settings.clients.total).filter(|_| !settings.clients.dropout.is_none());
        Ok(Self { accounting: federation.accounting()?, ledger, among, recorded, directory })
    }

    /// Adds a round. Returns its entry if it is not on the disk yet; an entry on the disk must match.
    fn enter(&mut self, outcome: &RoundOutcome) -> Result<Option<LedgerEntry>, SimError> {
        let RoundMetrics { trial, round, .. } = outcome.metrics;
        let channel = outcome.aggregate.as_ref().and_then(|round| round.channel.as_ref());
        let mu = channel.map_or_else(Vec::new, |channel| self.accounting.mu(channel));
        self.ledger.add(&outcome.clients, &mu);
        let entry = LedgerEntry {
            trial,
            round,
            selected: self.among.map(|_| outcome.selected.len() as u32),
            among: self.among,
            spent: self.accounting.one_rounds().clone(),
            clients: outcome.clients.clone(),
            mu,
            worst: self.ledger.worst()?,
            ..LedgerEntry::default()
        };
        let Some(before) = self.recorded.pop_front() else { return Ok(Some(entry)) };
        // `spent` may be an estimate, which another version may compute differently.
        if (LedgerEntry { spent: entry.spent.clone(), ..before }) == entry {
            return Ok(None);
        }
        let path = self.directory.trial_ledger(trial as usize);
        let reason = format!("its line of round {round} does not match the round that was run again");
        Err(SimError::damaged(&path, reason))
    }
}

/// When the next checkpoint is due.
struct CheckpointClock {
    last: Instant,
    wait: Duration,
}

impl CheckpointClock {
    fn new() -> Self {
        Self { last: Instant::now(), wait: CHECKPOINT_EVERY }
    }

    fn is_due(&self) -> bool {
        self.last.elapsed() >= self.wait
    }

    /// Makes a checkpoint. The time until the next one grows with the time that it took.
    fn time(&mut self, make: impl FnOnce() -> Result<(), SimError>) -> Result<(), SimError> {
        let start = Instant::now();
        make()?;
        self.wait = CHECKPOINT_EVERY.max(start.elapsed().div_f64(CHECKPOINT_SHARE));
        self.last = Instant::now();
        Ok(())
    }
}
