//! Properties of a federation that hold for any task.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_sim::{Experiment, Federation, SimError, Status, Trial, TrialOptions};

#[expect(dead_code, reason = "each test file uses a part")]
mod support;

use support::experiment;

/// A fast task: synthetic samples with few features.
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
fn trials_resume_from_their_parameters() {
    for more in [&["clients.per_round=7"][..], &["clients.per_round=7", "privacy.clip=1", "model.kind=mlp"]] {
        let experiment = small(more);
        let federation = Federation::new(&experiment).unwrap();
        let halfway = parameters_after(&experiment, 4, 1);
        let mut resumed =
            Trial::at(&federation, 1, TrialOptions::default(), (4, Status::Running), halfway).unwrap();
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

/// With weights by samples and full batches, one step is a step on all samples together, for any partition. The parameters are the
/// same for any seed of the partition. With equal weights they are not.
#[test]
fn sample_weights_cancel_the_partition() {
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
            let before = trial.step().unwrap().metrics;
            for _ in 0..14 {
                trial.step().unwrap();
            }
            let after = trial.step().unwrap().metrics;
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
fn clipping_bounds_the_step_of_a_round() {
    let experiment = small(&["uplink.scheme=ideal", "privacy.clip=0.01"]);
    let [before, after] = [3, 4].map(|rounds| parameters_after(&experiment, rounds, 0));
    let moved = before.iter().zip(&after).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
    assert!(moved <= 0.01 * (1.0 + 1e-5) && moved > 0.001, "{moved}");
}

#[test]
fn diverged_trials_keep_their_last_finite_model() {
    // The update of the first round overflows; its sum is NaN or infinite.
    for settings in
        [&["local.rate=1e6", "uplink.scheme=ideal", "model.l2=1e6"][..], &["local.rate=1e6", "model.l2=1e6"]]
    {
        let federation = Federation::new(&small(settings)).unwrap();
        let mut trial = Trial::begin(&federation, 0).unwrap();
        let last = loop {
            let metrics = trial.step().unwrap().metrics;
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
fn data_and_channel_are_checked_first() {
    let refused = |settings: &[&str]| Federation::new(&experiment(settings)).unwrap_err().to_string();
    let message = refused(&["data.train=4500", "data.test=1000"]);
    assert!(message.starts_with("data: ") && message.contains("5500"), "{message}");
    let message = refused(&["clients.total=5000"]);
    assert!(message.starts_with("data.partition: ") && message.contains("5000 clients"), "{message}");
    let message = refused(&["uplink.snr_db=inf"]);
    assert!(message.contains("5 unused sequences"), "{message}");
    let message = refused(&["data.set=synthetic", "data.train=10"]);
    assert!(message.contains("10 training samples"), "{message}");
    let message = refused(&["data.set=mnist", "data.dir=no-such-directory"]);
    assert!(
        message.contains("no-such-directory") && message.contains("train-images-idx3-ubyte"),
        "{message}"
    );
    let message = refused(&["uplink.length=48"]);
    assert!(message.contains("power of two"), "{message}");
}

#[test]
fn a_trace_must_reach_every_round_and_client() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv");
    let rows: String = (0..3)
        .flat_map(|round| (0..20).map(move |client| format!("{round},{client},{},0\n", round + 1)))
        .collect();
    std::fs::write(&path, format!("round,client,real,imaginary\n{rows}")).unwrap();
    let trace = format!("uplink.fading={{ trace = {:?} }}", path.display().to_string());
    // Phase-corrected, the gain of a round is its amplitude over the mean amplitude of the trace, 2.
    let through =
        Federation::new(&experiment(&[&trace, "rounds=3", "uplink.scheme=phase-corrected"])).unwrap();
    let mut trial = Trial::begin(&through, 0).unwrap();
    let gains: Vec<f64> = (0..3).map(|_| trial.step().unwrap().metrics.mean_gain.unwrap()).collect();
    assert!(
        gains.iter().zip([0.5, 1.0, 1.5]).all(|(gain, expected)| (gain - expected).abs() < 1e-12),
        "{gains:?}"
    );
    let error = Federation::new(&experiment(&[&trace, "rounds=4"])).unwrap_err();
    assert!(matches!(error, SimError::Uplink(_)) && error.to_string().contains("too short"), "{error}");
    let error =
        Federation::new(&experiment(&[&trace, "rounds=3", "clients.total=21", "clients.per_round=21"]));
    assert!(error.unwrap_err().to_string().contains("client 20"));
}

#[test]
fn label_counts_match_the_partition() {
    let federation = Federation::new(&experiment(&["data.partition=one-label"])).unwrap();
    let record = federation.partition_record(0).unwrap();
    assert_eq!((record.clients, record.unassigned, record.label_counts.len()), (20, 0, 20));
    for counts in &record.label_counts {
        assert_eq!((counts.iter().sum::<u32>(), counts.iter().max()), (200, Some(&200)));
    }
    assert_ne!(record, federation.partition_record(1).unwrap(), "every trial has its own partition");
    let many =
        Federation::new(&small(&["clients.total=1500", "clients.per_round=3", "data.train=4500"])).unwrap();
    let record = many.partition_record(0).unwrap();
    assert_eq!((record.clients, record.label_counts.len()), (1500, 1000));
    assert_eq!(record.label_counts[999].iter().sum::<u32>(), 3);
}

/// The base station clamps what it decodes on the scale on which updates are sent, and then undoes the normalisation. With
/// C = 1000 every normalised sum is far beyond B = 0.5, so that every parameter moves by B·C_max/C up or down, around Σμ.
#[test]
fn truncation_comes_before_the_normalisation_is_undone() {
    let truncated = small(&[
        "uplink.scheme=ideal",
        "privacy.clip=1000",
        "privacy.normalise=paper",
        "uplink.truncate=0.5",
    ]);
    let mut moved = parameters_after(&truncated, 1, 0);
    moved.sort_by(f32::total_cmp);
    let (down, up) = (moved[0], moved[moved.len() - 1]);
    assert!(up - down > 1e-6);
    let at_an_end = |value: f32| (value - down).min(up - value) < 1e-3 * (up - down);
    assert!(moved.iter().all(|&value| at_an_end(value)), "{moved:?}");

    let bounded = parameters_after(
        &small(&["uplink.scheme=ideal", "uplink.truncate=1e-4", "clients.per_round=10"]),
        1,
        0,
    );
    let largest = bounded.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    assert!((largest - 1e-5).abs() < 1e-9, "B/K and no more: {largest}");
}

#[test]
fn the_rate_of_a_round_is_the_schedules() {
    let federation = Federation::new(&small(&[
        "uplink.scheme=ideal",
        "local.rate={ initial = 0.5, factor = 1e-6, every = 1 }",
    ]));
    let federation = federation.unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    assert_eq!(trial.step().unwrap().metrics.rate, 0.5);
    let before = trial.parameters().to_vec();
    assert!((trial.step().unwrap().metrics.rate - 5e-7).abs() < 1e-15);
    let moved = before.iter().zip(trial.parameters()).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(moved < 1e-5, "{moved}");
}

#[test]
fn rounds_and_trials_draw_differently() {
    let experiment =
        small(&["uplink.scheme=ideal", "local.batch=2", "local.steps=1", "clients.per_round=40"]);
    let federation = Federation::new(&experiment).unwrap();
    let after_one_round = |round: u32| {
        let start = vec![0.01; federation.model().parameters()];
        let mut trial =
            Trial::at(&federation, 0, TrialOptions::default(), (round, Status::Running), start).unwrap();
        trial.step().unwrap();
        trial.parameters().to_vec()
    };
    assert_ne!(after_one_round(0), after_one_round(5));
    let records = [0, 1].map(|trial| federation.partition_record(trial).unwrap().label_counts);
    assert_ne!(records[0], records[1], "generated clients hold other samples in another trial");
    let perceptron = Federation::new(&small(&["model.kind=mlp"])).unwrap();
    let starts = [0, 1].map(|trial| Trial::begin(&perceptron, trial).unwrap().parameters().to_vec());
    assert_ne!(starts[0], starts[1]);
}

/// With full batches and all clients, the mean of their losses in a round is the loss over all samples after the previous round.
/// Clients with one label each have very different losses.
#[test]
fn what_is_measured_is_what_happened() {
    let experiment = experiment(&[
        "uplink.scheme=ideal",
        "local.batch=200",
        "local.steps=1",
        "local.rate=0.5",
        "model.l2=0",
        "data.partition=one-label",
        "record.train_every=1",
        "rounds=5",
    ]);
    let federation = Federation::new(&experiment).unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    let mut last = trial.step().unwrap().metrics;
    for _ in 0..3 {
        let before = trial.parameters().to_vec();
        let metrics = trial.step().unwrap().metrics;
        assert!((metrics.local_loss.unwrap() - last.train_loss.unwrap()).abs() < 1e-5, "{metrics:?}");
        assert_eq!((metrics.mean_gain, metrics.noise_std), (Some(1.0), Some(0.0)));
        let moved =
            before.iter().zip(trial.parameters()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt();
        // The mean of twenty updates is shorter than they are on average, but not twenty times as short.
        let share = moved / metrics.update_norm.unwrap();
        assert!((0.05..1.0).contains(&share), "{share}");
        last = metrics;
    }
    let noisy = Federation::new(&small(&["uplink.scheme=gaussian", "uplink.noise_std=0.25"])).unwrap();
    assert_eq!(Trial::begin(&noisy, 0).unwrap().step().unwrap().metrics.noise_std, Some(0.25));
}

#[test]
fn rounds_without_admitted_clients_change_nothing() {
    // A client is admitted with probability 5e-6.
    let experiment = experiment(&["uplink.scheme=channel-inversion", "uplink.admission={ amplitude = 3.5 }"]);
    let federation = Federation::new(&experiment).unwrap();
    let metrics = Trial::begin(&federation, 0).unwrap().step().unwrap().metrics;
    assert_eq!(
        (metrics.mean_gain, metrics.test_accuracy),
        (Some(0.0), Some(0.1)),
        "every tenth digit is a zero"
    );
}
