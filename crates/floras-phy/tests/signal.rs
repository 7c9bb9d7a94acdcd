//! The recorded signal of a round leads to the round's gains and noise, at the fidelity in use.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_phy::*;

const CLIENTS: [u32; 12] = [3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 97, 93];
const SEQUENCES: usize = 16;

fn round(number: u32) -> Round<'static> {
    Round::new(7, 1, number, &CLIENTS).unwrap()
}

fn snr(snr_db: f64) -> Snr {
    Snr::new(snr_db, SnrConvention::Symbol).unwrap()
}

fn every_family() -> [SequenceSet; 5] {
    [
        SequenceSet::walsh(SEQUENCES, 32).unwrap(),
        SequenceSet::orthonormal(SEQUENCES, 19).unwrap(),
        SequenceSet::gaussian(SEQUENCES, 8, 1).unwrap(),
        SequenceSet::gold(SEQUENCES, 31).unwrap(),
        SequenceSet::zadoff_chu(SEQUENCES, 34).unwrap(),
    ]
}

fn floras(
    sequences: SequenceSet,
    receiver: Receiver,
    modulation: Modulation,
    projector: Projector,
) -> Floras {
    let (snr, pilot) = (snr(12.0), Pilot::new(2.0, 3).unwrap());
    let channels = Fading::Rayleigh.into();
    let assignment = Assignment::default();
    Floras::new(FlorasSettings {
        sequences,
        modulation,
        receiver,
        channels,
        snr,
        pilot,
        projector,
        assignment,
        ..FlorasSettings::default()
    })
}

/// The effective channel that the round has at a fidelity.
fn channel(uplink: &dyn Uplink, round: &Round<'_>, fidelity: Fidelity) -> EffectiveChannel {
    match fidelity {
        Fidelity::Symbol => uplink.realise(round).unwrap(),
        Fidelity::Chip => uplink.link(round).unwrap().effective().unwrap(),
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `v = Σ_j w_j a_j`, `g_k = h_k·vᵀa_k` and `ν = s‖v‖`, with whole matrices.
#[test]
fn gains_and_noise_follow_from_the_signal() {
    let modulations = [Modulation::Real, Modulation::PhaseCorrected(PhaseError::gaussian(0.3).unwrap())];
    for sequences in every_family() {
        let matrix: Vec<Vec<f64>> = (0..SEQUENCES).map(|j| sequences.sequence(j).unwrap()).collect();
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
            for (modulation, projector) in modulations.into_iter().zip(Projector::ALL) {
                for fidelity in Fidelity::ALL {
                    let uplink = floras(sequences.clone(), receiver, modulation, projector);
                    let signal = uplink.signal(&round(2), fidelity).unwrap().unwrap();
                    let channel = channel(&uplink, &round(2), fidelity);
                    let v: Vec<f64> = (0..sequences.length())
                        .map(|chip| (0..SEQUENCES).map(|j| signal.weights[j] * matrix[j][chip]).sum())
                        .collect();
                    for (place, gain) in channel.gains().iter().enumerate() {
                        let expected = signal.amplitudes[place] * inner(&v, &matrix[signal.assigned[place]]);
                        assert!(
                            (gain - expected).abs() < 1e-9 * (1.0 + gain.abs()),
                            "{sequences} {fidelity}"
                        );
                    }
                    let noise_std = signal.symbol_noise_std * inner(&v, &v).sqrt();
                    assert!((noise_std / channel.noise_std() - 1.0).abs() < 1e-9, "{sequences} {fidelity}");
                    assert_eq!(signal.length, sequences.length());
                }
            }
        }
    }
}

/// With orthonormal sequences `g_k + j·c_k = w⃗ᴴh` over adjacent entries, and `ν = s·√(Σ w²)`.
#[test]
fn gains_of_branches_follow_from_the_signal() {
    let sequences = every_family()[0].clone();
    let settings =
        floras(sequences, Receiver::Mmse, Modulation::Complex, Projector::default()).settings().clone();
    let parameters_per_symbol = ParametersPerSymbol::Two;
    let uplink = Floras::new(FlorasSettings { antennas: 3, parameters_per_symbol, ..settings });
    for fidelity in Fidelity::ALL {
        let signal = uplink.signal(&round(2), fidelity).unwrap().unwrap();
        let channel = channel(&uplink, &round(2), fidelity);
        let clients = round(2).clients().len();
        assert_eq!((signal.branches, signal.channels.len()), (6, 3 * clients));
        assert_eq!((signal.amplitudes.len(), signal.estimates.len()), (6 * clients, 6 * SEQUENCES));
        let complex = |values: &[f64], at: usize| Complex64::new(values[2 * at], values[2 * at + 1]);
        for place in 0..clients {
            let gain: Complex64 = (0..3)
                .map(|antenna| {
                    let weight = complex(&signal.weights, 3 * signal.assigned[place] + antenna);
                    assert_eq!(
                        complex(&signal.amplitudes, 3 * place + antenna),
                        signal.channels[3 * place + antenna]
                    );
                    weight.conj() * signal.channels[3 * place + antenna]
                })
                .sum();
            let block = &channel.blocks()[0];
            let found = Complex64::new(block.gains[place], block.cross_gains[place]);
            assert!((found - gain).norm() < 1e-9, "{fidelity}");
        }
        let noise_std = signal.symbol_noise_std * inner(&signal.weights, &signal.weights).sqrt();
        assert!((noise_std / channel.noise_std() - 1.0).abs() < 1e-9, "{fidelity}");
    }
}

#[test]
fn weights_are_the_receivers_for_the_estimates() {
    for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
        for (sequences, projector) in [
            (every_family()[0].clone(), Projector::Normalised),
            (every_family()[2].clone(), Projector::Printed),
        ] {
            let uplink = floras(sequences, receiver, Modulation::Real, projector);
            for fidelity in Fidelity::ALL {
                let signal = uplink.signal(&round(2), fidelity).unwrap().unwrap();
                let pilot_noise_std = signal.pilot_noise_std.unwrap();
                assert!((signal.symbol_noise_std / pilot_noise_std / 12_f64.sqrt() - 1.0).abs() < 1e-12);
                for (weight, &estimate) in signal.weights.iter().zip(&signal.estimates) {
                    assert_eq!(*weight, receiver.weight(estimate, pilot_noise_std));
                }
            }
        }
    }
}

#[test]
fn fidelities_share_channels_and_differ_in_pilot_noise() {
    let [walsh, _, gaussian, ..] = every_family();
    for (sequences, same) in [(walsh, false), (gaussian, true)] {
        let uplink = floras(sequences, Receiver::Paper, Modulation::Real, Projector::Normalised);
        let [symbol, chip] = [Fidelity::Symbol, Fidelity::Chip]
            .map(|fidelity| uplink.signal(&round(2), fidelity).unwrap().unwrap());
        assert_eq!((&symbol.channels, &symbol.assigned), (&chip.channels, &chip.assigned));
        // Overlapping sequences have one way to estimate.
        assert_eq!(symbol.estimates == chip.estimates, same);
    }
}

#[test]
fn amplitudes_are_what_the_modulation_makes_of_channels() {
    let signal = |modulation| {
        let uplink = floras(every_family()[0].clone(), Receiver::Mmse, modulation, Projector::default());
        uplink.signal(&round(2), Fidelity::Symbol).unwrap().unwrap()
    };
    let drawn = Channels::from(Fading::Rayleigh).draw(&round(2)).unwrap();
    let real = signal(Modulation::Real);
    assert_eq!(real.channels, drawn);
    assert_eq!(real.amplitudes, drawn.iter().map(|h| h.re).collect::<Vec<_>>());
    let corrected = signal(Modulation::PhaseCorrected(PhaseError::None));
    assert_eq!(corrected.amplitudes, drawn.iter().map(|h| h.norm()).collect::<Vec<_>>());
}

/// The squared errors of 16·2500 estimates over `s_p²` have mean 1 and a standard error of √(2/40000) = 0.0071. Five of them:
/// a false alarm has probability 6e-7, and an error of `s` in place of `s_p`, a factor of 12, is always found.
#[test]
fn estimates_err_by_the_pilots_noise() {
    let uplink = floras(every_family()[0].clone(), Receiver::Mmse, Modulation::Real, Projector::default());
    for fidelity in Fidelity::ALL {
        let (mut squares, mut count) = (0.0, 0.0);
        for number in 1..=2500 {
            let signal = uplink.signal(&round(number), fidelity).unwrap().unwrap();
            let mut truth = [0.0; SEQUENCES];
            for (&sequence, &amplitude) in signal.assigned.iter().zip(&signal.amplitudes) {
                truth[sequence] = amplitude;
            }
            for (estimate, truth) in signal.estimates.iter().zip(truth) {
                squares += ((estimate - truth) / signal.pilot_noise_std.unwrap()).powi(2);
                count += 1.0;
            }
        }
        assert!((squares / count - 1.0_f64).abs() < 0.036, "{fidelity}: {}", squares / count);
    }
}

#[test]
fn schemes_without_sequences_have_one_weight() {
    let noise = NoiseReference::SameBandwidth;
    let inversion = ChannelInversion::new(ChannelInversionSettings {
        admission: Admission::at_amplitude(0.5).unwrap(),
        power: PowerRule::WorstAdmitted,
        noise,
        length: 32,
        channels: Fading::Rayleigh.into(),
        snr: snr(12.0),
        artificial_noise_std: 0.0,
    })
    .unwrap();
    let corrected = PhaseCorrected::new(PhaseCorrectedSettings {
        phase_error: PhaseError::gaussian(0.3).unwrap(),
        noise,
        length: 32,
        channels: Fading::Rayleigh.into(),
        snr: snr(12.0),
    })
    .unwrap();
    for uplink in [&inversion as &dyn Uplink, &corrected] {
        for fidelity in Fidelity::ALL {
            let signal = uplink.signal(&round(2), fidelity).unwrap().unwrap();
            let channel = channel(uplink, &round(2), fidelity);
            let [weight] = signal.weights[..] else { panic!("{:?}", signal.weights) };
            for (gain, amplitude) in channel.gains().iter().zip(&signal.amplitudes) {
                assert!((gain - amplitude * weight).abs() < 1e-12, "{}", uplink.name());
            }
            assert!((channel.noise_std() / (signal.symbol_noise_std * weight) - 1.0).abs() < 1e-12);
            assert_eq!(signal.channels, Channels::from(Fading::Rayleigh).draw(&round(2)).unwrap());
            assert!(signal.assigned.is_empty() && signal.estimates.is_empty());
            assert_eq!((signal.length, signal.pilot_noise_std), (32, None));
        }
    }
    let silent = inversion.signal(&round(2), Fidelity::Symbol).unwrap().unwrap();
    assert!(silent.amplitudes.contains(&0.0) && silent.amplitudes.iter().any(|&amplitude| amplitude > 0.0));
}

#[test]
fn schemes_without_a_radio_have_no_signal() {
    for uplink in [&Ideal as &dyn Uplink, &CentralGaussian::new(1.0).unwrap()] {
        assert_eq!(uplink.signal(&round(2), Fidelity::Symbol), Ok(None));
    }
}
