//! Experiments with channels that change between pilot and payload, with channel estimation errors, or with unequal clients.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::View;
use floras_core::random::Domain;
use floras_phy::Round;
use floras_sim::inquiry::ExperimentAccount;
use floras_sim::{AirInterface, Entry, Experiment, ExperimentBuilder, Federation, RoundSpec};

mod support;

use support::{experiment, lasting_files, run};

/// 36 parameters, clipped projector, 10 of 10 clients.
const SMALL: [&str; 14] = [
    "data.set=synthetic",
    "data.features=8",
    "data.classes=4",
    "data.train=600",
    "data.test=100",
    "clients.total=10",
    "clients.per_round=10",
    "uplink.sequences=16",
    "uplink.receiver=clipped=1",
    "uplink.snr_db=10",
    "rounds=6",
    "trials=2",
    "privacy.clip=1",
    "record.train_every=5",
];

const AGEING: &str = "uplink.ageing=correlation=0.9";
const CELL: &str = "uplink.path_loss={ exponent = 3.7, shadowing_db = 6, power_control = 0.5 }";
const INVERSION: &str = "uplink.scheme=channel-inversion";

fn small(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], more].concat())
}

/// `ε` and whether it is a guarantee.
fn stated(experiment: &Experiment, view: View) -> (Option<f64>, bool) {
    let report = ExperimentAccount::new(experiment).unwrap().report().unwrap();
    report.views.get(view).map_or((None, false), |statement| (statement.epsilon, statement.guarantee))
}

fn reason(experiment: &Experiment, view: View) -> String {
    let report = ExperimentAccount::new(experiment).unwrap().report().unwrap();
    report.views.get(view).unwrap().reason.clone().unwrap_or_default()
}

#[test]
fn wrong_values_are_refused_by_key() {
    let error = |assignments: &[&str]| {
        let mut builder = ExperimentBuilder::new();
        for assignment in assignments {
            match builder.clone().assign(assignment) {
                Ok(assigned) => builder = assigned,
                Err(error) => return error.to_string(),
            }
        }
        builder.build().unwrap_err().to_string()
    };
    for (assignments, expected) in [
        (
            &["uplink.ageing=correlation=1.5"][..],
            "uplink.ageing must be none, correlation=r or doppler=f (r between -1 and 1; f, Doppler frequency times block \
             duration, between 0 and 100), not \"correlation=1.5\"",
        ),
        (&["uplink.coherence=0"], "uplink.coherence must be between 1 and 1099511627776, not 0"),
        (&["uplink.channel_error=-1"], "uplink.channel_error must be between 0 and 100, not -1"),
        (
            &[AGEING, "uplink.fading=nakagami=2"],
            "uplink.ageing: channels age only under Rayleigh and Rician fading, which have a scattered part; these are: Nakagami, \
             m = 2",
        ),
        (
            &[AGEING, "uplink.fading=trace=measured.csv"],
            "uplink.ageing: channels age only under Rayleigh and Rician fading, which have a scattered part; these are: \
             trace=measured.csv",
        ),
        (
            &[CELL, "uplink.fading=trace=measured.csv"],
            "uplink.path_loss: path loss needs channels drawn from a distribution, not trace=measured.csv",
        ),
        (
            &["uplink.path_loss={ exponent = 9 }"],
            "uplink.path_loss: the path-loss exponent must be between 0 and 8, not 9",
        ),
        (
            &["uplink.path_loss=power_control=2"],
            "uplink.path_loss: the power-control factor must be between 0 and 1, not 2",
        ),
    ] {
        assert_eq!(error(assignments), expected);
    }
}

#[test]
fn settings_are_written_where_they_have_an_effect() {
    let keys = ["ageing", "coherence", "channel_error", "path_loss"];
    let plain = small(&[]).to_toml();
    assert!(keys.iter().all(|key| !plain.contains(&format!("{key} ="))), "{plain}");
    let changes = ["uplink.coherence=7", "uplink.channel_error=0.2"];
    let without_effect = small(&changes).to_toml();
    assert_eq!(without_effect, plain);
    let full = small(&[&changes[..], &[AGEING, CELL, "uplink.modulation=phase-corrected"]].concat());
    let text = full.to_toml();
    assert!(keys.iter().all(|key| text.contains(&format!("{key} ="))), "{text}");
    assert_eq!(Experiment::parse("its own file", &text).unwrap(), full);
}

/// Full power control, a channel that keeps its value, and an error of zero leave a run and its account as they are.
#[test]
fn settings_without_effect_change_no_number() {
    let directory = tempfile::tempdir().unwrap();
    let neutral = [
        "uplink.ageing=doppler=0",
        "uplink.coherence=5",
        "uplink.path_loss=exponent=3.7,shadowing_db=8,power_control=1",
    ];
    let metrics = |name: &str, more: &[&str]| {
        let directory = directory.path().join(name);
        run(&small(more), &directory, Entry::New, 2).unwrap();
        let text = std::fs::read_to_string(directory.join("ledger.jsonl")).unwrap();
        let metrics = std::fs::read_to_string(directory.join("metrics.jsonl")).unwrap();
        (text, without_cost(&metrics))
    };
    assert_eq!(metrics("plain", &[]), metrics("neutral", &neutral));
    let views = |more: &[&str]| ExperimentAccount::new(&small(more)).unwrap().report().unwrap().views;
    assert_eq!(views(&[]), views(&neutral));
}

/// Lines without the fields that the power control changes.
fn without_cost(metrics: &str) -> Vec<serde_json::Value> {
    let line = |line: &str| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        let cost = ["power_mean", "power_peak", "dynamic_range_db", "energy"];
        value.as_object_mut().unwrap().retain(|key, _| !cost.contains(&key.as_str()));
        value
    };
    metrics.lines().map(line).collect()
}

#[test]
fn threads_do_not_change_a_byte() {
    let directory = tempfile::tempdir().unwrap();
    let all = [AGEING, CELL, "uplink.coherence=7", "uplink.channel_error=0.2"];
    for (number, scheme) in [INVERSION, "uplink.modulation=phase-corrected"].into_iter().enumerate() {
        for fidelity in ["uplink.fidelity=symbol", "uplink.fidelity=chip"] {
            let experiment = small(&[&all[..], &[scheme, fidelity]].concat());
            let [one, three] = [1, 3].map(|threads| {
                let name = format!("{number}-{threads}-{}", fidelity.len());
                let directory = directory.path().join(name);
                run(&experiment, &directory, Entry::New, threads).unwrap();
                lasting_files(&directory)
            });
            assert_eq!(one, three);
        }
    }
}

#[test]
fn ageing_leaves_no_guarantee_of_the_decoder() {
    for more in [&[AGEING][..], &[AGEING, "uplink.coherence=5"]] {
        let aged = small(more);
        for view in [View::Actual, View::RawSignal, View::Idealised] {
            let (epsilon, guarantee) = stated(&aged, view);
            assert!(epsilon.is_some() && !guarantee, "{view}");
            assert!(!reason(&aged, view).is_empty(), "{view}");
        }
        assert_eq!(stated(&aged, View::AnyChannel), (None, false));
        assert!(reason(&aged, View::AnyChannel).contains("privacy.channel_growth"));
        let with_margin = small(&[more, &["privacy.channel_growth=2"]].concat());
        let (epsilon, guarantee) = stated(&with_margin, View::AnyChannel);
        assert!(epsilon.is_some() && !guarantee);
    }
    for view in [View::Idealised, View::Actual, View::AnyChannel, View::RawSignal] {
        assert!(stated(&small(&[]), view).1, "{view}");
    }
}

#[test]
fn path_loss_keeps_the_bound_for_every_channel() {
    let (plain, unequal) = (small(&[]), small(&[CELL]));
    assert_eq!(stated(&unequal, View::AnyChannel), stated(&plain, View::AnyChannel));
    assert_eq!(stated(&unequal, View::Idealised), stated(&plain, View::Idealised));
    for view in [View::Actual, View::RawSignal] {
        let (epsilon, guarantee) = stated(&unequal, view);
        assert!(epsilon.is_some() && !guarantee, "{view}");
        assert!(reason(&unequal, view).contains("the client that reveals most"), "{view}");
    }
    let phases = small(&["uplink.modulation=phase-corrected", "uplink.channel_error=0.3"]);
    assert!(stated(&phases, View::AnyChannel).1 && !stated(&phases, View::Actual).1);
    let real = small(&["uplink.channel_error=0.3"]);
    assert!(stated(&real, View::Actual).1, "phones that use no channel knowledge cannot err about it");
}

/// A δ whose quantiles 20,000 draws estimate well, and a μ of about 1.
const EASY: [&str; 2] = ["privacy.delta=0.01", "uplink.snr_db=-15"];

/// One block of an aged channel has the distribution of the fading, so that the raw-signal view must have the number of the
/// channel that does not age. 20,000 draws leave an error of a few per cent. With 5 blocks the worst of them counts.
#[test]
fn raw_signal_depends_on_the_number_of_blocks() {
    let epsilon = |more: &[&str]| stated(&small(&[&EASY, more].concat()), View::RawSignal).0.unwrap();
    let (plain, one) = (epsilon(&[]), epsilon(&["uplink.ageing=correlation=0.3"]));
    assert!((one / plain - 1.0).abs() < 0.1, "{one} and {plain}");
    let several = epsilon(&["uplink.ageing=correlation=0.3", "uplink.coherence=8"]);
    assert!(several > 1.3 * plain, "{several} and {plain}");
}

/// With almost no ageing and almost equal clients, the estimates approach the rigorous number.
#[test]
fn estimates_approach_the_rigorous_number() {
    let rigorous = stated(&small(&[]), View::Actual).0.unwrap();
    for nearly in ["uplink.ageing=correlation=0.999999", "uplink.path_loss=exponent=0.001"] {
        let estimate = stated(&small(&[nearly]), View::Actual).0.unwrap();
        assert!((estimate / rigorous - 1.0).abs() < 0.15, "{nearly}: {estimate} and {rigorous}");
    }
}

/// The strongest client determines the raw-signal view: given its gain `G`, its `μ` has the distribution of the plain one times
/// `G`, which is a plain experiment at `20·log₁₀ G` dB more.
#[test]
fn raw_signal_is_that_of_the_strongest_client() {
    let unequal = small(&[EASY[0], EASY[1], CELL]);
    let settings = unequal.settings();
    let channels = settings.uplink.radio.channels().unwrap();
    let clients: Vec<u32> = (0..10).collect();
    let gains =
        |trial: u16| channels.long_term_gains(&Round::new(settings.seed, trial, 1, &clients).unwrap());
    let strongest = gains(0).into_iter().chain(gains(1)).fold(0.0, f64::max);
    let louder = format!("uplink.snr_db={}", 20.0 * strongest.log10() - 15.0);
    let expected = stated(&small(&[EASY[0], &louder]), View::RawSignal).0.unwrap();
    let found = stated(&unequal, View::RawSignal).0.unwrap();
    assert!(strongest > 1.2 && (found / expected - 1.0).abs() < 0.1, "{found} and {expected}");
}

#[test]
fn a_run_and_its_account_state_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let cases: [&[&str]; 4] = [
        &[AGEING, "uplink.coherence=7"],
        &[CELL],
        &[INVERSION, "uplink.channel_error=0.2", AGEING],
        &[INVERSION, "uplink.artificial_noise_std=3", CELL],
    ];
    for (number, more) in cases.into_iter().enumerate() {
        let experiment = small(more);
        let path = directory.path().join(number.to_string());
        let report = run(&experiment, &path, Entry::New, 2).unwrap().summary.privacy;
        let account = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
        assert_eq!(report.views, account.views, "{more:?}");
    }
}

/// Only a client's own share of the artificial noise is certain to arrive with its update: `μ ≤ Δ·√K/a` over every channel. Without
/// ageing and errors it is `Δ/a`.
#[test]
fn artificial_noise_of_unaligned_clients_is_local() {
    let noisy = [INVERSION, "uplink.artificial_noise_std=10"];
    let aligned = stated(&small(&noisy), View::AnyChannel);
    let erring = |std: &str| small(&[&noisy[..], &[std]].concat());
    let unaligned = erring("uplink.channel_error=0.2");
    let local = small(&[INVERSION, &format!("uplink.artificial_noise_std={}", 10.0 / 10_f64.sqrt())]);
    assert_eq!(stated(&unaligned, View::AnyChannel), stated(&local, View::AnyChannel));
    assert!(stated(&unaligned, View::AnyChannel).1 && aligned.1);
    let (raw, guarantee) = stated(&unaligned, View::RawSignal);
    assert!(raw < stated(&unaligned, View::AnyChannel).0 && !guarantee);
    assert!(!stated(&unaligned, View::Idealised).1);
    assert_eq!(stated(&small(&[&noisy[..], &[CELL]].concat()), View::AnyChannel), aligned);
}

/// An uplink without training decodes in blocks, and makes only statements that do not depend on the number of parameters.
#[test]
fn an_uplink_on_its_own_knows_no_blocks() {
    let aged = small(&[AGEING, "uplink.coherence=7"]);
    let air = AirInterface::from_experiment(&aged).unwrap();
    let spec = RoundSpec::of_all(1, 1, 10);
    let aggregate = air.aggregate(&spec, &vec![vec![0.1_f32; 20]; 10]).unwrap();
    assert_eq!(aggregate.channel.unwrap().blocks().len(), 3);
    let error = air.realise(&spec).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "blocks of 7 parameters need the number of parameters, which is not set for this round"
        )
    );
    let report = air.report(10, 5).unwrap();
    for view in [View::Actual, View::RawSignal] {
        assert_eq!(report.views.get(view).unwrap().epsilon, None, "{view}");
    }
    let one_block = AirInterface::from_experiment(&small(&[AGEING])).unwrap();
    assert!(one_block.report(10, 5).unwrap().views.get(View::Actual).unwrap().epsilon.is_some());
}

/// The ledger of a run has the worst block of every round, compared with a second draw by the air interface.
#[test]
fn the_ledger_counts_the_worst_block() {
    let aged = small(&[AGEING, "uplink.coherence=7"]);
    let federation = Federation::new(&aged).unwrap();
    let clients: Vec<u32> = (0..10).collect();
    let parameters = federation.model().parameters();
    let round = Round::new(1, 0, 1, &clients).unwrap().with_parameters(parameters);
    let channel = federation.uplink().realise(&round).unwrap();
    let directory = tempfile::tempdir().unwrap();
    run(&aged, directory.path(), Entry::New, 1).unwrap();
    let text = std::fs::read_to_string(directory.path().join("ledger.jsonl")).unwrap();
    let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let recorded: Vec<f64> = serde_json::from_value(line["mu"].clone()).unwrap();
    assert_eq!(channel.blocks().len(), parameters.div_ceil(7));
    for (recorded, expected) in recorded.iter().zip(channel.mu(2.0)) {
        assert!((recorded / expected - 1.0).abs() < 1e-9, "{recorded} and {expected}");
    }
    let other = Round::new(1, Domain::Estimate.trial(0), 1, &clients).unwrap().with_parameters(parameters);
    assert_ne!(federation.uplink().realise(&other).unwrap(), channel);
}
