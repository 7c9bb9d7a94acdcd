//! Runs the experiments of a figure, each in its own run directory, so that finished runs are not repeated.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use floras_sim::{
    Entry, Estimate, Event, Experiment, Federation, PreparedRun, RoundMetrics, RunDirectory, SimError,
    Summary, TrialSummary,
};

/// The progress of a reproduction.
#[derive(Debug)]
pub enum Stage<'a> {
    /// Something other than training takes its time.
    Working(&'a str),
    /// An experiment begins.
    Begins {
        /// Its name.
        name: &'a str,
        /// What is run.
        federation: &'a Federation,
    },
    /// Something happens in it.
    Event(Event),
    /// It has ended.
    Ends,
}

/// Where and how a figure's experiments are run.
#[derive(Clone, Copy)]
pub struct Workbench<'a> {
    /// Whether to run the small version.
    pub quick: bool,
    /// Where everything is kept; experiments have a directory each under `runs/`.
    pub directory: &'a Path,
    /// Threads to work with. Results do not depend on it.
    pub threads: usize,
    /// Receives the progress.
    pub watch: &'a (dyn Fn(Stage<'_>) + Sync),
}

/// An experiment that was run to its end.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// How it ended.
    pub summary: Summary,
    /// Every round of every trial.
    pub metrics: Vec<RoundMetrics>,
}

impl Workbench<'_> {
    /// Runs an experiment, or what is left of it.
    pub fn run(&self, name: &str, experiment: &Experiment) -> Result<RunRecord, SimError> {
        self.run_after(&mut None, name, experiment)
    }

    /// The same, and leaves its federation for the next one, which may be as private and need not account for it again.
    pub(super) fn run_after(
        &self,
        before: &mut Option<Federation>,
        name: &str,
        experiment: &Experiment,
    ) -> Result<RunRecord, SimError> {
        let directory = self.directory.join("runs").join(name);
        let federation = Federation::new(experiment)?;
        if let Some(before) = before {
            federation.share_accounting(before);
        }
        let run = PreparedRun::of(federation, &directory, Entry::ResumeOrNew, self.threads)?;
        (self.watch)(Stage::Begins { name, federation: run.federation() });
        let outcome = run.run(&|event| (self.watch)(Stage::Event(event)), &AtomicBool::new(false));
        (self.watch)(Stage::Ends);
        *before = Some(run.into_federation());
        Ok(RunRecord { summary: outcome?.summary, metrics: RunDirectory::read_metrics(&directory)? })
    }
}

impl RunRecord {
    /// Each trial's final test accuracy, from 0 to 1; `None` if it diverged.
    pub fn final_accuracies(&self) -> Vec<Option<f64>> {
        let accuracy = |trial: &TrialSummary| match *trial {
            TrialSummary::Finished { test_accuracy, .. } => Some(test_accuracy),
            TrialSummary::Diverged { .. } => None,
        };
        self.summary.trials.iter().map(accuracy).collect()
    }

    /// Each trial's final training loss, in nats with the penalty; `None` if it diverged.
    pub fn final_losses(&self) -> Vec<Option<f64>> {
        let loss = |trial: &TrialSummary| match *trial {
            TrialSummary::Finished { train_loss, .. } => Some(train_loss),
            TrialSummary::Diverged { .. } => None,
        };
        self.summary.trials.iter().map(loss).collect()
    }

    /// A measured value over the rounds: round, mean over the trials, and its 95% interval.
    pub fn curve(&self, pick: impl Fn(&RoundMetrics) -> Option<f64>) -> Vec<(u32, Estimate)> {
        let mut values: std::collections::BTreeMap<u32, Vec<f64>> = std::collections::BTreeMap::new();
        for line in &self.metrics {
            if let Some(value) = pick(line) {
                values.entry(line.round).or_default().push(value);
            }
        }
        values.iter().filter_map(|(round, values)| Some((*round, Estimate::of(values)?))).collect()
    }
}
