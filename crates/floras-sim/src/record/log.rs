//! `metrics.jsonl` and `ledger.jsonl`: one line per trial and round, ordered by trial and then by round.
//!
//! Trials run at the same time, but the files must not depend on how they are scheduled. Each trial therefore has its own log, a
//! [`JsonLines`] file. The lines of the first unfinished trial are also appended to the common file. When that trial ends, the
//! log of the next one is copied after it. An incomplete last line is removed on resume.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::atomic;
use super::json_lines::JsonLines;
use super::ledger_entry::LedgerEntry;
use crate::error::SimError;
use crate::federation::RoundMetrics;

/// A line of a log.
pub(crate) trait Line: Serialize + DeserializeOwned {
    /// The first part of the file names of the trials' logs.
    const NAME: &'static str;

    /// The trial and the round of the line.
    fn place(&self) -> (u32, u32);
}

impl Line for RoundMetrics {
    const NAME: &'static str = "trial";

    fn place(&self) -> (u32, u32) {
        (self.trial, self.round)
    }
}

impl Line for LedgerEntry {
    const NAME: &'static str = "ledger";

    fn place(&self) -> (u32, u32) {
        (self.trial, self.round)
    }
}

/// The logs of the metrics, with `metrics.jsonl` as the common file.
pub(crate) type MetricsLog = Log<RoundMetrics>;
/// The logs of the ledgers, with `ledger.jsonl` as the common file.
pub(crate) type LedgerLog = Log<LedgerEntry>;

/// The logs of all trials, and the common file.
#[derive(Debug)]
pub(crate) struct Log<L> {
    path: PathBuf,
    file: File,
    trials: Vec<TrialLog>,
    /// The trial whose lines are appended to the common file as well.
    head: usize,
    line: PhantomData<L>,
}

#[derive(Debug)]
struct TrialLog {
    path: PathBuf,
    /// Open while the trial runs in this process.
    file: Option<JsonLines>,
    state: LogState,
}

/// The state of a trial's log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogState {
    /// CRC-32C of its lines.
    pub(crate) crc: u32,
    /// Whether it is complete.
    pub(crate) ended: bool,
}

impl<L: Line> Log<L> {
    /// Makes the common file agree with the logs in `directory`, one for each trial.
    pub(crate) fn open(path: &Path, directory: &Path, trials: &[LogState]) -> Result<Self, SimError> {
        let log = |(number, &state)| TrialLog { path: trial_log::<L>(directory, number), file: None, state };
        let trials: Vec<TrialLog> = trials.iter().enumerate().map(log).collect();
        let head = trials.iter().position(|trial| !trial.state.ended).unwrap_or(trials.len());
        atomic::write_with(path, |file| {
            for trial in trials.iter().take(head + 1) {
                io::copy(&mut File::open(&trial.path)?, file)?;
            }
            Ok(())
        })?;
        let file = OpenOptions::new().append(true).open(path).map_err(SimError::file("write", path))?;
        Ok(Self { path: path.to_path_buf(), file, trials, head, line: PhantomData })
    }

    /// The checksum of a trial's lines.
    pub(crate) fn crc(&self, trial: u16) -> u32 {
        self.trials[usize::from(trial)].state.crc
    }

    /// Appends a line.
    pub(crate) fn append(&mut self, line: &L) -> Result<(), SimError> {
        let number = line.place().0 as usize;
        let log = &mut self.trials[number];
        let file = match &mut log.file {
            Some(file) => file,
            // Opened only when needed: there may be more trials than a process may open files.
            closed => closed.insert(JsonLines::open(&log.path)?),
        };
        let line = file.append(line)?;
        log.state.crc = crc32c::crc32c_append(log.state.crc, &line);
        if number == self.head {
            self.file.write_all(&line).map_err(SimError::file("write", &self.path))?;
        }
        Ok(())
    }

    /// A trial's log, to be synced before a checkpoint refers to its lines.
    pub(crate) fn lines_of(&self, trial: u16) -> Result<Option<File>, SimError> {
        self.trials[usize::from(trial)].file.as_ref().map(JsonLines::handle).transpose()
    }

    /// Ends a trial, which has written its last line.
    pub(crate) fn end(&mut self, trial: u16) -> Result<(), SimError> {
        let log = &mut self.trials[usize::from(trial)];
        log.state.ended = true;
        log.file = None;
        while self.trials.get(self.head).is_some_and(|log| log.state.ended) {
            self.head += 1;
            if let Some(next) = self.trials.get(self.head) {
                let mut lines = File::open(&next.path).map_err(SimError::file("read", &next.path))?;
                io::copy(&mut lines, &mut self.file).map_err(SimError::file("write", &self.path))?;
            }
        }
        Ok(())
    }

    /// Syncs the common file.
    pub(crate) fn sync_all(&self) -> Result<(), SimError> {
        self.file.sync_all().map_err(SimError::file("write", &self.path))
    }
}

/// The path of a trial's log.
pub(crate) fn trial_log<L: Line>(directory: &Path, trial: usize) -> PathBuf {
    directory.join(format!("{}-{trial:04}.jsonl", L::NAME))
}

/// Truncates a trial's metrics to the first `rounds` rounds and returns the checksum of their lines. `None` if there are fewer
/// valid lines: the log is then emptied.
pub(crate) fn truncate_metrics(path: &Path, trial: u16, rounds: u32) -> Result<Option<u32>, SimError> {
    let mut lines = JsonLines::open(path)?;
    let mut count = 0;
    let crc = lines.read(|line| {
        let is_next = count < rounds
            && from_line(line.bytes)
                .is_some_and(|line: RoundMetrics| line.place() == (trial.into(), count + 1));
        count += u32::from(is_next);
        Ok(is_next)
    })?;
    if count < rounds {
        lines.truncate(0)?;
        return Ok(None);
    }
    Ok(Some(crc))
}

/// Passes every entry of a trial's ledger to `visit` and returns their number.
pub(crate) fn read_ledger(
    path: &Path,
    trial: u16,
    mut visit: impl FnMut(LedgerEntry),
) -> Result<u32, SimError> {
    let mut count = 0;
    JsonLines::open(path)?.read(|line| {
        // Several entries are synced together: a power cut can leave unreadable ones, whose results were not released.
        let Some(entry) = from_line::<LedgerEntry>(line.bytes) else { return Ok(false) };
        entry.check(count).map_err(|reason| line.damaged(reason))?;
        if entry.trial != u32::from(trial) {
            return Err(line.damaged(format!("it belongs to trial {}", entry.trial)));
        }
        count += 1;
        visit(entry);
        Ok(true)
    })?;
    Ok(count)
}

/// The last line of a trial's log, which must be complete.
pub(crate) fn last_line<L: Line>(path: &Path) -> Result<L, SimError> {
    let file = File::open(path).map_err(SimError::file("read", path))?;
    let mut last = None;
    for line in BufReader::new(file).split(b'\n') {
        last = Some(line.map_err(SimError::file("read", path))?);
    }
    let last = last.and_then(|line| from_line(&line));
    last.ok_or_else(|| SimError::damaged(path, "its last line is incomplete"))
}

/// Passes every line of a trial's metrics, which must be complete, to `visit`.
pub(crate) fn each_round(path: &Path, mut visit: impl FnMut(&RoundMetrics)) -> Result<(), SimError> {
    let file = File::open(path).map_err(SimError::file("read", path))?;
    for (number, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(SimError::file("read", path))?;
        let damaged = || SimError::damaged(path, format!("line {} is incomplete", number + 1));
        visit(&from_line(&line).ok_or_else(damaged)?);
    }
    Ok(())
}

fn from_line<L: Line>(line: &[u8]) -> Option<L> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    fn line(trial: u32, round: u32) -> RoundMetrics {
        RoundMetrics {
            trial,
            round,
            rate: 0.1,
            test_loss: Some(1.0 / f64::from(round)),
            ..RoundMetrics::default()
        }
    }

    fn order(path: &Path) -> Vec<(u32, u32)> {
        let text = fs::read_to_string(path).unwrap();
        text.lines()
            .map(|line| from_line::<RoundMetrics>(line.as_bytes()).unwrap())
            .map(|m| (m.trial, m.round))
            .collect()
    }

    fn opened(directory: &Path, trials: &[LogState]) -> (MetricsLog, PathBuf) {
        let path = directory.join("metrics.jsonl");
        (MetricsLog::open(&path, directory, trials).unwrap(), path)
    }

    fn new_log(directory: &Path, trials: u16) -> (MetricsLog, PathBuf) {
        for trial in 0..trials {
            assert_eq!(
                truncate_metrics(&trial_log::<RoundMetrics>(directory, trial.into()), trial, 0).unwrap(),
                Some(0)
            );
        }
        opened(directory, &vec![LogState::default(); trials.into()])
    }

    #[test]
    fn lines_are_ordered_by_trial() {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, path) = new_log(directory.path(), 3);
        for (trial, round) in [(2, 1), (1, 1), (0, 1), (2, 2), (1, 2)] {
            log.append(&line(trial, round)).unwrap();
        }
        assert_eq!(order(&path), [(0, 1)]);
        log.end(2).unwrap();
        log.append(&line(0, 2)).unwrap();
        log.end(0).unwrap();
        assert_eq!(order(&path), [(0, 1), (0, 2), (1, 1), (1, 2)]);
        log.append(&line(1, 3)).unwrap();
        log.end(1).unwrap();
        assert_eq!(order(&path), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]);
    }

    #[test]
    fn reopened_files_agree_with_the_logs() {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, path) = new_log(directory.path(), 2);
        for round in 1..=4 {
            log.append(&line(0, round)).unwrap();
            log.append(&line(1, round)).unwrap();
        }
        drop(log);
        fs::write(&path, "torn").unwrap();
        let crc = truncate_metrics(&trial_log::<RoundMetrics>(directory.path(), 0), 0, 2).unwrap().unwrap();
        assert_eq!(crc, crc32c::crc32c(&fs::read(trial_log::<RoundMetrics>(directory.path(), 0)).unwrap()));
        assert!(truncate_metrics(&trial_log::<RoundMetrics>(directory.path(), 1), 1, 3).unwrap().is_some());
        let state = |ended| LogState { crc: 0, ended };
        let (_, path) = opened(directory.path(), &[state(false), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2)]);
        let (_, path) = opened(directory.path(), &[state(true), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn damaged_logs_are_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let path = trial_log::<RoundMetrics>(directory.path(), 0);
        let lines = |rounds: &[u32]| {
            let line = |&round| serde_json::to_string(&line(0, round)).unwrap() + "\n";
            rounds.iter().map(line).collect::<String>().into_bytes()
        };
        for (bytes, rounds) in [
            (lines(&[1, 2]), 3),
            (lines(&[1, 3]), 2),
            (lines(&[1, 2])[..90].to_vec(), 2),
            (b"\n\n".to_vec(), 1),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(truncate_metrics(&path, 0, rounds).unwrap(), None);
            assert_eq!(fs::read(&path).unwrap(), b"");
        }
        fs::write(&path, lines(&[1, 2])).unwrap();
        assert_eq!(truncate_metrics(&path, 1, 2).unwrap(), None, "another trial's lines");
    }

    proptest! {
        #[test]
        fn numbers_survive_the_way_through_the_file(loss in any::<f64>(), rate in 1e-9..1e9) {
            prop_assume!(loss.is_finite());
            let metrics = RoundMetrics { train_loss: Some(loss), rate, ..RoundMetrics::default() };
            prop_assert_eq!(from_line(&serde_json::to_vec(&metrics).unwrap()), Some(metrics));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_line::<RoundMetrics>(&bytes);
            let _ = from_line::<LedgerEntry>(&bytes);
        }
    }
}
