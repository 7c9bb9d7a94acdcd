//! Follows the files of a run directory.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use floras_sim::{Experiment, LedgerEntry, RoundMetrics, RunDirectory, SimError, Summary};
use serde::de::DeserializeOwned;

use crate::account::{self, Recorded};
use crate::board::{Board, Run, State, Status};
use crate::error::LiveError;
use crate::tail::Tail;

/// The time over which the speed is measured.
const PACE_WINDOW: Duration = Duration::from_secs(30);
/// Without new rounds for this time, the watcher checks whether a process still works on the run.
const QUIET: Duration = Duration::from_secs(2);
/// Trials begin in order. After this number of trials without rounds, the remaining ones have no rounds either.
const MAX_EMPTY: usize = 64;

/// The experiment of a run directory.
fn experiment(directory: &Path) -> Result<(String, Experiment), LiveError> {
    let path = RunDirectory::experiment_file(directory);
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(_) if !directory.is_dir() => {
            return Err(LiveError::NoSuchDirectory { directory: directory.to_path_buf() });
        }
        Err(_) => return Err(LiveError::NotARun { directory: directory.to_path_buf() }),
    };
    let experiment = Experiment::parse(&path.display().to_string(), &text).map_err(SimError::from)?;
    Ok((text, experiment))
}

/// The progress of a trial.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    last: u32,
    has_diverged: bool,
}

/// Follows the files of a run directory.
#[derive(Debug)]
pub(crate) struct Watcher {
    directory: PathBuf,
    board: Arc<Board>,
    text: String,
    experiment: Experiment,
    recorded: Option<Arc<Recorded>>,
    /// The common metrics and ledger.
    common: [Tail; 2],
    /// The metrics and ledger of each trial that has not ended.
    own: BTreeMap<u32, [Tail; 2]>,
    trials: BTreeMap<u32, Trial>,
    summary: Option<Summary>,
    pace: Pace,
    state: State,
    problem: Option<String>,
}

impl Watcher {
    /// Opens a run directory. Only `experiment.toml` must be there.
    pub(crate) fn new(directory: &Path) -> Result<Self, LiveError> {
        let (text, experiment) = experiment(directory)?;
        let board = Arc::new(Board::new(described(directory, &experiment)));
        Ok(Self {
            directory: directory.to_path_buf(),
            board,
            text,
            experiment,
            recorded: None,
            common: RunDirectory::logs(directory).map(Tail::new),
            own: BTreeMap::new(),
            trials: BTreeMap::new(),
            summary: None,
            pace: Pace::default(),
            state: State::Running,
            problem: None,
        })
    }

    /// The content of the page.
    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }

    /// Reads new lines of all files and updates the board.
    pub(crate) fn poll(&mut self) {
        self.problem = None;
        self.restart_if_replaced();
        loop {
            let is_more = self.read_common() | self.read_own();
            self.read_summary();
            self.show();
            if !is_more {
                break;
            }
        }
        self.start_accountant();
    }

    /// Starts again if the directory contains another run: a different experiment, or no summary where there
    /// was one.
    fn restart_if_replaced(&mut self) {
        let path = RunDirectory::experiment_file(&self.directory);
        let Ok(text) = fs::read_to_string(&path) else { return };
        let is_same_run = self.summary.is_none() || RunDirectory::summary_file(&self.directory).exists();
        if text == self.text && is_same_run {
            return;
        }
        if let Ok(experiment) = Experiment::parse("it", &text) {
            self.end_accountant();
            (self.text, self.experiment) = (text, experiment);
            self.common = RunDirectory::logs(&self.directory).map(Tail::new);
            self.own.clear();
            self.trials.clear();
            (self.summary, self.pace, self.state) = (None, Pace::default(), State::Running);
            self.board.restart(described(&self.directory, &self.experiment));
        }
    }

    /// Reads `metrics.jsonl` and `ledger.jsonl`: the trials that have ended, and the first that has not.
    fn read_common(&mut self) -> bool {
        let Self { common: [metrics, ledger], trials, recorded, problem, board, .. } = self;
        read_metrics(metrics, trials, board, problem) | read_ledger(ledger, recorded.as_deref(), problem)
    }

    /// Reads the logs of the trials that have not ended, with rounds that the common files do not contain yet.
    fn read_own(&mut self) -> bool {
        if self.summary.is_some() {
            self.own.clear();
            return false;
        }
        let (mut is_more, mut empty) = (false, 0);
        let rounds = self.rounds();
        for trial in 0..self.experiment.settings().trials {
            let known = self.trials.get(&trial).copied().unwrap_or_default();
            if known.has_diverged || known.last >= rounds {
                self.own.remove(&trial);
                continue;
            }
            let Self { own, trials, recorded, problem, board, directory, .. } = self;
            let [metrics, ledger] =
                own.entry(trial).or_insert_with(|| RunDirectory::trial_logs(directory, trial).map(Tail::new));
            is_more |= read_metrics(metrics, trials, board, problem);
            is_more |= read_ledger(ledger, recorded.as_deref(), problem);
            empty = if trials.contains_key(&trial) { 0 } else { empty + 1 };
            if empty > MAX_EMPTY {
                break;
            }
        }
        is_more
    }

    fn read_summary(&mut self) {
        if self.summary.is_some() {
            return;
        }
        match RunDirectory::read_summary(&self.directory) {
            Ok(None) => {}
            Ok(Some(summary)) => {
                self.end_accountant();
                self.board.set_privacy(account::of_summary(self.experiment.settings(), &summary));
                self.summary = Some(summary);
            }
            Err(error) => self.problem = Some(error.to_string()),
        }
    }

    /// Number of rounds in a trial, as far as it is known.
    fn rounds(&self) -> u32 {
        let affordable = self.recorded.as_ref().and_then(|recorded| recorded.affordable());
        let of_summary = self.summary.as_ref().map(|summary| summary.rounds);
        of_summary.or(affordable).unwrap_or(self.experiment.settings().rounds)
    }

    fn show(&mut self) {
        let rounds = self.rounds();
        let trials = self.experiment.settings().trials;
        let done: u64 = self.trials.values().map(|trial| u64::from(trial.last)).sum();
        let left_out: u64 = self
            .trials
            .values()
            .filter(|trial| trial.has_diverged)
            .map(|trial| u64::from(rounds.saturating_sub(trial.last)))
            .sum();
        let total = (u64::from(rounds) * u64::from(trials)).saturating_sub(left_out).max(done);
        self.pace.add(done);
        self.state = match (&self.summary, self.pace.quiet() < QUIET) {
            (Some(_), _) => State::Finished,
            (None, true) => State::Running,
            (None, false) if is_at_work(&self.directory) => State::Running,
            (None, false) => State::Stopped,
        };
        let speed = self.pace.speed().filter(|_| self.state == State::Running);
        let diverged = self.trials.iter().filter(|(_, trial)| trial.has_diverged);
        self.board.set_status(Status {
            state: self.state,
            rounds_done: done,
            rounds_total: total,
            rounds,
            diverged: diverged.map(|(&number, trial)| (number, trial.last)).collect(),
            rounds_per_second: speed,
            seconds_left: speed.filter(|&speed| speed > 0.0).map(|speed| (total - done) as f64 / speed),
            report: self.state != State::Running && has_report(&self.directory),
            problem: self.problem.clone(),
        });
    }

    fn start_accountant(&mut self) {
        if self.recorded.is_some() || self.summary.is_some() {
            return;
        }
        let recorded = Arc::new(Recorded::default());
        self.recorded = Some(Arc::clone(&recorded));
        // The ledgers are read again, for the accountant.
        self.common[1] = Tail::new(self.common[1].path().to_path_buf());
        for [_, ledger] in self.own.values_mut() {
            *ledger = Tail::new(ledger.path().to_path_buf());
        }
        let (experiment, board) = (self.experiment.clone(), self.board());
        let work = move || account::follow(&experiment, &recorded, &board);
        if let Err(error) = thread::Builder::new().name("live-accountant".to_owned()).spawn(work) {
            self.problem = Some(LiveError::Thread(error).to_string());
        }
    }

    fn end_accountant(&mut self) {
        if let Some(recorded) = self.recorded.take() {
            recorded.end();
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.end_accountant();
    }
}

fn described(directory: &Path, experiment: &Experiment) -> Run {
    let settings = experiment.settings();
    Run { name: settings.name.clone(), directory: directory.display().to_string(), trials: settings.trials }
}

/// Reads new metrics. A round that is known already is left out: a resumed run repeats it with the same values.
fn read_metrics(
    tail: &mut Tail,
    trials: &mut BTreeMap<u32, Trial>,
    board: &Board,
    problem: &mut Option<String>,
) -> bool {
    let mut new = Vec::new();
    let is_more = read_lines(tail, problem, |line: RoundMetrics| {
        let trial = trials.entry(line.trial).or_default();
        if line.round > trial.last {
            (trial.last, trial.has_diverged) = (line.round, line.diverged);
            new.push(line);
        }
    });
    if !new.is_empty() {
        board.add(&new);
    }
    is_more
}

fn read_ledger(tail: &mut Tail, recorded: Option<&Recorded>, problem: &mut Option<String>) -> bool {
    let Some(recorded) = recorded else { return false };
    read_lines(tail, problem, |entry: LedgerEntry| recorded.add(entry.round, entry.worst))
}

/// Passes the values of new lines to `handle`. Returns whether more lines can be read at once.
fn read_lines<T: DeserializeOwned>(
    tail: &mut Tail,
    problem: &mut Option<String>,
    mut handle: impl FnMut(T),
) -> bool {
    let mut damaged = None;
    let read = tail.read(|number, line| match serde_json::from_slice(line) {
        Ok(value) => handle(value),
        Err(error) => damaged = Some(format!("line {number}: {error}")),
    });
    let error = damaged.or(read.as_ref().err().map(ToString::to_string));
    if let Some(error) = error {
        *problem = Some(format!("cannot read {}: {error}", tail.path().display()));
    }
    read.unwrap_or(false)
}

/// Whether a process works on the run: it holds the lock.
fn is_at_work(directory: &Path) -> bool {
    let Ok(lock) = File::open(RunDirectory::lock_file(directory)) else { return false };
    matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Whether the report was written after the summary.
fn has_report(directory: &Path) -> bool {
    let changed = |path: PathBuf| fs::metadata(path).and_then(|found| found.modified()).ok();
    let (report, summary) = (directory.join("report.html"), RunDirectory::summary_file(directory));
    changed(report).is_some_and(|report| changed(summary).is_none_or(|summary| report >= summary))
}

/// The rate at which rounds arrive.
#[derive(Debug, Default)]
struct Pace {
    /// Times and numbers of completed rounds over the last seconds. The first sample contains the rounds before
    /// the first poll.
    samples: VecDeque<(Instant, u64)>,
    last_change: Option<Instant>,
}

impl Pace {
    fn add(&mut self, done: u64) {
        let now = Instant::now();
        if self.samples.back().is_some_and(|&(_, before)| done != before) {
            self.last_change = Some(now);
        }
        self.samples.push_back((now, done));
        while self.samples.len() > 2 && now - self.samples[1].0 > PACE_WINDOW {
            self.samples.pop_front();
        }
    }

    /// Time without new rounds; [`Duration::MAX`] before the first one.
    fn quiet(&self) -> Duration {
        self.last_change.map_or(Duration::MAX, |change| change.elapsed())
    }

    /// Rounds per second; `None` before the first new round.
    fn speed(&self) -> Option<f64> {
        self.last_change?;
        let (&(from, first), &(to, last)) = (self.samples.front()?, self.samples.back()?);
        let seconds = (to - from).as_secs_f64();
        (seconds > 0.0).then(|| last.saturating_sub(first) as f64 / seconds)
    }
}
