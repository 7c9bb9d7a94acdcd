//! Privacy statements of runs: the ledger, the views of every scheme, and the budget.

#![expect(clippy::unwrap_used, reason = "tests")]
use std::fs;
use std::path::Path;

use floras_core::View;
use floras_core::{Modulation, Receiver, Snr, SnrConvention};
use floras_phy::{Floras, FlorasSettings, Round, SequenceSet, Uplink};
use floras_privacy::gaussian;
use floras_sim::{Entry, Experiment, Federation, LedgerEntry, PrivacyReport};

mod support;

use support::{experiment, lasting_files, run};

const SMALL: [&str; 10] = [
    "data.set=synthetic",
    "data.features=8",
    "data.classes=4",
    "data.train=600",
    "data.test=100",
    "clients.total=30",
    "clients.per_round=10",
    "uplink.sequences=16",
    "rounds=6",
    "trials=2",
];

fn small(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], &["privacy.clip=1"], more].concat())
}

fn report_of(experiment: &Experiment) -> PrivacyReport {
    let directory = tempfile::tempdir().unwrap();
    run(experiment, directory.path(), Entry::New, 2).unwrap().summary.privacy
}

fn ledger(directory: &Path) -> Vec<LedgerEntry> {
    let text = fs::read_to_string(directory.join("ledger.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The channels are drawn again by the air interface: `μ = 2C·|g|/ν`, and squares are summed per client.
#[test]
fn the_ledger_records_the_drawn_channels() {
    let directory = tempfile::tempdir().unwrap();
    let experiment = small(&[]);
    let summary = run(&experiment, directory.path(), Entry::New, 2).unwrap().summary;
    let uplink = Floras::new(FlorasSettings {
        sequences: SequenceSet::walsh(16, 32).unwrap(),
        modulation: Modulation::Real,
        receiver: Receiver::Paper,
        channels: floras_core::Fading::Rayleigh.into(),
        snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        ..FlorasSettings::default()
    });
    let lines = ledger(directory.path());
    assert_eq!(lines.len(), 12);
    for trial in 0..2_u16 {
        let mut squares = [0.0; 30];
        for (number, line) in lines.iter().filter(|line| line.trial == u32::from(trial)).enumerate() {
            assert_eq!((line.round as usize, line.clients.len()), (number + 1, 10));
            let channel =
                uplink.realise(&Round::new(1, trial, number as u32 + 1, &line.clients).unwrap()).unwrap();
            for ((&client, gain), mu) in line.clients.iter().zip(channel.gains()).zip(&line.mu) {
                assert!((2.0 * gain.abs() / channel.noise_std() / mu - 1.0).abs() < 1e-12);
                squares[client as usize] += mu * mu;
            }
            let worst = line.worst.unwrap();
            let most = squares.iter().copied().fold(0.0, f64::max);
            assert!((worst.mu * worst.mu / most - 1.0).abs() < 1e-12);
            assert!((gaussian::delta(worst.epsilon, worst.mu) / 1e-5 - 1.0).abs() < 1e-6);
            assert_eq!(line.spent.len(), 5, "{:?}", line.spent);
        }
    }
    let last = [lines[5].worst.unwrap(), lines[11].worst.unwrap()];
    assert_eq!(summary.privacy.worst_client.unwrap().mu, last[0].mu.max(last[1].mu));
    assert_eq!(summary.privacy.rounds, 6);
}

#[test]
fn ledgers_are_verified_and_completed() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, broken] = ["whole", "broken"].map(|name| directory.path().join(name));
    let experiment = small(&[]);
    run(&experiment, &whole, Entry::New, 1).unwrap();
    let ledger_of_first = || {
        let text = fs::read_to_string(whole.join("ledger.jsonl")).unwrap();
        text.lines().take(6).map(|line| format!("{line}\n")).collect::<Vec<String>>()
    };
    let fourth = |from: &str, to: &str| ledger_of_first()[3].replacen(from, to, 1);
    for (lines, end, error) in [
        (3, "{\"trial\":0,\"rou".to_owned(), None),
        (6, String::new(), None),
        (3, fourth("}\n", "}"), None),
        (
            3,
            fourth("\"mu\":[", "\"mu\":[9"),
            Some("its line of round 4 does not match the round that was run again"),
        ),
        (
            3,
            fourth("\"mu\":[", "\"mu\":[9.5,"),
            Some("line 4: there must be 10 values of mu, or none, and none below 0"),
        ),
        (3, fourth("\"round\":4", "\"round\":5"), Some("line 4: round 5 follows round 3")),
        (3, fourth("\"trial\":0", "\"trial\":1"), Some("line 4: it belongs to trial 1")),
    ] {
        let _ = fs::remove_dir_all(&broken);
        drop(floras_sim::RunDirectory::enter(&broken, &experiment, Entry::New).unwrap());
        // The state after a kill: rounds in the ledger whose results were never released.
        let text = ledger_of_first()[..lines].concat() + &end;
        fs::write(broken.join("checkpoint/ledger-0000.jsonl"), text).unwrap();
        let outcome = run(&experiment, &broken, Entry::Resume, 2);
        if let Some(error) = error {
            let message = outcome.unwrap_err().to_string();
            assert!(message.ends_with(&format!("ledger-0000.jsonl is damaged: {error}")), "{message}");
        } else {
            outcome.unwrap();
            assert_eq!(lasting_files(&whole), lasting_files(&broken));
        }
    }
}

#[test]
fn runs_stop_before_exceeding_their_budget() {
    let epsilon_after = |rounds: &str| {
        let report = report_of(&small(&[&format!("rounds={rounds}"), "trials=1"]));
        report.views.get(View::Idealised).unwrap().epsilon.unwrap()
    };
    let (three, four) = (epsilon_after("3"), epsilon_after("4"));
    let budget = format!("privacy.budget={}", 0.5 * (three + four));
    let stopped = small(&[&budget, "privacy.view=idealised", "record.test_every=5"]);
    assert_eq!(Federation::new(&stopped).unwrap().rounds(), 3);
    let directory = tempfile::tempdir().unwrap();
    let outcome = run(&stopped, directory.path(), Entry::New, 2).unwrap();
    assert_eq!((outcome.rounds_done, outcome.summary.rounds, outcome.summary.privacy.rounds), (6, 3, 3));
    assert!(outcome.summary.finals.is_some(), "the last round is measured");
    assert_eq!(outcome.summary.privacy.views.get(View::Idealised).unwrap().epsilon, Some(three));

    let generous = small(&["privacy.budget=1e5", "privacy.view=any-channel"]);
    assert_eq!(Federation::new(&generous).unwrap().rounds(), 6);
    let tight = small(&["privacy.budget=0.001", "privacy.view=actual"]);
    let message = Federation::new(&tight).unwrap_err().to_string();
    assert!(message.starts_with("privacy.budget: one round alone spends an epsilon of "), "{message}");
    let none = small(&["privacy.budget=1", "uplink.sequences=10", "privacy.view=idealised"]);
    let message = Federation::new(&none).unwrap_err().to_string();
    assert!(message.contains("the idealised view has no finite epsilon"), "{message}");
}

/// The central Gaussian mechanism: `μ = 2C/ν` in every round, so that `T` of them have `μ√T`.
#[test]
fn the_central_mechanism_has_its_closed_form() {
    let everyone = ["clients.total=10", "uplink.scheme=gaussian", "uplink.noise_std=4.0"];
    let report = report_of(&small(&everyone));
    let exact = gaussian::epsilon(1e-5, 0.5 * 6_f64.sqrt()).unwrap();
    let actual = report.views.get(View::Actual).unwrap();
    assert!((actual.epsilon.unwrap() / exact - 1.0).abs() < 1e-9 && actual.guarantee);
    assert_eq!([View::Published, View::RawSignal].map(|view| report.views.get(view)), [None, None]);
    assert!((report.worst_client.unwrap().epsilon / exact - 1.0).abs() < 1e-9);
}

/// Channel inversion with artificial noise `a`: `μ = 2C/a` bounds every channel, and the channel's own noise helps beyond.
#[test]
fn artificial_noise_is_a_guarantee_for_every_channel() {
    let everyone = [
        "clients.total=10",
        "uplink.scheme=channel-inversion",
        "uplink.artificial_noise_std=4.0",
        "uplink.power_rule=worst-admitted",
        "uplink.snr_db=0",
    ];
    let report = report_of(&small(&everyone));
    let exact = gaussian::epsilon(1e-5, 0.5 * 6_f64.sqrt()).unwrap();
    let views = &report.views;
    for statement in [View::Idealised, View::AnyChannel, View::RawSignal].map(|view| views.get(view).unwrap())
    {
        assert!((statement.epsilon.unwrap() / exact - 1.0).abs() < 1e-9 && statement.guarantee);
        assert!(statement.adversary.contains("if all clients add"), "{}", statement.adversary);
    }
    let actual = report.views.get(View::Actual).unwrap();
    // The weakest of 10 admitted clients has |h|² of about 1/10, so that the noise is about √(16 + 10) instead of 4.
    let share = actual.epsilon.unwrap() / exact;
    assert!(!actual.guarantee && 0.5 < share && share < 0.95, "{share}");
    // Each round's own μ is in the ledger's worst client, and not above.
    assert!(report.worst_client.unwrap().mu <= 0.5 * 6_f64.sqrt());
}

/// With the threshold at 2, a round of ten Rayleigh channels admits no client with a probability of 83%.
#[test]
fn rounds_without_admitted_clients_leak_nothing() {
    let seldom = [
        "clients.total=10",
        "uplink.scheme=channel-inversion",
        "uplink.artificial_noise_std=4.0",
        "uplink.admission={ amplitude = 2 }",
        "uplink.snr_db=inf",
    ];
    let report = report_of(&small(&seldom));
    let actual = report.views.get(View::Actual).unwrap().epsilon.unwrap();
    let always = report.views.get(View::Idealised).unwrap().epsilon.unwrap();
    // A client is heard in 2% of the rounds.
    assert!(0.1 < actual && actual < 0.7 * always, "{actual} and {always}");
}

#[test]
fn missing_guarantees_have_a_reason() {
    for (settings, reason) in [
        (vec!["uplink.scheme=ideal"], "an ideal uplink has no noise"),
        (vec!["uplink.scheme=ideal", "privacy.clip=none"], "updates have no bounded norm"),
        (vec!["uplink.snr_db=inf", "uplink.sequences=10"], "the channel has no noise"),
    ] {
        let report = report_of(&small(&settings));
        let actual = report.views.get(View::Actual).unwrap();
        assert!(actual.epsilon.is_none() && !actual.guarantee);
        assert!(actual.reason.as_ref().unwrap().contains(reason), "{:?}", actual.reason);
        assert_eq!(report.worst_client, None);
    }
}

#[test]
fn estimates_from_drawn_rounds_are_not_called_guarantees() {
    for scheme in [
        vec!["uplink.scheme=channel-inversion"],
        vec!["uplink.scheme=phase-corrected"],
        vec!["uplink.family=gaussian"],
        vec!["uplink.family=gold", "uplink.length=31"],
    ] {
        let report = report_of(&small(&scheme));
        let actual = report.views.get(View::Actual).unwrap();
        assert!(actual.epsilon.is_some() && !actual.guarantee, "{scheme:?}");
        assert!(actual.reason.as_ref().unwrap().contains("an estimate from"), "{scheme:?}");
        assert!(report.views.get(View::AnyChannel).unwrap().epsilon.is_none(), "{scheme:?}");
    }
}

/// A file with sequences one per line, and the assignment that names it.
fn codes(directory: &Path, set: &SequenceSet) -> String {
    let path = directory.join("codes.csv");
    let line = |k: usize| {
        let chips: Vec<String> = set.sequence(k).unwrap().iter().map(ToString::to_string).collect();
        chips.join(",") + "\n"
    };
    fs::write(&path, (0..set.count()).map(line).collect::<String>()).unwrap();
    format!("uplink.family={{ file = {:?} }}", path.to_str().unwrap())
}

#[test]
fn a_hadamard_file_trains_and_accounts_as_walsh() {
    let directory = tempfile::tempdir().unwrap();
    let file = codes(directory.path(), &SequenceSet::walsh(16, 32).unwrap());
    let [of_file, of_walsh] = [(&[file.as_str()][..], "file"), (&[], "walsh")].map(|(changes, name)| {
        let out = directory.path().join(name);
        let privacy = run(&small(changes), &out, Entry::New, 2).unwrap().summary.privacy;
        (privacy, fs::read(out.join("metrics.jsonl")).unwrap(), ledger(&out))
    });
    assert_eq!(of_file, of_walsh);
}

#[test]
fn all_orthonormal_families_account_alike() {
    let of_shifts = report_of(&small(&["uplink.family=zadoff-chu", "uplink.length=34"]));
    let of_cosines = report_of(&small(&["uplink.family=orthonormal", "uplink.length=34"]));
    assert_eq!(of_shifts, of_cosines);
    assert!(of_shifts.views.get(View::AnyChannel).is_some());
}

#[test]
fn a_file_whose_sequences_overlap_has_estimates_only() {
    let directory = tempfile::tempdir().unwrap();
    let file = codes(directory.path(), &SequenceSet::gold(16, 31).unwrap());
    let [of_file, of_gold] = [file.as_str(), "uplink.family=gold"]
        .map(|family| report_of(&small(&[family, "uplink.length=31", "uplink.receiver=clipped=1"])));
    let actual = of_file.views.get(View::Actual).unwrap();
    assert!(actual.epsilon.is_some() && !actual.guarantee);
    assert!(actual.reason.as_ref().unwrap().contains("an estimate from"));
    assert!(of_file.views.get(View::AnyChannel).unwrap().epsilon.is_none());
    let epsilon = |report: &PrivacyReport| report.views.get(View::Actual).unwrap().epsilon.unwrap();
    assert!((epsilon(&of_file) / epsilon(&of_gold) - 1.0).abs() < 1e-9);
}

#[test]
fn changed_files_make_another_experiment() {
    let directory = tempfile::tempdir().unwrap();
    let identity = |experiment: &Experiment| Federation::new(experiment).unwrap().identity();
    let file = codes(directory.path(), &SequenceSet::walsh(16, 32).unwrap());
    let experiment = small(&[&file]);
    let before = identity(&experiment);
    codes(directory.path(), &SequenceSet::orthonormal(16, 32).unwrap());
    assert_eq!(identity(&experiment), before, "a file is read once");
    assert_ne!(identity(&small(&[&file])), before);
}

#[test]
fn the_papers_normalisation_carries_its_caveat() {
    let paper = report_of(&small(&["privacy.normalise=paper"]));
    let clipped = report_of(&small(&[]));
    for view in View::ALL {
        let (paper, clipped) = (paper.views.get(view).unwrap(), clipped.views.get(view).unwrap());
        assert!(!paper.guarantee);
        if view != View::Published && paper.epsilon_above.is_none() {
            assert!(paper.epsilon > clipped.epsilon, "{view}: the sensitivity is (K + 1)·C");
            assert!(paper.reason.as_ref().unwrap().contains("normalisation"), "{view}");
        }
    }
    assert!(paper.notes.iter().any(|note| note.contains("normalisation")));
    assert!(clipped.notes.iter().any(|note| note.contains("K of M")));
}

/// A distribution that was averaged exactly, beside 20,000 rounds of the air interface itself: what a client leaks in a round
/// averages to the curve within 5 standard errors.
#[test]
fn the_actual_view_averages_drawn_channels() {
    use floras_core::{Fading, PhaseError};
    use floras_privacy::Curve;
    let cases = [
        (Fading::Rayleigh, Modulation::Real, Receiver::Paper),
        (Fading::Rayleigh, Modulation::PhaseCorrected(PhaseError::None), Receiver::clipped(1.0).unwrap()),
        (Fading::rician(3.0).unwrap(), Modulation::Real, Receiver::clipped(2.0).unwrap()),
        (
            Fading::nakagami(2.0).unwrap(),
            Modulation::PhaseCorrected(PhaseError::uniform(0.7).unwrap()),
            Receiver::Mmse,
        ),
        (Fading::None, Modulation::PhaseCorrected(PhaseError::gaussian(0.5).unwrap()), Receiver::Paper),
    ];
    let clients: Vec<u32> = (0..5).collect();
    for (fading, modulation, receiver) in cases {
        let snr = Snr::new(3.0, SnrConvention::Symbol).unwrap();
        let noise_std = snr.despread_noise_std(16);
        let sequences = SequenceSet::walsh(8, 16).unwrap();
        let settings = FlorasSettings {
            sequences,
            modulation,
            receiver,
            channels: fading.into(),
            snr,
            ..FlorasSettings::default()
        };
        let uplink = Floras::new(settings);
        let distribution = floras_privacy::Coefficients::of(fading, modulation, noise_std).unwrap();
        let distribution = distribution.actual(receiver, 5, 3, 2.0).unwrap();
        for epsilon in [0.2, 1.5] {
            let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
            for number in 0..20_000 {
                let channel = uplink.realise(&Round::new(7, 0, number + 1, &clients).unwrap()).unwrap();
                // One client per round, because clients of the same round share its noise.
                let given = gaussian::delta(epsilon, 2.0 * channel.gains()[0].abs() / channel.noise_std());
                sum += given;
                squares += given * given;
                count += 1.0;
            }
            let mean = sum / count;
            let error = 5.0 * ((squares / count - mean * mean) / count).sqrt();
            let (upper, lower) = (distribution.upper(epsilon), distribution.lower(epsilon));
            assert!(mean - error <= upper, "{fading} {receiver:?} at {epsilon}: {mean} ± {error}, {upper}");
            // The account of the paper's receiver slightly underestimates the noise of other clients.
            let loose = if receiver == Receiver::Paper { 1.05 } else { 1.0 };
            assert!(
                mean + error >= lower / loose,
                "{fading} {receiver:?} at {epsilon}: {mean} ± {error}, {lower}"
            );
        }
    }
}

/// A pilot with another noise than the payload: `δ(ε)` of the actual view beside 10,000 rounds of the air interface, within 5
/// standard errors. Taking the paper's pilot instead is off by more than 30%. No drawn channel beats the any-channel view,
/// and the raw signal does not depend on the pilot.
#[test]
fn accounting_follows_the_pilot() {
    use floras_core::{Fading, Pilot};
    use floras_privacy::{Account, Coefficients, Setting};
    let clients: Vec<u32> = (0..5).collect();
    let (fading, modulation, epsilon) = (Fading::Rayleigh, Modulation::Real, 1.5);
    for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
        for pilot in [Pilot::new(2.0, 2).unwrap(), Pilot::new(0.4, 1).unwrap()] {
            let snr = Snr::new(3.0, SnrConvention::Symbol).unwrap();
            let uplink = Floras::new(FlorasSettings {
                sequences: SequenceSet::walsh(8, 16).unwrap(),
                modulation,
                receiver,
                channels: fading.into(),
                snr,
                pilot,
                ..FlorasSettings::default()
            });
            let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
            for number in 1..=10_000 {
                let channel = uplink.realise(&Round::new(7, 0, number, &clients).unwrap()).unwrap();
                let given = gaussian::delta(epsilon, 2.0 * channel.gains()[0].abs() / channel.noise_std());
                (sum, squares, count) = (sum + given, squares + given * given, count + 1.0);
            }
            let mean: f64 = sum / count;
            let error = 5.0 * ((squares / count - mean * mean) / count).sqrt();
            let channel = Coefficients::of(fading, modulation, snr.despread_noise_std(16)).unwrap();
            let account = |pilot| {
                let setting = Setting {
                    sequences: 8,
                    per_round: 5,
                    clients: 5,
                    receiver,
                    channel: Some(channel.clone()),
                    pilot,
                    ..Setting::default()
                };
                Account::of(&setting).unwrap()
            };
            let delta = |pilot, view| account(pilot).delta_at(view, 1, epsilon).unwrap().unwrap();
            let (ours, papers) = (delta(pilot, View::Actual), delta(Pilot::default(), View::Actual));
            let case = format!("{receiver} {pilot:?}: {mean} ± {error}, {ours}, with the paper's {papers}");
            assert!(mean - error <= ours && ours <= 1.06 * (mean + error), "{case}");
            assert!((papers / ours - 1.0).abs() > 0.3, "{case}");
            assert!(delta(pilot, View::AnyChannel) >= mean - error, "{case}");
            let raw = |pilot| account(pilot).epsilon(View::RawSignal, 1).unwrap();
            assert_eq!(raw(pilot), raw(Pilot::default()), "{case}");
        }
    }
}

/// The trace has only the coefficients of the clients that take part.
#[test]
fn traces_are_read_for_participants_only() {
    let directory = tempfile::tempdir().unwrap();
    let lines = {
        let record = directory.path().join("record");
        run(&small(&["trials=1"]), &record, Entry::New, 1).unwrap();
        ledger(&record)
    };
    let path = directory.path().join("trace.csv");
    let rows = lines.iter().flat_map(|line| {
        line.clients.iter().map(|client| format!("{},{client},0.8,0.1\n", line.round - 1)).collect::<Vec<_>>()
    });
    fs::write(&path, format!("round,client,real,imaginary\n{}", rows.collect::<String>())).unwrap();
    let trace = format!("uplink.fading={{ trace = {:?} }}", path.display().to_string());
    let report = report_of(&small(&["trials=1", &trace]));
    let actual = report.views.get(View::Actual).unwrap();
    assert!(actual.epsilon.is_some() && !actual.guarantee);
}
