//! Differences between the paper's statements and the correct ones that no other test shows. The book's page `docs/reference/errata.md`
//! links here.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use floras_phy::precode::{self, norm};
use floras_phy::{
    Fading, Fidelity, Floras, FlorasSettings, Modulation, Receiver, Round, SequenceSet, Snr, SnrConvention,
    transmit,
};

const CLIP: f64 = 1.0;

/// The transmitted sum if all of `clients` but the first send the same update.
fn sum_on_air(clients: usize, first: f32) -> Vec<f32> {
    let mut updates = vec![vec![0.1, -0.1, 0.1, -0.1]; clients];
    updates[0] = vec![first, -first, first, -first];
    precode::normalise(&mut updates, CLIP).unwrap();
    (0..4).map(|i| updates.iter().map(|update| update[i]).sum()).collect()
}

/// Section III-B states a sensitivity of `2C`. If all clients send the same update and then one of them sends a long update in the opposite
/// direction, its norm sets the common scale, the others shrink to almost zero, and the sum moves by `(K + 1)·C`.
#[test]
fn the_papers_normalisation_has_sensitivity_k_plus_1() {
    for clients in [2, 20, 200] {
        let (agreed, alone) = (sum_on_air(clients, 0.1), sum_on_air(clients, -1e6));
        let difference: Vec<f32> = agreed.iter().zip(&alone).map(|(a, b)| a - b).collect();
        let moved = norm(&difference);
        let expected = (clients as f64 + 1.0) * CLIP;
        assert!((moved / expected - 1.0).abs() < 1e-3, "K = {clients}: {moved}, not {expected}");
    }
}

/// The side information that is sent in the clear contains a client's mean without noise.
#[test]
fn the_papers_normalisation_sends_a_mean_in_clear() {
    let mut updates = vec![vec![0.25, 0.5, 0.75], vec![1.0, 2.0, 6.0]];
    let sent = precode::normalise(&mut updates, CLIP).unwrap();
    assert_eq!(sent.means(), [0.5, 3.0]);
}

/// Clipping each update separately has the sensitivity `2C` that the paper states.
#[test]
fn clipping_has_sensitivity_two_c() {
    let sum = |first: f32| {
        let mut updates = vec![vec![first, -first], vec![3.0, 4.0], vec![0.1, 0.2]];
        precode::clip(&mut updates, CLIP).unwrap();
        let total: Vec<f32> = (0..2).map(|i| updates.iter().map(|update| update[i]).sum()).collect();
        total
    };
    let (one, other) = (sum(1e6), sum(-1e6));
    let moved = norm(&[one[0] - other[0], one[1] - other[1]]);
    assert!(moved <= 2.0 * CLIP * (1.0 + 1e-6) && moved > 1.999 * CLIP, "{moved}");
}

/// Mean square of `n ~ Cauchy(0, γ)` given `|n| ≤ B`, by the midpoint rule.
fn conditioned_moment(gamma: f64, bound: f64) -> f64 {
    let steps = 1_000_000;
    let width = 2.0 * bound / f64::from(steps);
    let (mut square, mut mass) = (0.0, 0.0);
    for step in 0..steps {
        let n = (f64::from(step) + 0.5) * width - bound;
        let density = 1.0 / (n * n + gamma * gamma);
        square += n * n * density;
        mass += density;
    }
    square / mass
}

/// The base station clamps, so that every value beyond `±B` becomes `±B`. The paper's distribution instead draws the value again until it
/// is inside. For `B ≫ γ` the mean square is twice as large. 400,000 draws leave an error of 1%.
#[test]
fn clamped_noise_is_twice_the_truncated_distributions() {
    let (gamma, bound, rounds) = (1, 50.0, 400_000);
    let uplink = Floras::new(FlorasSettings {
        sequences: SequenceSet::walsh(1 + gamma, 2).unwrap(),
        modulation: Modulation::Real,
        receiver: Receiver::Paper,
        channels: Fading::None.into(),
        snr: Snr::new(80.0, SnrConvention::Symbol).unwrap(),
        ..FlorasSettings::default()
    });
    let decode = |number| {
        let round = Round::new(7, 0, number, &[0]).unwrap();
        let mut sum = transmit(&uplink, &round, &[vec![0.0_f32]], Fidelity::Symbol).unwrap().sum;
        precode::truncate(&mut sum, bound).unwrap();
        f64::from(sum[0])
    };
    let values: Vec<f64> = (1..=rounds).map(decode).collect();
    let square = values.iter().map(|x| x * x).sum::<f64>() / f64::from(rounds);
    let at_the_bound = values.iter().filter(|x| x.abs() >= bound).count() as f64 / f64::from(rounds);
    let conditioned = conditioned_moment(gamma as f64, bound);
    assert!((1.9..2.1).contains(&(square / conditioned)), "{square} and {conditioned}");
    // P(|n| > 50) = 1 − (2/π)·atan(50) = 0.0127: no density has such a point.
    assert!((at_the_bound - 0.01273).abs() < 0.001, "{at_the_bound}");
}
