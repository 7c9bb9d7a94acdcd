//! Runs and their directories: the same bytes for any number of threads or interruptions, and rejections without data loss.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use floras_sim::{
    Entry, Event, Experiment, ExperimentBuilder, Federation, PreparedRun, RunDirectory, SimError, Status,
    TrialSummary,
};

mod support;

use support::{experiment, lasting_files, run};

fn small() -> Experiment {
    experiment(&[
        "data.set=synthetic",
        "data.features=8",
        "data.classes=4",
        "data.train=600",
        "data.test=100",
        "data.partition={ dirichlet = 0.5 }",
        "clients.total=60",
        "clients.per_round=20",
        "trials=3",
        "rounds=12",
        "privacy.clip=1",
        "record.train_every=5",
    ])
}

#[test]
fn threads_do_not_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    let digits = experiment(&["rounds=3", "trials=3", "privacy.clip=6.33", "privacy.normalise=paper"]);
    let chips = experiment(&["rounds=2", "trials=2", "uplink.fidelity=chip", "privacy.clip=1"]);
    for (number, experiment) in [small(), digits, chips].iter().enumerate() {
        let files = [1, 2, 5].map(|threads| {
            let directory = directory.path().join(format!("{number}-{threads}"));
            run(experiment, &directory, Entry::New, threads).unwrap();
            lasting_files(&directory)
        });
        assert!(files[0] == files[1] && files[0] == files[2]);
        assert_eq!(files[0].len(), 5 + experiment.settings().trials as usize);
    }
}

/// A stop between the last round and the summary is too late.
#[test]
fn stops_after_the_last_round_do_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let run = PreparedRun::new(&small(), directory.path(), Entry::New, 1).unwrap();
    let stop = AtomicBool::new(false);
    let watch = |event: Event| {
        let is_last = matches!(event, Event::TrialEnds { trial: 2, .. });
        stop.fetch_or(is_last, Ordering::Relaxed);
    };
    assert_eq!(run.run(&watch, &stop).unwrap().rounds_done, 36);
    assert!(stop.load(Ordering::Relaxed) && directory.path().join("summary.json").exists());
}

#[test]
fn a_run_records_every_round_once_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let outcome = run(&small(), directory.path(), Entry::New, 2).unwrap();
    assert_eq!(outcome.rounds_done, 36);
    let text = fs::read_to_string(directory.path().join("metrics.jsonl")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<(u64, u64)> =
        lines.iter().map(|line| (line["trial"].as_u64().unwrap(), line["round"].as_u64().unwrap())).collect();
    let expected: Vec<(u64, u64)> =
        (0..3).flat_map(|trial| (1..=12).map(move |round| (trial, round))).collect();
    assert_eq!(places, expected);
    let measured: Vec<u64> = lines[..12]
        .iter()
        .filter(|line| line["train_loss"].is_number())
        .map(|line| line["round"].as_u64().unwrap())
        .collect();
    assert_eq!(measured, [5, 10, 12], "every fifth round and the last");
    let TrialSummary::Finished { train_loss, .. } = outcome.summary.trials[0] else { panic!("diverged") };
    assert_eq!(lines[11]["train_loss"].as_f64(), Some(train_loss));
}

#[test]
fn the_resolved_experiment_makes_the_same_run_again() {
    let directory = tempfile::tempdir().unwrap();
    let [first, again] = ["first", "again"].map(|name| directory.path().join(name));
    run(&small(), &first, Entry::New, 2).unwrap();
    run(&RunDirectory::read_experiment(&first).unwrap(), &again, Entry::New, 2).unwrap();
    assert_eq!(lasting_files(&first), lasting_files(&again));
}

#[test]
fn resuming_a_complete_run_only_reads_its_summary() {
    let directory = tempfile::tempdir().unwrap();
    let first = run(&small(), directory.path(), Entry::New, 2).unwrap();
    let files = lasting_files(directory.path());
    let again = run(&small(), directory.path(), Entry::Resume, 2).unwrap();
    assert_eq!((again.rounds_done, again.rounds_per_second()), (0, None));
    assert_eq!(again.summary, first.summary);
    assert_eq!(lasting_files(directory.path()), files);
}

#[test]
fn occupied_directories_are_not_written_to() {
    let directory = tempfile::tempdir().unwrap();
    let taken = directory.path().join("taken");
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("thesis.tex"), "precious").unwrap();
    for entry in [Entry::New, Entry::ResumeOrNew] {
        assert!(matches!(run(&small(), &taken, entry, 1), Err(SimError::NotARun { .. })));
    }
    assert!(matches!(run(&small(), &taken, Entry::Resume, 1), Err(SimError::NothingToResume { .. })));
    assert_eq!(fs::read_dir(&taken).unwrap().count(), 1);
    let done = directory.path().join("done");
    run(&small(), &done, Entry::New, 1).unwrap();
    assert!(matches!(run(&small(), &done, Entry::New, 1), Err(SimError::AlreadyARun { .. })));
    let file = directory.path().join("file");
    fs::write(&file, "x").unwrap();
    let error = run(&small(), &file, Entry::New, 1).unwrap_err();
    assert!(error.is_input() && error.to_string().contains("file"), "{error}");
}

#[test]
fn changed_experiments_are_rejected_with_their_key() {
    let directory = tempfile::tempdir().unwrap();
    run(&small(), directory.path(), Entry::New, 1).unwrap();
    let files = lasting_files(directory.path());
    let text = small().to_toml();
    for (from, to, key) in [
        ("rounds = 12", "rounds = 13", "rounds is 12 there and 13 here"),
        ("snr_db = 20.0", "snr_db = 10.0", "uplink.snr_db is 20.0 there and 10.0 here"),
        ("clip = 1.0\n", "clip = \"none\"\n", "privacy.clip is 1.0 there and \"none\" here"),
    ] {
        assert!(text.contains(from), "{from} in {text}");
        let changed = Experiment::parse("changed", &text.replace(from, to)).unwrap();
        let error = run(&changed, directory.path(), Entry::Resume, 1).unwrap_err();
        assert!(error.is_input() && error.to_string().contains(key), "{error}");
    }
    assert_eq!(lasting_files(directory.path()), files);
    let path = directory.path().join("experiment.toml");
    let other = fs::read_to_string(&path).unwrap().replace(floras_sim::VERSION, "0.0.1");
    fs::write(&path, other).unwrap();
    let error = run(&small(), directory.path(), Entry::Resume, 1).unwrap_err().to_string();
    assert!(error.contains("version is 0.0.1 there"), "{error}");
}

#[test]
fn a_directory_in_use_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let held = RunDirectory::enter(directory.path(), &small(), Entry::New).unwrap();
    let error = run(&small(), directory.path(), Entry::Resume, 1).unwrap_err();
    assert!(matches!(error, SimError::Locked { .. }) && error.is_input(), "{error}");
    drop(held);
    assert!(run(&small(), directory.path(), Entry::Resume, 1).is_ok());
}

/// A file in the way stops a run, which is resumed after the file is removed.
#[test]
fn runs_resume_after_a_write_error() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| directory.path().join(name));
    run(&small(), &whole, Entry::New, 2).unwrap();
    drop(RunDirectory::enter(&broken, &small(), Entry::New).unwrap());
    let obstacle = broken.join("parameters/trial-0001.safetensors");
    fs::create_dir(&obstacle).unwrap();
    fs::write(obstacle.join("in-the-way"), "").unwrap();
    let error = run(&small(), &broken, Entry::Resume, 2).unwrap_err().to_string();
    assert!(error.contains("trial-0001.safetensors"), "{error}");
    assert!(!broken.join("summary.json").exists());
    fs::remove_dir_all(&obstacle).unwrap();
    run(&small(), &broken, Entry::Resume, 2).unwrap();
    assert_eq!(lasting_files(&whole), lasting_files(&broken));
}

#[test]
fn a_damaged_checkpoint_is_named() {
    let directory = tempfile::tempdir().unwrap();
    drop(RunDirectory::enter(directory.path(), &small(), Entry::New).unwrap());
    fs::write(directory.path().join("checkpoint/trial-0002.safetensors"), "nonsense").unwrap();
    let error = run(&small(), directory.path(), Entry::Resume, 2).unwrap_err().to_string();
    assert!(error.contains("trial-0002.safetensors is damaged"), "{error}");
}

/// A run that has ended two of its three trials, and a copy of it to modify.
fn unfinished(directory: &Path) {
    drop(RunDirectory::enter(directory, &small(), Entry::New).unwrap());
    let obstacle = directory.join("parameters/trial-0002.safetensors");
    fs::create_dir_all(obstacle.join("in-the-way")).unwrap();
    run(&small(), directory, Entry::Resume, 1).unwrap_err();
    fs::remove_dir_all(&obstacle).unwrap();
    assert!(directory.join("checkpoint/trial-0001.safetensors").exists());
}

#[test]
fn trials_that_have_ended_are_not_done_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("run");
    unfinished(&directory);
    assert_eq!(
        run(&small(), &directory, Entry::Resume, 2).unwrap().rounds_done,
        12,
        "those of the third trial"
    );
}

#[test]
fn a_checkpoint_of_something_else_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let damaged = |name: &str, damage: &dyn Fn(&Path)| {
        let directory = directory.path().join(name);
        unfinished(&directory);
        damage(&directory);
        run(&small(), &directory, Entry::Resume, 1).unwrap_err().to_string()
    };
    let message = damaged("other-trial", &|directory| {
        let [from, to] =
            [0, 1].map(|trial| directory.join(format!("checkpoint/trial-000{trial}.safetensors")));
        fs::copy(from, to).unwrap();
    });
    assert!(message.contains("trial-0001.safetensors is damaged: it belongs to trial 0"), "{message}");
    let message = damaged("flipped", &|directory| {
        let path = directory.join("checkpoint/trial-0001.safetensors");
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
    });
    assert!(message.contains("its parameters are not those that were saved"), "{message}");
    let message = damaged("emptied", &|directory| fs::write(directory.join("experiment.toml"), "").unwrap());
    assert!(message.contains("experiment.toml is damaged: it has no version"), "{message}");

    // An experiment that was changed by hand, in both files.
    let directory = directory.path().join("changed");
    unfinished(&directory);
    let text = fs::read_to_string(directory.join("experiment.toml"))
        .unwrap()
        .replace("snr_db = 20.0", "snr_db = 3.0");
    fs::write(directory.join("experiment.toml"), &text).unwrap();
    let changed = Experiment::parse("changed", &text).unwrap();
    let message = run(&changed, &directory, Entry::Resume, 1).unwrap_err().to_string();
    assert!(message.contains("it belongs to another experiment"), "{message}");
}

#[test]
fn changed_logs_are_written_again() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, changed] = ["whole", "changed"].map(|name| directory.path().join(name));
    run(&small(), &whole, Entry::New, 2).unwrap();
    unfinished(&changed);
    let path = changed.join("checkpoint/trial-0001.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let line = text.lines().nth(3).unwrap();
    let rate = &line[line.find("\"rate\"").unwrap()..][..12];
    fs::write(&path, text.replacen(rate, &rate.replace("0.0", "0.1"), 1)).unwrap();
    assert_ne!(fs::read_to_string(&path).unwrap(), text);
    run(&small(), &changed, Entry::Resume, 2).unwrap();
    assert_eq!(lasting_files(&whole), lasting_files(&changed));
}

#[test]
fn changed_data_make_another_experiment() {
    let identity = |experiment: &Experiment| Federation::new(experiment).unwrap().identity().to_owned();
    assert_eq!(identity(&small()), identity(&small()));
    assert_ne!(identity(&small()), identity(&experiment(&["rounds=7"])));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv");
    let setting = format!("uplink.fading={{ trace = {:?} }}", path.display().to_string());
    let with_trace = experiment(&["clients.total=1", "rounds=1", "trials=1", &setting]);
    let identities = ["1", "2"].map(|amplitude| {
        fs::write(&path, format!("round,client,real,imaginary\n0,0,{amplitude},0\n")).unwrap();
        identity(&with_trace)
    });
    assert_ne!(identities[0], identities[1]);
}

#[test]
fn leftover_logs_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    run(&small(), directory.path(), Entry::New, 2).unwrap();
    let left = directory.path().join("checkpoint/trial-0001.jsonl");
    fs::write(&left, "left over").unwrap();
    run(&small(), directory.path(), Entry::Resume, 2).unwrap();
    assert!(!left.exists());
}

#[test]
fn diverging_trials_end_alone() {
    let directory = tempfile::tempdir().unwrap();
    // The penalty multiplies the parameters by ten in every step.
    let experiment = experiment(&[
        "uplink.scheme=ideal",
        "model.l2=10",
        "local.rate=1",
        "trials=2",
        "rounds=40",
        "record.train_every=1",
    ]);
    let outcome = run(&experiment, directory.path(), Entry::New, 2).unwrap();
    let diverged = outcome.summary.diverged();
    assert_eq!(diverged.len(), 2);
    assert_eq!(outcome.summary.finals, None);
    for name in ["metrics.jsonl", "summary.json"] {
        let text = fs::read_to_string(directory.path().join(name)).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
    let text = fs::read_to_string(directory.path().join("metrics.jsonl")).unwrap();
    assert_eq!(text.lines().count() as u32, diverged.iter().map(|(_, round)| round).sum::<u32>());
    assert!(diverged[0].1 > 1, "the rounds before are kept");
}

#[test]
fn events_report_every_round() {
    let directory = tempfile::tempdir().unwrap();
    let seen = Mutex::new(Vec::new());
    let run = PreparedRun::new(&small(), directory.path(), Entry::New, 2).unwrap();
    run.run(&|event| seen.lock().unwrap().push(event), &AtomicBool::new(false)).unwrap();
    let seen = seen.into_inner().unwrap();
    let count = |wanted: fn(&Event) -> bool| seen.iter().filter(|&event| wanted(event)).count();
    assert_eq!(count(|event| matches!(event, Event::TrialBegins { done: 0, .. })), 3);
    assert_eq!(count(|event| matches!(event, Event::Round(_))), 36);
    assert_eq!(count(|event| matches!(event, Event::TrialEnds { status: Status::Finished, .. })), 3);
}

/// A budget that allows fewer rounds than the experiment has, in a view that is not a guarantee.
#[test]
fn a_budget_that_ends_a_run_is_noted() {
    let directory = tempfile::tempdir().unwrap();
    let quick = ExperimentBuilder::preset("quick").unwrap().rounds(200);
    let limited = quick.set("privacy.budget", "1").unwrap().set("privacy.view", "published").unwrap();
    let run = PreparedRun::new(&limited.build().unwrap(), directory.path(), Entry::New, 1).unwrap();
    let rounds = run.federation().rounds();
    assert!(rounds < 200);
    let of_budget =
        format!("the budget of 1 in the published view allows {rounds} of 200 rounds; the run stops there");
    assert_eq!(
        run.notes(),
        ["the budget is enforced in a view whose epsilon is not a guarantee here", &of_budget]
    );
}

#[test]
fn event_files_match_the_metrics() {
    let directory = tempfile::tempdir().unwrap();
    run(&small(), directory.path(), Entry::New, 2).unwrap();
    for trial in 0..3 {
        let path = format!("tb/trial-{trial:04}/events.out.tfevents.floras");
        let bytes = fs::read(directory.path().join(path)).unwrap();
        // Frames: 8 bytes of length, 4 of checksum, the message, 4 of checksum.
        let (mut at, mut records) = (0, 0);
        while at < bytes.len() {
            at += 16 + u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
            records += 1;
        }
        assert_eq!((at, records), (bytes.len(), 13));
    }
    assert!(Path::new(&directory.path().join("checkpoint")).exists());
}

#[test]
fn stopped_runs_report_what_they_spent() {
    let temporary = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| temporary.path().join(name));
    let experiment = experiment(&[
        "rounds=6",
        "trials=2",
        "data.set=synthetic",
        "data.train=100",
        "uplink.sequences=40",
        "uplink.length=64",
        "uplink.receiver=clipped=1",
        "privacy.clip=1",
    ]);
    run(&experiment, &whole, Entry::New, 1).unwrap();
    let prepared = PreparedRun::new(&experiment, &stopped, Entry::New, 1).unwrap();
    assert_eq!(RunDirectory::privacy_so_far(&stopped).unwrap(), None);
    // The second trial begins, and stops before its first round.
    let stop = AtomicBool::new(false);
    let watch = |event| stop.store(matches!(event, Event::TrialBegins { trial: 1, .. }), Ordering::Relaxed);
    assert!(matches!(prepared.run(&watch, &stop), Err(SimError::Stopped { .. })));
    let spent = prepared.privacy_so_far().unwrap().unwrap();
    assert_eq!(RunDirectory::privacy_so_far(&stopped).unwrap().as_ref(), Some(&spent));
    let complete = RunDirectory::privacy_so_far(&whole).unwrap().unwrap();
    assert_eq!((spent.rounds, &spent.views), (6, &complete.views));
    drop(prepared);
    run(&experiment, &stopped, Entry::Resume, 1).unwrap();
    assert_eq!(lasting_files(&whole), lasting_files(&stopped));
}

/// Random guesses among ten digits have an accuracy of 10 %.
#[test]
fn empty_experiment_files_learn() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse("empty", "").unwrap();
    let builder = ExperimentBuilder::parse("empty", "").unwrap().trials(1).rounds(30);
    assert_eq!(builder.clone().trials(5).rounds(300).build().unwrap(), experiment);
    let outcome = run(&builder.build().unwrap(), directory.path(), Entry::New, 1).unwrap();
    let accuracy = outcome.summary.finals.unwrap().test_accuracy.mean;
    assert!(accuracy > 0.6, "{accuracy}");
}
