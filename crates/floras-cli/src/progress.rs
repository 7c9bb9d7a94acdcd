//! The progress of a run or a sweep: a bar and a small live table on a terminal, plain lines in a pipe.
//!
//! Rounds per second and the remaining time come from the rounds that this process has done, over all trials, since its first one.
//! Before half a second is measured, nothing is estimated.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use floras_sim::{Event, Federation, RoundMetrics};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// In a pipe, one line per tenth of the work.
const LINES_IN_A_PIPE: u64 = 10;
/// Nothing is estimated from a shorter time: results are released several rounds at a time.
const MIN_MEASURED: Duration = Duration::from_millis(500);
/// Maximum number of rows of the live table.
const MAX_ROWS: usize = 8;

/// Shows the events of one run, or of all runs of a sweep, on standard error.
pub(crate) struct Progress {
    bars: MultiProgress,
    total: ProgressBar,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of rounds per trial and of trials, of the current run.
    size: (u32, u32),
    /// The live rows, one per active trial.
    rows: BTreeMap<u32, ProgressBar>,
    /// The latest accuracies, which need not be measured in every round.
    accuracy: BTreeMap<u32, f64>,
    /// The rounds done by this process.
    speed: Speed,
    /// Lines written to a pipe.
    lines: u64,
}

/// Rounds per second of this process since its first round: the start of the program is not part of them.
#[derive(Default)]
struct Speed {
    /// Rounds done by this process.
    done: u64,
    /// When the first and the latest round were released.
    released: Option<(Instant, Instant)>,
}

impl Speed {
    /// Counts a round that is released now.
    fn count(&mut self, now: Instant) {
        let (first, _) = self.released.unwrap_or((now, now));
        self.released = Some((first, now));
        self.done += 1;
    }

    /// Counts the time up to now, without a round.
    fn extend(&mut self, now: Instant) {
        if let Some((_, latest)) = &mut self.released {
            *latest = now;
        }
    }

    fn rounds_per_second(&self) -> Option<f64> {
        let (first, latest) = self.released?;
        let time = latest - first;
        (time >= MIN_MEASURED).then(|| (self.done - 1) as f64 / time.as_secs_f64())
    }
}

impl Progress {
    /// Shows the progress of one run.
    pub(crate) fn of_run(federation: &Federation) -> Self {
        let (rounds, trials) = (federation.rounds(), federation.experiment().settings().trials);
        let progress = Self::new(u64::from(rounds) * u64::from(trials));
        progress.begin_run(federation);
        progress
    }

    /// Shows the progress of a sweep: the rounds of complete runs, and of all runs.
    pub(crate) fn of_sweep((complete, rounds): (u64, u64)) -> Self {
        let progress = Self::new(rounds);
        progress.total.inc(complete);
        progress.state().lines = tenths(complete, rounds);
        progress
    }

    /// Shows the progress of a number of rounds, over all trials and runs.
    fn new(rounds: u64) -> Self {
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let total = bars.add(ProgressBar::new(rounds));
        total.set_style(style("{wide_bar} {pos}/{len} rounds{msg}"));
        total.enable_steady_tick(Duration::from_millis(200));
        Self { bars, total, state: Mutex::default() }
    }

    /// Begins a run of a federation, to which the next events belong.
    pub(crate) fn begin_run(&self, federation: &Federation) {
        let mut state = self.state();
        state.size = (federation.rounds(), federation.experiment().settings().trials);
        state.accuracy.clear();
    }

    /// Ends a run of a sweep. What it computed after its last round counts as time of its rounds.
    pub(crate) fn end_run(&self) {
        self.state().speed.extend(Instant::now());
    }

    /// Rounds recorded so far, and rounds in all.
    pub(crate) fn rounds(&self) -> (u64, u64) {
        (self.total.position(), self.total.length().unwrap_or(0))
    }

    /// The estimated remaining time in words, once the speed is measured.
    pub(crate) fn remaining(&self) -> Option<String> {
        self.estimate(&self.state()).map(|(_, remaining)| remaining)
    }

    /// Shows an event.
    pub(crate) fn watch(&self, event: Event) {
        let mut state = self.state();
        match event {
            Event::TrialBegins { trial, done } => {
                self.total.inc(done.into());
                if state.rows.len() < MAX_ROWS {
                    let row = self.bars.insert_before(&self.total, ProgressBar::new(0));
                    row.set_style(style("{msg}"));
                    state.rows.insert(trial, row);
                }
            }
            Event::Round(metrics) => self.round(&mut state, &metrics),
            Event::TrialEnds { trial, .. } => {
                if let Some(row) = state.rows.remove(&trial) {
                    row.finish_and_clear();
                    self.bars.remove(&row);
                }
            }
        }
    }

    fn round(&self, state: &mut State, metrics: &RoundMetrics) {
        state.speed.count(Instant::now());
        self.total.inc(1);
        if metrics.diverged {
            // A diverged trial skips its remaining rounds.
            let skipped = u64::from(state.size.0 - metrics.round);
            self.total.set_length(self.total.length().unwrap_or(0).saturating_sub(skipped));
        }
        if let Some(accuracy) = metrics.test_accuracy {
            state.accuracy.insert(metrics.trial, accuracy);
        }
        let line = line(metrics, state.accuracy.get(&metrics.trial).copied(), state.size);
        let speed =
            self.estimate(state).map(|(speed, remaining)| format!("{speed:.0} rounds/s, {remaining} left"));
        if self.bars.is_hidden() {
            self.print_sometimes(state, &line, speed.as_deref());
            return;
        }
        self.total.set_message(speed.map_or_else(String::new, |speed| format!(", {speed}")));
        if let Some(row) = state.rows.get(&metrics.trial) {
            row.set_message(line);
        }
    }

    /// Rounds per second and the remaining time in words; `None` before the speed is measured.
    fn estimate(&self, state: &State) -> Option<(f64, String)> {
        let (recorded, all) = self.rounds();
        let speed = state.speed.rounds_per_second()?;
        Some((speed, duration(all.saturating_sub(recorded) as f64 / speed)))
    }

    /// Prints one line per tenth of the work into a pipe.
    fn print_sometimes(&self, state: &mut State, line: &str, speed: Option<&str>) {
        let (recorded, all) = self.rounds();
        let tenth = tenths(recorded, all);
        if tenth > state.lines {
            state.lines = tenth;
            let speed = speed.map_or_else(String::new, |speed| format!("  {speed}"));
            self.print(&format!("{:>4}%  {line}{speed}", recorded * 100 / all.max(1)));
        }
    }

    /// Prints a line above the bar, or into the pipe.
    pub(crate) fn print(&self, line: &str) {
        // A reader that has closed the pipe does not stop the training.
        let _ = match self.bars.is_hidden() {
            true => writeln!(io::stderr(), "{line}"),
            false => self.bars.println(line),
        };
    }

    /// Removes bar and table.
    pub(crate) fn clear(&self) {
        self.total.finish_and_clear();
        let _ = self.bars.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tenths(recorded: u64, all: u64) -> u64 {
    recorded * LINES_IN_A_PIPE / all.max(1)
}

/// A round in one line; trials are counted from 1.
fn line(metrics: &RoundMetrics, accuracy: Option<f64>, (rounds, trials): (u32, u32)) -> String {
    let (trial, round) = (metrics.trial + 1, metrics.round);
    if metrics.diverged {
        return format!("trial {trial}/{trials}  diverged in round {round}");
    }
    let width = rounds.to_string().len();
    format!(
        "trial {trial}/{trials}  round {round:>width$}/{rounds}  local loss {}  test accuracy {}{}{}",
        metrics.local_loss.map_or("–".to_owned(), |loss| format!("{loss:.4}")),
        accuracy.map_or("–".to_owned(), |accuracy| format!("{:.1} %", 100.0 * accuracy)),
        match metrics.broken {
            0 => String::new(),
            broken => format!("  broken updates {broken}"),
        },
        metrics.silent.map_or(String::new(), |silent| format!("  silent clients {silent}"))
    )
}

/// A duration as text: `14 s`, `3 min 20 s`, `2 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds.ceil() as u64 {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

pub(crate) fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(trial: u32, round: u32) -> Event {
        Event::Round(Box::new(RoundMetrics { trial, round, ..RoundMetrics::default() }))
    }

    #[test]
    fn nothing_is_estimated_before_the_first_round() {
        let progress = Progress::new(20);
        progress.state().size = (10, 2);
        progress.watch(Event::TrialBegins { trial: 0, done: 9 });
        assert_eq!((progress.remaining(), progress.rounds()), (None, (9, 20)));
        progress.watch(round(0, 10));
        assert_eq!((progress.remaining(), progress.rounds()), (None, (10, 20)));
    }

    /// Rounds of an earlier process do not count as speed: 500 rounds are left, and one takes two seconds.
    #[test]
    fn resumed_rounds_do_not_count_as_speed() {
        let progress = Progress::new(3000);
        progress.state().size = (3000, 1);
        progress.watch(Event::TrialBegins { trial: 0, done: 2500 });
        let now = Instant::now();
        for number in 0..4 {
            progress.state().speed.count(now + Duration::from_secs(2 * number));
        }
        let (speed, remaining) = progress.estimate(&progress.state()).unwrap();
        assert_eq!((speed, remaining.as_str()), (0.5, "16 min 40 s"));
    }

    #[test]
    fn progress_of_sweeps_includes_complete_runs() {
        let progress = Progress::of_sweep((1525, 4800));
        assert_eq!((progress.rounds(), progress.remaining()), ((1525, 4800), None));
        assert_eq!(progress.state().lines, 3, "the next line is that of 40%");
    }

    #[test]
    fn work_after_rounds_counts_as_time() {
        let (mut speed, now) = (Speed::default(), Instant::now());
        for number in 0..5 {
            speed.count(now + Duration::from_secs(number));
        }
        assert_eq!(speed.rounds_per_second(), Some(1.0));
        speed.extend(now + Duration::from_secs(8));
        assert_eq!(speed.rounds_per_second(), Some(0.5));
    }

    #[test]
    fn durations_have_two_units() {
        let texts = [0.2, 99.0, 200.0, 7500.0].map(duration);
        assert_eq!(texts, ["1 s", "99 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn trials_are_counted_from_one() {
        let metrics = RoundMetrics { trial: 4, round: 30, local_loss: Some(0.5), ..RoundMetrics::default() };
        let expected = "trial 5/5  round  30/300  local loss 0.5000  test accuracy 85.1 %";
        assert_eq!(line(&metrics, Some(0.851), (300, 5)), expected);
    }
}
