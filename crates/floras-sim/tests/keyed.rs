//! Runs whose sequences are assigned by the paper's protocol.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use floras_sim::{Entry, Event, Experiment, Federation, PreparedRun, SimError, Status, Trial, TrialOptions};

mod support;

use support::{experiment, lasting_files, run};

const SMALL: [&str; 10] = [
    "data.set=synthetic",
    "data.features=4",
    "data.classes=3",
    "data.train=300",
    "data.test=50",
    "clients.total=30",
    "clients.per_round=6",
    "uplink.sequences=8",
    "uplink.length=8",
    "trials=2",
];

fn small(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], &["privacy.clip=1", "rounds=8"], more].concat())
}

#[test]
fn orthonormal_symbols_do_not_depend_on_the_assignment() {
    let directory = tempfile::tempdir().unwrap();
    let [seed, keyed] = ["seed", "keyed"].map(|assignment| {
        let path = directory.path().join(assignment);
        let key = format!("uplink.assignment={assignment}");
        run(&small(&[&key]), &path, Entry::New, 2).unwrap();
        ["metrics.jsonl", "ledger.jsonl"].map(|name| std::fs::read(path.join(name)).unwrap())
    });
    assert_eq!(seed, keyed);
}

#[test]
fn keyed_chips_depend_on_the_assignment() {
    let parameters = |assignment: &str| {
        let federation = Federation::new(&small(&["uplink.fidelity=chip", assignment])).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        trial.step().unwrap();
        trial.parameters().to_vec()
    };
    assert_ne!(parameters("uplink.assignment=seed"), parameters("uplink.assignment=keyed"));
}

/// Without fading and unused sequences, at 80 dB, the decoded sum is the exact one up to about 10⁻⁴.
#[test]
fn a_keyed_run_is_decoded_from_chips() {
    let parameters = |more: &[&str]| {
        let federation = Federation::new(&small(more)).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        (0..5).for_each(|_| drop(trial.step().unwrap()));
        trial.parameters().to_vec()
    };
    let exact = parameters(&["uplink.scheme=ideal"]);
    let keyed = parameters(&[
        "uplink.assignment=keyed",
        "uplink.fidelity=chip",
        "uplink.sequences=6",
        "uplink.fading=none",
        "uplink.snr_db=80",
    ]);
    let norm = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>().sqrt();
    let difference: Vec<f32> = exact.iter().zip(&keyed).map(|(a, b)| a - b).collect();
    assert!(norm(&difference) < 1e-2 * norm(&exact), "{} {}", norm(&difference), norm(&exact));
}

#[test]
fn a_keyed_trial_resumes_from_its_parameters() {
    let experiment = small(&["uplink.fidelity=chip", "uplink.assignment=keyed"]);
    let federation = Federation::new(&experiment).unwrap();
    let mut whole = Trial::begin(&federation, 1).unwrap();
    (0..4).for_each(|_| drop(whole.step().unwrap()));
    let halfway = whole.parameters().to_vec();
    (0..3).for_each(|_| drop(whole.step().unwrap()));
    let again = Federation::new(&experiment).unwrap();
    let at = (4, Status::Running);
    let mut resumed = Trial::at(&again, 1, TrialOptions::default(), at, halfway).unwrap();
    (0..3).for_each(|_| drop(resumed.step().unwrap()));
    assert_eq!(resumed.parameters(), whole.parameters());
}

/// Stops a run after some rounds.
fn stop_after(experiment: &Experiment, path: &std::path::Path, rounds: u32) {
    let (stop, done) = (AtomicBool::new(false), AtomicU32::new(0));
    let watch = |event: Event| {
        if let Event::Round(_) = event
            && done.fetch_add(1, Ordering::Relaxed) + 1 >= rounds
        {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let stopped = PreparedRun::new(experiment, path, Entry::New, 1).unwrap().run(&watch, &stop);
    assert!(matches!(stopped, Err(SimError::Stopped { .. })), "{stopped:?}");
}

#[test]
fn threads_and_resume_do_not_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("chip", ["uplink.fidelity=chip", "clients.dropout=0.3"]),
        ("symbol", ["uplink.fidelity=symbol", "clients.dropout=0"]),
        ("gaussian", ["uplink.family=gaussian", "clients.dropout=0.3"]),
    ] {
        let experiment = small(&[&["uplink.assignment=keyed", "privacy.clip=none"][..], &more].concat());
        let files = [1, 2, 5].map(|threads| {
            let path = directory.path().join(format!("{name}-{threads}"));
            run(&experiment, &path, Entry::New, threads).unwrap();
            lasting_files(&path)
        });
        assert!(files[0] == files[1] && files[0] == files[2], "{name}");
        let path = directory.path().join(format!("{name}-resumed"));
        stop_after(&experiment, &path, 3);
        run(&experiment, &path, Entry::Resume, 2).unwrap();
        assert_eq!(lasting_files(&path), files[0], "{name}");
    }
}

#[test]
fn nothing_secret_is_written() {
    let directory = tempfile::tempdir().unwrap();
    run(&small(&["uplink.assignment=keyed"]), directory.path(), Entry::New, 2).unwrap();
    let text = std::fs::read_to_string(directory.path().join("experiment.toml")).unwrap();
    assert!(text.contains("assignment = \"keyed\""), "{text}");
    let names = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    assert!(!names.iter().any(|name| name.contains("key") || name.contains("identit")), "{names:?}");
}
