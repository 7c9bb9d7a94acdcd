//! The scheme in runs and sweeps.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use custom_scheme::CappedInversion;
use floras::sim::{
    Entry, Event, Experiment, ExperimentBuilder, Outcome, PreparedRun, PreparedSweep, SimError, SweepTable,
    schemes,
};

const SMALL: &str = r#"
trials = 3
rounds = 4

[data]
train = 200
test = 50

[clients]
total = 20
per_round = 10

[local]
batch = 10

[uplink]
scheme = "capped-inversion"
client_noise_std = 0.1

[privacy]
clip = 1.0
"#;

fn small() -> Experiment {
    schemes::register::<CappedInversion>().unwrap();
    Experiment::parse("a test", SMALL).unwrap()
}

fn run(directory: &Path, threads: usize) -> Result<Outcome, SimError> {
    let run = PreparedRun::new(&small(), directory, Entry::ResumeOrNew, threads)?;
    run.run(&|_| {}, &AtomicBool::new(false))
}

/// The files that do not depend on how a run was done.
fn files(directory: &Path) -> [Vec<u8>; 4] {
    ["experiment.toml", "metrics.jsonl", "ledger.jsonl", "summary.json"]
        .map(|name| std::fs::read(directory.join(name)).unwrap())
}

#[test]
fn one_and_two_threads_write_the_same_bytes() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(one.path(), 1).unwrap();
    run(two.path(), 2).unwrap();
    assert_eq!(files(one.path()), files(two.path()));
}

/// Stopped after the first of three trials.
#[test]
fn a_stopped_run_resumes_to_the_same_bytes() {
    let (whole, stopped) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(whole.path(), 1).unwrap();
    let stop = AtomicBool::new(false);
    let watch = |event| stop.store(matches!(event, Event::TrialEnds { .. }), Ordering::Relaxed);
    let first = PreparedRun::new(&small(), stopped.path(), Entry::New, 1).unwrap();
    assert!(matches!(first.run(&watch, &stop), Err(SimError::Stopped { .. })));
    drop(first);
    let outcome = run(stopped.path(), 1).unwrap();
    assert_eq!(outcome.rounds_done, 8);
    assert_eq!(files(whole.path()), files(stopped.path()));
}

/// A key that has no effect under the built-in scheme: its three points share one run.
#[test]
fn a_sweep_compares_it_with_another_scheme() {
    schemes::register::<CappedInversion>().unwrap();
    let grid =
        "[sweep]\nuplink.scheme = [\"capped-inversion\", \"ideal\"]\nuplink.max_gain = [0.5, 1.0, 2.0]\n";
    let sweep =
        ExperimentBuilder::parse("a test", &format!("{SMALL}\n{grid}")).unwrap().build_sweep().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut prepared = PreparedSweep::new(sweep, directory.path(), 2).unwrap();
    assert_eq!(prepared.run(&|_| {}, &AtomicBool::new(false)).unwrap(), 4 * 3 * 4);
    let table = SweepTable::read(directory.path()).unwrap();
    assert_eq!(table.keys, ["uplink.scheme", "uplink.max_gain"]);
    let runs: Vec<&str> = table.rows.iter().map(|row| row.run.as_str()).collect();
    assert_eq!(runs, ["point-001", "point-002", "point-003", "point-004", "point-004", "point-004"]);
    assert!(table.rows.iter().all(|row| row.finals.is_some()));
}
