//! Runs over schemes that are not linear: votes, quantised updates, and a scale that depends on the updates.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::sync::atomic::{AtomicBool, Ordering};

use floras_core::View;
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{Entry, Event, Experiment, ExperimentBuilder, PreparedRun, RunDirectory, Trial};

mod support;

use support::{experiment, lasting_files, run};

const SCHEMES: [&str; 6] = ["fsk-vote", "cotaf", "digital", "one-bit", "a-dsgd", "d-dsgd"];

fn small(scheme: &str, more: &[&str]) -> Experiment {
    let scheme = format!("uplink.scheme={scheme}");
    let settings = [
        "data.set=synthetic",
        "data.features=8",
        "data.classes=4",
        "data.train=600",
        "data.test=100",
        "clients.total=60",
        "clients.per_round=20",
        "clients.dropout=0.2",
        "trials=2",
        "rounds=12",
        "privacy.clip=1",
        "uplink.step=0.05",
        &scheme,
    ];
    experiment(&[&settings[..], more].concat())
}

#[test]
fn threads_and_interruptions_change_no_byte() {
    for scheme in SCHEMES {
        let directory = tempfile::tempdir().unwrap();
        let [one, two, resumed] = ["one", "two", "resumed"].map(|name| directory.path().join(name));
        let experiment = small(scheme, &["record.signal=3"]);
        run(&experiment, &one, Entry::New, 1).unwrap();
        run(&experiment, &two, Entry::New, 3).unwrap();
        let stop = AtomicBool::new(false);
        let watch = |event| {
            if let Event::Round(metrics) = event {
                stop.fetch_or(metrics.round == 5, Ordering::Relaxed);
            }
        };
        let prepared = PreparedRun::new(&experiment, &resumed, Entry::New, 1).unwrap();
        assert!(prepared.run(&watch, &stop).is_err());
        drop(prepared);
        run(&experiment, &resumed, Entry::Resume, 2).unwrap();
        assert!(lasting_files(&one) == lasting_files(&two), "{scheme}");
        assert!(lasting_files(&one) == lasting_files(&resumed), "{scheme}");
        // Weights w and noise ν are recorded for sums only.
        let signal = std::fs::read(RunDirectory::signal_file(&one, 0, 3)).unwrap();
        let has_gains = signal.windows(9).any(|name| name == b"gains.npy");
        assert_eq!(has_gains, ["cotaf", "digital"].contains(&scheme), "{scheme}");
    }
}

/// Random guesses among ten digits have an accuracy of 10%.
#[test]
fn digits_are_learned() {
    for scheme in SCHEMES {
        let settings =
            ["rounds=40", "trials=1", "privacy.clip=1", "clients.total=20", "clients.per_round=20"];
        let uplink =
            ["uplink.admission=amplitude=0.3", "uplink.snr_db=15", &format!("uplink.scheme={scheme}")];
        let experiment = experiment(&[&settings[..], &uplink].concat());
        let federation = floras_sim::Federation::new(&experiment).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        let last = (0..40).map(|_| trial.step().unwrap()).last().unwrap();
        let accuracy = last.metrics.test_accuracy.unwrap();
        assert!(accuracy > 0.7, "{scheme}: {accuracy}");
        assert!(last.metrics.energy.is_some_and(|energy| energy > 0.0), "{scheme}");
    }
}

#[test]
fn settings_that_need_sums_are_refused() {
    let refusal = |scheme: &str, changes: &[(&str, &str)]| {
        let builder = ExperimentBuilder::new().set("uplink.scheme", scheme).unwrap();
        let set = |builder: ExperimentBuilder, &(key, value): &(&str, &str)| builder.set(key, value).unwrap();
        changes.iter().fold(builder, set).build().unwrap_err().to_string()
    };
    for scheme in SCHEMES {
        let not_linear = format!("with scheme \"{scheme}\", which is not linear, not");
        for (key, value, allowed, found) in [
            ("uplink.fidelity", "chip", "\"symbol\"", "\"chip\""),
            ("uplink.power", "unit", "\"unscaled\"", "\"unit\""),
            ("privacy.normalise", "paper", "\"clip\"", "\"paper\""),
        ] {
            assert_eq!(
                refusal(scheme, &[(key, value)]),
                format!("{key} must be {allowed} {not_linear} {found}")
            );
        }
        let masks = [("masks.mask_std", "2"), ("masks.noise_std", "1")];
        assert_eq!(refusal(scheme, &masks), format!("masks.mask_std must be 0 {not_linear} 2"));
        assert!(refusal(scheme, &[("uplink.antennas", "2")]).starts_with("uplink.antennas: "));
    }
    assert!(refusal("fsk-vote", &[("uplink.fading", "none")]).starts_with("uplink.fading: "));
    assert!(refusal("fsk-vote", &[("uplink.step", "0")]).starts_with("uplink.step must be "));
    assert!(
        refusal("digital", &[("uplink.levels", "70000")]).starts_with("uplink.levels must be between 0 and")
    );
    assert!(refusal("digital", &[("uplink.rate", "0")]).starts_with("uplink.rate must be between 0.001 and"));
    for scheme in ["cotaf", "a-dsgd", "d-dsgd"] {
        assert!(refusal(scheme, &[("uplink.channel_error", "0.1")]).starts_with("uplink.channel_error: "));
        assert!(refusal(scheme, &[("uplink.ageing", "0.1")]).starts_with("uplink.ageing"));
    }
    for (key, value, allowed) in [
        ("uplink.uses_per_parameter", "2", "between 0.001 and 1"),
        ("uplink.kept", "0", "between 0.001 and 1"),
        ("uplink.iterations", "0", "between 1 and 100000"),
    ] {
        assert_eq!(refusal("a-dsgd", &[(key, value)]), format!("{key} must be {allowed}, not {value}"));
    }
    assert!(
        refusal("a-dsgd", &[("uplink.fading", "none"), ("uplink.admission", "amplitude=2")])
            .starts_with("uplink.admission: the admission threshold for |h| must be")
    );
}

/// Local noise bounds every view of any scheme: `T` rounds are a Gaussian mechanism with `μ = √T·2C/σ_z`.
#[test]
fn local_noise_protects_over_every_scheme() {
    let expected = floras_privacy::gaussian::epsilon(1e-5, 12_f64.sqrt() * 2.0 / 30.0).unwrap();
    for scheme in SCHEMES {
        let experiment = small(scheme, &["masks.noise_std=30", "clients.total=20"]);
        let views = ExperimentAccount::new(&experiment).unwrap().report().unwrap().views;
        for view in [View::AnyChannel, View::RawSignal] {
            let statement = views.get(view).unwrap();
            let epsilon = statement.epsilon.unwrap();
            assert!(statement.guarantee && epsilon <= expected * (1.0 + 1e-9), "{scheme}, {view}: {epsilon}");
            assert!(
                view == View::RawSignal || (epsilon / expected - 1.0).abs() < 1e-9,
                "{scheme}: {epsilon}"
            );
        }
    }
}

/// A scale that depends on the data makes a number no guarantee, and a digital base station has none.
#[test]
fn numbers_that_are_no_guarantee_say_why() {
    let views = |scheme: &str| {
        ExperimentAccount::new(&small(scheme, &["uplink.snr_db=-20"])).unwrap().report().unwrap().views
    };
    let cotaf = views("cotaf");
    for view in [View::Actual, View::AnyChannel, View::RawSignal] {
        let statement = cotaf.get(view).unwrap();
        assert!(!statement.guarantee && statement.epsilon.is_some());
        assert!(statement.reason.as_ref().unwrap().contains("depends on the data"));
    }
    assert!(views("digital").iter().all(|(_, statement)| statement.epsilon.is_none()));
    let votes = views("fsk-vote");
    let epsilon = |view| votes.get(view).unwrap().epsilon.unwrap();
    assert!(votes.get(View::Actual).unwrap().guarantee);
    assert!(epsilon(View::Actual) < epsilon(View::RawSignal));
}

/// A transmission has the energy `s`, so that `T` rounds are a Gaussian mechanism with `μ = √T·2·√(ρ₀·s)/σ`. Here `ρ₀ = 1`, `σ = 100`, and `d =
/// 36` has `s = 18`.
#[test]
fn energy_bounds_what_compressed_updates_leak() {
    let settings = ["uplink.fading=none", "uplink.snr_db=-40", "clients.total=20"];
    let report = ExperimentAccount::new(&small("a-dsgd", &settings)).unwrap().report().unwrap();
    let expected =
        floras_privacy::gaussian::epsilon(1e-5, 12_f64.sqrt() * 2.0 * 18_f64.sqrt() / 100.0).unwrap();
    for view in [View::Actual, View::AnyChannel, View::RawSignal] {
        let statement = report.views.get(view).unwrap();
        let epsilon = statement.epsilon.unwrap();
        assert!(
            statement.guarantee && (epsilon / expected - 1.0).abs() < 1e-9,
            "{view}: {epsilon}, {expected}"
        );
    }
    let digital = ExperimentAccount::new(&small("d-dsgd", &settings)).unwrap().report().unwrap();
    assert!(digital.views.iter().all(|(_, statement)| statement.epsilon.is_none()));
}

/// What a client sends from its memory depends on all of its samples, in every round in which it takes part.
#[test]
fn memories_leave_no_amplification_by_items() {
    let epsilon = |scheme: &str, level: &str| {
        let level = format!("privacy.level={level}");
        let settings = ["uplink.snr_db=-40", "clients.dropout=0", "local.batch=5", "local.steps=1", &level];
        ExperimentAccount::new(&small(scheme, &settings)).unwrap().epsilon(View::RawSignal).unwrap().unwrap()
    };
    assert!(epsilon("one-bit", "item") < 0.9 * epsilon("one-bit", "client"));
    assert_eq!(epsilon("a-dsgd", "item"), epsilon("a-dsgd", "client"));
    assert!(epsilon("a-dsgd", "client") > 0.0);
}
