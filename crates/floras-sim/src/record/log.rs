//! `metrics.jsonl` and `ledger.jsonl`: one line a trial and round, in the order of trials and then rounds, whatever order
//! they come in.
//!
//! Trials run side by side, but a file must not depend on how they happen to be scheduled. So each trial writes a log of
//! its own; the first unfinished trial's lines go into the common file as they come, and when it ends, the log of the
//! next one follows. All files only ever grow by whole lines. A line that a kill has torn is cut off on resume.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use floras_privacy::ledger::Spend;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::atomic;
use crate::error::SimError;
use crate::federation::RoundMetrics;

/// A line of a log.
pub(crate) trait Line: Serialize + DeserializeOwned {
    /// What the logs of single trials are called.
    const NAME: &'static str;

    /// Which trial it is of, and which round.
    fn place(&self) -> (u32, u32);
}

impl Line for RoundMetrics {
    const NAME: &'static str = "trial";

    fn place(&self) -> (u32, u32) {
        (self.trial, self.round)
    }
}

impl Line for Spend {
    const NAME: &'static str = "ledger";

    fn place(&self) -> (u32, u32) {
        (self.trial, self.round)
    }
}

/// `metrics.jsonl`.
pub(crate) type MetricsLog = Log<RoundMetrics>;
/// `ledger.jsonl`.
pub(crate) type LedgerLog = Log<Spend>;

/// The logs of all trials, and the file that they go into.
#[derive(Debug)]
pub(crate) struct Log<L> {
    path: PathBuf,
    file: File,
    trials: Vec<TrialLog>,
    /// The trial whose lines go straight into the file.
    head: usize,
    line: PhantomData<L>,
}

#[derive(Debug)]
struct TrialLog {
    path: PathBuf,
    /// Open while the trial runs in this process.
    file: Option<File>,
    /// CRC-32C of all its lines.
    crc: u32,
    ended: bool,
}

/// How far a trial's log has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogState {
    /// CRC-32C of its lines.
    pub(crate) crc: u32,
    /// Whether there are no more to come.
    pub(crate) ended: bool,
}

impl<L: Line> Log<L> {
    /// Makes the common file agree with the logs in `directory`, one for each trial.
    pub(crate) fn open(path: &Path, directory: &Path, trials: &[LogState]) -> Result<Self, SimError> {
        let log = |(number, &LogState { crc, ended }): (usize, &LogState)| TrialLog {
            path: trial_log::<L>(directory, number),
            file: None,
            crc,
            ended,
        };
        let trials: Vec<TrialLog> = trials.iter().enumerate().map(log).collect();
        let head = trials.iter().position(|trial| !trial.ended).unwrap_or(trials.len());
        atomic::write_with(path, |file| {
            for trial in trials.iter().take(head + 1) {
                io::copy(&mut File::open(&trial.path)?, file)?;
            }
            Ok(())
        })?;
        let file = open_to_append(path)?;
        Ok(Self { path: path.to_path_buf(), file, trials, head, line: PhantomData })
    }

    /// The checksum of a trial's lines.
    pub(crate) fn crc(&self, trial: u16) -> u32 {
        self.trials[usize::from(trial)].crc
    }

    /// Appends a line.
    pub(crate) fn append(&mut self, line: &L) -> Result<(), SimError> {
        let number = line.place().0 as usize;
        let log = &mut self.trials[number];
        let line = to_line(line).map_err(|error| SimError::encoding(&log.path, error))?;
        let file = match &mut log.file {
            Some(file) => file,
            // Not before it is needed: there may be more trials than a process may open files.
            closed => closed.insert(open_to_append(&log.path)?),
        };
        file.write_all(&line).map_err(SimError::file("write", &log.path))?;
        log.crc = crc32c::crc32c_append(log.crc, &line);
        if number == self.head {
            self.file.write_all(&line).map_err(SimError::file("write", &self.path))?;
        }
        Ok(())
    }

    /// A trial's log, to be brought to the disk before a checkpoint says that its lines are there.
    pub(crate) fn lines_of(&self, trial: u16) -> Result<Option<File>, SimError> {
        let log = &self.trials[usize::from(trial)];
        log.file.as_ref().map(File::try_clone).transpose().map_err(SimError::file("write", &log.path))
    }

    /// A trial has written its last line.
    pub(crate) fn end(&mut self, trial: u16) -> Result<(), SimError> {
        let log = &mut self.trials[usize::from(trial)];
        log.ended = true;
        log.file = None;
        while self.trials.get(self.head).is_some_and(|log| log.ended) {
            self.head += 1;
            if let Some(next) = self.trials.get(self.head) {
                let mut lines = File::open(&next.path).map_err(SimError::file("read", &next.path))?;
                io::copy(&mut lines, &mut self.file).map_err(SimError::file("write", &self.path))?;
            }
        }
        Ok(())
    }

    /// Brings the common file to the disk.
    pub(crate) fn sync_all(&self) -> Result<(), SimError> {
        self.file.sync_all().map_err(SimError::file("write", &self.path))
    }
}

/// Where a trial keeps its log.
pub(crate) fn trial_log<L: Line>(directory: &Path, trial: usize) -> PathBuf {
    directory.join(format!("{}-{trial:04}.jsonl", L::NAME))
}

/// Cuts a trial's log back to its first `rounds` lines and returns their checksum. `None` if it has not as many sound ones:
/// then it is emptied.
pub(crate) fn cut_back(path: &Path, trial: u16, rounds: u32) -> Result<Option<u32>, SimError> {
    let file = open_to_cut(path)?;
    let sound = SoundLines::<RoundMetrics>::read(&file, path, trial, Some(rounds), |_| {})?;
    if sound.count < rounds {
        file.set_len(0).map_err(SimError::file("write", path))?;
        return Ok(None);
    }
    file.set_len(sound.bytes).map_err(SimError::file("write", path))?;
    Ok(Some(sound.crc))
}

/// Cuts off what is torn at the end of a trial's log, hands every line to `see`, and returns how many there are.
pub(crate) fn read_all<L: Line>(path: &Path, trial: u16, see: impl FnMut(L)) -> Result<u32, SimError> {
    let file = open_to_cut(path)?;
    let sound = SoundLines::read(&file, path, trial, None, see)?;
    file.set_len(sound.bytes).map_err(SimError::file("write", path))?;
    Ok(sound.count)
}

fn open_to_cut(path: &Path) -> Result<File, SimError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    file.map_err(SimError::file("create", path))
}

/// The lines at the beginning of a log that are those of rounds 1, 2, 3 and so on.
struct SoundLines<L> {
    count: u32,
    bytes: u64,
    crc: u32,
    line: PhantomData<L>,
}

impl<L: Line> SoundLines<L> {
    fn read(
        file: &File,
        path: &Path,
        trial: u16,
        most: Option<u32>,
        mut see: impl FnMut(L),
    ) -> Result<Self, SimError> {
        let mut reader = BufReader::new(file);
        let mut sound = Self { count: 0, bytes: 0, crc: 0, line: PhantomData };
        let mut bytes = Vec::new();
        while most.is_none_or(|most| sound.count < most) {
            bytes.clear();
            reader.read_until(b'\n', &mut bytes).map_err(SimError::file("read", path))?;
            let Some(line) = from_line::<L>(&bytes) else { break };
            if line.place() != (trial.into(), sound.count + 1) {
                break;
            }
            sound.count += 1;
            sound.bytes += bytes.len() as u64;
            sound.crc = crc32c::crc32c_append(sound.crc, &bytes);
            see(line);
        }
        Ok(sound)
    }
}

/// The last line of a trial's log; `None` if it is empty or its end is torn.
pub(crate) fn last_line<L: Line>(path: &Path) -> Result<Option<L>, SimError> {
    let file = File::open(path).map_err(SimError::file("read", path))?;
    let mut last = None;
    for line in BufReader::new(file).split(b'\n') {
        last = Some(line.map_err(SimError::file("read", path))?);
    }
    Ok(last.and_then(|mut line| {
        line.push(b'\n');
        from_line(&line)
    }))
}

fn open_to_append(path: &Path) -> Result<File, SimError> {
    OpenOptions::new().append(true).create(true).open(path).map_err(SimError::file("create", path))
}

fn to_line(line: &impl Line) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(line)?;
    line.push(b'\n');
    Ok(line)
}

/// A line that ends as lines do and holds finite numbers.
fn from_line<L: Line>(line: &[u8]) -> Option<L> {
    let text = line.strip_suffix(b"\n")?;
    serde_json::from_slice(text).ok()
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
            .map(|line| from_line::<RoundMetrics>(format!("{line}\n").as_bytes()).unwrap())
            .map(|m| (m.trial, m.round))
            .collect()
    }

    fn opened(directory: &Path, trials: &[LogState]) -> (MetricsLog, PathBuf) {
        let path = directory.join("metrics.jsonl");
        (MetricsLog::open(&path, directory, trials).unwrap(), path)
    }

    fn opened_anew(directory: &Path, trials: u16) -> (MetricsLog, PathBuf) {
        for trial in 0..trials {
            assert_eq!(
                cut_back(&trial_log::<RoundMetrics>(directory, trial.into()), trial, 0).unwrap(),
                Some(0)
            );
        }
        opened(directory, &vec![LogState::default(); trials.into()])
    }

    #[test]
    fn lines_stand_in_the_order_of_trials_whatever_order_they_come_in() {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, path) = opened_anew(directory.path(), 3);
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
    fn opening_again_makes_the_file_agree_with_the_logs() {
        let directory = tempfile::tempdir().unwrap();
        let (mut log, path) = opened_anew(directory.path(), 2);
        for round in 1..=4 {
            log.append(&line(0, round)).unwrap();
            log.append(&line(1, round)).unwrap();
        }
        drop(log);
        fs::write(&path, "torn").unwrap();
        let crc = cut_back(&trial_log::<RoundMetrics>(directory.path(), 0), 0, 2).unwrap().unwrap();
        assert_eq!(crc, crc32c::crc32c(&fs::read(trial_log::<RoundMetrics>(directory.path(), 0)).unwrap()));
        assert!(cut_back(&trial_log::<RoundMetrics>(directory.path(), 1), 1, 3).unwrap().is_some());
        let state = |ended| LogState { crc: 0, ended };
        let (_, path) = opened(directory.path(), &[state(false), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2)]);
        let (_, path) = opened(directory.path(), &[state(true), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_log_that_lacks_lines_or_holds_others_is_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let path = trial_log::<RoundMetrics>(directory.path(), 0);
        let lines = |rounds: &[u32]| {
            rounds.iter().flat_map(|&round| to_line(&line(0, round)).unwrap()).collect::<Vec<u8>>()
        };
        for (bytes, rounds) in [
            (lines(&[1, 2]), 3),
            (lines(&[1, 3]), 2),
            (lines(&[1, 2])[..90].to_vec(), 2),
            (b"\n\n".to_vec(), 1),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(cut_back(&path, 0, rounds).unwrap(), None);
            assert_eq!(fs::read(&path).unwrap(), b"");
        }
        fs::write(&path, lines(&[1, 2])).unwrap();
        assert_eq!(cut_back(&path, 1, 2).unwrap(), None, "another trial's lines");
    }

    proptest! {
        #[test]
        fn numbers_survive_the_way_through_the_file(loss in any::<f64>(), rate in 1e-9..1e9) {
            prop_assume!(loss.is_finite());
            let metrics = RoundMetrics { train_loss: Some(loss), rate, ..RoundMetrics::default() };
            prop_assert_eq!(from_line(&to_line(&metrics).unwrap()), Some(metrics));
        }

        #[test]
        fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = from_line::<RoundMetrics>(&bytes);
            let _ = from_line::<Spend>(&bytes);
        }
    }
}
