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
const SCHEMES: [&[&str]; 2] = [
    &["uplink.scheme=broadband-inversion", "uplink.subcarriers=4", "uplink.admission={ power = 0.3 }"],
    &["uplink.scheme=power-control", "uplink.policy=water-filling", "uplink.min_noise_std=3"],
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
            "uplink.fading: this scheme sets its power by the distribution of the channels; give a fading, not a trace",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.path_loss=exponent=3.7"],
            "uplink.path_loss: this scheme sets one power for all clients",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.admission={ amplitude = 1000 }"],
            "uplink.admission: the admission threshold for |h| must be an amplitude that channels reach, not 1000",
        ),
        (
            &["uplink.scheme=broadband-inversion", "uplink.antennas=2"],
            "uplink.antennas: this scheme receives with 1 antenna, not 2",
        ),
        (&["uplink.min_noise_std=0"], "uplink.min_noise_std must be between 1e-30 and 1e30, not 0"),
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
