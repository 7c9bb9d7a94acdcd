//! Grids of experiments: what varies alone, what varies together, and what is run only once.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_sim::Sweep;

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
fn a_case_without_a_name_or_with_anothers_is_refused() {
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
fn what_a_case_sets_is_checked_like_any_other_key() {
    let unknown = message("[[sweep.task]]\nname = \"a\"\nuplink.snr = 3");
    assert!(unknown.contains("uplink.snr") && unknown.contains("snr_db"), "{unknown}");
}

#[test]
fn the_scan_over_conventions_is_a_valid_sweep() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/conventions.toml");
    let sweep = sweep(&std::fs::read_to_string(file).unwrap());
    let to_run = sweep.points().iter().enumerate().filter(|(number, point)| point.run_of == *number).count();
    assert!(to_run < sweep.points().len(), "channel inversion has no modulation, and FLORAS no threshold");
}
