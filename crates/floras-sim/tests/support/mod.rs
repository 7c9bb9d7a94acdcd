//! Shared code of the tests of whole runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use floras_sim::{Entry, Experiment, ExperimentBuilder, Outcome, PreparedRun, SimError};

/// The paper's receiver and rate, without clipping.
const PAPER: [&str; 3] = ["uplink.receiver=paper", "privacy.clip=none", "local.rate=0.005"];

/// An experiment from lines of `key = value`, applied to the paper's IID task without clipping.
pub(crate) fn experiment(settings: &[&str]) -> Experiment {
    let new = ExperimentBuilder::new();
    let changed =
        PAPER.iter().chain(settings).fold(new, |builder, assignment| builder.assign(assignment).unwrap());
    changed.build().unwrap()
}

/// Runs an experiment in a directory.
pub(crate) fn run(
    experiment: &Experiment,
    directory: &Path,
    entry: Entry,
    threads: usize,
) -> Result<Outcome, SimError> {
    PreparedRun::new(experiment, directory, entry, threads)?.run(&|_| {}, &AtomicBool::new(false))
}

/// The files that must be the same for any number of threads or interruptions: metrics, ledger, summary, experiment, partition,
/// parameters.
pub(crate) fn lasting_files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let names = ["metrics.jsonl", "ledger.jsonl", "summary.json", "experiment.toml", "partition.json"];
    let mut paths: Vec<PathBuf> = names.iter().map(|name| directory.join(name)).collect();
    let parameters = std::fs::read_dir(directory.join("parameters")).unwrap();
    paths.extend(parameters.map(|entry| entry.unwrap().path()));
    let read = |path: PathBuf| {
        let bytes = std::fs::read(&path).unwrap();
        (path.strip_prefix(directory).unwrap().to_path_buf(), bytes)
    };
    paths.into_iter().map(read).collect()
}
