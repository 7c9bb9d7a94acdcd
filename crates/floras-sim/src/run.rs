//! A run: all trials of an experiment, side by side, recorded in a run directory.
//!
//! Trials are driven by a thread each, as many at once as there are threads to work with. The work itself, round by
//! round, is done by one pool, so that the last trial has all cores to itself.
//!
//! What a round gave away is on the disk, in the ledger, before anyone sees what came of it. To wait for the disk in every
//! round would take longer than the round; so the results of a moment are held back, then their lines in the ledger are
//! brought to the disk together, and then they are released.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use floras_core::{Clipping, View};
use floras_privacy::ledger::{Ledger, Spend, Worst};
use rayon::ThreadPool;

use crate::accounting::Accounting;
use crate::error::SimError;
use crate::experiment::{Budget, Experiment};
use crate::federation::{Federation, RoundMetrics, RoundOutcome, Status, Trial, TrialOptions};
use crate::record::{
    self, Checkpoint, Entry, EventFile, LedgerLog, LogState, Mark, MetricsLog, RunDirectory,
};
use crate::summary::Summary;

/// A checkpoint is made about this often, and less often if it takes long.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(1);
/// At most this share of the time goes into checkpoints.
const CHECKPOINT_SHARE: f64 = 0.02;
/// Results are held back for this long, until what they cost is on the disk.
const HOLD_BACK: Duration = Duration::from_millis(100);
/// Label counts are recorded for so many trials at most.
const MAX_PARTITIONS: u32 = 100;

/// What happens in a run, for whoever watches.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A trial begins, or goes on after so many rounds.
    TrialBegins {
        /// From 0.
        trial: u32,
        /// Rounds that were done before.
        done: u32,
    },
    /// A round is done.
    Round(RoundMetrics),
    /// A trial has ended.
    TrialEnds {
        /// From 0.
        trial: u32,
        /// Finished or diverged.
        status: Status,
    },
}

/// What a run has come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// How it ended.
    pub summary: Summary,
    /// Rounds that this process did, of all trials together.
    pub rounds_done: u64,
    /// How long the rounds took.
    pub elapsed: Duration,
}

impl Outcome {
    /// Rounds of all trials together in a second; `None` if there was nothing left to do.
    pub fn rounds_per_second(&self) -> Option<f64> {
        (self.rounds_done > 0).then(|| self.rounds_done as f64 / self.elapsed.as_secs_f64())
    }
}

/// An experiment whose data are loaded and whose directory is taken: ready to run.
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

    /// The same for data that are loaded.
    pub fn of(federation: Federation, path: &Path, entry: Entry, threads: usize) -> Result<Self, SimError> {
        federation.check_memory(threads)?;
        let directory = RunDirectory::enter(path, federation.experiment(), entry)?;
        Ok(Self { federation, directory, threads })
    }

    /// What is run.
    pub fn federation(&self) -> &Federation {
        &self.federation
    }

    /// What was run.
    pub fn into_federation(self) -> Federation {
        self.federation
    }

    /// Where it is recorded.
    pub fn directory(&self) -> &RunDirectory {
        &self.directory
    }

    /// What a user may want to know about the privacy budget, before the first round.
    pub fn notes(&self) -> Vec<String> {
        let settings = self.federation.experiment().settings();
        let mut notes = Vec::new();
        let Some(Budget { epsilon, view }) = settings.privacy.budget else { return notes };
        if view == View::Published || settings.privacy.normalise == Clipping::Paper {
            notes.push("the budget is kept in a view whose epsilon is no guarantee here".to_owned());
        }
        let (affordable, rounds) = (self.federation.rounds(), settings.rounds);
        if affordable < rounds {
            notes.push(format!(
                "the budget of {epsilon} in the {view} view allows {affordable} of {rounds} rounds; the run stops there"
            ));
        }
        notes
    }

    /// Runs all trials, or what is left of them, until someone sets `stop`. What is recorded by then can be resumed.
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
    // The ledgers' files are there now, and stay there.
    record::sync_directory(&directory.trial_ledger(0))?;
    let logs: Vec<LogState> = starts.iter().map(|start| start.log).collect();
    let (metrics, checkpoints) =
        (RunDirectory::metrics_file(directory.path()), directory.checkpoint_directory());
    let log = MetricsLog::open(&metrics, &checkpoints, &logs)?;
    let ledger = LedgerLog::open(&directory.ledger_file(), &checkpoints, &logs)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let crew = Crew {
        federation,
        directory,
        pool,
        log: Mutex::new(log),
        ledger: Mutex::new(ledger),
        starts,
        next: AtomicU32::new(0),
        stop,
        watch,
    };
    let start = Instant::now();
    let rounds_done = crew.work(at_once)?;
    let elapsed = start.elapsed();
    if stop.load(Ordering::Relaxed) {
        return Err(SimError::Stopped { directory: directory.path().to_path_buf() });
    }
    Ok(Outcome { summary: crew.finish()?, rounds_done, elapsed })
}

/// Where a trial begins or goes on.
struct Start {
    round: u32,
    log: LogState,
    has_checkpoint: bool,
}

impl Start {
    /// Reads how far a trial has come, and cuts its log back to there. A log that does not agree with the checkpoint is lost,
    /// and the trial begins anew: it comes to the same end. The ledger is never cut back.
    fn find(federation: &Federation, directory: &RunDirectory, trial: u16) -> Result<Self, SimError> {
        let log = directory.trial_log(trial.into());
        let in_ledger = record::read_all::<Spend>(&directory.trial_ledger(trial.into()), trial, |_| {})?;
        if let Some(found) = record::load(&directory.checkpoint_file(trial), federation, trial)? {
            let Mark { round, status, log_crc, .. } = found.mark;
            if in_ledger >= round && record::cut_back(&log, trial, round)? == Some(log_crc) {
                let log = LogState { crc: log_crc, ended: status != Status::Running };
                return Ok(Self { round, log, has_checkpoint: true });
            }
        }
        record::cut_back(&log, trial, 0)?;
        Ok(Self { round: 0, log: LogState::default(), has_checkpoint: false })
    }
}

/// What the threads of a run share.
struct Crew<'a> {
    federation: &'a Federation,
    directory: &'a RunDirectory,
    pool: ThreadPool,
    log: Mutex<MetricsLog>,
    ledger: Mutex<LedgerLog>,
    starts: Vec<Start>,
    next: AtomicU32,
    stop: &'a AtomicBool,
    watch: &'a (dyn Fn(Event) + Sync),
}

impl Crew<'_> {
    /// Drives all trials; returns how many rounds were done.
    fn work(&self, at_once: usize) -> Result<u64, SimError> {
        let results: Vec<Result<u64, SimError>> = thread::scope(|scope| {
            let drivers: Vec<_> = (0..at_once).map(|_| scope.spawn(|| self.drive())).collect();
            let join = |driver: thread::ScopedJoinHandle<'_, _>| match driver.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            drivers.into_iter().map(join).collect()
        });
        results.into_iter().sum()
    }

    /// Takes one trial after another until there are none, or until someone has failed.
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
            let mut events = EventFile::open(&self.directory.events_file(number)?, trial.round())?;
            let mut book = Book::open(self.federation, self.directory, number, trial.round())?;
            let mut held_back = HeldBack::new();
            let mut clock = CheckpointClock::new();
            while trial.status() == Status::Running && !self.stop.load(Ordering::Relaxed) {
                let outcome = self.pool.install(|| trial.step())?;
                rounds_done += 1;
                let spend = book.enter(&outcome)?;
                held_back.results.push((outcome.metrics, spend));
                let checkpoint = clock.is_due() && trial.status() == Status::Running;
                if checkpoint || held_back.is_due() || trial.status() != Status::Running {
                    self.release(number, &mut held_back, &mut events)?;
                }
                if checkpoint {
                    clock.time(|| self.checkpoint(&trial))?;
                }
            }
        }
        if trial.status() != Status::Running {
            self.end_trial(&trial)?;
            (self.watch)(Event::TrialEnds { trial: number.into(), status: trial.status() });
        }
        Ok(rounds_done)
    }

    /// Brings to the disk what the results cost, and then shows them.
    fn release(&self, trial: u16, held_back: &mut HeldBack, events: &mut EventFile) -> Result<(), SimError> {
        let to_sync = {
            let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
            for spend in held_back.results.iter().filter_map(|(_, spend)| spend.as_ref()) {
                ledger.append(spend)?;
            }
            ledger.lines_of(trial)?
        };
        sync(to_sync, self.directory)?;
        for (metrics, _) in held_back.take() {
            self.log().append(&metrics)?;
            events.append_round(&metrics)?;
            (self.watch)(Event::Round(metrics));
        }
        Ok(())
    }

    fn trial_at(&self, number: u16, start: &Start) -> Result<Trial<'_>, SimError> {
        if !start.has_checkpoint {
            return Trial::begin(self.federation, number);
        }
        let path = self.directory.checkpoint_file(number);
        match record::load(&path, self.federation, number)? {
            Some(Checkpoint { mark, parameters }) if mark.round == start.round => {
                let (options, at) = (TrialOptions::default(), (mark.round, mark.status));
                Trial::at(self.federation, number, options, at, parameters)
            }
            _ => Err(SimError::damaged(&path, "it was changed while the run went on")),
        }
    }

    /// First the lines, then the checkpoint that says they are there.
    fn checkpoint(&self, trial: &Trial<'_>) -> Result<(), SimError> {
        // Not while the log is locked: bringing lines to the disk takes its time.
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
        let (mut last_lines, mut worst) = (Vec::new(), None::<Worst>);
        for trial in 0..self.starts.len() {
            last_lines.push(last_line::<RoundMetrics>(&self.directory.trial_log(trial))?);
            let in_ledger = last_line::<Spend>(&self.directory.trial_ledger(trial))?;
            worst = worst.into_iter().chain(in_ledger.worst).max_by(|a, b| a.mu.total_cmp(&b.mu));
        }
        let settings = self.federation.experiment().settings();
        let done = last_lines.iter().map(|last| last.round).max().unwrap_or(0);
        let accounting = self.federation.accounting()?;
        let privacy = self.pool.install(|| accounting.report(settings, done, worst))?;
        let summary = Summary::new(settings, self.federation.rounds(), &last_lines, privacy);
        self.directory.complete(&summary)?;
        Ok(summary)
    }

    fn log(&self) -> std::sync::MutexGuard<'_, MetricsLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last line of a trial's log.
fn last_line<L: record::Line>(path: &Path) -> Result<L, SimError> {
    record::last_line(path)?.ok_or_else(|| SimError::damaged(path, "its last line is torn"))
}

/// Brings a log to the disk, if it is open.
fn sync(file: Option<File>, directory: &RunDirectory) -> Result<(), SimError> {
    let synced = file.map_or(Ok(()), |file| file.sync_data());
    synced.map_err(SimError::file("write", directory.path()))
}

/// Results that nobody has seen yet, each with its new line in the ledger.
struct HeldBack {
    results: Vec<(RoundMetrics, Option<Spend>)>,
    since: Instant,
}

impl HeldBack {
    fn new() -> Self {
        Self { results: Vec::new(), since: Instant::now() }
    }

    fn is_due(&self) -> bool {
        self.since.elapsed() >= HOLD_BACK
    }

    fn take(&mut self) -> Vec<(RoundMetrics, Option<Spend>)> {
        self.since = Instant::now();
        std::mem::take(&mut self.results)
    }
}

/// A trial's ledger, with what is on record already.
struct Book<'a> {
    accounting: &'a Accounting,
    ledger: Ledger,
    /// Rounds that were entered before an interruption, and are done once more.
    on_record: VecDeque<Spend>,
    directory: &'a RunDirectory,
}

impl<'a> Book<'a> {
    fn open(
        federation: &'a Federation,
        directory: &'a RunDirectory,
        trial: u16,
        round: u32,
    ) -> Result<Self, SimError> {
        let accounting = federation.accounting()?;
        let mut ledger = accounting.ledger(federation.experiment().settings())?;
        let mut on_record = VecDeque::new();
        record::read_all(&directory.trial_ledger(trial.into()), trial, |spend: Spend| {
            if spend.round <= round { ledger.add(&spend) } else { on_record.push_back(spend) }
        })?;
        Ok(Self { accounting, ledger, on_record, directory })
    }

    /// Enters a round. Returns its line, unless it is on record.
    fn enter(&mut self, outcome: &RoundOutcome) -> Result<Option<Spend>, SimError> {
        let RoundMetrics { trial, round, .. } = outcome.metrics;
        let mu = outcome.aggregate.as_ref().map_or_else(Vec::new, |round| self.accounting.mu(&round.channel));
        let spend = self.ledger.record(trial, round, &outcome.clients, mu)?;
        let Some(before) = self.on_record.pop_front() else { return Ok(Some(spend)) };
        // What a round spends may be an estimate, and another version may estimate it otherwise.
        match (Spend { spent: spend.spent.clone(), ..before }) == spend {
            true => Ok(None),
            false => {
                let path = self.directory.trial_ledger(trial as usize);
                let reason = format!("its line of round {round} does not match the round that was run again");
                Err(SimError::damaged(&path, reason))
            }
        }
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

    /// Makes a checkpoint, and waits the longer for the next one the longer it took.
    fn time(&mut self, make: impl FnOnce() -> Result<(), SimError>) -> Result<(), SimError> {
        let start = Instant::now();
        make()?;
        self.wait = CHECKPOINT_EVERY.max(start.elapsed().div_f64(CHECKPOINT_SHARE));
        self.last = Instant::now();
        Ok(())
    }
}
