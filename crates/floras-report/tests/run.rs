//! Reports of runs.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use common::{SMALL, report, run_into, words};
use floras_report::{Kind, ReportError};
use floras_sim::{Entry, Event, Experiment, PreparedRun, RunDirectory, SimError};

/// Runs an experiment and writes its report.
fn reported(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    run_into(directory.path(), text);
    let page = report(directory.path());
    (directory, page)
}

/// All files of the report.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let plots = fs::read_dir(directory.join("plots")).unwrap().map(|entry| entry.unwrap().path());
    let all = plots.chain([directory.join("report.html")]);
    all.map(|path| (path.strip_prefix(directory).unwrap().to_path_buf(), fs::read(&path).unwrap())).collect()
}

#[test]
fn reports_have_task_results_privacy_and_command() {
    let directory = tempfile::tempdir().unwrap();
    let summary = run_into(directory.path(), &format!("{SMALL}[privacy]\nclip = 1.0\n"));
    let text = words(&report(directory.path()));
    for word in [
        "handwritten digits",
        "20 clients",
        "logistic regression",
        "3 trials",
        "FLORAS",
        "γ = 5 stayed unused",
        "Rayleigh",
        "20 dB",
        "6 rounds",
        "raw-signal",
        "not proven",
        "any-channel (quoted)",
        "has the largest loss",
        "Verdicts: strong for ε ≤ 1",
        "not private",
        "log scale",
        "floras run experiment.toml --out ../small-again",
        "seed 1",
        "client 19",
        "Cost on the air",
        "0.0 dB",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let accuracy = summary.finals.unwrap().test_accuracy;
    let percent = floras_sim::number::percentage(accuracy);
    assert!(text.contains(&percent), "no {percent}");
    for name in ["accuracy", "loss", "gain", "noise", "accuracy-uses", "accuracy-energy", "epsilon", "labels"]
    {
        let svg = fs::read_to_string(directory.path().join(format!("plots/{name}.svg"))).unwrap();
        roxmltree::Document::parse(&svg).unwrap();
        let png = fs::read(directory.path().join(format!("plots/{name}.png"))).unwrap();
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{name}");
        let pdf = fs::read(directory.path().join(format!("plots/{name}.pdf"))).unwrap();
        assert!(pdf.starts_with(b"%PDF-"), "{name}");
        let csv = fs::read_to_string(directory.path().join(format!("plots/{name}.csv"))).unwrap();
        let header = csv.lines().next().unwrap();
        assert!(header.starts_with("series,") && header.ends_with(",low,high"), "{name}: {header}");
    }
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let (directory, _) = reported(SMALL);
    let first = files(directory.path());
    fs::remove_dir_all(directory.path().join("plots")).unwrap();
    fs::remove_file(directory.path().join("report.html")).unwrap();
    report(directory.path());
    assert_eq!(files(directory.path()), first);
    // Elsewhere, too.
    let copy = tempfile::tempdir().unwrap();
    for name in ["experiment.toml", "metrics.jsonl", "ledger.jsonl", "partition.json", "summary.json"] {
        fs::copy(directory.path().join(name), copy.path().join(name)).unwrap();
    }
    report(copy.path());
    assert_eq!(files(copy.path()), first);
}

#[test]
fn one_trial_has_no_bands_and_no_interval() {
    let (_directory, page) = reported(&SMALL.replace("trials = 3", "trials = 1"));
    assert!(!page.contains("fill-opacity=\"0.2\""));
    let text = words(&page);
    assert!(text.contains("there is no interval") && text.contains("one trial"), "{text}");
    let (_directory, page) = reported(SMALL);
    assert!(page.contains("fill-opacity=\"0.2\""));
}

#[test]
fn diverged_trials_are_listed() {
    // The penalty multiplies the parameters by a thousand in every step.
    let text = SMALL.replace("rounds = 6", "rounds = 40")
        + "[model]\nl2 = 1000.0\n[local]\nrate = 1.0\n[uplink]\nscheme = \"ideal\"\n[privacy]\nclip = \"none\"\n";
    let (_directory, page) = reported(&text);
    let text = words(&page);
    assert!(text.contains("3 of 3 trials diverged"), "{text}");
    assert!(text.contains("No trial finished"), "{text}");
}

#[test]
fn a_budget_that_ended_training_is_named() {
    let text = SMALL.replace("rounds = 6", "rounds = 40")
        + "[privacy]\nclip = 1.0\nbudget = 12.0\nview = \"idealised\"\n";
    let directory = tempfile::tempdir().unwrap();
    let summary = run_into(directory.path(), &text);
    assert!(summary.rounds < 40, "the budget allows {} rounds", summary.rounds);
    let text = words(&report(directory.path()));
    let words = format!("ended the training after {} of 40 rounds", summary.rounds);
    assert!(text.contains(&words), "no {words} in {text}");
}

#[test]
fn without_noise_there_is_no_privacy() {
    let (directory, page) = reported(&format!("{SMALL}[uplink]\nscheme = \"ideal\"\n"));
    let text = words(&page);
    assert!(text.contains("no privacy") && text.contains("no finite ε holds"), "{text}");
    assert!(!directory.path().join("plots/epsilon.svg").exists());
    assert!(!directory.path().join("plots/noise.svg").exists());
    assert!(!directory.path().join("plots/accuracy-uses.svg").exists());
    assert!(!text.contains("Cost on the air"));
}

#[test]
fn many_clients_are_shown_by_the_first_forty() {
    let text = "name = \"many\"\ntrials = 1\nrounds = 2\n[data]\nset = \"synthetic\"\nfeatures = 5\nclasses = 10\n\
                train = 200000\ntest = 50\npartition = { dirichlet = 0.5 }\n[clients]\ntotal = 100000\nper_round = 10\n\
                [uplink]\nscheme = \"ideal\"\n";
    let (_directory, page) = reported(text);
    let text = words(&page);
    assert!(text.contains("The first 40 of 100\u{202f}000 clients are shown."), "{text}");
    assert!(text.contains("client 39") && !text.contains("client 40"));
}

#[test]
fn two_clients_are_enough() {
    let text = format!("{SMALL}[clients]\ntotal = 2\nper_round = 2\n[uplink]\nsequences = 2\n");
    let (_directory, page) = reported(&text);
    assert!(words(&page).contains("γ = 0 stayed unused"));
}

#[test]
fn text_from_files_stays_text() {
    let (directory, _) = reported(SMALL);
    let path = directory.path().join("summary.json");
    let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["privacy"]["notes"] = serde_json::json!(["<script>alert(1)</script> & more"]);
    fs::write(&path, summary.to_string()).unwrap();
    let page = report(directory.path());
    assert!(!page.contains("<script>alert"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more"));
}

#[test]
fn incomplete_runs_show_results_and_privacy_so_far() {
    let (directory, _) = reported(SMALL);
    fs::remove_file(directory.path().join("summary.json")).unwrap();
    let metrics = directory.path().join("metrics.jsonl");
    let text = fs::read_to_string(&metrics).unwrap();
    let torn: String = text.chars().take(text.len() * 2 / 3).collect();
    fs::write(&metrics, torn).unwrap();
    let text = words(&report(directory.path()));
    assert!(text.contains("This run is not complete"), "{text}");
    // The ledger counts all six rounds, including those that the metrics lack.
    assert!(text.contains("Privacy spent so far") && text.contains("after 6 rounds"), "{text}");
    // Also if the experiment is the only file.
    fs::remove_file(&metrics).unwrap();
    fs::remove_file(directory.path().join("partition.json")).unwrap();
    fs::remove_file(directory.path().join("ledger.jsonl")).unwrap();
    assert!(words(&report(directory.path())).contains("No round is recorded yet"));
}

/// Two of three trials have rounds.
#[test]
fn interrupted_runs_count_all_trials() {
    let text = SMALL.replace("rounds = 6", "rounds = 300")
        + "[privacy]\nclip = 1.0\nbudget = 60.0\nview = \"idealised\"\n";
    let directory = tempfile::tempdir().unwrap();
    let experiment = Experiment::parse("a test", &text).unwrap();
    // One trial after another: the second one, whose rounds are reported some at a time, ends the run before the third one begins.
    let run = PreparedRun::new(&experiment, directory.path(), Entry::New, 1).unwrap();
    let rounds = run.federation().rounds();
    assert!((2..300).contains(&rounds), "the budget allows {rounds} rounds");
    let stop = AtomicBool::new(false);
    let watch = |event| {
        if matches!(event, Event::Round(metrics) if metrics.trial == 1) {
            stop.store(true, Ordering::SeqCst);
        }
    };
    assert!(matches!(run.run(&watch, &stop), Err(SimError::Stopped { .. })));
    let recorded: usize = (0..3)
        .filter_map(|trial| {
            fs::read_to_string(RunDirectory::trial_logs(directory.path(), trial)[0].clone()).ok()
        })
        .map(|log| log.lines().count())
        .sum();
    let text = words(&report(directory.path()));
    for words in [
        format!("it has done {recorded} of {} rounds over all trials", 3 * rounds),
        format!("{recorded} of {}", 3 * rounds),
        format!("Each trial has {rounds} rounds"),
        format!("floras run --resume --out {}", directory.path().display()),
        format!("The budget of ε = 60 in the idealised view allows {rounds} rounds"),
    ] {
        assert!(text.contains(&words), "no {words} in {text}");
    }
    let spent = run.privacy_so_far().unwrap().unwrap();
    assert!(text.contains(&format!("The ledger of the longest trial has {} round", spent.rounds)), "{text}");
}

#[test]
fn summaries_of_older_versions_are_read() {
    let (directory, _) = reported(SMALL);
    let path = directory.path().join("summary.json");
    let mut summary: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    summary["privacy"].as_object_mut().unwrap().remove("growth").unwrap();
    fs::write(&path, summary.to_string()).unwrap();
    report(directory.path());
}

#[test]
fn damaged_and_missing_files_are_named() {
    let (directory, _) = reported(SMALL);
    let refusal = |name: &str, content: Option<&str>| {
        let path = directory.path().join(name);
        let before = fs::read(&path).unwrap();
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = floras_report::write(directory.path()).unwrap_err();
        fs::write(&path, before).unwrap();
        assert!(error.is_input());
        assert!(error.to_string().contains(name), "{error}");
        error.to_string()
    };
    assert!(refusal("summary.json", Some("{")).contains("damaged"));
    assert!(refusal("metrics.jsonl", Some("{\"trial\":0}\n")).contains("line 1"));
    assert!(refusal("metrics.jsonl", None).contains("missing"));
    assert!(refusal("partition.json", Some("[1]")).contains("damaged"));
    assert!(refusal("partition.json", None).contains("missing"));
    assert!(refusal("experiment.toml", Some("rounds = \"many\"")).contains("damaged"));
    assert!(refusal("experiment.toml", Some("")).contains("does not belong to the run in summary.json"));
    assert!(refusal("metrics.jsonl", Some("")).contains("it lacks round"));
}

#[test]
fn other_directories_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let error = floras_report::write(directory.path()).unwrap_err();
    assert!(matches!(error, ReportError::NothingThere { .. }), "{error}");
    let error = Kind::of(&directory.path().join("absent")).unwrap_err();
    assert!(matches!(error, ReportError::NoSuchDirectory { .. }), "{error}");
}
