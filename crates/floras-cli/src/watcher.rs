//! The progress of commands that run many experiments: `reproduce` and `benchmark`.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use floras_paper::reproduce::Stage;
use indicatif::ProgressBar;

use crate::progress::{Progress, duration, style};
use crate::run::print_status;

/// Shows the current experiment, or how many of several ones have begun.
#[derive(Default)]
pub(crate) struct Watcher(Mutex<Shown>);

#[derive(Default)]
struct Shown {
    /// The current experiment.
    progress: Option<Progress>,
    /// Tasks that run in parallel.
    tasks: Option<Tasks>,
}

struct Tasks {
    bar: ProgressBar,
    /// What the tasks are.
    kind: &'static str,
    /// When the first task began that was not complete before.
    began: Instant,
}

impl Watcher {
    pub(crate) fn update(&self, stage: Stage<'_>) {
        let mut shown = self.shown();
        match stage {
            Stage::Working(what) => print_status(what),
            Stage::Task { kind, name, number, complete, count } => {
                let tasks = shown.tasks.get_or_insert_with(|| Tasks::new(kind));
                tasks.kind = kind;
                tasks.begin(name, number, complete, count);
            }
            Stage::Begins { name, federation } => {
                print_status(name);
                shown.progress = Some(Progress::of_run(federation));
            }
            Stage::Event(event) => {
                if let Some(progress) = &shown.progress {
                    progress.watch(event);
                }
            }
            Stage::Ends => {
                if let Some(progress) = shown.progress.take() {
                    progress.clear();
                }
            }
        }
    }

    pub(crate) fn clear(&self) {
        self.update(Stage::Ends);
        if let Some(tasks) = self.shown().tasks.take() {
            tasks.bar.finish_and_clear();
        }
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tasks {
    fn new(kind: &'static str) -> Self {
        let bar = ProgressBar::new(0);
        bar.set_style(style("{wide_bar} {msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, kind, began: Instant::now() }
    }

    /// Shows the task that begins, and the remaining time once some have ended.
    fn begin(&mut self, name: &str, number: usize, complete: usize, count: usize) {
        if number <= complete + 1 {
            self.began = Instant::now();
        }
        let left = remaining(self.began.elapsed(), number, complete, count);
        let left = left.map_or_else(String::new, |seconds| format!(", about {} left", duration(seconds)));
        let line = format!("{} {number} of {count}: {name}{left}", self.kind);
        self.bar.set_length(count as u64);
        self.bar.set_position(number.saturating_sub(1) as u64);
        if self.bar.is_hidden() {
            print_status(&line);
        } else {
            self.bar.set_message(line);
        }
    }
}

/// Seconds until all tasks have ended, if further ones take as long as those that were not complete before; `None` before ten of them
/// have begun.
fn remaining(elapsed: Duration, number: usize, complete: usize, count: usize) -> Option<f64> {
    let ended = number.checked_sub(complete + 1).filter(|&ended| ended >= 10)?;
    Some(elapsed.as_secs_f64() * (count + 1 - number) as f64 / ended as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_ignores_complete_runs() {
        let elapsed = Duration::from_secs(60);
        assert_eq!(remaining(elapsed, 121, 100, 140), Some(60.0));
        assert_eq!(remaining(elapsed, 110, 100, 140), None);
        assert_eq!(remaining(elapsed, 50, 100, 140), None);
    }
}
