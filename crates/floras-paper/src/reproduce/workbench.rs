//! Runs the experiments of a figure, each in its own run directory, so that finished runs are not repeated.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{fs, iter, panic, thread};

use floras_sim::{
    Entry, Estimate, Event, Experiment, Federation, PreparedRun, RoundMetrics, RunDirectory, SimError,
    Summary, TrialSummary, create_directory, write_atomically,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Accuracy of a trial that diverged: that of guessing among ten classes.
const GUESSING: f64 = 0.1;

/// The progress of a reproduction.
#[derive(Debug)]
pub enum Stage<'a> {
    /// A step other than training, with its description.
    Working(&'a str),
    /// One of several tasks begins, which run in parallel and report nothing else.
    Task {
        /// What the tasks are, such as `run`.
        kind: &'static str,
        /// Name of the task; that of its directory, for a run.
        name: &'a str,
        /// Its number, counted from 1. Tasks that are already complete come first.
        number: usize,
        /// Number of tasks that were already complete.
        complete: usize,
        /// Number of all tasks.
        count: usize,
    },
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

/// A stored calibration, or several ones, and a description of the settings.
#[derive(Deserialize, Serialize)]
struct Stored<T> {
    about: String,
    found: T,
}

impl<T: DeserializeOwned + Serialize> Stored<T> {
    /// What a file holds; `None` if it is missing, damaged or about other settings.
    fn read(path: &Path, about: &str) -> Option<T> {
        let stored: Self = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        (stored.about == about).then_some(stored.found)
    }

    fn write(path: &Path, about: String, found: T) -> Result<T, SimError> {
        let stored = Self { about, found };
        let text = serde_json::to_vec_pretty(&stored).map_err(|error| SimError::encoding(path, error))?;
        write_atomically(path, &text)?;
        Ok(stored.found)
    }
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
        let directory = self.run_directory(name);
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

    fn run_directory(&self, name: &str) -> PathBuf {
        self.directory.join("runs").join(name)
    }

    /// Runs experiments in parallel, each on one thread, because accounts cannot be shared among threads.
    pub(crate) fn run_all(
        &self,
        planned: BTreeMap<String, Experiment>,
    ) -> Result<BTreeMap<String, (Experiment, RunRecord)>, SimError> {
        let silent = Workbench { threads: 1, watch: &|_: Stage<'_>| {}, ..*self };
        let is_complete =
            |name: &str, _: &Experiment| RunDirectory::summary_file(&self.run_directory(name)).exists();
        self.in_parallel("run", planned, is_complete, |name, experiment| {
            Ok((experiment.clone(), silent.run(name, experiment)?))
        })
    }

    /// Tasks by name on as many threads as the workbench has, those that are complete first.
    ///
    /// The workers are not a rayon pool. A worker of one pool that waits for another pool, as every run does, would begin the next task
    /// before it has finished its own.
    fn in_parallel<I: Sync, R: Send>(
        &self,
        kind: &'static str,
        tasks: BTreeMap<String, I>,
        is_complete: impl Fn(&str, &I) -> bool,
        work: impl Fn(&str, &I) -> Result<R, SimError> + Sync,
    ) -> Result<BTreeMap<String, R>, SimError> {
        let (mut tasks, others): (Vec<_>, Vec<_>) =
            tasks.into_iter().partition(|(name, task)| is_complete(name, task));
        let complete = tasks.len();
        tasks.extend(others);
        let (next, count) = (AtomicUsize::new(0), tasks.len());
        let one = |number: usize| {
            let (name, task) = tasks.get(number)?;
            (self.watch)(Stage::Task { kind, name, number: number + 1, complete, count });
            Some(work(name, task).map(|result| (name.clone(), result)))
        };
        let worker = || {
            let done: Result<Vec<_>, SimError> =
                iter::from_fn(|| one(next.fetch_add(1, Ordering::Relaxed))).collect();
            if done.is_err() {
                // The other workers begin no further task.
                next.store(count, Ordering::Relaxed);
            }
            done
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(worker)).collect();
            let mut results = BTreeMap::new();
            for worker in workers {
                results.extend(worker.join().unwrap_or_else(|payload| panic::resume_unwind(payload))?);
            }
            Ok(results)
        })
    }

    /// Calibrations by name, each with a description of its settings. Each is stored in a file of `directory` once it is found, so that
    /// an interrupted search resumes. Each is computed on one thread.
    pub(crate) fn calibrate_all<I: Sync, T: DeserializeOwned + Send + Serialize>(
        &self,
        directory: &str,
        tasks: BTreeMap<String, (String, I)>,
        find: impl Fn(&I) -> Result<T, SimError> + Sync,
    ) -> Result<BTreeMap<String, T>, SimError> {
        let directory = self.directory.join(directory);
        create_directory(&directory)?;
        let path = |name: &str| directory.join(format!("{name}.json"));
        let stored = |name: &str, about: &str| Stored::<T>::read(&path(name), about);
        let is_complete = |name: &str, (about, _): &(String, I)| stored(name, about).is_some();
        self.in_parallel("calibration", tasks, is_complete, |name, (about, task)| {
            if let Some(found) = stored(name, about) {
                return Ok(found);
            }
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
            let found = pool.install(|| find(task))?;
            Stored::write(&path(name), about.clone(), found)
        })
    }

    /// Calibrations by key. They are read from `file` in the workbench's directory if it has all keys for the same `about`. Otherwise all
    /// of them are computed and stored there.
    pub(crate) fn recall<T: Clone + DeserializeOwned + Serialize>(
        &self,
        file: &str,
        about: String,
        keys: &[String],
        make: impl FnOnce() -> Result<BTreeMap<String, T>, SimError>,
    ) -> Result<BTreeMap<String, T>, SimError> {
        let path = self.directory.join(file);
        let stored: Option<BTreeMap<String, T>> = Stored::read(&path, &about);
        if let Some(found) = stored.filter(|found| keys.iter().all(|key| found.contains_key(key))) {
            return Ok(found);
        }
        Stored::write(&path, about, make()?)
    }
}

impl RunRecord {
    /// Each trial's final test accuracy, from 0 to 1. A trial that diverged has that of guessing.
    pub(crate) fn accuracies(&self) -> Vec<f64> {
        self.final_accuracies().into_iter().map(|accuracy| accuracy.unwrap_or(GUESSING)).collect()
    }

    /// Final test accuracy over the trials, from 0 to 1.
    pub(crate) fn accuracy(&self) -> Option<Estimate> {
        Estimate::of(&self.accuracies())
    }

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
        let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        for line in &self.metrics {
            if let Some(value) = pick(line) {
                values.entry(line.round).or_default().push(value);
            }
        }
        values.iter().filter_map(|(round, values)| Some((*round, Estimate::of(values)?))).collect()
    }
}
