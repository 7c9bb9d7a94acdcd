//! Privacy statements of runs at the item level, for different kinds of local work.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::View;
use floras_sim::inquiry::{AccountReport, ExperimentAccount, Keywords};
use floras_sim::{AirInterface, Entry, Experiment, Federation, PrivacyReport};
use serde_json::json;

mod support;

use support::{experiment, lasting_files, run};

/// 10 of 30 clients with `D = 20` samples each.
const SMALL: [&str; 12] = [
    "data.set=synthetic",
    "data.features=8",
    "data.classes=4",
    "data.train=600",
    "data.test=100",
    "clients.total=30",
    "clients.per_round=10",
    "uplink.sequences=16",
    "uplink.receiver=clipped=1",
    "rounds=2",
    "trials=2",
    "privacy.clip=1",
];

fn small(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], more].concat())
}

fn item(more: &[&str]) -> Experiment {
    small(&[&["privacy.level=item", "local.batch=5"], more].concat())
}

fn report_of(experiment: &Experiment) -> PrivacyReport {
    let directory = tempfile::tempdir().unwrap();
    run(experiment, directory.path(), Entry::New, 2).unwrap().summary.privacy
}

/// The statements of an account of the federation of [`SMALL`], described by its numbers.
fn described(local: &str) -> AccountReport {
    let keywords = Keywords::read(json!({
        "clip": 1.0, "per_round": 10, "clients": 30, "rounds": 2, "receiver": "clipped=1", "length": 32, "snr_db": 20.0,
        "level": "item", "batch": 5, "samples": 20, "local": local,
    }));
    keywords.unwrap().inquiry().unwrap().account(16, None).unwrap()
}

#[test]
fn a_run_states_what_the_described_federation_does() {
    for (work, local) in [("steps=1", "one-step"), ("steps=3", "steps=3"), ("epochs=2", "epochs")] {
        let experiment = item(&[&format!("local.{work}")]);
        let report = report_of(&experiment);
        assert_eq!(report.level, "item");
        assert_eq!(report.views, described(local).views, "{work}");
        let account = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
        assert_eq!(account.level.name(), "item");
        assert_eq!(account.views, report.views, "{work}");
    }
}

#[test]
fn more_steps_leak_more() {
    let account = |experiment: &Experiment| ExperimentAccount::new(experiment).unwrap();
    let client = account(&small(&["local.batch=5"]));
    let work = ["local.steps=1", "local.steps=2", "local.steps=3", "local.steps=4", "local.epochs=1"];
    let items = work.map(|work| account(&item(&[work])));
    let epsilon = |account: &ExperimentAccount, view: View| account.epsilon(view).unwrap().unwrap();
    for view in [View::Idealised, View::Actual] {
        let [one, two, three, four, epochs] = items.each_ref().map(|account| epsilon(account, view));
        assert!(one < two && two < three && three < four, "{view}: {one} {two} {three} {four}");
        assert_eq!((four, epochs), (epsilon(&client, view), epsilon(&client, view)), "{view}");
    }
    // The published weight counts one mini-batch for any local work.
    let published = items.each_ref().map(|account| epsilon(account, View::Published));
    assert!(published.iter().all(|&one| one == published[0]), "{published:?}");
    assert!(published[0] < epsilon(&client, View::Published));
}

#[test]
fn every_scheme_follows_the_level() {
    for scheme in [
        "gaussian",
        "channel-inversion",
        "phase-corrected",
        "broadband-inversion",
        "power-control",
        "artificial-noise",
        "blind",
    ] {
        let stated = |level: &str| {
            let (scheme, level) = (format!("uplink.scheme={scheme}"), format!("privacy.level={level}"));
            let settings = SMALL.into_iter().filter(|line| !line.starts_with("uplink"));
            let settings: Vec<&str> =
                settings.chain([scheme.as_str(), &level, "local.batch=5", "local.steps=1"]).collect();
            ExperimentAccount::new(&experiment(&settings)).unwrap().epsilon(View::Actual).unwrap().unwrap()
        };
        assert!(stated("item") < 0.9 * stated("client"), "{scheme}");
    }
}

#[test]
fn the_smallest_client_counts() {
    for set in ["synthetic", "digits20"] {
        let unequal = item(&[&format!("data.set={set}"), "data.partition=unequal=0.5", "local.steps=1"]);
        let federation = Federation::new(&unequal).unwrap();
        let sizes = (0..2_u16).flat_map(|trial| federation.client_samples(trial).unwrap());
        let sizes: Vec<usize> = sizes.map(|samples| samples.count()).collect();
        let (smallest, largest) = (sizes.iter().min().unwrap(), sizes.iter().max().unwrap());
        assert!(smallest < largest);
        let report = ExperimentAccount::new(&unequal).unwrap().report().unwrap();
        let note = format!(
            "item level: clients hold from {smallest} to {largest} samples, and ε is that of the smallest"
        );
        assert!(report.notes.iter().any(|given| given.starts_with(&note)), "{note}: {:?}", report.notes);
        assert_eq!(report.views, federation.views(2).unwrap());
    }
}

#[test]
fn a_run_says_what_it_counted() {
    let report = report_of(&item(&["local.steps=3"]));
    let has = |words: &str| report.notes.iter().any(|note| note.contains(words));
    assert!(
        has("of a client's D = 20 samples, each round uses 3 mini-batches of b = 5"),
        "{:?}",
        report.notes
    );
    assert!(has("published: its weight counts one mini-batch per round, and here a client uses 3 of them"));
    assert!(has("at the client level: they count all data of a client"));
    assert!(!report_of(&small(&[])).notes.iter().any(|note| note.contains("item level")));
}

#[test]
fn training_does_not_depend_on_the_level() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["item", "client"].map(|level| {
        let path = directory.path().join(level);
        let experiment = small(&["local.steps=2", &format!("privacy.level={level}")]);
        run(&experiment, &path, Entry::New, 1).unwrap();
        lasting_files(&path)
    });
    let [item, client] = files.map(|files| files[std::path::Path::new("metrics.jsonl")].clone());
    assert!(item == client);
    let text = std::fs::read_to_string(directory.path().join("client/experiment.toml")).unwrap();
    assert!(!text.contains("level"), "{text}");
}

#[test]
fn a_budget_counts_at_the_level() {
    let rounds = |level: &str| {
        let more =
            [&format!("privacy.level={level}"), "privacy.budget=20", "privacy.view=idealised", "rounds=200"];
        let work = ["local.steps=1", "local.batch=1"];
        Federation::new(&small(&[&more[..], &work].concat())).unwrap().rounds()
    };
    assert!(rounds("item") > 2 * rounds("client"), "{} {}", rounds("item"), rounds("client"));
}

#[test]
fn uplinks_have_the_client_level_only() {
    let error = AirInterface::from_experiment(&item(&[])).unwrap_err().to_string();
    assert!(error.starts_with("privacy.level must be client for an uplink on its own"), "{error}");
}
