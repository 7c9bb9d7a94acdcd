//! The conditions of the paper's convergence theory, checked for its own experiments. The book's page `docs/reference/errata.md`
//! links here.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_core::random::StreamName;
use floras_learn::data::digits20;
use floras_learn::{Batch, Logistic, Model, Scratch};
use floras_sim::purpose;

/// The penalty factor `λ` of the paper's task: its penalty `λ‖w‖²` alone makes the loss strongly convex, with `μ = 2λ`.
const PENALTY: f64 = 0.01;
/// The number of clients per round `K` of the paper's experiments.
const CLIENTS: f64 = 20.0;

/// `D(γ)` as printed in Theorem 4.
fn printed_d(gamma: f64, bound: f64, clip: f64) -> f64 {
    let angle = ((bound + clip) / gamma).atan();
    gamma * gamma / (clip * clip * angle) * (bound / gamma - angle)
}

/// The norm of the gradient over all training samples at the initial parameters. `H` bounds every mini-batch's gradient everywhere,
/// so it is at least this.
fn first_gradient(model: &Logistic) -> f64 {
    let samples = digits20(4000, 1000).unwrap().train;
    let rows: Vec<u32> = (0..4000).collect();
    let (zero, mut gradient) = (vec![0.0; model.parameters()], vec![0.0; model.parameters()]);
    let batch = Batch { samples: &samples, rows: &rows };
    let mut unused = StreamName::new(1, purpose::LAYER_DROPOUT).stream();
    model.gradient(&zero, batch, &mut unused, &mut Scratch::default(), &mut gradient);
    gradient.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>().sqrt()
}

/// `μ > 2√(dD)·EH/K` for one step per round (`E = 1`), the weakest form. The paper requires `B ≫ C`; `B = 10·C` is used, and
/// symbols of a mean power from 1% to 1.
#[test]
fn theorem_4_excludes_the_papers_experiments() {
    let model = Logistic::new(400, 10, PENALTY).unwrap();
    let (parameters, mu) = (model.parameters() as f64, 2.0 * PENALTY);
    let h = first_gradient(&model);
    assert!(h > 0.3, "{h}");
    for gamma in [1.0, 5.0, 10.0] {
        for amplitude in [0.1, 0.3, 1.0] {
            let clip = amplitude * parameters.sqrt();
            let needed = 2.0 * (parameters * printed_d(gamma, 10.0 * clip, clip)).sqrt() * h / CLIENTS;
            assert!(needed > 20.0 * mu, "γ = {gamma}, C = {clip}: μ = {mu} would have to exceed {needed}");
        }
    }
}
