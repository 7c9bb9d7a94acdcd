//! Grids of experiments: keys that vary alone or together, shared runs, and the runs themselves.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use floras_core::View;
use floras_core::verdict::Verdict;
use floras_sim::{Entry, Event, PreparedSweep, SimError, Sweep, SweepEvent, SweepTable};

#[expect(dead_code, reason = "each test file uses a part")]
mod support;

use support::{lasting_files, run};

fn sweep(text: &str) -> Sweep {
    Sweep::parse("a test", text).unwrap()
}

fn message(text: &str) -> String {
    Sweep::parse("a test", text).unwrap_err().to_string()
}

const TASKS: &str = r#"
[[sweep.task]]
name = "IID"
data.partition = "iid"
local.rate = 0.005

[[sweep.task]]
name = "one label each"
data.partition = "one-label"
local.rate = 0.001
trials = 2
"#;

#[test]
fn settings_that_belong_together_vary_together() {
    let sweep = sweep(&format!("[sweep]\nuplink.snr_db = [0.0, 10.0]\n{TASKS}"));
    assert_eq!(sweep.keys().collect::<Vec<_>>(), ["uplink.snr_db", "task"]);
    let points: Vec<_> = sweep
        .points()
        .iter()
        .map(|point| {
            let settings = point.experiment.settings();
            (
                point.values[1].as_str(),
                settings.uplink.radio.snr_db,
                settings.local.rate.at(1),
                settings.trials,
            )
        })
        .collect();
    assert_eq!(
        points,
        [
            ("IID", 0.0, 0.005, 5),
            ("one label each", 0.0, 0.001, 2),
            ("IID", 10.0, 0.005, 5),
            ("one label each", 10.0, 0.001, 2)
        ]
    );
}

#[test]
fn points_of_the_same_experiment_are_run_once() {
    // An ideal uplink has no receiver and no SNR, so that three of its four points are the same as its first.
    let sweep = sweep(
        "[sweep]\nuplink.scheme = [\"ideal\", \"floras\"]\nuplink.receiver = [\"paper\", \"mmse\"]\n\
         uplink.snr_db = [0.0, 10.0]",
    );
    let runs: Vec<usize> = sweep.points().iter().map(|point| point.run_of).collect();
    assert_eq!(runs, [0, 0, 0, 0, 4, 5, 6, 7]);
}

#[test]
fn cases_need_distinct_names() {
    assert_eq!(message("[[sweep.task]]\nrounds = 3"), "sweep.task: every case needs a name");
    let twice = "[[sweep.task]]\nname = \"a\"\n[[sweep.task]]\nname = \"a\"";
    assert_eq!(message(twice), "sweep.task: two cases are called \"a\"");
    let mixed = "[sweep]\ntask = [1, { name = \"a\" }]";
    assert_eq!(message(mixed), "sweep.task: every case must be a table of settings with a name");
}

#[test]
fn a_key_that_two_axes_set_is_refused() {
    let text = format!("[sweep]\nlocal.rate = [0.1]\n{TASKS}");
    assert_eq!(message(&text), "local.rate: both sweep.local.rate and sweep.task set it");
    let steps = "[sweep]\nlocal.steps = [1]\n[[sweep.task]]\nname = \"a\"\nlocal.epochs = 1";
    assert!(message(steps).contains("either local.epochs or local.steps"), "{}", message(steps));
}

#[test]
fn keys_of_cases_are_checked() {
    let unknown = message("[[sweep.task]]\nname = \"a\"\nuplink.snr = 3");
    assert!(unknown.contains("uplink.snr") && unknown.contains("snr_db"), "{unknown}");
}

const SWEEP: &str = "name = \"grid\"\nrounds = 2\ntrials = 2\n[data]\nset = \"synthetic\"\ntrain = 100\n[sweep]\n\
    uplink.sequences = [20, 25]\nuplink.receiver = [\"paper\", { clipped = 1.0 }, \"mmse\"]\n";

#[test]
fn the_last_key_varies_fastest() {
    let sweep = Sweep::parse("grid.toml", SWEEP).unwrap();
    assert_eq!(sweep.keys().collect::<Vec<_>>(), ["uplink.sequences", "uplink.receiver"]);
    let values: Vec<String> = sweep.points().iter().map(|point| point.values.join(" ")).collect();
    let expected =
        ["20 paper", "20 { clipped = 1.0 }", "20 mmse", "25 paper", "25 { clipped = 1.0 }", "25 mmse"];
    assert_eq!(values, expected);
    for (point, sequences) in sweep.points().iter().zip([20, 20, 20, 25, 25, 25]) {
        assert!(point.experiment.to_toml().contains(&format!("sequences = {sequences}\n")));
    }
}

#[test]
fn tables_have_a_row_per_done_point() {
    let directory = tempfile::tempdir().unwrap();
    let sweep = Sweep::parse("grid.toml", SWEEP).unwrap();
    for number in [0, 4] {
        let place = directory.path().join(Sweep::directory_name(number));
        run(&sweep.points()[number].experiment, &place, Entry::New, 2).unwrap();
    }
    let prepared = PreparedSweep::new(sweep, directory.path(), 2).unwrap();
    assert_eq!(prepared.to_do().collect::<Vec<_>>(), [1, 2, 3, 5]);
    prepared.write_table().unwrap();
    let text = fs::read_to_string(directory.path().join("sweep.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "point,uplink.sequences,uplink.receiver,run,trials,diverged,train_loss_mean,train_loss_ci95,\
         test_loss_mean,test_loss_ci95,test_accuracy_mean,test_accuracy_ci95,payload_uses,pilot_uses,control_uses,energy,\
         power_mean,power_peak,dynamic_range_db,rounds_done,view,epsilon,verdict,epsilon_above"
    );
    assert_eq!(lines.len(), 3);
    assert!(
        lines[1].starts_with("1,20,paper,point-001,2,0,")
            && lines[2].starts_with("5,25,{ clipped = 1.0 },point-005,2,0,"),
        "{text}"
    );
    // Updates are not clipped, so no finite ε holds.
    assert!(lines[1].ends_with(",2,any-channel,,none,"), "{text}");
    let rows = SweepTable::read(directory.path()).unwrap().rows;
    let finals: Vec<_> = prepared.summaries().map(|summary| summary.finals).collect();
    assert_eq!(rows.iter().map(|row| row.finals).collect::<Vec<_>>(), finals);
}

#[test]
fn a_sweep_that_makes_no_sense_is_refused() {
    let refused = |text: &str| Sweep::parse("grid.toml", text).unwrap_err().to_string();
    assert!(refused("rounds = 3").contains("there is no section [sweep]"));
    assert!(refused("[sweep]\n").contains("between 1 and 10000 points"));
    assert!(refused("[sweep]\nrounds = 5").contains("sweep.rounds must be a list"));
    assert!(refused("[sweep]\nname = [\"a\", \"b\"]").starts_with("name: it cannot vary"));
    assert!(refused("[sweep]\nrounds = []").contains("sweep.rounds must be a list"));
    assert!(refused("[sweep]\nuplink.sequences = [20, 10]").contains("10 sequences (N)"));
    assert!(refused("[sweep]\nuplink.sequence = [20]").contains("did you mean uplink.sequences?"));
    assert!(refused("[sweep]\nlocal.epochs = [1]\nlocal.steps = [1]").contains("only one of them can vary"));
    let long: Vec<String> = (1..200).map(|n| n.to_string()).collect();
    let list = long.join(",");
    assert!(refused(&format!("[sweep]\nseed = [{list}]\nrounds = [{list}]")).contains("10000 points"));
}

#[test]
fn a_sweep_keeps_its_directory_to_itself() {
    let temporary = tempfile::tempdir().unwrap();
    let enter = |name: &str| PreparedSweep::new(sweep(SWEEP), &temporary.path().join(name), 1);
    let held = enter("grid").unwrap();
    assert!(matches!(enter("grid"), Err(SimError::Locked { .. })));
    drop(held);
    assert!(enter("grid").is_ok());
    fs::write(temporary.path().join("file"), "x").unwrap();
    let error = enter("file").unwrap_err();
    assert!(error.is_input() && error.to_string().contains("is a file"), "{error}");
}

/// Two points of an ideal uplink are the same experiment.
const TWICE: &str = "name = \"twice\"\nrounds = 2\ntrials = 1\n[data]\nset = \"synthetic\"\ntrain = 100\n\
    [sweep]\nuplink.scheme = [\"ideal\", \"floras\"]\nuplink.snr_db = [0.0, 20.0]\n";

#[test]
fn sweep_events_report_every_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut prepared = PreparedSweep::new(sweep(TWICE), directory.path(), 2).unwrap();
    let seen = Mutex::new(Vec::new());
    let watch = |event: SweepEvent<'_>| {
        let mut seen = seen.lock().unwrap();
        match event {
            SweepEvent::PointBegins { number, point, .. } => {
                seen.push(format!("{number}: {} {:?}", point.values.join(" "), point.notes()));
            }
            SweepEvent::Run(Event::Round(metrics)) => seen.push(format!("round {}", metrics.round)),
            SweepEvent::Run(_) => {}
            SweepEvent::PointEnds { number } => {
                let rows = SweepTable::read(directory.path()).unwrap().rows.len();
                seen.push(format!("{number} is done, {rows} in the table"));
            }
        }
    };
    assert_eq!(prepared.run(&watch, &AtomicBool::new(false)).unwrap(), 6);
    let unused = "[\"without effect under the other settings: uplink.snr_db\"]";
    let expected = [
        &format!("0: ideal 0.0 {unused}"),
        "round 1",
        "round 2",
        "0 is done, 2 in the table",
        "2: floras 0.0 []",
        "round 1",
        "round 2",
        "2 is done, 3 in the table",
        "3: floras 20.0 []",
        "round 1",
        "round 2",
        "3 is done, 4 in the table",
    ];
    assert_eq!(seen.into_inner().unwrap(), expected);
    assert_eq!(prepared.to_do().count(), 0);
    assert_eq!(prepared.summaries().count(), 4);
}

#[test]
fn stopped_sweeps_resume_to_the_same_bytes() {
    let temporary = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| temporary.path().join(name));
    let prepare = |directory: &Path| PreparedSweep::new(sweep(TWICE), directory, 1).unwrap();
    prepare(&whole).run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let stop = AtomicBool::new(false);
    let watch = |event: SweepEvent<'_>| {
        stop.store(matches!(event, SweepEvent::PointEnds { .. }), Ordering::Relaxed);
    };
    let error = prepare(&stopped).run(&watch, &stop).unwrap_err();
    assert!(matches!(error, SimError::Stopped { .. }), "{error}");
    assert!(stopped.join("point-001").exists() && !stopped.join("point-003").exists());
    let mut prepared = prepare(&stopped);
    assert_eq!(prepared.to_do().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(prepared.rounds(), (2, 6), "progress is over all points");
    prepared.run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let table = |directory: &Path| fs::read(directory.join("sweep.csv")).unwrap();
    assert_eq!(table(&whole), table(&stopped));
    for point in ["point-001", "point-003", "point-004"] {
        assert_eq!(lasting_files(&whole.join(point)), lasting_files(&stopped.join(point)));
    }
}

#[test]
fn a_run_from_elsewhere_is_put_into_place() {
    let temporary = tempfile::tempdir().unwrap();
    let elsewhere = temporary.path().join("elsewhere");
    let mut prepared = PreparedSweep::new(sweep(TWICE), &temporary.path().join("sweep"), 1).unwrap();
    let experiment = prepared.sweep().points()[0].experiment.clone();
    run(&experiment, &elsewhere, Entry::New, 1).unwrap();
    let files = lasting_files(&elsewhere);
    prepared.put(0, files.clone()).unwrap();
    assert_eq!(prepared.to_do().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(lasting_files(&temporary.path().join("sweep/point-001")), files);
    assert_eq!(SweepTable::read(prepared.directory()).unwrap().rows.len(), 2);
}

#[test]
fn a_run_of_another_experiment_is_refused_first() {
    let directory = tempfile::tempdir().unwrap();
    let other = sweep(&TWICE.replace("rounds = 2", "rounds = 3"));
    run(&other.points()[3].experiment, &directory.path().join("point-004"), Entry::New, 1).unwrap();
    let error = PreparedSweep::new(sweep(TWICE), directory.path(), 1).unwrap_err().to_string();
    assert!(error.contains("rounds is 3 there and 2 here"), "{error}");
    assert!(!directory.path().join("point-001").exists());
}

#[test]
fn directories_of_other_sweeps_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let grid = |lines: &str| {
        sweep(&format!(
            "rounds = 1\ntrials = 1\n[data]\nset = \"synthetic\"\ntrain = 100\n[sweep]\n{lines}\n"
        ))
    };
    let both = grid("uplink.snr_db = [0.0, 10.0]");
    let prepare = |sweep: Sweep| PreparedSweep::new(sweep, directory.path(), 1);
    prepare(both.clone()).unwrap().run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let table = || fs::read(SweepTable::file(directory.path())).unwrap();
    let before = table();
    let cases = [
        ("uplink.snr_db = [0.0]", "its table has point 2, and this sweep has 1"),
        ("seed = [1, 2]", "it varies uplink.snr_db there and seed here"),
    ];
    for (lines, reason) in cases {
        let error = prepare(grid(lines)).unwrap_err();
        assert!(error.is_input() && error.is_other_experiment());
        assert_eq!(
            error.to_string(),
            format!("{} holds another sweep: {reason}", directory.path().display())
        );
        assert!(PreparedSweep::check(&grid(lines), directory.path()).is_err());
    }
    assert!(table() == before && directory.path().join("point-002/summary.json").exists());
    // A sweep that was killed before its first row has no table.
    let aside = directory.path().join("aside");
    fs::rename(SweepTable::file(directory.path()), &aside).unwrap();
    let error = prepare(grid("uplink.snr_db = [0.0]")).unwrap_err().to_string();
    assert!(error.ends_with("point-002 is there, which is not a run of this sweep"), "{error}");
    fs::rename(&aside, SweepTable::file(directory.path())).unwrap();
    assert_eq!(prepare(both).unwrap().to_do().count(), 0);
}

#[test]
fn large_values_have_a_power_of_ten() {
    let grid = sweep("[sweep]\nlocal.rate = [1e6, 0.5, 2e-5]\n");
    let values: Vec<&str> = grid.points().iter().map(|point| point.values[0].as_str()).collect();
    assert_eq!(values, ["1e6", "0.5", "2e-5"]);
}

#[test]
fn directories_without_a_sweep_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let of_run = temporary.path().join("run");
    run(&sweep(TWICE).points()[0].experiment, &of_run, Entry::New, 1).unwrap();
    let foreign = temporary.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("sweep.csv"), "mine").unwrap();
    for directory in [of_run, foreign] {
        let error = PreparedSweep::new(sweep(TWICE), &directory, 1).unwrap_err();
        assert!(error.is_input() && error.is_other_experiment());
        let expected = format!("{} is not empty and is not a floras sweep directory", directory.display());
        assert_eq!(error.to_string(), expected);
        assert!(!directory.join("lock").exists() || directory.join("experiment.toml").exists());
    }
    // A sweep that was killed before its first run.
    let begun = temporary.path().join("begun");
    fs::create_dir_all(begun.join(".point-001.partial")).unwrap();
    fs::write(begun.join("lock"), "").unwrap();
    assert!(PreparedSweep::new(sweep(TWICE), &begun, 1).is_ok());
}

#[test]
fn tables_quote_epsilon_in_the_privacy_view() {
    let directory = tempfile::tempdir().unwrap();
    let text = "name = \"budget\"\nrounds = 60\ntrials = 1\n[data]\nset = \"synthetic\"\ntrain = 100\n\
        [uplink]\nsequences = 40\nlength = 64\nreceiver = \"clipped=1\"\n[privacy]\nclip = 1.0\n\
        [sweep]\nprivacy.budget = [\"none\", 20.0]\nprivacy.view = [\"idealised\", \"any-channel\"]\n";
    let mut prepared = PreparedSweep::new(sweep(text), directory.path(), 1).unwrap();
    let (done, all) = prepared.rounds();
    assert_eq!(prepared.run(&|_| {}, &AtomicBool::new(false)).unwrap(), all);
    assert_eq!(done, 0);
    let rows = SweepTable::read(directory.path()).unwrap().rows;
    let summaries: Vec<_> = prepared.summaries().collect();
    for (row, (summary, view)) in rows.iter().zip(summaries.iter().zip([
        View::Idealised,
        View::AnyChannel,
        View::Idealised,
        View::AnyChannel,
    ])) {
        let privacy = row.privacy.unwrap();
        assert_eq!(privacy.view, view);
        assert_eq!(privacy.epsilon, summary.privacy.views.get(view).unwrap().epsilon);
        assert_eq!(privacy.verdict, Verdict::of(privacy.epsilon, true));
        assert_eq!(privacy.rounds_done, summary.privacy.rounds);
    }
    let [free, limited] = [&rows[1], &rows[3]].map(|row| row.privacy.unwrap());
    assert!(free.rounds_done == 60 && limited.rounds_done < 60 && limited.epsilon.unwrap() <= 20.0);
}

#[test]
fn errors_name_their_point() {
    let unknown = message("[sweep]\nuplink.snr_db = [0.0, 10.0]\nuplink.receiver = [\"paper\", \"clip\"]");
    assert!(
        unknown.starts_with("point 2 of 4 (uplink.snr_db = 0.0, uplink.receiver = clip): uplink.receiver")
    );
    let text = "[uplink]\nsequences = 40\nlength = 64\nreceiver = \"clipped=1\"\n[privacy]\nclip = 1.0\n\
        [sweep]\nprivacy.budget = [\"none\", 0.001]";
    let directory = tempfile::tempdir().unwrap();
    let seen = Mutex::new(Vec::new());
    let see = |number| seen.lock().unwrap().push(number);
    let error = PreparedSweep::watched(sweep(text), directory.path(), 1, &see).unwrap_err();
    let expected = "point 2 of 2 (privacy.budget = 0.001): privacy.budget: one round";
    assert!(error.is_input() && error.to_string().starts_with(expected), "{error}");
    assert_eq!(seen.into_inner().unwrap(), [0, 1]);
    assert!(!directory.path().join("point-001").exists());
}
