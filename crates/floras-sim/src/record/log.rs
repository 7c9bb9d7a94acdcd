//! `metrics.jsonl`: one line a trial and round, in the order of trials and then rounds, whatever order they come in.
//!
//! Trials run side by side, but the file must not depend on how they happen to be scheduled. So each trial writes a log of
//! its own; the first unfinished trial's lines go into `metrics.jsonl` as they come, and when it ends, the log of the
//! next one follows. All files only ever grow by whole lines. A line that a kill has torn is cut off on resume.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use super::atomic;
use crate::error::SimError;
use crate::federation::RoundMetrics;

/// The logs of all trials, and `metrics.jsonl`.
#[derive(Debug)]
pub(crate) struct MetricsLog {
    path: PathBuf,
    file: File,
    trials: Vec<TrialLog>,
    /// The trial whose lines go straight into the file.
    head: usize,
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

impl MetricsLog {
    /// Makes `metrics.jsonl` agree with the logs in `folder`, one for each trial.
    pub(crate) fn open(path: &Path, folder: &Path, trials: &[LogState]) -> Result<Self, SimError> {
        let log = |(number, &LogState { crc, ended }): (usize, &LogState)| TrialLog {
            path: trial_log(folder, number),
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
        Ok(Self { path: path.to_path_buf(), file, trials, head })
    }

    /// The checksum of a trial's lines.
    pub(crate) fn crc(&self, trial: u16) -> u32 {
        self.trials[usize::from(trial)].crc
    }

    /// Appends a line.
    pub(crate) fn append(&mut self, metrics: &RoundMetrics) -> Result<(), SimError> {
        let number = metrics.trial as usize;
        let log = &mut self.trials[number];
        let line = to_line(metrics).map_err(|error| SimError::encoding(&log.path, error))?;
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

    /// Brings `metrics.jsonl` to the disk.
    pub(crate) fn sync_all(&self) -> Result<(), SimError> {
        self.file.sync_all().map_err(SimError::file("write", &self.path))
    }
}

/// Where a trial keeps its log.
pub(crate) fn trial_log(folder: &Path, trial: usize) -> PathBuf {
    folder.join(format!("trial-{trial:04}.jsonl"))
}

/// Cuts a trial's log back to its first `rounds` lines and returns their checksum. `None` if it has not as many sound ones:
/// then it is emptied.
pub(crate) fn cut_back(path: &Path, trial: u16, rounds: u32) -> Result<Option<u32>, SimError> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
    let file = file.map_err(SimError::file("create", path))?;
    let mut reader = BufReader::new(&file);
    let (mut length, mut crc, mut line) = (0, 0, Vec::new());
    for expected in 1..=rounds {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(SimError::file("read", path))?;
        let sound = from_line(&line)
            .is_some_and(|metrics| metrics.round == expected && metrics.trial == u32::from(trial));
        if !sound {
            file.set_len(0).map_err(SimError::file("write", path))?;
            return Ok(None);
        }
        length += line.len() as u64;
        crc = crc32c::crc32c_append(crc, &line);
    }
    file.set_len(length).map_err(SimError::file("write", path))?;
    Ok(Some(crc))
}

/// The last line of a trial's log; `None` if it is empty or its end is torn.
pub(crate) fn last_line(path: &Path) -> Result<Option<RoundMetrics>, SimError> {
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

fn to_line(metrics: &RoundMetrics) -> Result<Vec<u8>, serde_json::Error> {
    let mut line = serde_json::to_vec(metrics)?;
    line.push(b'\n');
    Ok(line)
}

/// A line that ends as lines do and holds finite numbers.
fn from_line(line: &[u8]) -> Option<RoundMetrics> {
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
            .map(|line| from_line(format!("{line}\n").as_bytes()).unwrap())
            .map(|m| (m.trial, m.round))
            .collect()
    }

    fn opened(folder: &Path, trials: &[LogState]) -> (MetricsLog, PathBuf) {
        let path = folder.join("metrics.jsonl");
        (MetricsLog::open(&path, folder, trials).unwrap(), path)
    }

    fn opened_anew(folder: &Path, trials: u16) -> (MetricsLog, PathBuf) {
        for trial in 0..trials {
            assert_eq!(cut_back(&trial_log(folder, trial.into()), trial, 0).unwrap(), Some(0));
        }
        opened(folder, &vec![LogState::default(); trials.into()])
    }

    #[test]
    fn lines_stand_in_the_order_of_trials_whatever_order_they_come_in() {
        let folder = tempfile::tempdir().unwrap();
        let (mut log, path) = opened_anew(folder.path(), 3);
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
        let folder = tempfile::tempdir().unwrap();
        let (mut log, path) = opened_anew(folder.path(), 2);
        for round in 1..=4 {
            log.append(&line(0, round)).unwrap();
            log.append(&line(1, round)).unwrap();
        }
        drop(log);
        fs::write(&path, "torn").unwrap();
        let crc = cut_back(&trial_log(folder.path(), 0), 0, 2).unwrap().unwrap();
        assert_eq!(crc, crc32c::crc32c(&fs::read(trial_log(folder.path(), 0)).unwrap()));
        assert!(cut_back(&trial_log(folder.path(), 1), 1, 3).unwrap().is_some());
        let state = |ended| LogState { crc: 0, ended };
        let (_, path) = opened(folder.path(), &[state(false), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2)]);
        let (_, path) = opened(folder.path(), &[state(true), state(false)]);
        assert_eq!(order(&path), [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]);
    }

    #[test]
    fn a_log_that_lacks_lines_or_holds_others_is_emptied() {
        let folder = tempfile::tempdir().unwrap();
        let path = trial_log(folder.path(), 0);
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
            let _ = from_line(&bytes);
        }
    }
}
