//! The ideal uplink compared with an independent implementation: `reference/ideal.py` wrote the NumPy results.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use floras_sim::{Estimate, Experiment, Federation, RoundMetrics, Status, Trial, TrialOptions};
use serde_json::Value;

#[expect(dead_code, reason = "each test file uses a part")]
mod support;

use support::experiment;

fn recorded(task: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/ideal.json");
    let mut file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    file[task].take()
}

fn all_rounds(trial: &mut Trial<'_>) -> Vec<RoundMetrics> {
    let mut rounds = Vec::new();
    while trial.status() == Status::Running {
        rounds.push(trial.step().unwrap().metrics);
    }
    rounds
}

/// Gradient descent is deterministic: results must agree with NumPy in double precision up to the rounding of single precision,
/// which is 1e-7 per step here. A rate that is wrong by 0.01% would be detected.
fn assert_rounds_meet(task: &Value, rounds: &[RoundMetrics]) {
    for (round, expected) in task["after_round"].as_object().unwrap() {
        let metrics = &rounds[round.parse::<usize>().unwrap() - 1];
        let [train_loss, test_loss, accuracy] =
            ["train_loss", "test_loss", "test_accuracy"].map(|key| expected[key].as_f64().unwrap());
        assert!((metrics.train_loss.unwrap() - train_loss).abs() < 1e-5, "round {round}: {metrics:?}");
        assert!((metrics.test_loss.unwrap() - test_loss).abs() < 1e-5, "round {round}: {metrics:?}");
        assert!((metrics.test_accuracy.unwrap() - accuracy).abs() < 1e-9, "round {round}: {metrics:?}");
    }
}

fn norm(parameters: &[f32]) -> f64 {
    parameters.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

#[test]
fn full_batches_are_gradient_descent_on_all_data() {
    let task = recorded("full_batch");
    // The result does not depend on the partition and the batches, but their code is used.
    let experiment = experiment(&[
        "uplink.scheme=ideal",
        "local.batch=200",
        "local.steps=1",
        "local.rate=0.5",
        "rounds=50",
        "record.train_every=1",
    ]);
    let federation = Federation::new(&experiment).unwrap();
    let mut trial = Trial::begin(&federation, 0).unwrap();
    assert_rounds_meet(&task, &all_rounds(&mut trial));
    assert!((norm(trial.parameters()) - task["final_norm"].as_f64().unwrap()).abs() < 1e-4);
    for weight in task["final_weights"].as_array().unwrap() {
        let place = |key: &str| weight[key].as_u64().unwrap() as usize;
        let ours = trial.parameters()[place("class") * 400 + place("pixel")];
        assert!((f64::from(ours) - weight["value"].as_f64().unwrap()).abs() < 1e-5, "{weight}");
    }
    for (class, bias) in task["final_bias"].as_array().unwrap().iter().enumerate() {
        assert!((f64::from(trial.parameters()[4000 + class]) - bias.as_f64().unwrap()).abs() < 1e-5);
    }
}

#[test]
fn a_perceptron_learns_as_in_numpy() {
    let task = recorded("mlp");
    let experiment = experiment(&[
        "uplink.scheme=ideal",
        "local.batch=200",
        "local.steps=1",
        "local.rate=0.5",
        "rounds=20",
        "record.train_every=1",
        "model.kind=mlp",
        "model.hidden=32",
        "model.l2=0",
    ]);
    let federation = Federation::new(&experiment).unwrap();
    let start = (0..federation.model().parameters()).map(|i| (0.1 * ((i + 1) as f64).sin()) as f32).collect();
    let mut trial = Trial::at(&federation, 0, TrialOptions::default(), (0, Status::Running), start).unwrap();
    assert_rounds_meet(&task, &all_rounds(&mut trial));
    assert!((norm(trial.parameters()) - task["final_norm"].as_f64().unwrap()).abs() < 1e-4);
}

/// Final train loss and test accuracy of five trials.
fn finals(experiment: &Experiment) -> [Vec<f64>; 2] {
    let federation = Federation::new(experiment).unwrap();
    let last = |number| all_rounds(&mut Trial::begin(&federation, number).unwrap()).pop().unwrap();
    let last: Vec<RoundMetrics> = (0..5).map(last).collect();
    [
        last.iter().map(|metrics| metrics.train_loss.unwrap()).collect(),
        last.iter().map(|metrics| metrics.test_accuracy.unwrap()).collect(),
    ]
}

/// Our mean must lie within both samples' 95% intervals of NumPy's mean, added up, and a little for single precision. Both
/// intervals together are more than 3 standard errors of the difference, so that a sound pair fails less than once in 300
/// seeds; the seed is fixed.
fn assert_means_meet(task: &Value, finals: &[Vec<f64>; 2], rounding: [f64; 2]) {
    for (index, key) in ["train_loss", "test_accuracy"].into_iter().enumerate() {
        let theirs: Vec<f64> =
            task["trials"].as_array().unwrap().iter().map(|trial| trial[key].as_f64().unwrap()).collect();
        let [ours, theirs] = [&finals[index], &theirs].map(|values| Estimate::of(values).unwrap());
        let allowed = ours.ci95.unwrap() + theirs.ci95.unwrap() + rounding[index];
        assert!((ours.mean - theirs.mean).abs() < allowed, "{key}: {ours:?}, NumPy {theirs:?}");
    }
}

/// The losses of NumPy's trials have a spread of 2e-5. A rate that is wrong by 0.1%, or a sample that every epoch omits, would
/// change the mean by several times that. One test sample in 1000 may be classified differently.
#[test]
fn iid_mini_batches_match_numpy() {
    let finals = finals(&experiment(&["uplink.scheme=ideal", "rounds=300", "record.train_every=300"]));
    assert_means_meet(&recorded("iid"), &finals, [2e-6, 1e-3]);
    assert!(finals[1].iter().all(|accuracy| *accuracy > 0.84), "{finals:?}");
}

#[test]
fn one_label_clients_match_numpy() {
    let finals = finals(&experiment(&[
        "uplink.scheme=ideal",
        "rounds=300",
        "record.train_every=300",
        "data.partition=one-label",
        "local.rate=0.001",
    ]));
    assert_means_meet(&recorded("one_label"), &finals, [2e-6, 1e-3]);
}

#[test]
fn five_of_twenty_clients_match_numpy() {
    let finals = finals(&experiment(&[
        "uplink.scheme=ideal",
        "rounds=100",
        "record.train_every=100",
        "clients.per_round=5",
        "local.rate=0.05",
    ]));
    assert_means_meet(&recorded("sampled"), &finals, [2e-6, 0.0]);
}
