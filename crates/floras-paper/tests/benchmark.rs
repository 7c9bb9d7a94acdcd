//! The benchmark: equal conditions, costs with closed forms, private points that meet their ε, and interrupted benchmarks.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use floras_paper::benchmark::{Candidate, benchmark};
use floras_paper::reproduce::{Stage, Workbench};
use floras_privacy::gaussian;
use floras_sim::ExperimentBuilder;
use floras_sim::benchmark::{Benchmark, Row};
use floras_sim::schemes::{self, Trust};
use tempfile::TempDir;

const NAMES: [&str; 6] =
    ["floras", "floras-sequences", "channel-inversion", "fsk-vote", "digital-central", "gaussian"];
const COMMAND: &str = "floras benchmark --quick";
/// Sizes of the quick benchmark.
const CLIENTS: u32 = 100;
const ROUNDS: u32 = 20;
const PARAMETERS: f64 = 4010.0;

fn named(names: &[&str]) -> Vec<Candidate> {
    names.iter().map(|name| Candidate::named(name).unwrap().unwrap()).collect()
}

fn run(directory: &Path, names: &[&str], threads: usize) -> Benchmark {
    let bench = Workbench { quick: true, directory, threads, watch: &|_: Stage<'_>| {} };
    benchmark(&named(names), COMMAND, &bench).unwrap()
}

static MADE: LazyLock<(TempDir, Benchmark)> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let made = run(directory.path(), &NAMES, 2);
    (directory, made)
});

fn open(name: &str) -> &'static Row {
    MADE.1.row(name, &MADE.1.conditions.reference).unwrap()
}

fn private(name: &str) -> &'static Row {
    MADE.1.row(name, &MADE.1.conditions.private()).unwrap()
}

fn refused(change: impl Fn(ExperimentBuilder) -> ExperimentBuilder) -> String {
    let file = include_str!("../benchmark/floras.toml");
    Candidate::new(change(ExperimentBuilder::parse("mine", file).unwrap())).unwrap_err().to_string()
}

#[test]
fn built_in_files_share_their_conditions() {
    let candidates = Candidate::built_in().unwrap();
    let names: Vec<&str> = candidates.iter().map(Candidate::name).collect();
    assert_eq!(names, Candidate::names().collect::<Vec<_>>());
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn every_scheme_has_an_entry() {
    let entries: BTreeSet<String> = fs::read_dir("benchmark")
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .map(|text| ExperimentBuilder::parse("file", &text).unwrap().get("uplink.scheme").unwrap())
        .map(|name| name.trim_matches('"').to_owned())
        .collect();
    for scheme in schemes::all() {
        assert!(entries.contains(scheme.name()), "{} has no file", scheme.name());
    }
}

#[test]
fn other_conditions_are_refused_by_key() {
    assert_eq!(
        refused(|builder| builder.rounds(50)),
        "rounds must be 40, as in all files of the benchmark, not 50"
    );
    let set =
        |key: &'static str, value: &'static str| refused(move |builder| builder.set(key, value).unwrap());
    assert!(set("local.rate", "0.5").starts_with("local.rate must be 1.0, as in all files"));
    assert!(set("uplink.snr_db", "20").starts_with("uplink.snr_db must be 10.0, as in all files"));
    assert!(set("privacy.clip", "2").starts_with("privacy.clip must be 1.0, as in all files"));
    assert!(set("masks.noise_std", "1").starts_with("masks."));
    assert!(set("privacy.view", "published").starts_with("privacy.view must be a view with guarantees"));
}

#[test]
fn private_points_meet_their_epsilon() {
    for row in &MADE.1.rows {
        let entry = MADE.1.entries.iter().find(|entry| entry.name == row.entry).unwrap();
        let bound = row.privacy.iter().find(|bound| bound.view == entry.view);
        match row.point.epsilon {
            Some(epsilon) => {
                let bound = bound.unwrap();
                assert!(bound.guarantee && bound.epsilon.unwrap() <= epsilon, "{}: {bound:?}", entry.name);
            }
            None => {
                // The 25 unused sequences of floras-sequences protect it too: between the second and the third ε.
                let more_than = if entry.name == "floras-sequences" { 8.0 } else { 32.0 };
                let has_more =
                    bound.is_none_or(|bound| bound.epsilon.is_none_or(|epsilon| epsilon > more_than));
                assert!(has_more && row.protected_by.is_none(), "{}: {bound:?}", entry.name);
            }
        }
    }
    assert_eq!(MADE.1.epsilons(), [2.0, 8.0, 32.0]);
    let trusts = NAMES.map(|name| private(name).protected_by.as_ref().unwrap().trust);
    let expected = [Trust::Clients, Trust::BaseStation, Trust::Clients, Trust::NoOne];
    assert_eq!(trusts[..4], expected);
    assert_eq!(trusts[4..], [Trust::BaseStation; 2]);
}

/// A trusted server needs the noise `2C√T/μ(ε, δ)`, whatever the calibration does.
#[test]
fn central_noise_has_its_closed_form() {
    let by = private("gaussian").protected_by.as_ref().unwrap();
    let (_, noise) = by.noise.split_once("= ").unwrap();
    let expected = 2.0 * f64::from(ROUNDS).sqrt() / gaussian::mu(8.0, 1e-5).unwrap();
    let ratio = noise.parse::<f64>().unwrap() / expected;
    assert!((0.9999..1.001).contains(&ratio), "{ratio}");
}

#[test]
fn costs_have_closed_forms() {
    let uses = |name| open(name).cost.unwrap().uses;
    // One channel use per chip, and one pilot symbol of L chips.
    let expected = 128.0 * (PARAMETERS + 1.0) / PARAMETERS;
    assert!((uses("floras") / expected - 1.0).abs() < 1e-9);
    assert!((uses("fsk-vote") - 2.0).abs() < 1e-9);
    // 64 levels with their sign take eight bits, the norm 32, at the rate with an outage of 30%, one client after another.
    let rate = (1.0 - f64::from(CLIENTS) * 0.7_f64.ln() / 0.2).log2();
    let expected = f64::from(CLIENTS) * ((8.0 * PARAMETERS + 32.0) / rate).ceil() / PARAMETERS;
    assert!((uses("digital-central") / expected - 1.0).abs() < 1e-9, "{}", uses("digital-central"));
    let energy = open("fsk-vote").cost.unwrap().energy;
    assert!((energy - 2.0).abs() < 1e-9);
    assert!(open("gaussian").cost.is_none());
    for row in &MADE.1.rows {
        let Some(cost) = row.cost else { continue };
        assert!(cost.power_mean <= 1.0 + 1e-9, "{}: {cost:?}", row.entry);
    }
}

/// Without unit power, the masks that give the `ε` are far above the power of an update of norm 1.
#[test]
fn candidates_above_the_common_power_are_refused() {
    let file = include_str!("../benchmark/floras.toml").replace("power = \"unit\"", "power = \"unscaled\"");
    let loud = Candidate::new(ExperimentBuilder::parse("loud", &file).unwrap()).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let bench = Workbench { quick: true, directory: directory.path(), threads: 2, watch: &|_: Stage<'_>| {} };
    let error = benchmark(&[loud], COMMAND, &bench).unwrap_err().to_string();
    assert!(
        error.starts_with("uplink.power must be such that floras sends at a mean power of at most 1"),
        "{error}"
    );
    assert!(!directory.path().join(Benchmark::FILE).exists());
}

#[test]
fn airtime_limits_the_rounds() {
    let (rounds, accuracy) = open("floras").at_airtime.unwrap();
    assert_eq!(rounds, 7);
    // Accuracy is measured in every second round.
    let metrics = MADE.0.path().join("runs/floras-open-iid-k100-10dB/metrics.jsonl");
    let lines = fs::read_to_string(metrics).unwrap();
    let lines = lines.lines().map(|line| serde_json::from_str::<floras_sim::RoundMetrics>(line).unwrap());
    let sixth: Vec<f64> =
        lines.filter(|line| line.round == 6).map(|line| line.test_accuracy.unwrap()).collect();
    let mean = sixth.iter().sum::<f64>() / sixth.len() as f64;
    assert!(sixth.len() == 3 && (accuracy.mean - mean).abs() < 1e-12);
    let votes = open("fsk-vote");
    assert_eq!(votes.at_airtime, Some((ROUNDS, votes.accuracy.unwrap())));
    assert_eq!(open("gaussian").at_airtime, None);
}

/// Guessing has 10%. The bounds are far from the measured 86% and 81%.
#[test]
fn unprotected_schemes_learn() {
    for name in NAMES {
        let accuracy = open(name).accuracy.unwrap().mean;
        assert!(accuracy > 0.7, "{name}: {accuracy}");
    }
    assert!(private("gaussian").accuracy.unwrap().mean > 0.6);
}

#[test]
fn threads_and_repetitions_change_no_byte() {
    let names = ["gaussian", "fsk-vote"];
    let [one, two] = [1, 3].map(|threads| {
        let directory = tempfile::tempdir().unwrap();
        run(directory.path(), &names, threads);
        // An interrupted benchmark lacks its result and some runs.
        fs::remove_file(directory.path().join(Benchmark::FILE)).unwrap();
        fs::remove_dir_all(directory.path().join("runs/fsk-vote-open-iid-k100-10dB")).unwrap();
        let complete = directory.path().join("runs/gaussian-open-iid-k100/summary.json");
        let before = fs::metadata(&complete).unwrap().modified().unwrap();
        run(directory.path(), &names, threads);
        assert_eq!(fs::metadata(&complete).unwrap().modified().unwrap(), before);
        fs::read(directory.path().join(Benchmark::FILE)).unwrap()
    });
    assert!(one == two);
}

#[test]
fn results_of_other_commands_are_kept() {
    let bench = Workbench { quick: true, directory: MADE.0.path(), threads: 1, watch: &|_: Stage<'_>| {} };
    let error = benchmark(&named(&["ideal"]), "floras benchmark ideal --quick", &bench).unwrap_err();
    assert!(error.to_string().contains("holds the results of `floras benchmark --quick`"), "{error}");
}

#[test]
fn plots_have_one_curve_per_scheme_with_radio() {
    let panel = MADE.1.panels.iter().find(|panel| panel.name == "benchmark-airtime").unwrap();
    let names: Vec<&str> = panel.curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, &NAMES[..5]);
    let panel = MADE.1.panels.iter().find(|panel| panel.name == "benchmark-epsilon-raw-signal").unwrap();
    let curve = panel.curves.iter().find(|curve| curve.name == "channel-inversion").unwrap();
    assert!(curve.x.len() == 3 && curve.x.iter().zip([2.0, 8.0, 32.0]).all(|(x, epsilon)| *x <= epsilon));
    assert!(!panel.curves.iter().any(|curve| curve.name == "floras-sequences"));
}
