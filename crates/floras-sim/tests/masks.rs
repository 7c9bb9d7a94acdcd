//! Experiments with masks: runs, accounts, budgets, ledgers, and the power at which clients send.

#![expect(clippy::unwrap_used, reason = "tests")]

mod support;

use floras_core::{Masks, View};
use floras_phy::{EffectiveChannel, Round, Uplink};
use floras_privacy::{MaskBound, gaussian};
use floras_sim::inquiry::{ExperimentAccount, Find, calibrate_experiment};
use floras_sim::{AirInterface, AirLedger, Entry, Experiment, ExperimentBuilder, Federation, RoundSpec};
use support::{experiment, lasting_files, run};
use tempfile::TempDir;

const SMALL: [&str; 6] = [
    "rounds=3",
    "trials=1",
    "data.train=400",
    "privacy.clip=1",
    "uplink.sequences=24",
    "record.train_every=3",
];

fn with(more: &[&str]) -> Experiment {
    experiment(&[&SMALL[..], more].concat())
}

fn epsilon(experiment: &Experiment, view: View) -> Option<f64> {
    ExperimentAccount::new(experiment).unwrap().epsilon(view).unwrap()
}

/// `ε` of the masks after some rounds of 20 clients with `Δ = 2`.
fn of_masks(mask_std: f64, noise_std: f64, rounds: f64) -> f64 {
    let mu = MaskBound::new(Masks::new(mask_std, noise_std, 0).unwrap(), 20, 2.0).unwrap().mu();
    gaussian::epsilon(1e-5, rounds.sqrt() * mu).unwrap()
}

#[test]
fn every_scheme_has_the_bound_of_masks() {
    let exact = of_masks(4.0, 0.3, 3.0);
    for scheme in [
        "floras",
        "channel-inversion",
        "phase-corrected",
        "ideal",
        "gaussian",
        "broadband-inversion",
        "power-control",
        "blind",
    ] {
        let scheme = format!("uplink.scheme={scheme}");
        let loud = "uplink.admission={ amplitude = 1 }";
        let masked = with(&[&scheme, loud, "masks.mask_std=4", "masks.noise_std=0.3"]);
        let report = ExperimentAccount::new(&masked).unwrap().report().unwrap();
        for view in View::RIGOROUS {
            let statement = report.views.get(view).unwrap();
            let epsilon = statement.epsilon.unwrap();
            assert!(
                epsilon <= exact * (1.0 + 1e-9) && statement.guarantee,
                "{scheme}, {view}: {statement:?}"
            );
            assert_eq!(statement.from_masks, (epsilon / exact - 1.0).abs() < 1e-9, "{scheme}, {view}");
        }
        assert!(report.views.get(View::RawSignal).unwrap().from_masks, "{scheme}");
    }
}

#[test]
fn masked_rounds_have_the_expected_noise() {
    let masks = Masks::new(4.0, 0.3, 0).unwrap();
    let clients: Vec<u32> = (0..20).collect();
    for scheme in [
        "floras",
        "channel-inversion",
        "phase-corrected",
        "ideal",
        "power-control",
        "artificial-noise",
        "blind",
    ] {
        let scheme = format!("uplink.scheme={scheme}");
        let channel = |more: &[&str]| -> EffectiveChannel {
            let settings = with(&[&[scheme.as_str()], more].concat()).settings().clone();
            settings.build_uplink(1).unwrap().realise(&Round::new(1, 0, 1, &clients).unwrap()).unwrap()
        };
        let (plain, masked) = (channel(&[]), channel(&["masks.mask_std=4", "masks.noise_std=0.3"]));
        assert_eq!(plain.gains(), masked.gains(), "{scheme}");
        let square_sum: f64 = plain.gains().iter().map(|gain| gain * gain).sum();
        let sum_square = plain.gains().iter().sum::<f64>().powi(2);
        let added = masks.decoded_variance(square_sum, sum_square, 20);
        let expected = (plain.noise_std().powi(2) + added).sqrt();
        assert!((masked.noise_std() / expected - 1.0).abs() < 1e-12, "{scheme}");
    }
}

#[test]
fn a_masked_run_resumes_to_the_same_bytes() {
    let masked = with(&["masks.mask_std=4", "masks.noise_std=0.3", "clients.dropout=0.2", "rounds=6"]);
    let directory = TempDir::new().unwrap();
    let (whole, parts) = (directory.path().join("whole"), directory.path().join("parts"));
    run(&masked, &whole, Entry::New, 2).unwrap();
    let interrupted = std::sync::atomic::AtomicBool::new(false);
    let prepared = floras_sim::PreparedRun::new(&masked, &parts, Entry::New, 1).unwrap();
    let stop = |_| interrupted.store(true, std::sync::atomic::Ordering::SeqCst);
    let _ = prepared.run(&stop, &interrupted);
    drop(prepared);
    run(&masked, &parts, Entry::Resume, 1).unwrap();
    assert_eq!(lasting_files(&whole), lasting_files(&parts));
}

#[test]
fn a_budget_counts_the_masks() {
    let budget = of_masks(4.0, 2.0, 2.5);
    let masked = with(&[
        "masks.mask_std=4",
        "masks.noise_std=2",
        "privacy.view=raw-signal",
        &format!("privacy.budget={budget}"),
    ]);
    assert_eq!(Federation::new(&masked).unwrap().rounds(), 2);
}

#[test]
fn participation_is_known_to_the_masks_adversary() {
    let everyone = of_masks(4.0, 2.0, 3.0);
    let sampled = with(&["clients.total=200", "masks.mask_std=4", "masks.noise_std=2"]);
    let report = ExperimentAccount::new(&sampled).unwrap().report().unwrap();
    let raw = report.views.get(View::RawSignal).unwrap();
    assert_eq!(raw.epsilon.unwrap(), raw.details["participation_known"]);
    assert!((raw.details["in_every_round"] / everyone - 1.0).abs() < 1e-9);
    assert!(raw.epsilon.unwrap() < everyone);
}

/// For any channels, an adversary that sees all symbols learns at most what the masks leak.
#[test]
fn the_ledger_never_exceeds_the_masks() {
    for colluding in ["0", "5"] {
        let colluding = format!("masks.colluding={colluding}");
        let masked = with(&["masks.mask_std=4", "masks.noise_std=0.3", "uplink.receiver=mmse", &colluding]);
        let bound = MaskBound::new(masked.settings().masks.unwrap(), 20, 2.0).unwrap().mu();
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("run");
        run(&masked, &path, Entry::New, 1).unwrap();
        let summary: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path.join("summary.json")).unwrap()).unwrap();
        let worst = summary["privacy"]["worst_client"]["mu"].as_f64().unwrap();
        assert!(worst <= 3.0_f64.sqrt() * bound * (1.0 + 1e-9), "{worst} and {bound}");
        assert!(worst > 0.1 * bound, "{worst} and {bound}");
    }
}

#[test]
fn an_uplink_on_its_own_takes_masks() {
    let keys = |text: &str| text.parse::<toml::Table>().unwrap();
    let text = "scheme = \"floras\"\nsequences = 24\nclip = 1.0\nmasks = { mask_std = 4.0, noise_std = 0.3, colluding = 1 }";
    let air = std::sync::Arc::new(AirInterface::from_keys(keys(text), Some(40)).unwrap());
    assert!(air.description().to_string().contains("noise_std = 0.3"));
    let spec = RoundSpec { selected: 20, ..RoundSpec::of_all(1, 1, 18) };
    // Two of 20 were silent, and the masks shared with them remain in the sum.
    let (whole, silent) = (air.realise(&RoundSpec::of_all(1, 1, 18)).unwrap(), air.realise(&spec).unwrap());
    assert_eq!(whole.gains(), silent.gains());
    assert!(silent.noise_std() > whole.noise_std());
    let spend = air.spend(air.cohort(&spec)).unwrap();
    let mu = MaskBound::new(Masks::new(4.0, 0.3, 1).unwrap(), 20, 2.0).unwrap().mu();
    let exact = gaussian::epsilon(1e-5, mu).unwrap();
    assert!((spend["raw_signal"] / exact - 1.0).abs() < 1e-3, "{} and {exact}", spend["raw_signal"]);
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("ledger.jsonl");
    let mut ledger = AirLedger::open(std::sync::Arc::clone(&air), &path).unwrap();
    ledger.record(&spec, &silent).unwrap();
    drop(ledger);
    let other = AirInterface::from_keys(keys(&text.replace("0.3", "0.4")), Some(40)).unwrap();
    let error = AirLedger::open(std::sync::Arc::new(other), &path).err().unwrap().to_string();
    assert!(error.contains("masks"), "{error}");
    let error =
        AirInterface::from_keys(keys(&text.replace("noise_std = 0.3, ", "")), None).unwrap_err().to_string();
    assert!(error.starts_with("masks.noise_std: it must be given"), "{error}");
    let few = air.realise(&RoundSpec::of_all(1, 1, 2)).unwrap_err().to_string();
    assert!(few.contains("at least 3"), "{few}");
}

#[test]
fn unit_power_scales_the_noise_of_the_receiver() {
    let unscaled = with(&["uplink.receiver=clipped=1"]);
    let unit = with(&["uplink.receiver=clipped=1", "uplink.power=unit"]);
    let parameters = Federation::new(&unit).unwrap().model().parameters();
    let clients: Vec<u32> = (0..20).collect();
    let noise = |experiment: &Experiment| {
        let uplink: Box<dyn Uplink> = experiment.settings().build_uplink(1).unwrap();
        let round = Round::new(1, 0, 1, &clients).unwrap().with_parameters(parameters);
        uplink.realise(&round).unwrap().noise_std()
    };
    // β = √d/C.
    let scale = (parameters as f64).sqrt();
    assert!((noise(&unit) * scale / noise(&unscaled) - 1.0).abs() < 1e-12);
    // Every bound equals that of updates scaled by β.
    let louder = with(&["uplink.receiver=clipped=1", &format!("privacy.clip={scale}")]);
    for view in View::RIGOROUS {
        assert_eq!(epsilon(&unit, view), epsilon(&louder, view), "{view}");
    }
    assert!(unit.to_toml().contains("power = \"unit\"") && !unscaled.to_toml().contains("power"));
    let unbounded = ExperimentBuilder::new().assign("uplink.power=unit").unwrap();
    let error = unbounded.assign("privacy.clip=none").unwrap().build().unwrap_err().to_string();
    assert_eq!(
        error,
        "uplink.power must be \"unscaled\" unless privacy.clip bounds the updates, not \"unit\""
    );
}

#[test]
fn masks_are_charged_to_the_power() {
    let directory = TempDir::new().unwrap();
    let power = |more: &[&str], name: &str| {
        let path = directory.path().join(name);
        run(&with(more), &path, Entry::New, 1).unwrap();
        let text = std::fs::read_to_string(path.join("metrics.jsonl")).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        line["power_mean"].as_f64().unwrap()
    };
    let masks = ["masks.mask_std=2", "masks.noise_std=0.5"];
    let (plain, masked) = (power(&[], "plain"), power(&masks, "masked"));
    // 4·(1 − 1/20) + 0.25.
    assert!((masked - plain - 4.05).abs() < 1e-6, "{plain} and {masked}");
    let unit = power(&[masks[0], masks[1], "uplink.power=unit"], "unit");
    assert!(unit <= 1.0 && unit > 0.99, "{unit}");
}

/// Noise over that of a trusted server for ε = 8 after 40 rounds at δ = 10⁻⁵, d = 4010, C = 1, N = K, at unit power. The expected medians
/// come from an independent computation with weights `ĥ/(ĥ² + 3s²)`; those of the MMSE receiver differ by less than 1%. The median of
/// 200 rounds has a standard error below 1.5%: 5% fail with a probability below 10⁻³ at a fresh seed, and never at this one.
#[test]
fn noise_over_the_central_optimum_is_as_computed() {
    let cells = [
        (20, 32, "real", 1, 1.73),
        (20, 32, "phase-corrected", 1, 1.21),
        (200, 256, "real", 1, 2.74),
        (200, 256, "phase-corrected", 1, 1.31),
        (20, 32, "complex", 1, 1.22),
        (20, 32, "complex", 2, 1.10),
        (200, 256, "complex", 1, 1.32),
        (200, 256, "complex", 4, 1.07),
    ];
    for (clients, length, modulation, antennas, expected) in cells {
        let assignments = [
            format!("clients.total={clients}"),
            format!("clients.per_round={clients}"),
            format!("uplink.sequences={clients}"),
            format!("uplink.length={length}"),
            format!("uplink.modulation={modulation}"),
            format!("uplink.antennas={antennas}"),
            "uplink.receiver=mmse".to_owned(),
            "uplink.power=unit".to_owned(),
            "uplink.snr_db=20".to_owned(),
            "privacy.clip=1".to_owned(),
            "rounds=40".to_owned(),
        ];
        let new = ExperimentBuilder::new();
        let builder = assignments.iter().fold(new, |builder, text| builder.assign(text).unwrap());
        let found = calibrate_experiment(&builder, 8.0, View::RawSignal, Find::Masks).unwrap();
        let masks = found.masks.unwrap();
        let ratio = masks.decoded_noise_std / masks.central_noise_std;
        assert!(
            (ratio / expected - 1.0).abs() < 0.05,
            "K = {clients}, {modulation}, R = {antennas}: {ratio}, not {expected}"
        );
    }
}

/// Clients that collude know their shares of the artificial noise, so that the scheme's own bound does not hold.
#[test]
fn colluding_clients_know_their_artificial_noise() {
    let epsilon = |colluding: u32| {
        let colluding_clients = format!("masks.colluding={colluding}");
        let inversion = with(&[
            "uplink.scheme=channel-inversion",
            "uplink.artificial_noise_std=20",
            "masks.mask_std=3",
            "masks.noise_std=0.01",
            &colluding_clients,
            "rounds=5",
        ]);
        let report = ExperimentAccount::new(&inversion).unwrap().report().unwrap();
        let statement = report.views.get(View::RawSignal).unwrap();
        assert_eq!(statement.from_masks, colluding > 0);
        statement.epsilon.unwrap_or(f64::INFINITY)
    };
    // Two honest clients have 20·√(2/20) of the artificial noise: ε = 2.94 by the curve of a Gaussian.
    assert!(epsilon(0) < 1.0 && epsilon(18) > 2.94, "{} and {}", epsilon(0), epsilon(18));
}
