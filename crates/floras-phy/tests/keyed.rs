//! Sequences that the paper's protocol assigns inside a simulation.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_phy::{
    Assignment, Fading, Fidelity, Floras, FlorasSettings, Receiver, Round, SequenceSet, Snr, SnrConvention,
    Uplink, transmit,
};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use statrs::distribution::{ChiSquared, ContinuousCDF};

const CLIENTS: [u32; 3] = [4, 0, 9];
const SEQUENCES: usize = 6;

fn uplink(assignment: Assignment, sequences: SequenceSet) -> Floras {
    Floras::new(FlorasSettings {
        sequences,
        receiver: Receiver::Mmse,
        snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
        assignment,
        ..FlorasSettings::default()
    })
}

fn walsh(assignment: Assignment) -> Floras {
    uplink(assignment, SequenceSet::walsh(SEQUENCES, 8).unwrap())
}

/// Whether each client has every sequence equally often, and each pair of clients every pair of sequences.
///
/// Six chi-square tests on 60,000 rounds share a false-alarm rate of 10⁻⁶. If one of the 30 pairs of sequences is 30% more
/// probable than it should be, the noncentrality is 186 where the threshold is near 86: the probability of detecting it is above
/// 0.99999.
fn looks_uniform(mut assign: impl FnMut(u32) -> Vec<usize>) -> bool {
    let mut of_client = [[0_u32; SEQUENCES]; 3];
    let mut of_pair = [[0_u32; SEQUENCES * SEQUENCES]; 3];
    for round in 1..=60_000 {
        let assigned = assign(round);
        for (client, &sequence) in assigned.iter().enumerate() {
            of_client[client][sequence] += 1;
        }
        for (pair, (a, b)) in [(0, 1), (0, 2), (1, 2)].into_iter().enumerate() {
            of_pair[pair][assigned[a] * SEQUENCES + assigned[b]] += 1;
        }
    }
    let fits = |counts: &[u32]| {
        let seen: Vec<f64> =
            counts.iter().filter(|&&count| count > 0).map(|&count| f64::from(count)).collect();
        let expected = seen.iter().sum::<f64>() / seen.len() as f64;
        let statistic: f64 = seen.iter().map(|count| (count - expected).powi(2) / expected).sum();
        let degrees = ChiSquared::new(seen.len() as f64 - 1.0).unwrap();
        statistic < degrees.inverse_cdf(1.0 - 1e-6 / 6.0)
    };
    let no_sequence_twice =
        of_pair.iter().all(|counts| counts.iter().filter(|&&count| count > 0).count() == 30);
    no_sequence_twice
        && of_client.iter().all(|counts| fits(counts))
        && of_pair.iter().all(|counts| fits(counts))
}

#[test]
fn both_assignments_have_the_same_distribution() {
    for assignment in Assignment::ALL {
        let uplink = walsh(assignment);
        assert!(
            looks_uniform(|number| {
                uplink.despread(&Round::new(1, 0, number, &CLIENTS).unwrap()).unwrap().assigned
            }),
            "{assignment}"
        );
    }
}

#[test]
fn the_test_of_distributions_detects_a_biased_shuffle() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    assert!(!looks_uniform(|_| {
        let mut order = [0, 1, 2, 3, 4, 5];
        for place in 0..SEQUENCES {
            order.swap(place, rng.next_u32() as usize % SEQUENCES);
        }
        order[..3].to_vec()
    }));
}

#[test]
fn chips_are_sent_on_the_keyed_sequences() {
    let uplink = walsh(Assignment::Keyed);
    for number in 1..=20 {
        let round = Round::new(1, 0, number, &CLIENTS).unwrap();
        let assigned = uplink.despread(&round).unwrap().assigned;
        assert_eq!(uplink.link(&round).unwrap(), uplink.link_assigned(&round, assigned).unwrap());
    }
}

/// No unused sequence, no fading, 80 dB: the sum is decoded up to a relative error of about 10⁻⁴.
#[test]
fn a_keyed_round_is_decoded_from_chips() {
    let uplink = Floras::new(FlorasSettings {
        sequences: SequenceSet::walsh(3, 4).unwrap(),
        channels: Fading::None.into(),
        snr: Snr::new(80.0, SnrConvention::Symbol).unwrap(),
        assignment: Assignment::Keyed,
        ..FlorasSettings::default()
    });
    let updates = [[1.0, -2.0], [0.5, 4.0], [8.0, 16.0]];
    for number in 1..=20 {
        let round = Round::new(1, 0, number, &CLIENTS).unwrap();
        let sum = transmit(&uplink, &round, &updates, Fidelity::Chip).unwrap().sum;
        assert!((sum[0] - 9.5).abs() < 0.01 && (sum[1] - 18.0).abs() < 0.02, "{sum:?}");
    }
}

#[test]
fn orthonormal_channels_do_not_depend_on_the_assignment() {
    let round = Round::new(1, 0, 5, &CLIENTS).unwrap();
    let [seed, keyed] = Assignment::ALL.map(|assignment| walsh(assignment).realise(&round).unwrap());
    assert_eq!(seed, keyed);
    let gaussian = |assignment| uplink(assignment, SequenceSet::gaussian(SEQUENCES, 4, 1).unwrap());
    let [seed, keyed] = Assignment::ALL.map(|assignment| gaussian(assignment).realise(&round).unwrap());
    assert_ne!(seed, keyed);
}
