//! Chip level and symbol level: two ways to simulate one uplink.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use floras_core::random::{Purpose, StreamName};
use floras_phy::*;
use rayon::prelude::*;
use support::{SIGNIFICANCE, common_p_value, decode_rounds, snr};

const BOTH: [Fidelity; 2] = [Fidelity::Symbol, Fidelity::Chip];

/// Seven sequences of every family.
fn every_set() -> [SequenceSet; 5] {
    [
        SequenceSet::walsh(7, 8).unwrap(),
        SequenceSet::orthonormal(7, 9).unwrap(),
        SequenceSet::gaussian(7, 12, 5).unwrap(),
        SequenceSet::gold(7, 31).unwrap(),
        SequenceSet::zadoff_chu(7, 14).unwrap(),
    ]
}

fn every_modulation() -> [Modulation; 3] {
    [
        Modulation::Real,
        Modulation::PhaseCorrected(PhaseError::None),
        Modulation::PhaseCorrected(PhaseError::uniform(0.8).unwrap()),
    ]
}

const EVERY_RECEIVER: [Receiver; 3] = [Receiver::Paper, Receiver::Mmse, Receiver::Clipped(ClipLevel::ONE)];

fn every_floras(sets: &[SequenceSet], channels: &Channels, snr: Snr) -> Vec<Floras> {
    let mut variants = Vec::new();
    for sequences in sets {
        for modulation in every_modulation() {
            for receiver in EVERY_RECEIVER {
                let (sequences, channels) = (sequences.clone(), channels.clone());
                variants.push(Floras::new(FlorasSettings {
                    sequences,
                    modulation,
                    receiver,
                    channels,
                    snr,
                    ..FlorasSettings::default()
                }));
            }
        }
    }
    variants
}

/// Receivers of several branches: real with three antennas, complex with one and with two, each with one or two parameters per symbol.
fn every_combining(sets: &[SequenceSet], channels: &Channels, snr: Snr) -> Vec<Floras> {
    let (one, two) = (ParametersPerSymbol::One, ParametersPerSymbol::Two);
    let receptions = [
        (Modulation::Real, 3, one),
        (Modulation::Complex, 1, one),
        (Modulation::Complex, 1, two),
        (Modulation::Complex, 2, two),
    ];
    let mut variants = Vec::new();
    for sequences in sets {
        for (modulation, antennas, parameters_per_symbol) in receptions {
            for receiver in [EVERY_RECEIVER[0], EVERY_RECEIVER[2], Receiver::regularised(3.0).unwrap()] {
                variants.push(Floras::new(FlorasSettings {
                    sequences: sequences.clone(),
                    modulation,
                    antennas,
                    parameters_per_symbol,
                    receiver,
                    channels: channels.clone(),
                    snr,
                    ..FlorasSettings::default()
                }));
            }
        }
    }
    variants
}

fn random_updates(clients: u32, parameters: usize) -> Vec<Vec<f32>> {
    (0..clients)
        .map(|client| {
            let mut update = vec![0.0; parameters];
            StreamName::new(77, Purpose::BENCHMARK).client(client).normals().fill(0, &mut update);
            update
        })
        .collect()
}

#[test]
fn the_noiseless_sum_is_exact() {
    // 26 clients are read in groups of 20, 5 and 1; 40,000 parameters take three tasks.
    let clients: Vec<u32> = (10..36).collect();
    let updates = random_updates(26, 40_000);
    let orthonormal = [SequenceSet::walsh(26, 32).unwrap(), SequenceSet::orthonormal(26, 26).unwrap()];
    let mut schemes: Vec<Box<dyn Uplink>> =
        vec![Box::new(Ideal), Box::new(CentralGaussian::new(0.0).unwrap())];
    for floras in every_floras(&orthonormal, &Fading::Rayleigh.into(), Snr::NOISELESS) {
        schemes.push(Box::new(floras));
    }
    for floras in every_combining(&orthonormal, &Fading::Rayleigh.into(), Snr::NOISELESS) {
        schemes.push(Box::new(floras));
    }
    for noise in [NoiseReference::PerSymbol, NoiseReference::SameBandwidth] {
        for power in [PowerRule::WorstAdmitted, PowerRule::FixedAtThreshold] {
            let settings = ChannelInversionSettings {
                admission: Admission::at_amplitude(1e-6).unwrap(),
                power,
                noise,
                length: 32,
                channels: Fading::Rayleigh.into(),
                snr: Snr::NOISELESS,
                artificial_noise_std: 0.0,
            };
            schemes.push(Box::new(ChannelInversion::new(settings).unwrap()));
        }
        let flat = PhaseCorrected::new(PhaseCorrectedSettings {
            phase_error: PhaseError::None,
            noise,
            length: 32,
            channels: Fading::None.into(),
            snr: Snr::NOISELESS,
        })
        .unwrap();
        schemes.push(Box::new(flat));
    }
    for scheme in &schemes {
        for fidelity in BOTH {
            let round = Round::new(3, 0, 1, &clients).unwrap();
            let decoded = transmit(scheme.as_ref(), &round, &updates, fidelity).unwrap();
            for (parameter, &sum) in decoded.sum.iter().enumerate() {
                let exact: f64 = updates.iter().map(|x| f64::from(x[parameter])).sum();
                assert!((f64::from(sum) - exact).abs() < 1e-4, "{} {fidelity:?}", scheme.name());
            }
        }
    }
}

/// A statistic of a decoded vector.
type Statistic = fn(&[f32]) -> f64;

/// The compared statistics of decoded vectors: marginals, and joint statistics of two coordinates.
const STATISTICS: [(&str, Statistic); 5] = [
    ("first coordinate", |x| x[0].into()),
    ("silent coordinate", |x| x[1].into()),
    ("length", |x| x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt()),
    ("product of two silent coordinates", |x| f64::from(x[1]) * f64::from(x[2])),
    ("ratio of two silent coordinates", |x| f64::from(x[1]) / f64::from(x[2])),
];

const ROUNDS: u32 = 30_000;

/// Parameter 0 carries a signal; parameters 1 and 2 nothing but noise.
fn probes() -> Vec<Vec<f32>> {
    vec![vec![1.0, 0.0, 0.0], vec![-0.4, 0.0, 0.0], vec![2.0, 0.0, 0.0], vec![0.3, 0.0, 0.0]]
}

fn lowest_p_value(left: &[Vec<f32>], right: &[Vec<f32>]) -> (f64, &'static str) {
    let p_values = STATISTICS.map(|(name, statistic)| {
        let of = |sample: &[Vec<f32>]| sample.iter().map(|x| statistic(x)).collect();
        (common_p_value(of(left), of(right)), name)
    });
    p_values.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
}

/// With 30,000 rounds on each side the test detects distances of 0.020 between distribution functions. Noise that is wrong by a fifth
/// moves that of a Cauchy distribution by 0.029 and that of a normal distribution by 0.044: `a_wrong_noise_scale_does_not_pass` shows
/// that this is detected.
#[test]
fn chip_and_symbol_level_agree_in_distribution() {
    for floras in every_floras(&every_set(), &Fading::Rayleigh.into(), snr(5.0)) {
        let symbol = decode_rounds(&floras, &probes(), Fidelity::Symbol, 1, ROUNDS);
        let chip = decode_rounds(&floras, &probes(), Fidelity::Chip, 2, ROUNDS);
        let (p_value, statistic) = lowest_p_value(&symbol, &chip);
        assert!(p_value > SIGNIFICANCE, "{:?}: {statistic} has p = {p_value}", floras.settings());
    }
}

/// As for one branch, with a channel that ages in blocks for one of the sets. Parameter 1 is the imaginary part of the symbol of
/// parameter 0, so that cross-talk shows there. Overlapping sequences have no shorter way than the chip level's own pilot.
#[test]
fn combining_receivers_agree_at_both_fidelities() {
    let [walsh, orthonormal, gaussian, ..] = every_set();
    let ageing =
        Channels::from(Fading::Rayleigh).with_ageing("correlation=0.8".parse().unwrap(), Some(2)).unwrap();
    let cases =
        [(walsh, Fading::Rayleigh.into()), (orthonormal, ageing), (gaussian, Fading::Rayleigh.into())];
    for (set, channels) in cases {
        for floras in every_combining(std::slice::from_ref(&set), &channels, snr(5.0)) {
            let symbol = decode_rounds(&floras, &probes(), Fidelity::Symbol, 1, ROUNDS);
            let chip = decode_rounds(&floras, &probes(), Fidelity::Chip, 2, ROUNDS);
            let (p_value, statistic) = lowest_p_value(&symbol, &chip);
            assert!(p_value > SIGNIFICANCE, "{:?}: {statistic} has p = {p_value}", floras.settings());
        }
    }
}

/// The symbol level without cross-talk, and with one antenna less, is distinguished from the chip level.
#[test]
fn a_wrong_combination_does_not_pass() {
    let clients: Vec<u32> = (0..4).collect();
    let [walsh, ..] = every_set();
    let settings = FlorasSettings {
        sequences: walsh,
        modulation: Modulation::Complex,
        antennas: 2,
        parameters_per_symbol: ParametersPerSymbol::Two,
        receiver: Receiver::Mmse,
        snr: snr(5.0),
        ..FlorasSettings::default()
    };
    let floras = Floras::new(settings.clone());
    let chip = decode_rounds(&floras, &probes(), Fidelity::Chip, 2, ROUNDS);
    let without: Vec<Vec<f32>> = (0..ROUNDS)
        .into_par_iter()
        .map(|number| {
            let round = Round::new(1, 0, number + 1, &clients).unwrap();
            let channel = floras.realise(&round).unwrap();
            let plain = EffectiveChannel::new(channel.gains().to_vec(), channel.noise_std()).unwrap();
            plain.apply(&probes(), round.stream_name(Purpose::PAYLOAD_NOISE)).unwrap()
        })
        .collect();
    let fewer = Floras::new(FlorasSettings { antennas: 1, ..settings });
    let fewer = decode_rounds(&fewer, &probes(), Fidelity::Symbol, 1, ROUNDS);
    for (wrong, name) in [(without, "no cross-talk"), (fewer, "one antenna")] {
        let (p_value, _) = lowest_p_value(&wrong, &chip);
        assert!(p_value < SIGNIFICANCE, "{name} passed with p = {p_value}");
    }
}

#[test]
fn a_wrong_noise_scale_does_not_pass() {
    let clients: Vec<u32> = (0..4).collect();
    for floras in every_floras(&every_set(), &Fading::Rayleigh.into(), snr(5.0)) {
        let wrong: Vec<Vec<f32>> = (0..ROUNDS)
            .into_par_iter()
            .map(|number| {
                let round = Round::new(1, 0, number + 1, &clients).unwrap();
                let channel = floras.realise(&round).unwrap();
                let louder =
                    EffectiveChannel::new(channel.gains().to_vec(), 1.2 * channel.noise_std()).unwrap();
                louder.apply(&probes(), round.stream_name(Purpose::PAYLOAD_NOISE)).unwrap()
            })
            .collect();
        let chip = decode_rounds(&floras, &probes(), Fidelity::Chip, 2, ROUNDS);
        let (p_value, _) = lowest_p_value(&wrong, &chip);
        assert!(p_value < SIGNIFICANCE, "{:?} passed with p = {p_value}", floras.settings());
    }
}

/// Noise of the right marginal distribution with a separate denominator for each coordinate, as the paper's proofs assume.
#[test]
fn independent_coordinates_do_not_pass() {
    let [walsh, ..] = every_set();
    let floras = &every_floras(&[walsh], &Fading::Rayleigh.into(), snr(5.0))[0];
    let decode = |seed| decode_rounds(floras, &probes(), Fidelity::Symbol, seed, ROUNDS);
    let (joint, other) = (decode(1), decode(3));
    let independent: Vec<Vec<f32>> = joint.iter().zip(&other).map(|(x, y)| vec![x[0], x[1], y[2]]).collect();
    let chip = decode_rounds(floras, &probes(), Fidelity::Chip, 2, ROUNDS);
    let (p_value, _) = lowest_p_value(&independent, &chip);
    assert!(p_value < SIGNIFICANCE, "p = {p_value}");
}

/// Bounded receivers have moments; the paper's does not, so its characteristic function is compared instead.
#[test]
fn moments_agree_between_the_fidelities() {
    for floras in every_floras(&every_set(), &Fading::Rayleigh.into(), snr(5.0)) {
        let [symbol, chip] = [(Fidelity::Symbol, 11), (Fidelity::Chip, 12)]
            .map(|(fidelity, seed)| decode_rounds(&floras, &probes(), fidelity, seed, ROUNDS));
        let bounded = floras.settings().receiver != Receiver::Paper;
        let moments: &[fn(f64) -> f64] = if bounded {
            &[|x| x, |x| x * x, f64::cos]
        } else {
            &[f64::cos, |x| (x / 10.0).cos(), |x| (x / 3.0).sin()]
        };
        for coordinate in 0..2 {
            for moment in moments {
                let [left, right] = [&symbol, &chip].map(|sample| {
                    let values: Vec<f64> = sample.iter().map(|x| moment(x[coordinate].into())).collect();
                    let mean = values.iter().sum::<f64>() / values.len() as f64;
                    let variance =
                        values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64;
                    (mean, variance / values.len() as f64)
                });
                let deviations = (left.0 - right.0).abs() / (left.1 + right.1).sqrt();
                // Beyond five standard errors once in 1.7 million comparisons; there are 162.
                assert!(deviations < 5.0, "{:?}: {} and {}", floras.settings(), left.0, right.0);
            }
        }
    }
}

#[test]
fn schemes_without_spreading_agree_at_both_fidelities_too() {
    let inversion = |artificial_noise_std| {
        ChannelInversion::new(ChannelInversionSettings {
            admission: Admission::at_amplitude(0.3).unwrap(),
            power: PowerRule::WorstAdmitted,
            noise: NoiseReference::SameBandwidth,
            length: 5,
            channels: Fading::nakagami(2.0).unwrap().into(),
            snr: snr(5.0),
            artificial_noise_std,
        })
        .unwrap()
    };
    let corrected = PhaseCorrected::new(PhaseCorrectedSettings {
        phase_error: PhaseError::gaussian(0.4).unwrap(),
        noise: NoiseReference::PerSymbol,
        length: 5,
        channels: Fading::rician(2.0).unwrap().into(),
        snr: snr(5.0),
    });
    let schemes: [&dyn Uplink; 4] =
        [&inversion(0.0), &inversion(1.0), &corrected.unwrap(), &CentralGaussian::new(1.5).unwrap()];
    for scheme in schemes {
        let symbol = decode_rounds(scheme, &probes(), Fidelity::Symbol, 1, ROUNDS);
        let chip = decode_rounds(scheme, &probes(), Fidelity::Chip, 2, ROUNDS);
        let (p_value, statistic) = lowest_p_value(&symbol, &chip);
        assert!(p_value > SIGNIFICANCE, "{}: {statistic} has p = {p_value}", scheme.name());
    }
}

#[test]
fn results_do_not_depend_on_threads() {
    let updates = random_updates(4, 70_001);
    let clients: Vec<u32> = (0..4).collect();
    let round = Round::new(9, 1, 3, &clients).unwrap();
    let mut variants = every_floras(&every_set(), &Fading::Rayleigh.into(), snr(5.0));
    variants.extend(every_combining(&every_set()[1..2], &Fading::Rayleigh.into(), snr(5.0)));
    for floras in variants {
        for fidelity in BOTH {
            let [one, two, five] = [1, 2, 5].map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let decoded = pool.install(|| transmit(&floras, &round, &updates, fidelity)).unwrap();
                decoded.sum.iter().map(|value| value.to_bits()).collect::<Vec<u32>>()
            });
            assert!(one == two && one == five, "{:?}", floras.settings());
        }
    }
}

#[test]
fn a_short_trace_ends_the_round() {
    let fading = support::silent_fading(4, 3);
    for floras in every_floras(&every_set(), &fading, snr(5.0)) {
        let round = Round::new(1, 0, 4, &[0, 1, 2, 3]).unwrap();
        for fidelity in BOTH {
            let error = transmit(&floras, &round, &probes(), fidelity).unwrap_err();
            assert_eq!(error, UplinkError::TraceTooShort { round: 3, rounds: 3 });
        }
    }
}
