//! How a run is getting on: a bar and a small live table on a terminal, plain lines in a pipe.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use floras_sim::{Event, Federation, RoundMetrics};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

/// In a pipe, one line for each tenth of the work.
const LINES_IN_A_PIPE: u64 = 10;
/// The live table has at most so many rows.
const MAX_ROWS: usize = 8;

/// Watches a run and tells about it on standard error.
pub(crate) struct Progress {
    rounds: u32,
    bars: MultiProgress,
    total: ProgressBar,
    state: Mutex<State>,
}

struct State {
    /// The live rows, one for each trial at work.
    rows: BTreeMap<u32, ProgressBar>,
    /// The latest accuracies, which need not be measured in every round.
    accuracy: BTreeMap<u32, f64>,
    start: Instant,
    /// Rounds done before this process began.
    done_before: u64,
    lines: u64,
}

impl Progress {
    /// For a run of this federation.
    pub(crate) fn new(federation: &Federation) -> Self {
        let (rounds, trials) = (federation.rounds(), federation.experiment().settings().trials);
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let total = bars.add(ProgressBar::new(u64::from(rounds) * u64::from(trials)));
        total.set_style(style("{wide_bar} {pos}/{len} rounds, {msg}{eta} left"));
        total.enable_steady_tick(Duration::from_millis(200));
        let state = State {
            rows: BTreeMap::new(),
            accuracy: BTreeMap::new(),
            start: Instant::now(),
            done_before: 0,
            lines: 0,
        };
        Self { rounds, bars, total, state: Mutex::new(state) }
    }

    /// Takes note of what happened.
    pub(crate) fn watch(&self, event: Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::TrialBegins { trial, done } => {
                state.done_before += u64::from(done);
                self.total.inc(done.into());
                self.total.reset_eta();
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
                state.accuracy.remove(&trial);
            }
        }
    }

    fn round(&self, state: &mut State, metrics: &RoundMetrics) {
        self.total.inc(1);
        if metrics.diverged {
            // The rounds that are left out are not to come either.
            let left_out = u64::from(self.rounds - metrics.round);
            self.total.set_length(self.total.length().unwrap_or(0).saturating_sub(left_out));
        }
        if let Some(accuracy) = metrics.test_accuracy {
            state.accuracy.insert(metrics.trial, accuracy);
        }
        let line = self.line(metrics, state.accuracy.get(&metrics.trial).copied());
        let here = self.total.position() - state.done_before.min(self.total.position());
        let speed = here as f64 / state.start.elapsed().as_secs_f64().max(1e-9);
        if self.bars.is_hidden() {
            self.tell(state, &line, speed);
            return;
        }
        self.total.set_message(format!("{speed:.0} rounds/s, "));
        if let Some(row) = state.rows.get(&metrics.trial) {
            row.set_message(line);
        }
    }

    fn line(&self, metrics: &RoundMetrics, accuracy: Option<f64>) -> String {
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.4}"));
        let trial = metrics.trial;
        if metrics.diverged {
            return format!("trial {trial}  diverged in round {}", metrics.round);
        }
        let (round, rounds) = (metrics.round, self.rounds);
        let width = rounds.to_string().len();
        format!(
            "trial {trial}  round {round:>width$}/{rounds}  local loss {}  test accuracy {}{}{}",
            number(metrics.local_loss),
            number(accuracy),
            match metrics.broken {
                0 => String::new(),
                broken => format!("  broken updates {broken}"),
            },
            metrics.silent.map_or(String::new(), |silent| format!("  silent clients {silent}"))
        )
    }

    /// In a pipe: a line now and then.
    fn tell(&self, state: &mut State, line: &str, speed: f64) {
        let (done, length) = (self.total.position(), self.total.length().unwrap_or(1).max(1));
        let tenth = done * LINES_IN_A_PIPE / length;
        if tenth <= state.lines {
            return;
        }
        state.lines = tenth;
        let left = (length - done.min(length)) as f64 / speed.max(1e-9);
        // A reader who has gone is no reason to stop training.
        let _ = writeln!(
            io::stderr(),
            "{:>4}%  {line}  {speed:.0} rounds/s, {left:.0} s left",
            done * 100 / length
        );
    }

    /// Removes bar and table.
    pub(crate) fn clear(&self) {
        self.total.finish_and_clear();
        let _ = self.bars.clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
}
