//! Every permutation is equally likely.
//!
//! Each statistic is compared with the chi-square quantile that a perfect shuffle exceeds with the
//! probability FALSE_ALARM, shared among the statistics of a test. Keys are fixed, so a run either
//! always passes or always fails. That the tests have power is shown by the two classic mistakes:
//! each is caught with the same number of draws.

use super::*;

const FALSE_ALARM: f64 = 1e-6;

/// Enough draws to detect the small bias of bytes taken modulo 7. It adds 1.8e-4 per draw to the
/// mean of the statistic of position 0, so 128 in all. The threshold is near 43, and the standard
/// deviation of the biased statistic is near 23.
const DRAWS: u64 = 700_000;

fn threshold(cells: usize, tests: usize) -> f64 {
    let degrees = ChiSquared::new(cells as f64 - 1.0).unwrap();
    degrees.inverse_cdf(1.0 - FALSE_ALARM / tests as f64)
}

fn chi_square(counts: &[u64]) -> f64 {
    let draws: u64 = counts.iter().sum();
    let expected = draws as f64 / counts.len() as f64;
    counts.iter().map(|&n| (n as f64 - expected).powi(2) / expected).sum()
}

/// Whether all 24 orders of 4 sequences come equally often.
fn orders_look_uniform(mut shuffle: impl FnMut(u64, u32) -> Vec<u32>) -> bool {
    let mut counts = [0; 256];
    for slot in 0..DRAWS {
        let code = shuffle(slot, 4).iter().fold(0, |code, &column| 4 * code + column);
        counts[code as usize] += 1;
    }
    let seen: Vec<u64> = counts.into_iter().filter(|&n| n > 0).collect();
    seen.len() == 24 && chi_square(&seen) < threshold(24, 1)
}

/// Whether each of 7 sequences comes equally often at each of the 7 positions.
fn positions_look_uniform(mut shuffle: impl FnMut(u64, u32) -> Vec<u32>) -> bool {
    let mut counts = [[0; 7]; 7];
    for slot in 0..DRAWS {
        for (position, &column) in shuffle(slot, 7).iter().enumerate() {
            counts[position][column as usize] += 1;
        }
    }
    counts.iter().all(|position| chi_square(position) < threshold(7, 7))
}

fn bytes_modulo(rng: &mut impl Rng, sequences: u32) -> Vec<u32> {
    let mut order = Vec::from_iter(0..sequences);
    let n = order.len();
    for i in 0..n - 1 {
        let byte = (rng.next_u32() & 0xff) as usize;
        order.swap(i, i + byte % (n - i));
    }
    order
}

fn swap_with_any(rng: &mut impl Rng, sequences: u32) -> Vec<u32> {
    let mut order = Vec::from_iter(0..sequences);
    let n = order.len();
    for i in 0..n {
        order.swap(i, rng.next_u32() as usize % n);
    }
    order
}

#[test]
fn all_orders_of_four_sequences_come_equally_often() {
    assert!(orders_look_uniform(|slot, n| order(&key(), slot, n)));
}

#[test]
fn every_sequence_comes_equally_often_at_every_position() {
    assert!(positions_look_uniform(|slot, n| order(&key(), slot, n)));
}

#[test]
fn the_uniformity_tests_catch_a_modulo_without_rejection() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    assert!(!positions_look_uniform(|_, n| bytes_modulo(&mut rng, n)));
}

#[test]
fn the_uniformity_tests_catch_a_biased_shuffle() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
    assert!(!orders_look_uniform(|_, n| swap_with_any(&mut rng, n)));
    assert!(!positions_look_uniform(|_, n| swap_with_any(&mut rng, n)));
}

proptest! {
    #[test]
    fn a_permutation_holds_every_column_once(
        secret in any::<[u8; 32]>(),
        group in any::<[u8; 16]>(),
        epoch: u32,
        slot: u64,
        n in 1u32..3000,
    ) {
        let key = GroupKey::from_secret_bytes(GroupId(group), Epoch(epoch), &secret);
        let mut order = order(&key, slot, n);
        order.sort_unstable();
        prop_assert!(order.into_iter().eq(0..n));
    }

    #[test]
    fn arbitrary_bytes_never_open(mut bytes in collection::vec(any::<u8>(), SealedKey::BYTES)) {
        bytes[0] = 1;
        let client = ClientIdentity::from_secret_bytes(&[3; 32]);
        let sealed = SealedKey::from_bytes(&bytes).unwrap();
        let opened = client.open(&sealed, &client.public_key(), sealed.group(), sealed.epoch());
        prop_assert_eq!(opened.unwrap_err(), AssignmentError::SealedKeyRejected);
    }
}
