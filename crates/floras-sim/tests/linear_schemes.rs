//! Linear schemes beside FLORAS: their accounts, compared with attacks on rounds that are sent and decoded, and their messages.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::{Fidelity, View};
use floras_phy::{Round, Uplink, transmit};
use floras_privacy::{Statement, gaussian};
use floras_sim::inquiry::{ExperimentAccount, Find, calibrate_experiment};
use floras_sim::{Entry, Experiment, ExperimentBuilder};

mod support;

use support::{experiment, lasting_files, run};

/// `δ` of the accounts that attacks are compared with: large enough to be measured.
const DELTA: f64 = 0.02;
/// Number of rounds that are attacked.
const ROUNDS: u32 = 20_000;
/// Twice the clip norm, which is 1.
const SENSITIVITY: f64 = 2.0;

/// One round of 10 clients, all of which take part.
fn one_round(settings: &[&str]) -> Experiment {
    let base = [
        "data.set=synthetic",
        "data.train=600",
        "data.test=100",
        "clients.total=10",
        "clients.per_round=10",
        "rounds=1",
        "trials=1",
        "privacy.clip=1",
        "privacy.delta=0.02",
    ];
    experiment(&[&base[..], settings].concat())
}

fn statement(settings: &[&str], view: View) -> Statement {
    let account = ExperimentAccount::new(&one_round(settings)).unwrap();
    account.report().unwrap().views.get(view).unwrap().clone()
}

fn epsilon(settings: &[&str], view: View) -> f64 {
    statement(settings, view).epsilon.unwrap()
}

/// `δ` at `ε` of the best attack on the decoded sum, with its standard error. Client 0 moves parameter 0 by `Δ` or not; the adversary
/// knows all other updates, the gains and the noise, and computes the likelihood ratio from the decoded sum.
fn attack(uplink: &dyn Uplink, clients: u32, epsilon: f64) -> (f64, f64) {
    let clients: Vec<u32> = (0..clients).collect();
    let update = |client: u32| -> Vec<f32> {
        (0..16).map(|place: u32| ((client * 7 + place * 3) % 11) as f32 * 0.02 - 0.1).collect()
    };
    let updates: Vec<Vec<f32>> = clients.iter().map(|&client| update(client)).collect();
    let losses = (1..=ROUNDS).map(|number| {
        let round = Round::new(5, 0, number, &clients).unwrap();
        let decoded = transmit(uplink, &round, &updates, Fidelity::Symbol).unwrap();
        let block = &decoded.channel.blocks()[0];
        let expected: f64 = block.gains.iter().zip(&updates).map(|(g, x)| g * f64::from(x[0])).sum();
        let (moved, left) = (block.gains[0] * SENSITIVITY, f64::from(decoded.sum[0]) - expected);
        if block.gains[0] == 0.0 {
            0.0
        } else {
            ((left - moved).powi(2) - left * left) / (2.0 * block.noise_std.powi(2))
        }
    });
    delta_of(losses, epsilon)
}

/// `E[(1 − e^{ε − L})₊]` with its standard error.
fn delta_of(losses: impl Iterator<Item = f64>, epsilon: f64) -> (f64, f64) {
    let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for loss in losses {
        let value = -(epsilon - loss).min(0.0).exp_m1();
        count += 1.0;
        sum += value;
        squares += value * value;
    }
    (sum / count, ((squares / count - (sum / count).powi(2)) / count).sqrt())
}

/// Asserts that the bound with this `μ` holds within 4 standard errors, one false alarm in 30,000, and that one with 0.8 times the `μ`
/// would not.
#[track_caller]
fn holds_and_is_sharp(mu: f64, attack: impl Fn(f64) -> (f64, f64)) {
    let (delta, error) = attack(gaussian::epsilon(DELTA, mu).unwrap());
    assert!(delta - 4.0 * error <= DELTA, "{delta} ± {error}");
    let (delta, error) = attack(gaussian::epsilon(DELTA, 0.8 * mu).unwrap());
    assert!(delta - 4.0 * error > DELTA, "no power: {delta} ± {error}");
}

/// The schemes as in an experiment file, with keys of their own.
const SCHEMES: [&[&str]; 4] = [
    &["uplink.scheme=broadband-inversion", "uplink.subcarriers=4", "uplink.admission={ power = 0.3 }"],
    &["uplink.scheme=power-control", "uplink.policy=water-filling", "uplink.min_noise_std=3"],
    &["uplink.scheme=artificial-noise", "uplink.split=full", "uplink.noise_ratio=3"],
    &["uplink.scheme=blind", "uplink.antennas=3", "uplink.parameters_per_symbol=2"],
];

#[test]
fn equal_seeds_give_equal_runs() {
    for scheme in SCHEMES {
        let directory = tempfile::tempdir().unwrap();
        let experiment = one_round(&[scheme, &["rounds=3", "uplink.power=unit"]].concat());
        let files = [1, 2].map(|threads| {
            let out = directory.path().join(threads.to_string());
            run(&experiment, &out, Entry::New, threads).unwrap();
            lasting_files(&out)
        });
        assert!(files[0] == files[1], "{scheme:?}");
    }
}

const BROADBAND: [&str; 4] = [
    "uplink.scheme=broadband-inversion",
    "uplink.subcarriers=4",
    "uplink.admission={ power = 0.01 }",
    "uplink.snr_db=0",
];

/// `√ρ₀/σ = 1/√E₁(0.01)` with `E₁(0.01) = 4.037929577`. A client is silent in 1% of the blocks.
#[test]
fn broadband_attacks_meet_the_constant_bound() {
    let mu = SENSITIVITY / 4.037929577_f64.sqrt();
    for view in [View::Actual, View::AnyChannel, View::RawSignal] {
        let statement = statement(&BROADBAND, view);
        let exact = gaussian::epsilon(DELTA, mu).unwrap();
        assert!((statement.epsilon.unwrap() / exact - 1.0).abs() < 1e-6 && statement.guarantee, "{view}");
        assert!(statement.assumptions.iter().any(|words| words.contains("receiver's noise")), "{view}");
    }
    let uplink = one_round(&BROADBAND).settings().build_uplink(1).unwrap();
    holds_and_is_sharp(mu, |epsilon| attack(uplink.as_ref(), 10, epsilon));
}

#[test]
fn broadband_estimates_have_no_channel_bound() {
    for change in ["uplink.channel_error=0.2", "uplink.ageing=correlation=0.9"] {
        let settings = [&BROADBAND[..], &[change]].concat();
        let [actual, any, raw] =
            [View::Actual, View::AnyChannel, View::RawSignal].map(|view| statement(&settings, view));
        assert!(any.epsilon.is_none() && any.reason.unwrap().contains("louder than intended"));
        assert!(!actual.guarantee && !raw.guarantee);
        assert!(actual.epsilon.unwrap() <= raw.epsilon.unwrap() * (1.0 + 1e-9));
    }
    let noiseless = statement(&[&BROADBAND[..], &["uplink.snr_db=inf"]].concat(), View::AnyChannel);
    assert!(noiseless.reason.unwrap().contains("no noise"));
}

/// The bound is that of the ledger's largest μ: both count the scaled noise.
#[test]
fn unit_power_scales_the_broadband_bound() {
    let unit = [&BROADBAND[..], &["uplink.power=unit", "uplink.snr_db=-20"]].concat();
    let directory = tempfile::tempdir().unwrap();
    let privacy = run(&one_round(&unit), directory.path(), Entry::New, 2).unwrap().summary.privacy;
    let bound = epsilon(&unit, View::AnyChannel);
    assert!((privacy.worst_client.unwrap().epsilon / bound - 1.0).abs() < 1e-6);
    let plain = epsilon(&[&BROADBAND[..], &["uplink.snr_db=-20"]].concat(), View::AnyChannel);
    assert!(bound > 1.5 * plain, "{bound} and {plain}");
}

const POWER: [&str; 4] = [
    "uplink.scheme=power-control",
    "uplink.min_noise_std=2.5",
    "uplink.admission={ amplitude = 0.05 }",
    "uplink.snr_db=0",
];

/// `σ = 1`. The fixed level is `min(0.5, 1/ν_min)`, so that ν is 2.5, or 2 with `ν_min = 1.5`. Under water-filling the level is `1/2.5`
/// in the rounds whose admitted clients allow it.
#[test]
fn power_control_bounds_every_channel() {
    let of = |mu: f64| gaussian::epsilon(DELTA, mu).unwrap();
    let strong = [&POWER[..], &["uplink.admission={ amplitude = 0.5 }"]].concat();
    for view in [View::Actual, View::AnyChannel, View::RawSignal] {
        let fixed = statement(&strong, view);
        assert!((fixed.epsilon.unwrap() / of(SENSITIVITY / 2.5) - 1.0).abs() < 1e-6 && fixed.guarantee);
        let weak = epsilon(&[&strong[..], &["uplink.min_noise_std=1.5"]].concat(), view);
        assert!((weak / of(SENSITIVITY / 2.0) - 1.0).abs() < 1e-6, "{view}");
    }
    let water = [&POWER[..], &["uplink.policy=water-filling"]].concat();
    for view in [View::AnyChannel, View::RawSignal] {
        let bound = statement(&water, view);
        assert!((bound.epsilon.unwrap() / of(SENSITIVITY / 2.5) - 1.0).abs() < 1e-6 && bound.guarantee);
    }
    let actual = statement(&water, View::Actual);
    assert!(!actual.guarantee && actual.epsilon.unwrap() < of(SENSITIVITY / 2.5));
}

/// `σ/ν_min` is 0.004 and 0.04, below the threshold: every admitted client reaches it, so that all rounds have `ν_min`.
#[test]
fn power_control_attacks_meet_the_bound() {
    let attacked = |settings: &[&str], mu: f64| {
        let uplink = one_round(settings).settings().build_uplink(1).unwrap();
        holds_and_is_sharp(mu, |epsilon| attack(uplink.as_ref(), 10, epsilon));
    };
    attacked(&[&POWER[..], &["uplink.snr_db=40"]].concat(), SENSITIVITY / 2.5);
    attacked(&[&POWER[..], &["uplink.snr_db=20", "uplink.policy=water-filling"]].concat(), SENSITIVITY / 2.5);
}

#[test]
fn calibration_finds_the_noise_of_power_control() {
    let base = POWER.iter().chain(&[
        "privacy.delta=1e-5",
        "clients.total=10",
        "clients.per_round=10",
        "rounds=40",
        "uplink.policy=water-filling",
    ]);
    let builder = base.fold(ExperimentBuilder::new(), |builder, line| builder.assign(line).unwrap());
    let found = calibrate_experiment(&builder, 8.0, View::AnyChannel, Find::Noise).unwrap();
    let noise_std = found.value.unwrap();
    let exact = gaussian::epsilon(1e-5, SENSITIVITY * 40_f64.sqrt() / noise_std).unwrap();
    assert!((7.9..=8.0 + 1e-9).contains(&exact), "{noise_std}: {exact}");
}

/// Asserts that the best attack at the `ε` of the account has its `δ`, within 4 standard errors, one false alarm in 15,000, and that it has
/// another one at 0.85 and 1.15 times the `ε`.
#[track_caller]
fn attack_meets_the_account(settings: &[&str], view: View) {
    let uplink = one_round(settings).settings().build_uplink(1).unwrap();
    let stated = statement(settings, view);
    let epsilon = stated.epsilon.unwrap();
    assert!(stated.guarantee, "{view}");
    let difference = |factor: f64| {
        let (delta, error) = attack(uplink.as_ref(), 10, factor * epsilon);
        (delta - DELTA) / error
    };
    assert!(difference(1.0).abs() < 4.0, "{}", difference(1.0));
    assert!(difference(0.85) > 4.0 && difference(1.15) < -4.0, "no power");
}

const NOISE: [&str; 5] = [
    "uplink.scheme=artificial-noise",
    "uplink.noise_ratio=2",
    "uplink.admission={ amplitude = 0.6 }",
    "uplink.power_rule=worst-admitted",
    "uplink.snr_db=10",
];

/// Without fading all `K` clients are admitted: `μ = Δ/√(r·K)` without the receiver's noise, and `ε` falls as `1/√K` once it is small. A
/// client's own noise gives `Δ/√r` for every `K`.
#[test]
fn leakage_falls_with_the_root_of_clients() {
    let of = |mu: f64| gaussian::epsilon(DELTA, mu).unwrap();
    for clients in [10, 40, 160, 640] {
        let number = ["clients.total", "clients.per_round"].map(|key| format!("{key}={clients}"));
        let base = [&NOISE[..], &["uplink.fading=none", &number[0], &number[1]]].concat();
        let mu = SENSITIVITY / (2.0 * f64::from(clients)).sqrt();
        for (view, mu) in
            [(View::RawSignal, mu), (View::Idealised, mu), (View::AnyChannel, SENSITIVITY / 2_f64.sqrt())]
        {
            let stated = statement(&base, view);
            assert!(
                (stated.epsilon.unwrap() / of(mu) - 1.0).abs() < 1e-6 && stated.guarantee,
                "{view} {clients}"
            );
        }
        // c² = 1/3 and σ² = 0.1: the receiver adds 0.3 to 2K.
        let actual = statement(&base, View::Actual);
        let with_receiver = SENSITIVITY / (2.0 * f64::from(clients) + 0.3).sqrt();
        assert!((actual.epsilon.unwrap() / of(with_receiver) - 1.0).abs() < 1e-6 && !actual.guarantee);
    }
}

/// The receiver has no noise, so that the bound is exact for the equal split; full power makes more noise than the bound counts.
#[test]
fn artificial_noise_attacks_meet_the_bound() {
    let noiseless = [&NOISE[..], &["uplink.snr_db=inf"]].concat();
    attack_meets_the_account(&noiseless, View::RawSignal);
    let full = [&noiseless[..], &["uplink.split=full"]].concat();
    let (bound, actual) = (statement(&full, View::RawSignal), statement(&full, View::Actual));
    assert_eq!(bound.epsilon, statement(&noiseless, View::RawSignal).epsilon);
    assert!(actual.epsilon.unwrap() < 0.9 * bound.epsilon.unwrap() && !actual.guarantee);
}

/// Clients with wrong or old channels arrive with other gains; their own noise does too.
#[test]
fn own_noise_protects_over_unknown_channels() {
    for change in ["uplink.channel_error=0.2", "uplink.ageing=correlation=0.9", "clients.dropout=0.1"] {
        let settings = [&NOISE[..], &[change]].concat();
        let [any, raw] = [View::AnyChannel, View::RawSignal].map(|view| statement(&settings, view));
        assert_eq!(any.epsilon, raw.epsilon, "{change}");
        assert!(any.guarantee && raw.guarantee);
        assert!(epsilon(&settings, View::Actual) < any.epsilon.unwrap(), "{change}");
    }
    let plain = epsilon(&NOISE, View::RawSignal);
    assert!(plain < 0.7 * epsilon(&NOISE, View::AnyChannel), "{plain}");
}

/// Colluding clients reveal their noise: the bound is that of fewer clients.
#[test]
fn colluding_clients_reveal_their_noise() {
    let of = |colluding: u32| {
        let masks =
            ["masks.mask_std=0.001", "masks.noise_std=0.001", &format!("masks.colluding={colluding}")];
        let settings = [&NOISE[..], &["uplink.fading=none"], &masks].concat();
        epsilon(&settings, View::RawSignal)
    };
    for colluding in [0, 4, 8] {
        let mu = SENSITIVITY / (2.0 * (10.0 - f64::from(colluding))).sqrt();
        let exact = gaussian::epsilon(DELTA, mu).unwrap();
        assert!((of(colluding) / exact - 1.0).abs() < 1e-6, "{colluding}");
    }
}

#[test]
fn calibration_finds_the_artificial_noise() {
    let base =
        NOISE.iter().chain(&["privacy.delta=1e-5", "clients.total=10", "clients.per_round=10", "rounds=40"]);
    let builder = base.fold(ExperimentBuilder::new(), |builder, line| builder.assign(line).unwrap());
    let found = calibrate_experiment(&builder, 8.0, View::AnyChannel, Find::Noise).unwrap();
    let ratio = found.value.unwrap();
    let exact = gaussian::epsilon(1e-5, SENSITIVITY * (40.0 / ratio).sqrt()).unwrap();
    assert!((7.9..=8.0 + 1e-9).contains(&exact), "{ratio}: {exact}");
}

const BLIND: [&str; 3] = ["uplink.scheme=blind", "uplink.antennas=8", "uplink.snr_db=-5"];

/// The account of the decoded sum is the exact distribution of `μ`. That of the samples is larger, and has no limit over channels.
#[test]
fn blind_attacks_meet_the_account() {
    attack_meets_the_account(&BLIND, View::Actual);
    let [actual, any, raw] =
        [View::Actual, View::AnyChannel, View::RawSignal].map(|view| statement(&BLIND, view));
    assert!(raw.guarantee && actual.epsilon.unwrap() < 0.8 * raw.epsilon.unwrap());
    assert!(any.epsilon.is_none() && any.reason.unwrap().contains("as its channel is strong"));
    assert!(raw.assumptions.iter().any(|words| words.contains("every antenna")));
}

/// The exact distributions agree with estimates from drawn rounds, which take their place where clients drop out. A client that drops out is
/// not in the estimates, and one in 10⁹ does.
#[test]
fn blind_estimates_agree_with_the_account() {
    for packing in [1, 2] {
        let packing = format!("uplink.parameters_per_symbol={packing}");
        let exact = [&BLIND[..], &[&packing]].concat();
        let estimated = [&exact[..], &["clients.dropout=1e-9"]].concat();
        let (exact, estimate) = (statement(&exact, View::Actual), statement(&estimated, View::Actual));
        assert!(exact.guarantee && !estimate.guarantee);
        let ratio = estimate.epsilon.unwrap() / exact.epsilon.unwrap();
        assert!((ratio - 1.0).abs() < 0.03, "{packing}: {ratio}");
    }
}

#[test]
fn blind_needs_noise_and_known_fading() {
    let noiseless = statement(&[&BLIND[..], &["uplink.snr_db=inf"]].concat(), View::RawSignal);
    assert!(noiseless.reason.unwrap().contains("no noise"));
    for change in ["uplink.fading=rician=3", "uplink.ageing=correlation=0.9"] {
        let settings = [&BLIND[..], &[change]].concat();
        for view in [View::Actual, View::RawSignal] {
            let estimate = statement(&settings, view);
            assert!(!estimate.guarantee && estimate.epsilon.is_some(), "{change} {view}");
        }
    }
    // Without fading every client arrives with `√R` over all antennas.
    let plain = [&BLIND[..], &["uplink.fading=none"]].concat();
    let exact = gaussian::epsilon(DELTA, SENSITIVITY * (8.0 / 10_f64.sqrt()).sqrt()).unwrap();
    assert!((epsilon(&plain, View::RawSignal) / exact - 1.0).abs() < 1e-3);
}

#[test]
fn wrong_linear_settings_name_their_key() {
    let message = |settings: &[&str]| {
        let new = ExperimentBuilder::new();
        let changed = settings.iter().fold(new, |builder, line| builder.assign(line).unwrap());
        changed.build().unwrap_err().to_string()
    };
    for (settings, expected) in [
        (&["uplink.subcarriers=0"][..], "uplink.subcarriers must be between 1 and 4096, not 0"),
        (
            &["uplink.scheme=broadband-inversion", "uplink.fading=trace=h.csv"],
            "uplink.fading: this scheme scales by the distribution of the channels; give a fading, not a trace",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.path_loss=exponent=3.7"],
            "uplink.path_loss: this scheme sets one scale for all clients",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.admission={ amplitude = 1000 }"],
            "uplink.admission: the admission threshold for |h| must be an amplitude that a client's channel reaches with a probability of at least 1e-6, not 1000",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.antennas=2"],
            "uplink.antennas: this scheme receives with 1 antenna, not 2",
        ),
        (&["uplink.min_noise_std=0"], "uplink.min_noise_std must be between 1e-30 and 1e30, not 0"),
        (&["uplink.noise_ratio=0"], "uplink.noise_ratio must be between 1e-12 and 1e12, not 0"),
        (&["uplink.split=half"], "uplink.split must be equal or full, not \"half\""),
        (
            &["uplink.scheme=artificial-noise", "uplink.antennas=2"],
            "uplink.antennas: this scheme receives with 1 antenna, not 2",
        ),
        (&["uplink.scheme=blind", "uplink.antennas=65"], "uplink.antennas must be between 1 and 64, not 65"),
        (
            &["uplink.scheme=blind", "uplink.fading=trace=h.csv"],
            "uplink.fading: this scheme scales by the distribution of the channels",
        ),
        (&["uplink.scheme=blind", "uplink.path_loss=exponent=3.7"], "uplink.path_loss: "),
        (
            &[
                "uplink.scheme=blind",
                "uplink.parameters_per_symbol=2",
                "uplink.ageing=correlation=0.9",
                "uplink.coherence=3",
            ],
            "uplink.coherence: it must be even",
        ),
        (
            &["uplink.scheme=power-control", "uplink.parameters_per_symbol=2"],
            "uplink.parameters_per_symbol: scheme \"power-control\" sends one parameter in a symbol",
        ),
        (
            &["uplink.parameters_per_symbol=2"],
            "uplink.parameters_per_symbol must be 1 with modulation real; 2 needs complex modulation, not 2",
        ),
        (&["uplink.policy=greedy"], "uplink.policy must be fixed or water-filling, not \"greedy\""),
        (
            &["uplink.scheme=power-control", "uplink.snr_db=inf"],
            "uplink.snr_db: this scheme protects clients by the receiver's noise",
        ),
    ] {
        let found = message(settings);
        assert!(found.starts_with(expected), "{settings:?}\n gave {found}\n not {expected}");
    }
}
