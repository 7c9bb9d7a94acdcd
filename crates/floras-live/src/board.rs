//! The content of the page: written by the watcher and the accountant, read by every connection.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use floras_sim::RoundMetrics;
use serde::Serialize;

/// Maximum number of points, over all trials. If there are more, neighbouring rounds of a trial are merged.
const MAX_POINTS: usize = 20_000;
/// Maximum number of points in the curve of `ε`.
const MAX_EPSILONS: usize = 400;

/// The description of a run on the page.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) directory: String,
    pub(crate) trials: u32,
}

/// The state of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    /// A process works on it.
    #[default]
    Running,
    /// No process works on it, and it is not complete.
    Stopped,
    /// The run is complete: `summary.json` exists.
    Finished,
}

/// The progress of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// Number of completed rounds, over all trials.
    pub(crate) rounds_done: u64,
    /// Number of rounds to run, over all trials, without those that are skipped after divergence.
    pub(crate) rounds_total: u64,
    /// Number of rounds in a trial: that of the experiment, or what its budget allows.
    pub(crate) rounds: u32,
    /// Trials that diverged, each with its round.
    pub(crate) diverged: Vec<(u32, u32)>,
    pub(crate) rounds_per_second: Option<f64>,
    pub(crate) seconds_left: Option<f64>,
    /// Whether the report exists: of the finished run, or of an interrupted one.
    pub(crate) report: bool,
    /// The error of a file that cannot be read.
    pub(crate) problem: Option<String>,
}

/// The privacy spent so far, in one view.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Privacy {
    /// The view's label.
    pub(crate) view: String,
    /// The adversary of the view, in words.
    pub(crate) adversary: String,
    pub(crate) delta: f64,
    /// Number of rounds that `epsilon` covers.
    pub(crate) rounds: u32,
    /// Upper bound on `ε` after these rounds. `None` before it is computed, or without a finite bound; `reason` then states
    /// why.
    pub(crate) epsilon: Option<f64>,
    /// No `ε` up to this value is established. Present instead of an `epsilon` that would be too large to be useful.
    pub(crate) epsilon_above: Option<f64>,
    pub(crate) verdict: String,
    pub(crate) reason: Option<String>,
    /// The budget, or `ε` after all rounds.
    pub(crate) limit: Option<f64>,
    pub(crate) is_budget: bool,
    /// The curve: a number of rounds, and the upper bound on `ε` after them.
    pub(crate) points: Vec<(u32, f64)>,
    /// The client with the largest loss under the channels that were drawn, and its `ε`.
    pub(crate) worst: Option<(u32, f64)>,
}

impl Privacy {
    /// Adds a point to the curve.
    pub(crate) fn push(&mut self, rounds: u32, epsilon: f64) {
        (self.rounds, self.epsilon) = (rounds, Some(epsilon));
        self.points.push((rounds, epsilon));
        if self.points.len() > MAX_EPSILONS {
            let last = self.points.len() - 1;
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1 || index - 1 == last
            });
        }
    }
}

/// The measured values of a trial in a round, or the latest of several merged rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    round: u32,
    /// Accuracy, training loss, test loss, local loss, mean gain, noise.
    values: [Option<f64>; 6],
}

impl Point {
    fn of(line: &RoundMetrics) -> Self {
        let values = [
            line.test_accuracy,
            line.train_loss,
            line.test_loss,
            line.local_loss,
            line.mean_gain,
            line.noise_std,
        ];
        Self { round: line.round, values }
    }

    /// The values of the later round, or those of the earlier round where the later one has none.
    fn merge(self, other: Self) -> Self {
        let (early, late) = if self.round <= other.round { (self, other) } else { (other, self) };
        let mut values = late.values;
        for (value, before) in values.iter_mut().zip(early.values) {
            *value = value.or(before);
        }
        Self { round: late.round, values }
    }
}

/// The content of the page, with a version number that increases with every change.
#[derive(Debug)]
struct Content {
    version: u64,
    /// Increases when points are merged or a new run begins: the page then discards its points.
    generation: u64,
    /// Number of rounds per point.
    stride: u32,
    run: Run,
    status: Status,
    privacy: Option<Privacy>,
    /// The points by trial and number, each with the version of its last change.
    points: BTreeMap<(u32, u32), (u64, Point)>,
    is_closing: bool,
}

/// The version and generation that a connection has sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cursor {
    version: u64,
    generation: u64,
}

/// The content of the page, shared by all threads.
#[derive(Debug)]
pub(crate) struct Board {
    content: Mutex<Content>,
    changed: Condvar,
}

impl Board {
    pub(crate) fn new(run: Run) -> Self {
        let content = Content {
            version: 1,
            generation: 1,
            stride: 1,
            run,
            status: Status::default(),
            privacy: None,
            points: BTreeMap::new(),
            is_closing: false,
        };
        Self { content: Mutex::new(content), changed: Condvar::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows another run, after the directory was emptied and used again.
    pub(crate) fn restart(&self, run: Run) {
        let mut content = self.lock();
        content.version += 1;
        content.generation += 1;
        content.stride = 1;
        content.run = run;
        content.privacy = None;
        content.points.clear();
        self.changed.notify_all();
    }

    /// Adds the metrics of completed rounds; diverged rounds are left out.
    pub(crate) fn add(&self, lines: &[RoundMetrics]) {
        let mut content = self.lock();
        content.version += 1;
        let (version, stride) = (content.version, content.stride);
        for line in lines.iter().filter(|line| !line.diverged) {
            let place = (line.trial, (line.round.max(1) - 1) / stride);
            let slot = content.points.entry(place).or_insert((version, Point::of(line)));
            *slot = (version, slot.1.merge(Point::of(line)));
        }
        while content.points.len() > MAX_POINTS && content.stride < 1 << 30 {
            let points = std::mem::take(&mut content.points);
            for ((trial, number), (version, point)) in points {
                let slot = content.points.entry((trial, number / 2)).or_insert((version, point));
                *slot = (version, slot.1.merge(point));
            }
            content.stride *= 2;
            content.generation += 1;
        }
        self.changed.notify_all();
    }

    /// Sets the progress of the run.
    pub(crate) fn set_status(&self, status: Status) {
        let mut content = self.lock();
        if content.status != status {
            content.status = status;
            content.version += 1;
            self.changed.notify_all();
        }
    }

    /// Sets the privacy spent so far.
    pub(crate) fn set_privacy(&self, privacy: Privacy) {
        let mut content = self.lock();
        if content.privacy.as_ref() != Some(&privacy) {
            content.privacy = Some(privacy);
            content.version += 1;
            self.changed.notify_all();
        }
    }

    /// Whether the run is complete.
    pub(crate) fn is_finished(&self) -> bool {
        self.lock().status.state == State::Finished
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        self.lock().is_closing = true;
        self.changed.notify_all();
    }

    /// Server-sent events with everything that changed since the last call. Without a change for `wait`, a comment, whose
    /// delivery shows whether the page is still open. `None` if the server closes.
    pub(crate) fn events(&self, cursor: &mut Cursor, wait: Duration) -> Option<String> {
        let content = self.lock();
        let unchanged = |content: &mut Content| content.version == cursor.version && !content.is_closing;
        let (content, _) =
            self.changed.wait_timeout_while(content, wait, unchanged).unwrap_or_else(PoisonError::into_inner);
        if content.is_closing {
            return None;
        }
        if content.version == cursor.version {
            return Some(": keep-alive\n\n".to_owned());
        }
        let mut text = String::new();
        if content.generation != cursor.generation {
            *cursor = Cursor { version: 0, generation: content.generation };
            event(&mut text, "run", &content.run);
        }
        let new: Vec<(u32, u32, u32, [Option<f64>; 6])> = content
            .points
            .iter()
            .filter(|(_, (version, _))| *version > cursor.version)
            .map(|(&(trial, number), (_, point))| (trial, number, point.round, point.values))
            .collect();
        if !new.is_empty() {
            event(&mut text, "points", &new);
        }
        if let Some(privacy) = &content.privacy {
            event(&mut text, "privacy", privacy);
        }
        event(&mut text, "status", &content.status);
        cursor.version = content.version;
        Some(text)
    }
}

/// Appends an event. JSON has no line breaks, so that it fits on one line.
fn event(text: &mut String, name: &str, data: &impl Serialize) {
    match serde_json::to_string(data) {
        Ok(json) => drop(write!(text, "event: {name}\ndata: {json}\n\n")),
        Err(error) => drop(write!(text, ": {name}: {error}\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(trial: u32, round: u32, accuracy: Option<f64>) -> RoundMetrics {
        RoundMetrics {
            trial,
            round,
            test_accuracy: accuracy,
            local_loss: Some(f64::from(round)),
            ..RoundMetrics::default()
        }
    }

    fn names(text: &str) -> Vec<&str> {
        text.lines().filter_map(|line| line.strip_prefix("event: ")).collect()
    }

    #[test]
    fn a_connection_gets_only_what_changed() {
        let board = Board::new(Run::default());
        board.add(&[line(0, 1, Some(0.5))]);
        let (mut cursor, wait) = (Cursor::default(), Duration::ZERO);
        let first = board.events(&mut cursor, wait).unwrap();
        assert_eq!(names(&first), ["run", "points", "status"]);
        assert_eq!(board.events(&mut cursor, wait).unwrap(), ": keep-alive\n\n");
        board.add(&[line(0, 2, None)]);
        let second = board.events(&mut cursor, wait).unwrap();
        assert_eq!(names(&second), ["points", "status"]);
        assert!(second.contains("data: [[0,1,2,[null,null,null,2.0,null,null]]]\n"), "{second}");
        board.close();
        assert_eq!(board.events(&mut cursor, wait), None);
    }

    #[test]
    fn long_runs_keep_their_last_values() {
        let board = Board::new(Run::default());
        let rounds = 3 * MAX_POINTS as u32;
        let lines: Vec<RoundMetrics> =
            (1..=rounds).map(|round| line(0, round, (round % 10 == 0).then_some(0.5))).collect();
        for part in lines.chunks(5000) {
            board.add(part);
        }
        let content = board.lock();
        assert!((MAX_POINTS / 2..=MAX_POINTS).contains(&content.points.len()), "{}", content.points.len());
        assert_eq!(content.stride, 4);
        let last = content.points.last_key_value().unwrap().1.1;
        assert_eq!((last.round, last.values[3]), (rounds, Some(f64::from(rounds))));
        let measured = content.points.values().filter(|(_, point)| point.values[0].is_some()).count();
        assert_eq!(measured, rounds as usize / 10, "no measured accuracy is lost");
    }

    #[test]
    fn the_curve_of_epsilon_stays_short() {
        let mut privacy = Privacy::default();
        for rounds in 1..=5000 {
            privacy.push(rounds, f64::from(rounds));
        }
        assert!(privacy.points.len() <= MAX_EPSILONS);
        assert_eq!((privacy.points[0].0, privacy.rounds), (1, 5000));
        assert_eq!(privacy.points[privacy.points.len() - 1], (5000, 5000.0));
        assert!(privacy.points.is_sorted());
    }
}
