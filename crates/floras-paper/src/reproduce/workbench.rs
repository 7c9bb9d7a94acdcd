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
    /// A step other than training, with its description.
    Working(&'a str),
    /// An experiment begins.
    Begins {
        /// Name of the run, also the name of its directory.
        name: &'a str,
        /// The federation of the experiment.
        federation: &'a Federation,
    },
    /// An event of the experiment.
    Event(Event),
    /// The experiment has ended.
    Ends,
}

/// The directory and the options of a figure's experiments.
#[derive(Clone, Copy)]
pub struct Workbench<'a> {
    /// Whether to run the small version.
    pub quick: bool,
    /// Directory of all files; each experiment has a directory of its own under `runs/`.
    pub directory: &'a Path,
    /// Number of threads. Results do not depend on it.
    pub threads: usize,
    /// Receives the progress.
    pub watch: &'a (dyn Fn(Stage<'_>) + Sync),
}

/// The results of a finished experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRecord {
    /// Summary at the end of the run.
    pub summary: Summary,
    /// Metrics of every round of every trial.
    pub metrics: Vec<RoundMetrics>,
}

impl Workbench<'_> {
    /// Runs an experiment, or resumes an unfinished run.
    pub fn run(&self, name: &str, experiment: &Experiment) -> Result<RunRecord, SimError> {
        self.run_after(&mut None, name, experiment)
    }

    /// The same, with the federation of the previous run in `before`. If both have the same privacy, its account is
    /// reused. Afterwards `before` holds the federation of this run.
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

    /// A metric over the rounds: round number, mean over the trials, and its 95% interval.
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
