//! The noise of FLORAS compared with its closed forms.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::f64::consts::PI;

use floras_phy::*;
use rayon::prelude::*;
use statrs::distribution::{Cauchy, ContinuousCDF, FisherSnedecor, Normal, StudentsT};
use support::{SIGNIFICANCE, decode_rounds, p_value, silent_fading, snr};

const ROUNDS: u32 = 40_000;
const BOTH: [Fidelity; 2] = [Fidelity::Symbol, Fidelity::Chip];

fn floras(sequences: SequenceSet, receiver: Receiver, channels: impl Into<Channels>, snr: Snr) -> Floras {
    Floras::new(FlorasSettings {
        sequences,
        modulation: Modulation::Real,
        receiver,
        channels: channels.into(),
        snr,
        ..FlorasSettings::default()
    })
}

/// At 80 dB and without fading, the noise of the used sequences is at most 10⁻⁴: the remaining noise comes from the unused ones.
fn unused_noise_only(clients: usize, unused: usize, receiver: Receiver) -> Floras {
    let sequences = SequenceSet::walsh(clients + unused, 16).unwrap();
    floras(sequences, receiver, Fading::None, snr(80.0))
}

fn noise(uplink: &Floras, clients: usize, parameters: usize, fidelity: Fidelity) -> Vec<Vec<f32>> {
    decode_rounds(uplink, &vec![vec![0.0; parameters]; clients], fidelity, 31, ROUNDS)
}

fn first_coordinates(sample: &[Vec<f32>]) -> Vec<f64> {
    sample.iter().map(|x| f64::from(x[0])).collect()
}

/// Lemma 1. With 40,000 rounds the test detects a distance of 0.012: a scale that is wrong by 8%.
#[test]
fn unused_sequences_cause_cauchy_noise_of_scale_gamma() {
    for gamma in [1, 5, 10] {
        let uplink = unused_noise_only(3, gamma, Receiver::Paper);
        for fidelity in BOTH {
            let sample = first_coordinates(&noise(&uplink, 3, 1, fidelity));
            let right = p_value(sample.clone(), &Cauchy::new(0.0, gamma as f64).unwrap());
            assert!(right > SIGNIFICANCE, "γ = {gamma}, {fidelity:?}: p = {right}");
            let wrong = p_value(sample, &Cauchy::new(0.0, 1.15 * gamma as f64).unwrap());
            assert!(wrong < SIGNIFICANCE, "γ = {gamma}, {fidelity:?}: no power, p = {wrong}");
        }
    }
}

/// One unused sequence over `B` branches has the noise `N(0, 1)/χ_B`, which is `1/√B` times a t variable with `B` degrees of freedom. A
/// number of degrees that is wrong by a factor of two, at the scale that goes with it, moves the distribution function by 0.07 or more.
#[test]
fn noise_over_branches_is_students_t() {
    for (modulation, antennas) in [(Modulation::Real, 3), (Modulation::Complex, 1), (Modulation::Complex, 3)]
    {
        for parameters_per_symbol in [ParametersPerSymbol::One, ParametersPerSymbol::Two] {
            if modulation.check_packing(parameters_per_symbol).is_err() {
                continue;
            }
            let settings = unused_noise_only(3, 1, Receiver::Paper).settings().clone();
            let uplink =
                Floras::new(FlorasSettings { modulation, antennas, parameters_per_symbol, ..settings });
            let branches = modulation.branches(antennas) as f64;
            for fidelity in BOTH {
                let sample = first_coordinates(&noise(&uplink, 3, 2, fidelity));
                let t = |freedom: f64| StudentsT::new(0.0, 1.0 / freedom.sqrt(), freedom).unwrap();
                let right = p_value(sample.clone(), &t(branches));
                assert!(right > SIGNIFICANCE, "{modulation}, R = {antennas}, {fidelity:?}: p = {right}");
                let wrong = p_value(sample, &t(2.0 * branches));
                assert!(wrong < SIGNIFICANCE, "{modulation}, R = {antennas}: no power, p = {wrong}");
            }
        }
    }
}

/// Sequences that overlap, as printed.
fn overlapping(sequences: SequenceSet, channels: impl Into<Channels>, snr: Snr) -> Floras {
    let settings = floras(sequences, Receiver::Paper, channels, snr).settings().clone();
    Floras::new(FlorasSettings { projector: Projector::Printed, ..settings })
}

/// Lemma 1 for sequences that overlap holds while no client's signal arrives: all N sequences then count as unused.
#[test]
fn gaussian_sequences_without_clients_cause_cauchy_noise() {
    let (count, clients) = (6, 2);
    for length in [4, 9] {
        let set = SequenceSet::gaussian(count, length, 3).unwrap();
        let uplink = overlapping(set, silent_fading(clients, ROUNDS), snr(10.0));
        for fidelity in BOTH {
            let sample = first_coordinates(&noise(&uplink, clients as usize, 1, fidelity));
            let p = p_value(sample, &Cauchy::new(0.0, count as f64).unwrap());
            assert!(p > SIGNIFICANCE, "L = {length}, {fidelity:?}: p = {p}");
        }
    }
}

/// Remark 3 states that Lemma 1 still holds for sequences that overlap. With clients that transmit, the estimate of an unused
/// sequence is `Σ_j a_kᵀa_j h_j` and noise, and the noise of the decoded sum vanishes with the SNR instead of staying Cauchy with
/// scale γ = 10 or more. The medians of `|η|`, used sequences included, are those of an independent simulation in NumPy; over
/// 40,000 rounds of eight sets the medians have a standard error below 2%. Walsh sequences keep the scale.
#[test]
fn gaussian_sequence_noise_vanishes_at_high_snr() {
    const TRANSMITTED: u32 = 5_000;
    let median = |uplink: &Floras| {
        let decoded = decode_rounds(uplink, &vec![vec![0.0; 1]; 20], Fidelity::Symbol, 31, TRANSMITTED);
        let mut sizes: Vec<f32> = decoded.iter().map(|x| x[0].abs()).collect();
        sizes.sort_unstable_by(f32::total_cmp);
        f64::from(sizes[sizes.len() / 2])
    };
    for (snr_db, reference) in [(0.0, 7.10), (20.0, 0.727), (40.0, 0.0720)] {
        // Eight sets, because each has overlaps of its own.
        let medians = (0..8).map(|seed| {
            let set = SequenceSet::gaussian(30, 32, seed).unwrap();
            median(&overlapping(set, Fading::Rayleigh, snr(snr_db)))
        });
        let found = medians.sum::<f64>() / 8.0;
        assert!((found / reference - 1.0).abs() < 0.1, "{snr_db} dB: {found}, not {reference}");
        let walsh =
            floras(SequenceSet::walsh(30, 32).unwrap(), Receiver::Paper, Fading::Rayleigh, snr(snr_db));
        assert!(median(&walsh) > 9.0, "{snr_db} dB, Walsh: {}", median(&walsh));
    }
}

/// All coordinates share their denominators: η is γ·N(0, I)/|G|, so that ‖η‖²/(dγ²) follows F(d, 1).
#[test]
fn coordinates_are_jointly_a_spherical_cauchy() {
    let (gamma, parameters) = (5, 20);
    let distribution = FisherSnedecor::new(parameters as f64, 1.0).unwrap();
    let mean_square = |x: &[f32]| {
        x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / (parameters * gamma * gamma) as f64
    };
    for fidelity in BOTH {
        let sample = noise(&unused_noise_only(3, gamma, Receiver::Paper), 3, parameters, fidelity);
        let p = p_value(sample.iter().map(|x| mean_square(x)).collect(), &distribution);
        assert!(p > SIGNIFICANCE, "{fidelity:?}: p = {p}");
        // The same marginals from different rounds: independent coordinates.
        let shuffled: Vec<f64> = (0..sample.len())
            .map(|row| {
                let x: Vec<f32> =
                    (0..parameters).map(|i| sample[(row + 577 * i) % sample.len()][i]).collect();
                mean_square(&x)
            })
            .collect();
        let p = p_value(shuffled, &distribution);
        assert!(p < SIGNIFICANCE, "independent coordinates pass with p = {p}");
    }
}

/// With `Re h ~ N(0, ½)` every used sequence adds a Cauchy term of scale `s/√(½ + s²)`.
#[test]
fn under_rayleigh_fading_the_whole_noise_is_cauchy() {
    let (clients, gamma, length) = (12, 4, 16);
    for snr_db in [0.0, 15.0] {
        let set = SequenceSet::walsh(clients + gamma, length).unwrap();
        let uplink = floras(set, Receiver::Paper, Fading::Rayleigh, snr(snr_db));
        let s = snr(snr_db).despread_noise_std(length);
        let scale = gamma as f64 + clients as f64 * s / (0.5 + s * s).sqrt();
        for fidelity in BOTH {
            let sample = first_coordinates(&noise(&uplink, clients, 1, fidelity));
            let p = p_value(sample.clone(), &Cauchy::new(0.0, scale).unwrap());
            assert!(p > SIGNIFICANCE, "{snr_db} dB, {fidelity:?}: p = {p}");
            // The test detects the absence of the used sequences' noise, as in the paper's high-SNR form.
            let p = p_value(sample, &Cauchy::new(0.0, gamma as f64).unwrap());
            assert!(p < SIGNIFICANCE, "{snr_db} dB, {fidelity:?}: the used sequences' noise does not show");
        }
    }
}

/// `m(c) = P(|G| < c)/c² + 2(φ(c)/c − (1 − Φ(c)))`: mean square weight of an unused sequence, in units of `1/s²`.
fn mean_square_weight(c: f64) -> f64 {
    let upper = 1.0 - Normal::standard().cdf(c);
    let density = (-c * c / 2.0).exp() / (2.0 * PI).sqrt();
    (1.0 - 2.0 * upper) / (c * c) + 2.0 * (density / c - upper)
}

#[test]
fn the_clipped_projector_has_the_stated_noise_power() {
    assert!((mean_square_weight(1.0) - 0.849).abs() < 5e-4);
    let gamma = 10;
    let clients = [0, 1, 2];
    for c in [0.5, 1.0, 2.0] {
        let uplink = unused_noise_only(clients.len(), gamma, Receiver::clipped(c).unwrap());
        for fidelity in BOTH {
            let powers: Vec<f64> = (0..ROUNDS)
                .into_par_iter()
                .map(|number| {
                    let round = Round::new(8, 0, number + 1, &clients).unwrap();
                    let channel = match fidelity {
                        Fidelity::Symbol => uplink.realise(&round).unwrap(),
                        Fidelity::Chip => uplink.link(&round).unwrap().effective().unwrap(),
                    };
                    channel.noise_std().powi(2)
                })
                .collect();
            let mean = powers.iter().sum::<f64>() / powers.len() as f64;
            let variance = powers.iter().map(|p| (p - mean).powi(2)).sum::<f64>() / powers.len() as f64;
            let standard_error = (variance / powers.len() as f64).sqrt();
            let expected = gamma as f64 * mean_square_weight(c);
            assert!(
                (mean - expected).abs() < 5.0 * standard_error,
                "c = {c}, {fidelity:?}: {mean} ± {standard_error} instead of {expected}"
            );
            // Bounded in every single round: no heavy tail can come from the weights.
            let most = gamma as f64 / (c * c) + 1e-6;
            assert!(powers.iter().all(|&power| power <= most));
        }
    }
}

/// Cauchy(0, 10) noise exceeds eight standard deviations of the clipped noise in a quarter of the rounds; the clipped
/// noise does so in none of 40,000 (probability 7·10⁻⁹, even with all weights at their bound).
#[test]
fn the_clipped_projectors_noise_has_no_heavy_tail() {
    let gamma = 10;
    let std = (gamma as f64 * mean_square_weight(1.0)).sqrt();
    let beyond = |receiver| {
        let sample = noise(&unused_noise_only(3, gamma, receiver), 3, 1, Fidelity::Chip);
        first_coordinates(&sample).iter().filter(|x| x.abs() > 8.0 * std).count()
    };
    assert_eq!(beyond(Receiver::clipped(1.0).unwrap()), 0);
    // P(|Cauchy(0, 10)| > 8·2.91) = 0.258.
    assert!(beyond(Receiver::Paper) > ROUNDS as usize / 5);
    let sample = noise(&unused_noise_only(3, gamma, Receiver::clipped(1.0).unwrap()), 3, 1, Fidelity::Chip);
    let fourth = first_coordinates(&sample).iter().map(|x| (x / std).powi(4)).sum::<f64>() / ROUNDS as f64;
    // 3·E[ν⁴]/E[ν²]² = 3.03 here, with a standard error of √96/200 = 0.05; a Cauchy sample's is in the thousands.
    assert!((2.78..3.28).contains(&fourth), "kurtosis {fourth}");
}
