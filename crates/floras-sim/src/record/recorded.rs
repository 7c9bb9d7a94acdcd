//! A run as recorded in its directory, complete or not, of this version or an earlier one.

use std::collections::BTreeSet;
use std::path::Path;

use super::directory::RunDirectory;
use super::read::{if_exists, read_json, read_text};
use crate::error::SimError;
use crate::experiment::Experiment;
use crate::federation::{PartitionRecord, RoundMetrics};
use crate::summary::{Summary, TrialSummary};

/// The content of a run directory, read without entering it.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRun {
    /// The experiment that was run.
    pub experiment: Experiment,
    /// The experiment's file, as it was written.
    pub text: String,
    /// The version that wrote it, if it is stated.
    pub version: Option<String>,
    /// Every round of every trial so far.
    pub metrics: Vec<RoundMetrics>,
    /// Numbers of samples of each label per client, for the first trials.
    pub partitions: Vec<PartitionRecord>,
    /// How the run ended; `None` if it is not complete.
    pub summary: Option<Summary>,
}

impl RecordedRun {
    /// Reads a run directory. If the run is not complete, all files except the experiment may be missing.
    pub fn read(directory: &Path) -> Result<Self, SimError> {
        let path = RunDirectory::experiment_file(directory);
        let text = read_text(&path)?;
        let experiment = Experiment::parse("it", &text).map_err(|error| SimError::damaged(&path, error))?;
        let version = Experiment::version_in(&text);
        let summary = RunDirectory::read_summary(directory)?;
        let metrics = match &summary {
            Some(_) => RunDirectory::read_metrics(directory),
            None => RunDirectory::read_metrics_so_far(directory, experiment.settings().trials),
        };
        let partitions = read_json(&RunDirectory::partition_file(directory));
        let (metrics, partitions) = match &summary {
            Some(_) => (metrics?, partitions?),
            None => (metrics?, if_exists(partitions)?.unwrap_or_default()),
        };
        let recorded = Self { experiment, text, version, metrics, partitions, summary };
        recorded.check_consistency(directory)?;
        Ok(recorded)
    }

    /// Checks that the files of a complete run belong to the same run and are complete.
    fn check_consistency(&self, directory: &Path) -> Result<(), SimError> {
        let Some(summary) = &self.summary else { return Ok(()) };
        let settings = self.experiment.settings();
        let of_experiment = (&settings.name, settings.seed, settings.trials as usize);
        if of_experiment != (&summary.name, summary.seed, summary.trials.len()) {
            let reason = "it does not belong to the run in summary.json";
            return Err(SimError::damaged(&RunDirectory::experiment_file(directory), reason));
        }
        let recorded: BTreeSet<(u32, u32)> =
            self.metrics.iter().map(|line| (line.trial, line.round)).collect();
        for trial in &summary.trials {
            let (trial, last) = match *trial {
                TrialSummary::Finished { trial, .. } => (trial, summary.rounds),
                TrialSummary::Diverged { trial, round } => (trial, round),
            };
            if !recorded.contains(&(trial, last)) {
                let reason = format!(
                    "it lacks round {last} of trial {trial} (counted from 0), which is in summary.json"
                );
                return Err(SimError::damaged(&RunDirectory::metrics_file(directory), reason));
            }
        }
        Ok(())
    }
}
