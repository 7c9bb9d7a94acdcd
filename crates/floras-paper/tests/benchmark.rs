//! The benchmark: equal conditions, costs with closed forms, private points that meet their ε, and interrupted benchmarks.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::{LazyLock, Mutex};

use floras_paper::benchmark::{Candidate, benchmark};
use floras_paper::reproduce::{Stage, Workbench};
use floras_privacy::gaussian;
use floras_sim::ExperimentBuilder;
use floras_sim::benchmark::{Benchmark, Row};
use floras_sim::figure::Panel;
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
fn private_points_meet_their_epsilon_closely() {
    for row in &MADE.1.rows {
        let entry = MADE.1.entries.iter().find(|entry| entry.name == row.entry).unwrap();
        let bound = row.bound(entry.view);
        match row.point.epsilon {
            Some(epsilon) => {
                let bound = bound.unwrap();
                let share = bound.epsilon.unwrap() / epsilon;
                assert!(bound.guarantee && (0.98..=1.0).contains(&share), "{}: {bound:?}", entry.name);
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
    // Each client sends one pilot.
    let expected = f64::from(CLIENTS) * (((8.0 * PARAMETERS + 32.0) / rate).ceil() + 1.0) / PARAMETERS;
    assert!((uses("digital-central") / expected - 1.0).abs() < 1e-9, "{}", uses("digital-central"));
    let energy = open("fsk-vote").cost.unwrap().energy;
    assert!((energy - 2.0).abs() < 1e-9);
    assert!(open("gaussian").cost.is_none());
    for row in &MADE.1.rows {
        let Some(cost) = row.cost else { continue };
        assert!(cost.power() <= 1.0 + 1e-9, "{}: {cost:?}", row.entry);
    }
}

/// The error of the quick benchmark with one candidate.
fn rejected(from: &str, to: &str) -> String {
    let file = include_str!("../benchmark/floras.toml");
    assert!(file.contains(from));
    let loud = ExperimentBuilder::parse("loud", &file.replace(from, to)).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let bench = Workbench { quick: true, directory: directory.path(), threads: 2, watch: &|_: Stage<'_>| {} };
    let error = benchmark(&[Candidate::new(loud).unwrap()], COMMAND, &bench).unwrap_err().to_string();
    assert!(!directory.path().join(Benchmark::FILE).exists());
    error
}

/// Without unit power, the masks that give the `ε` are far above the power of an update of norm 1.
#[test]
fn candidates_above_the_common_power_are_refused() {
    let error = rejected("power = \"unit\"", "power = \"unscaled\"");
    let expected =
        "uplink.power must be such that floras sends at a mean power of at most 1 over its payload";
    assert!(error.starts_with(expected), "{error}");
}

/// Pilots of amplitude 1000 have the energy of 250 times the payload at unit power: `(4010·P + 10⁶)/4011 ≥ 249`.
#[test]
fn loud_pilots_are_refused() {
    let error =
        rejected("power = \"unit\"", "power = \"unit\"\npilot = { amplitude = 1000.0, repetitions = 1 }");
    let expected = "uplink.pilot must be such that floras sends at a mean power of at most 1 over payload and pilots: it is ";
    let power = error.strip_prefix(expected).unwrap_or_else(|| panic!("{error}"));
    let power: f64 = power.split(' ').next().unwrap().parse().unwrap();
    assert!((249.0..251.0).contains(&power), "{power}");
}

fn lines(run: &str) -> Vec<floras_sim::RoundMetrics> {
    let path = MADE.0.path().join("runs").join(run).join("metrics.jsonl");
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// 1000 uses at 128.03 a round are 7 rounds. The run has them and no more, and its accuracy is that after the last one.
#[test]
fn airtime_limits_the_rounds() {
    let found = open("floras").at_airtime.unwrap();
    assert_eq!((found.rounds, found.is_capped), (7, false));
    let lines = lines("floras-airtime");
    assert_eq!(lines.len(), 3 * 7);
    let last = lines.iter().filter(|line| line.round == 7).map(|line| line.test_accuracy.unwrap());
    assert!((found.accuracy.mean - last.sum::<f64>() / 3.0).abs() < 1e-12);
    assert_eq!(open("digital-central").at_airtime.unwrap().rounds, 9);
    assert_eq!(open("gaussian").at_airtime, None);
    assert!(MADE.1.rows.iter().all(|row| row.point.epsilon.is_none() || row.at_airtime.is_none()));
}

/// 500 rounds of `fsk-vote` would fit. It gains from the rounds beyond those of the ranking: 81% become 88%.
#[test]
fn cheap_schemes_train_for_more_rounds() {
    let votes = open("fsk-vote");
    let found = votes.at_airtime.unwrap();
    assert_eq!((found.rounds, found.is_capped), (MADE.1.conditions.max_rounds, true));
    assert!(found.rounds > ROUNDS && found.accuracy.mean > votes.accuracy.unwrap().mean + 0.02);
}

/// At 10 dB a pilot of unit power has the error `√(2·0.1)` in both dimensions.
#[test]
fn clients_that_need_channels_estimate_them() {
    assert!((MADE.1.conditions.channel_error - 0.2_f64.sqrt()).abs() < 1e-12);
    let with_need: Vec<&str> = NAMES.into_iter().filter(|name| open(name).with_estimates.is_some()).collect();
    assert_eq!(with_need, ["channel-inversion"]);
    let (exact, estimated) = (open("channel-inversion").accuracy, open("channel-inversion").with_estimates);
    assert!(estimated.unwrap().mean > 0.7 && estimated != exact);
    assert_eq!(private("channel-inversion").with_estimates, None);
    let file = MADE.0.path().join("runs/channel-inversion-estimates/experiment.toml");
    assert!(fs::read_to_string(file).unwrap().contains("channel_error = 0.447"));
}

/// Remarks come from the schemes; entries of one scheme share theirs.
#[test]
fn notes_have_every_remark_once() {
    let directory = tempfile::tempdir().unwrap();
    let made = run(directory.path(), &["digital", "fsk-vote", "digital-central"], 2);
    for remark in made.entries.iter().flat_map(|entry| &entry.remarks) {
        assert_eq!(made.notes.iter().filter(|note| note.contains(remark)).count(), 1, "{remark}");
    }
    let shared =
        "`digital` and `digital-central`: a client sends at the power K in a share 1/K of the channel uses.";
    assert!(made.notes.iter().any(|note| note == shared), "{:?}", made.notes);
    assert!(made.notes.iter().any(|note| note == "`fsk-vote`: channels are independent between parameters."));
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
        let path = |name: &str| directory.path().join(name);
        run(directory.path(), &names, threads);
        // An interrupted benchmark lacks its result, some runs and some calibrations.
        fs::remove_file(path(Benchmark::FILE)).unwrap();
        fs::remove_dir_all(path("runs/fsk-vote-open-iid-k100-10dB")).unwrap();
        let missing = path("protections/gaussian-epsilon2-iid-k100.json");
        let calibration = fs::read(&missing).unwrap();
        fs::remove_file(&missing).unwrap();
        let kept =
            ["runs/gaussian-open-iid-k100/summary.json", "protections/gaussian-epsilon8-iid-k100.json"];
        let changed = || kept.map(|name| fs::metadata(path(name)).unwrap().modified().unwrap());
        let before = changed();
        let begun = Mutex::new(Vec::new());
        let watch = |stage: Stage<'_>| {
            if let Stage::Task { kind: "calibration", number, complete, count, .. } = stage {
                begun.lock().unwrap().push((number, complete, count));
            }
        };
        let bench = Workbench { quick: true, directory: directory.path(), threads, watch: &watch };
        benchmark(&named(&names), COMMAND, &bench).unwrap();
        assert_eq!(changed(), before);
        assert_eq!(fs::read(&missing).unwrap(), calibration);
        // Two schemes at three ε, of which one calibration is missing and comes last.
        let mut begun = begun.into_inner().unwrap();
        begun.sort_unstable();
        assert_eq!(begun, (1..=6).map(|number| (number, 5, 6)).collect::<Vec<_>>());
        fs::read(path(Benchmark::FILE)).unwrap()
    });
    assert!(one == two);
}

#[test]
fn results_of_other_commands_are_kept() {
    let bench = Workbench { quick: true, directory: MADE.0.path(), threads: 1, watch: &|_: Stage<'_>| {} };
    let error = benchmark(&named(&["ideal"]), "floras benchmark ideal --quick", &bench).unwrap_err();
    assert!(error.to_string().contains("holds the results of `floras benchmark --quick`"), "{error}");
}

fn panel(name: &str) -> &'static Panel {
    &MADE.1.panels.iter().find(|one| one.panel.name == name).unwrap().panel
}

#[test]
fn plots_have_curves_with_intervals() {
    let airtime = panel("benchmark-airtime");
    let names: Vec<&str> = airtime.curves.iter().map(|curve| curve.name.as_str()).collect();
    assert_eq!(names, &NAMES[..5]);
    for one in &MADE.1.panels {
        for curve in &one.panel.curves {
            let band = curve.band.as_ref().unwrap();
            assert!(band.len() == curve.x.len() && band.iter().all(Option::is_some), "{}", one.panel.name);
        }
    }
    let raw = panel("benchmark-epsilon-raw-signal");
    let curve = raw.curves.iter().find(|curve| curve.name == "channel-inversion").unwrap();
    assert!(curve.x.len() == 3 && curve.x.iter().zip([2.0, 8.0, 32.0]).all(|(x, epsilon)| *x <= epsilon));
    assert!(!raw.curves.iter().any(|curve| curve.name == "floras-sequences"));
}
