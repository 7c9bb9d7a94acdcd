//! Composition compared with closed forms, the prototype's numbers, and an independent library of privacy loss distributions.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::published::{self, PublishedRound, Weight};
use floras_privacy::{
    Bounds, Composition, Curve, Grid, MuDistribution, PrivacyError, Receiver, Sampling, gaussian, idealised,
};
use serde_json::Value;

/// Relative tolerance for the recorded numbers, which are upper bounds on their own grids.
const TOLERANCE: f64 = 2e-4;

/// Relative amount by which bounds may be on the wrong side of a recorded number: the error of its grid.
const GRACE: f64 = 1e-5;

fn rows(file: &str, list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(file).unwrap();
    all[list].as_array().unwrap().clone()
}

fn accounting(list: &str) -> Vec<Value> {
    rows(include_str!("reference/accounting.json"), list)
}

fn privacy(list: &str) -> Vec<Value> {
    rows(include_str!("reference/privacy.json"), list)
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

fn half_normal(gamma: f64) -> MuDistribution {
    MuDistribution::HalfNormal { scale: 2.0 / gamma }
}

fn epsilon(curve: &dyn Curve, sampling: Sampling, rounds: u64, delta: f64) -> Bounds {
    Composition::new(curve, sampling, rounds).unwrap().epsilon(delta).unwrap()
}

/// A distribution that hides its closed form, so that it is composed like any other.
struct Opaque(MuDistribution);

impl Curve for Opaque {
    fn upper(&self, epsilon: f64) -> f64 {
        self.0.upper(epsilon)
    }

    fn lower(&self, epsilon: f64) -> f64 {
        self.0.lower(epsilon)
    }

    fn infinite(&self) -> f64 {
        self.0.infinite()
    }

    fn tolerance(&self) -> f64 {
        self.0.tolerance()
    }
}

/// Asserts that the bounds enclose an exact number and are close to it.
#[track_caller]
fn encloses(bounds: Bounds, exact: f64, tolerance: f64, row: &dyn std::fmt::Display) {
    let Bounds { lower, upper } = bounds;
    assert!(
        upper >= exact * (1.0 - 1e-9) && lower <= exact * (1.0 + 1e-9),
        "{bounds:?} is not around {exact}: {row}"
    );
    assert!((upper / exact - 1.0).abs() < tolerance, "{upper} is not {exact}: {row}");
}

/// Asserts that the bounds agree with a recorded upper bound.
#[track_caller]
fn agrees(bounds: Bounds, recorded: f64, row: &Value) {
    let Bounds { lower, upper } = bounds;
    assert!((upper / recorded - 1.0).abs() < TOLERANCE, "{upper} is not {recorded}: {row}");
    assert!(upper >= recorded * (1.0 - GRACE), "{upper} is below {recorded}: {row}");
    assert!(lower <= recorded * (1.0 + GRACE), "{lower} is above {recorded}: {row}");
    assert!(lower > 0.95 * recorded, "{lower} is far below {recorded}: {row}");
}

/// The same under sampling with a replaced client; the lower bound is that of one pair of neighbours.
#[track_caller]
fn agrees_above(bounds: Bounds, recorded: f64, row: &Value) {
    let Bounds { lower, upper } = bounds;
    assert!((upper / recorded - 1.0).abs() < TOLERANCE, "{upper} is not {recorded}: {row}");
    assert!(upper >= recorded * (1.0 - GRACE), "{upper} is below {recorded}: {row}");
    assert!(lower <= recorded * (1.0 + GRACE) && lower > 0.5 * recorded, "{lower}, {recorded}: {row}");
}

/// The closed form `E_{R~χ_T}[δ_G(ε; a·R)]`: relative tolerance 1e-6, and 1e-3 if it is composed on a grid.
#[test]
fn rounds_of_everyone_agree_with_the_prototype() {
    for row in privacy("unsubsampled") {
        let (distribution, rounds, exact) =
            (half_normal(number(&row, "gamma")), row["T"].as_u64().unwrap(), number(&row, "exact"));
        let delta = number(&row, "delta");
        let closed = epsilon(&distribution, Sampling::Everyone, rounds, delta);
        assert!(
            (closed.upper / exact - 1.0).abs() < 1e-6 && closed.lower == closed.upper,
            "{closed:?}: {row}"
        );
        let composed = epsilon(&Opaque(distribution), Sampling::Everyone, rounds, delta);
        encloses(composed, closed.upper, 1e-4, &row);
    }
}

#[test]
fn sampled_rounds_agree_with_the_prototype() {
    for row in privacy("subsampled") {
        let (distribution, p) = (half_normal(number(&row, "gamma")), number(&row, "p"));
        let bounds = epsilon(
            &distribution,
            Sampling::ReplaceOne(p),
            row["T"].as_u64().unwrap(),
            number(&row, "delta"),
        );
        let recorded = number(&row, "pld");
        assert!((bounds.upper / recorded - 1.0).abs() < 1e-3, "{bounds:?}: {row}");
        assert!(bounds.lower <= recorded, "{bounds:?}: {row}");
    }
}

#[test]
fn one_round_s_tail_agrees_with_the_prototype() {
    let all: Value = serde_json::from_str(include_str!("reference/privacy.json")).unwrap();
    for (gamma, tail) in all["delta_tail_one_round"].as_object().unwrap() {
        let distribution = half_normal(gamma.parse().unwrap());
        for (epsilon, delta) in tail.as_object().unwrap() {
            let (epsilon, delta): (f64, f64) = (epsilon.parse().unwrap(), delta.as_f64().unwrap());
            let found =
                Composition::new(&distribution, Sampling::Everyone, 1).unwrap().delta(epsilon).unwrap();
            assert!((found.upper / delta - 1.0).abs() < 1e-6, "{found:?} is not {delta} at {epsilon}");
        }
    }
}

#[test]
fn the_gaussian_mechanism_agrees_with_its_closed_form() {
    for row in accounting("gaussian") {
        let (distribution, rounds, delta) = (
            MuDistribution::Constant(number(&row, "mu")),
            row["rounds"].as_u64().unwrap(),
            number(&row, "delta"),
        );
        let exact = number(&row, "exact");
        let closed = epsilon(&distribution, Sampling::Everyone, rounds, delta);
        assert!(
            (closed.upper / exact - 1.0).abs() < 1e-9 && closed.lower == closed.upper,
            "{closed:?}: {row}"
        );
        encloses(epsilon(&Opaque(distribution), Sampling::Everyone, rounds, delta), exact, 1e-4, &row);
    }
}

#[test]
fn gaussian_add_or_remove_agrees_with_the_library() {
    for row in accounting("subsampled_gaussian_add_remove") {
        let (distribution, sampling) =
            (MuDistribution::Constant(number(&row, "mu")), Sampling::AddRemove(number(&row, "p")));
        let bounds = epsilon(&distribution, sampling, row["rounds"].as_u64().unwrap(), number(&row, "delta"));
        agrees(bounds, number(&row, "epsilon"), &row);
        for direction in ["add", "remove"] {
            if let Some(exact) = row[direction]["exact"].as_f64() {
                assert!(bounds.upper >= exact * (1.0 - 1e-9), "{bounds:?}: {row}");
            }
        }
    }
}

#[test]
fn gaussian_replace_one_agrees_with_the_library() {
    for row in accounting("subsampled_gaussian_replace_one") {
        let (distribution, sampling) =
            (MuDistribution::Constant(number(&row, "mu")), Sampling::ReplaceOne(number(&row, "p")));
        let bounds = epsilon(&distribution, sampling, row["rounds"].as_u64().unwrap(), number(&row, "delta"));
        agrees_above(bounds, number(&row, "epsilon"), &row);
        if let Some(exact) = row["exact"].as_f64() {
            assert!(
                bounds.upper >= exact * (1.0 - 1e-9) && bounds.lower <= exact * (1.0 + 1e-9),
                "{bounds:?}: {row}"
            );
        }
    }
}

#[test]
fn unused_sequence_noise_agrees_with_the_library() {
    for row in accounting("scale_mixture") {
        let (distribution, p) = (MuDistribution::HalfNormal { scale: number(&row, "a") }, number(&row, "p"));
        let (rounds, delta) = (row["rounds"].as_u64().unwrap(), number(&row, "delta"));
        let bounds = epsilon(&distribution, Sampling::ReplaceOne(p), rounds, delta);
        agrees_above(bounds, number(&row, "epsilon"), &row);
        if p == 1.0 {
            agrees(bounds, number(&row, "epsilon"), &row);
        }
    }
}

/// The published numbers compared with valid ones, as in docs/reference/accounting.md.
#[test]
fn the_published_numbers_fail_where_documented() {
    let cases = [
        (5.0, 1.0, 1, 1.986, 4.1026, 5e-5),
        (10.0, 1.0, 1, 0.978, 1.7227, 5e-5),
        (5.0, 1.0, 10, 6.820, 8.1736, 5e-5),
        (5.0, 1.0, 1000, 139.255, 136.7052, 5e-5),
        (5.0, 0.1, 1, 0.230, 1.095, 5e-4),
        (5.0, 0.1, 100, 2.399, 3.425, 5e-4),
    ];
    for (gamma, p, rounds, printed, holds, digits) in cases {
        let round = PublishedRound::new(Weight::client(p).unwrap(), 1.0, gamma).unwrap();
        let ours = round.epsilon(published::PublishedComposition::Renyi, rounds, 1e-5).unwrap().as_printed();
        assert!((ours - printed).abs() < 5e-4, "published: {ours}, not {printed}");
        let distribution = idealised(Receiver::Paper, gamma as u64, 2.0).unwrap();
        let bounds = epsilon(&distribution, Sampling::ReplaceOne(p), rounds, 1e-5);
        assert!((bounds.upper - holds).abs() < 1.01 * digits, "{bounds:?}, not {holds}");
        let breaks = bounds.lower > ours;
        assert_eq!(breaks, rounds < 1000, "γ = {gamma}, p = {p}, T = {rounds}");
    }
}

/// Round trip for probabilities down to 1e-15. The rounding of two windows changes `δ` and `ε` by up to 1e-4.
#[test]
fn delta_and_epsilon_are_each_other_s_inverse() {
    let half = half_normal(5.0);
    let constant = MuDistribution::Constant(0.7);
    let clipped = idealised(Receiver::clipped(1.0).unwrap(), 20, 2.0).unwrap();
    let cases = [
        (&half, Sampling::Everyone, 50),
        (&half, Sampling::ReplaceOne(0.1), 1),
        (&half, Sampling::ReplaceOne(0.1), 200),
        (&constant, Sampling::Everyone, 1),
        (&constant, Sampling::AddRemove(0.3), 1),
        (&constant, Sampling::AddRemove(0.3), 40),
        (&clipped, Sampling::Everyone, 1),
        (&clipped, Sampling::ReplaceOne(0.1), 20),
    ];
    for (curve, sampling, rounds) in cases {
        let composition = Composition::new(curve, sampling, rounds).unwrap();
        for delta in [0.1, 1e-5, 1e-15] {
            let there = composition.epsilon(delta).unwrap();
            let back = composition.delta(there.upper).unwrap();
            let case = format!("{sampling:?}, T = {rounds}, δ = {delta}: {there:?}, {back:?}");
            assert!(back.upper <= delta * (1.0 + 1e-4), "{case}");
            if there.upper > 0.0 {
                assert!(back.upper >= delta * (1.0 - 1e-4), "{case}");
                let again = composition.epsilon(back.upper).unwrap();
                assert!((again.upper / there.upper - 1.0).abs() < 1e-4, "{case}: {again:?}");
            }
        }
    }
}

/// Without sampling, `T` Gaussian rounds are one round with `μ√T`, by every method of computation.
#[test]
fn composed_gaussian_deltas_match_the_closed_form() {
    for (mu, rounds, epsilon) in
        [(0.05, 10, 0.3), (0.5, 4, 2.0), (0.01, 10_000, 6.0), (1.0, 30, 60.0), (0.1, 3, 1.7)]
    {
        let exact = gaussian::delta(epsilon, mu * f64::sqrt(rounds as f64));
        let opaque = Opaque(MuDistribution::Constant(mu));
        let found = Composition::new(&opaque, Sampling::Everyone, rounds).unwrap().delta(epsilon).unwrap();
        assert!(
            found.lower <= exact && exact <= found.upper * (1.0 + 1e-9),
            "{found:?} is not around {exact}"
        );
        assert!((found.upper / exact - 1.0).abs() < 1e-3, "{found:?} is not {exact}");
    }
}

/// From nearly no loss to a very large one: the grid agrees with the closed form to a relative 1e-3 in `ε`, on the right side.
#[test]
fn rounds_of_any_size_match_the_closed_form() {
    for scale in [1e-4, 0.03, 1.0, 9.0, 60.0] {
        for rounds in [2, 10, 3000] {
            for delta in [0.3, 1e-5, 1e-15] {
                let distribution = MuDistribution::HalfNormal { scale };
                let opaque = Opaque(distribution.clone());
                let bounds =
                    |curve| Composition::new(curve, Sampling::Everyone, rounds).unwrap().epsilon(delta);
                let case = format!("a = {scale}, T = {rounds}, δ = {delta}");
                let (exact, composed) = match (bounds(&distribution), bounds(&opaque)) {
                    (Ok(exact), Ok(composed)) => (exact.upper, composed),
                    (exact, composed) => {
                        assert!(exact.is_err() && composed.is_err(), "{case}: {exact:?} and {composed:?}");
                        continue;
                    }
                };
                if exact > 0.0 {
                    encloses(composed, exact, 1e-3, &case);
                } else {
                    assert_eq!(composed.lower, 0.0, "{case}");
                }
            }
        }
    }
}

/// A step that does not resolve a round's loss is refined; the result is not "no bound".
#[test]
fn every_grid_step_gives_an_upper_bound() {
    for (distribution, p, rounds) in [
        (half_normal(100.0), 1e-3, 100_000),
        (half_normal(5.0), 0.1, 1000),
        (MuDistribution::Constant(3.0), 0.5, 3),
    ] {
        let sampling = Sampling::AddRemove(p);
        let auto = epsilon(&distribution, sampling, rounds, 1e-6);
        for step in [1.0, 0.01, 1e-4] {
            let composition =
                Composition::new(&distribution, sampling, rounds).unwrap().on_grid(Grid::Step(step)).unwrap();
            let found = composition.epsilon(1e-6).unwrap();
            assert!(
                found.upper >= auto.lower && found.lower <= auto.upper,
                "step {step}: {found:?} and {auto:?}"
            );
            assert!(found.upper < 2.0 * auto.upper, "step {step}: {found:?} and {auto:?}");
        }
    }
}

/// The tilted mean may be a thousand below the requested `ε`, where `e^ε` and its factor leave the range of a double.
#[test]
fn tails_far_above_the_window_centre_are_counted() {
    let distribution = idealised(Receiver::clipped(1.0).unwrap(), 1, 9.0).unwrap();
    let composition = Composition::new(&distribution, Sampling::ReplaceOne(0.34), 10).unwrap();
    let there = composition.epsilon(5e-15).unwrap();
    let back = composition.delta(there.upper).unwrap();
    assert!((back.upper / 5e-15 - 1.0).abs() < 1e-3, "{there:?}, {back:?}");
    assert!(back.lower > 0.5 * back.upper, "{there:?}, {back:?}");
}

/// A loss that is large and nearly the same in every round. With probability `p^T` a client takes part in all rounds, each of
/// which then loses at most `−ln p`.
#[test]
fn losses_that_are_large_and_alike_compose() {
    let p = 0.999_f64;
    for (mu, rounds) in [(100.0, 3), (100.0, 15), (20.0, 300)] {
        let distribution = MuDistribution::Constant(mu);
        let of_everyone = |delta| epsilon(&distribution, Sampling::Everyone, rounds, delta).upper;
        let most = of_everyone(1e-5);
        let least = of_everyone(1e-5 / p.powi(rounds as i32)) + 2.0 * rounds as f64 * p.ln();
        let found = epsilon(&distribution, Sampling::ReplaceOne(p), rounds, 1e-5);
        let case = format!("μ = {mu}, T = {rounds}: {found:?}, {least} to {most}");
        assert!(found.upper >= least && found.lower <= most && found.upper <= 1.0001 * most, "{case}");
        encloses(epsilon(&Opaque(distribution), Sampling::Everyone, rounds, 1e-5), most, 1e-4, &case);
    }
}

/// With probability 1, neighbours that are added or removed differ as much as replaced ones.
#[test]
fn certain_participation_is_the_same_for_all_neighbours() {
    for (distribution, rounds) in
        [(half_normal(5.0), 1), (half_normal(5.0), 40), (MuDistribution::Constant(30.0), 7)]
    {
        for curve in [&distribution as &dyn Curve, &Opaque(distribution.clone())] {
            let of = |sampling| Composition::new(curve, sampling, rounds).unwrap().epsilon(1e-5).unwrap();
            assert_eq!(of(Sampling::AddRemove(1.0)), of(Sampling::Everyone), "T = {rounds}");
        }
    }
}

/// Beyond the largest `ε` there is no result. This is found without a composition, which would take minutes here.
#[test]
fn an_unreachable_epsilon_is_found_quickly() {
    let begin = std::time::Instant::now();
    for (mu, rounds) in [(100.0, 30), (3e4, 2), (1e3, 1_000_000), (60.0, 3000)] {
        for sampling in [Sampling::ReplaceOne(0.5), Sampling::ReplaceOne(0.999)] {
            let found =
                Composition::new(&MuDistribution::Constant(mu), sampling, rounds).unwrap().epsilon(1e-5);
            let is_out = matches!(found, Err(PrivacyError::EpsilonOutOfReach { .. }));
            assert!(is_out, "μ = {mu}, T = {rounds}: {found:?}");
        }
    }
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

/// A small loss on a grid that cannot resolve it.
#[test]
fn a_step_above_all_losses_is_made_finer() {
    for (distribution, sampling, rounds, delta, step) in [
        (MuDistribution::Constant(2.8e-4), Sampling::ReplaceOne(0.42), 69, 1e-3, 3e-3),
        (half_normal(1e6), Sampling::AddRemove(1e-5), 11_208, 1e-7, 5e-4),
    ] {
        let auto = epsilon(&distribution, sampling, rounds, delta);
        let composition = Composition::new(&distribution, sampling, rounds).unwrap();
        let coarse = composition.on_grid(Grid::Step(step)).unwrap().epsilon(delta).unwrap();
        assert!(
            coarse.upper >= auto.lower && coarse.upper <= 2.0 * auto.upper + step,
            "{coarse:?} and {auto:?}"
        );
    }
}
