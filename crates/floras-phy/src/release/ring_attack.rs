//! An attack that breaks the simulation's generator and must fail against this one.
//!
//! A pair of the simulation's values lies on one of the rings `√(−2 ln((k + ½)/2³¹))`. At large radii the rings are further apart
//! than the rounding errors of single precision. There `k` is an integer after subtracting the correct guess of a client's
//! update, and arbitrary after a wrong guess.

use floras_core::random::{Purpose, StreamName};

use super::ReleaseKey;
use crate::EffectiveChannel;

const PARAMETERS: usize = 1_000_000;
const ROUNDS: u32 = 40;
const NOISE_STD: f64 = 4.12;

/// The log-likelihood ratio of "on rings" to "anywhere" of the far pairs of `decoded − guess`, paired at a distance of `lanes`.
fn score(decoded: &[f32], guess: &[f32], lanes: usize) -> f64 {
    let residual =
        |index: usize| (f64::from(decoded[index]) - f64::from(guess[index])) / f64::from(NOISE_STD as f32);
    let pairs = (0..decoded.len() / (2 * lanes))
        .flat_map(|row| (0..lanes).map(move |lane| (2 * lanes * row + lane, 2 * lanes * row + lanes + lane)));
    let mut score = 0.0;
    for (left, right) in pairs {
        let square = residual(left).powi(2) + residual(right).powi(2);
        let ring = (-square / 2.0).exp() * 2.0_f64.powi(31) - 0.5;
        if ring < 20_000.0 {
            let off = ring - ring.round();
            // The rounding error of single precision, in rings.
            let width = 0.01 + (ring.max(0.0) + 0.5) * square * 1.5e-7;
            score += (0.02 + 0.98 * (-(off / width).powi(2) / 2.0).exp() / (2.5066 * width)).ln();
        }
    }
    score
}

/// Number of rounds in which the attack finds that the client sent `candidates[round % 2]` and not the other candidate.
fn right_guesses(lanes: usize, mut apply: impl FnMut(&EffectiveChannel, u32, &[f32]) -> Vec<f32>) -> u32 {
    let channel = EffectiveChannel::new(vec![1.0], NOISE_STD).unwrap();
    let candidate = |client| {
        let mut update = vec![0.0; PARAMETERS];
        StreamName::new(3, Purpose::BENCHMARK).client(client).normals().fill(0, &mut update);
        crate::precode::clip(std::slice::from_mut(&mut update), 1.0).unwrap();
        update
    };
    let candidates = [candidate(0), candidate(1)];
    let is_right = |round: u32| {
        let sent = (round % 2) as usize;
        let decoded = apply(&channel, round, &candidates[sent]);
        let [sent, other] = [sent, 1 - sent].map(|guess| score(&decoded, &candidates[guess], lanes));
        u32::from(sent > other)
    };
    (0..ROUNDS).map(is_right).sum()
}

#[test]
fn the_simulations_generator_fails_the_ring_attack() {
    let right = right_guesses(32, |channel, round, update| {
        channel.apply(&[update], StreamName::new(1, Purpose::PAYLOAD_NOISE).round(round)).unwrap()
    });
    assert!(right >= 38, "only {right} of {ROUNDS}");
}

/// Without information the guesses are coin flips: 32 or more, or 8 or fewer, of 40 have a probability of 2·10⁻⁴, and the
/// keys are fixed. An attack that is right in 95 rounds of 100 would be found with a probability above 0.999.
#[test]
fn release_noise_withstands_the_ring_attack() {
    // The distance between the values of a pair in the simulation's generator, and in this one.
    for lanes in [32, 64] {
        let right = right_guesses(lanes, |channel, round, update| {
            let mut decoded = vec![0.0; PARAMETERS];
            let key = ReleaseKey::known([100 + round as u8; 32]);
            channel.release_into(&[update], &[crate::precode::Scale::UNCHANGED], key, &mut decoded).unwrap();
            decoded
        });
        assert!((9..32).contains(&right), "{right} of {ROUNDS} with pairs {lanes} apart");
    }
}
