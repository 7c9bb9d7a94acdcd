//! The channel between pilot and payload: ageing, the clients' estimates, path loss.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use floras_core::random::Domain;
use floras_phy::*;
use support::{SIGNIFICANCE, common_p_value, decode_rounds, snr};

fn ageing(text: &str) -> Ageing {
    text.parse().unwrap()
}

fn fading(text: &str) -> Channels {
    Channels::from(text.parse::<Fading>().unwrap())
}

fn cell(text: &str) -> PathLoss {
    text.parse().unwrap()
}

fn inversion(channels: Channels, artificial_noise_std: f64) -> ChannelInversion {
    ChannelInversion::new(ChannelInversionSettings {
        admission: Admission::at_amplitude(0.3).unwrap(),
        power: PowerRule::WorstAdmitted,
        noise: NoiseReference::SameBandwidth,
        length: 5,
        channels,
        snr: snr(5.0),
        artificial_noise_std,
    })
    .unwrap()
}

fn phase_corrected(channels: Channels, phase_error: PhaseError) -> PhaseCorrected {
    let (noise, snr) = (NoiseReference::PerSymbol, snr(5.0));
    PhaseCorrected::new(PhaseCorrectedSettings { phase_error, noise, length: 5, channels, snr }).unwrap()
}

fn floras(channels: Channels, sequences: SequenceSet, modulation: Modulation) -> Floras {
    let (receiver, snr) = (Receiver::clipped(1.0).unwrap(), snr(5.0));
    Floras::new(FlorasSettings {
        sequences,
        modulation,
        receiver,
        channels,
        snr,
        ..FlorasSettings::default()
    })
}

/// Power, mean amplitude and correlation with the pilot in blocks 1, 2 and 4. For Rician fading with factor `k` the line of sight
/// is constant: `E h_b·h_0* = (k + ρᵇ)/(k + 1)`. 100,000 draws have standard errors of at most 0.0032; the 30 comparisons use five
/// of them, with a false alarm once in 58,000 runs. An error of 0.025 is detected with a probability of 99.7%.
#[test]
fn every_block_has_its_marginal_and_correlation() {
    let clients: Vec<u32> = (0..100_000).collect();
    let round = Round::new(4, 0, 1, &clients).unwrap().with_parameters(10);
    for (text, sight) in [("rayleigh", 0.0), ("rician=3", 3.0)] {
        for step in ["correlation=0.8", "correlation=-0.5", "doppler=0.1", "correlation=0"] {
            let rho = ageing(step).correlation();
            let channels = fading(text).with_ageing(ageing(step), Some(2)).unwrap();
            let (pilot, blocks) = (channels.draw(&round).unwrap(), channels.draw_payload(&round).unwrap());
            assert_eq!(blocks.iter().map(|block| block.parameters).collect::<Vec<_>>(), [2; 5]);
            for number in [1, 2, 4] {
                let payload = &blocks[number - 1].channels;
                let count = payload.len() as f64;
                let mean = |f: &dyn Fn(Complex64) -> f64| payload.iter().map(|&h| f(h)).sum::<f64>() / count;
                assert!((mean(&|h| h.norm_sqr()) - 1.0).abs() < 0.016, "{text} {step}");
                assert!((mean(&|h| h.norm()) - channels.mean_amplitude()).abs() < 0.016, "{text} {step}");
                let product: Complex64 = payload.iter().zip(&pilot).map(|(b, p)| b * p.conj()).sum();
                let expected = (sight + rho.powi(number as i32)) / (sight + 1.0);
                assert!((product / count - expected).norm() < 0.016, "{text} {step} block {number}");
            }
        }
    }
}

#[test]
fn the_last_block_holds_the_rest() {
    let clients = [0, 1];
    let channels = fading("rayleigh").with_ageing(ageing("correlation=0.9"), Some(4)).unwrap();
    let round = Round::new(4, 0, 1, &clients).unwrap();
    let lengths = |parameters| -> Vec<usize> {
        let blocks = channels.draw_payload(&round.with_parameters(parameters)).unwrap();
        blocks.iter().map(|block| block.parameters).collect()
    };
    assert_eq!((lengths(10), lengths(8), lengths(3)), (vec![4, 4, 2], vec![4, 4], vec![3]));
    assert_eq!(channels.draw_payload(&round), Err(UplinkError::ParametersUnknown { coherence: 4 }));
    let fine = fading("rayleigh").with_ageing(ageing("correlation=0.9"), Some(1)).unwrap();
    let error = fine.draw_payload(&round.with_parameters(1 << 24)).unwrap_err();
    assert!(error.to_string().contains("16777216 blocks for each of 2 clients"), "{error}");
}

/// One step at `ρ = 1`, fully compensated path loss and exact estimates yield the same bits.
#[test]
fn settings_without_effect_leave_every_bit() {
    let clients: Vec<u32> = (0..4).collect();
    let updates: Vec<Vec<f32>> = (0..4).map(|k| vec![0.1 * k as f32 - 0.2; 300]).collect();
    for text in ["rayleigh", "rician=2"] {
        let plain = fading(text);
        let neutral = plain.clone().with_ageing(ageing("doppler=0"), Some(7)).unwrap();
        let neutral = neutral.with_path_loss(cell("exponent=3.7,shadowing_db=8,power_control=1")).unwrap();
        let neutral = neutral.with_estimation_error(0.0).unwrap();
        let corrected = Modulation::PhaseCorrected(PhaseError::uniform(0.3).unwrap());
        let schemes = |channels: &Channels| -> Vec<Box<dyn Uplink>> {
            let walsh = SequenceSet::walsh(7, 8).unwrap();
            vec![
                Box::new(floras(channels.clone(), walsh.clone(), Modulation::Real)),
                Box::new(floras(channels.clone(), walsh, corrected)),
                Box::new(inversion(channels.clone(), 1.0)),
                Box::new(phase_corrected(channels.clone(), PhaseError::None)),
            ]
        };
        for (one, other) in schemes(&plain).iter().zip(&schemes(&neutral)) {
            let round = Round::new(3, 1, 2, &clients).unwrap().with_parameters(300);
            for fidelity in [Fidelity::Symbol, Fidelity::Chip] {
                let [one, other] =
                    [one, other].map(|uplink| transmit(uplink.as_ref(), &round, &updates, fidelity).unwrap());
                assert_eq!(one, other, "{text} {fidelity}");
            }
        }
    }
}

/// The compared statistics: coordinates of the first, second and third block, and products between blocks.
type Statistic = fn(&[f32]) -> f64;
const STATISTICS: [Statistic; 5] = [
    |x| x[0].into(),
    |x| x[1].into(),
    |x| x[2].into(),
    |x| f64::from(x[0]) * f64::from(x[1]),
    |x| f64::from(x[0]) - f64::from(x[2]),
];

const ROUNDS: u32 = 30_000;

fn lowest_p_value(left: &[Vec<f32>], right: &[Vec<f32>]) -> f64 {
    let p_values = STATISTICS.map(|statistic| {
        let of = |sample: &[Vec<f32>]| sample.iter().map(|x| statistic(x)).collect();
        common_p_value(of(left), of(right))
    });
    p_values.into_iter().fold(1.0, f64::min)
}

/// All three parameters carry a signal, each in a block of its own.
fn probes() -> Vec<Vec<f32>> {
    vec![vec![3.0, 3.0, 3.0], vec![-0.4, 1.0, 0.0], vec![2.0, 0.5, 0.0], vec![0.3, 0.0, 1.0]]
}

fn every_scheme(channels: &Channels) -> Vec<Box<dyn Uplink>> {
    let corrected = Modulation::PhaseCorrected(PhaseError::gaussian(0.2).unwrap());
    let of = |channels: &Channels, set, modulation| Box::new(floras(channels.clone(), set, modulation));
    vec![
        of(channels, SequenceSet::walsh(7, 8).unwrap(), Modulation::Real),
        of(channels, SequenceSet::walsh(7, 8).unwrap(), corrected),
        of(channels, SequenceSet::gold(7, 31).unwrap(), Modulation::Real),
        Box::new(inversion(channels.clone(), 0.0)),
        Box::new(inversion(channels.clone(), 1.0)),
        Box::new(phase_corrected(channels.clone(), PhaseError::None)),
    ]
}

/// With 30,000 rounds on each side the test detects distances of 0.020 between distribution functions. A payload with the pilot's
/// channel fails for both schemes, which use the pilot in different ways.
#[test]
fn chip_and_symbol_level_agree_in_every_block() {
    for text in ["rayleigh", "rician=2"] {
        let aged = |channels: Channels| channels.with_ageing(ageing("correlation=0.7"), Some(1)).unwrap();
        let erring = fading(text).with_estimation_error(0.3).unwrap();
        for (aged, plain) in every_scheme(&aged(erring.clone())).iter().zip(&every_scheme(&erring)) {
            let symbol = decode_rounds(aged.as_ref(), &probes(), Fidelity::Symbol, 1, ROUNDS);
            let chip = decode_rounds(aged.as_ref(), &probes(), Fidelity::Chip, 2, ROUNDS);
            let p_value = lowest_p_value(&symbol, &chip);
            assert!(p_value > SIGNIFICANCE, "{} {text}: p = {p_value}", aged.name());
            let other = decode_rounds(plain.as_ref(), &probes(), Fidelity::Chip, 3, ROUNDS);
            let p_value = lowest_p_value(&symbol, &other);
            assert!(p_value < SIGNIFICANCE, "{} {text} without ageing: p = {p_value}", aged.name());
        }
    }
}

/// The decoded sum of the chip level agrees with its effective channel, in blocks that begin and end within tiles.
#[test]
fn a_link_has_the_gains_of_its_blocks() {
    let clients: Vec<u32> = (0..4).collect();
    let round = Round::new(3, 1, 2, &clients).unwrap().with_parameters(700);
    let channels = fading("rayleigh").with_ageing(ageing("correlation=0.7"), Some(37)).unwrap();
    let noiseless = |modulation| {
        let settings = floras(channels.clone(), SequenceSet::walsh(4, 4).unwrap(), modulation);
        Floras::new(FlorasSettings { snr: Snr::NOISELESS, ..settings.settings().clone() })
    };
    let updates: Vec<Vec<f32>> =
        (0..4).map(|k| (0..700).map(|i| ((i * (k + 2)) % 11) as f32 - 5.0).collect()).collect();
    for modulation in [Modulation::Real, Modulation::PhaseCorrected(PhaseError::None)] {
        let uplink = noiseless(modulation);
        let decoded = transmit(&uplink, &round, &updates, Fidelity::Chip).unwrap();
        let symbol = transmit(&uplink, &round, &updates, Fidelity::Symbol).unwrap();
        assert_eq!(decoded.channel.blocks().len(), 19);
        for (i, (chip, symbol)) in decoded.sum.iter().zip(&symbol.sum).enumerate() {
            let block = &decoded.channel.blocks()[i / 37];
            let expected: f64 = block.gains.iter().zip(&updates).map(|(g, x)| g * f64::from(x[i])).sum();
            assert!((f64::from(*chip) - expected).abs() < 1e-3 * (1.0 + expected.abs()), "parameter {i}");
            assert!((f64::from(*symbol) - expected).abs() < 1e-3 * (1.0 + expected.abs()), "parameter {i}");
        }
        let short = round.with_parameters(699);
        assert!(uplink.link(&short).unwrap().transmit(&updates, round_noise(&round)).is_err());
    }
}

fn round_noise(round: &Round<'_>) -> random::StreamName {
    round.stream_name(random::Purpose::PAYLOAD_NOISE)
}

/// After inversion client `k` arrives with `√η·h_b/ĥ`, and its gain is the real part of `h_b/ĥ`. Admission and power follow `ĥ`.
#[test]
fn inversion_divides_by_the_estimate() {
    let clients: Vec<u32> = (0..40).collect();
    let round = Round::new(3, 1, 2, &clients).unwrap().with_parameters(3);
    let channels = fading("rayleigh").with_estimation_error(0.4).unwrap();
    let channels = channels.with_ageing(ageing("correlation=0.9"), Some(1)).unwrap();
    let (estimates, blocks) =
        (channels.draw_estimates(&round).unwrap(), channels.draw_payload(&round).unwrap());
    assert_ne!(estimates, channels.draw(&round).unwrap());
    let uplink = inversion(channels, 2.0);
    let channel = uplink.realise(&round).unwrap();
    let admitted: Vec<bool> = estimates.iter().map(|h| h.norm() >= 0.3).collect();
    let count = admitted.iter().filter(|&&admitted| admitted).count();
    assert!(count < 40, "some estimates are below the threshold");
    let weakest = estimates.iter().map(|h| h.norm()).filter(|&h| h >= 0.3).fold(f64::INFINITY, f64::min);
    let receiver = snr(5.0).despread_noise_std(5) / weakest;
    for (block, drawn) in channel.blocks().iter().zip(&blocks) {
        let mut square = 0.0;
        for (k, gain) in block.gains.iter().enumerate() {
            let expected = if admitted[k] { (drawn.channels[k] / estimates[k]).re } else { 0.0 };
            assert!((gain - expected).abs() < 1e-12);
            square += expected * expected;
        }
        let noise_std = (4.0 / count as f64 * square + receiver * receiver).sqrt();
        assert!((block.noise_std / noise_std - 1.0).abs() < 1e-12);
    }
    let factors = uplink.transmission(&round).unwrap().unwrap().factors;
    for ((factor, estimate), &admitted) in factors.iter().zip(&estimates).zip(&admitted) {
        let expected = if admitted { weakest / estimate.norm() } else { 0.0 };
        assert!((factor - expected).abs() < 1e-12);
    }
    // Both quadratures show more than one, and at most what a client's own noise hides.
    let (seen, raw) = (channel.mu(1.0), uplink.raw_mu(&round, 1.0).unwrap());
    assert!(seen.iter().zip(&raw).all(|(seen, raw)| raw >= seen && *raw <= (count as f64).sqrt() / 2.0));
}

/// `Re(h·e^{−j·arg ĥ})/|h|` has the mean `E cos(arg h − arg ĥ)`: with `ĥ = h + s·e` and Rayleigh fading the correlation of `h` and
/// `ĥ` is `r = 1/√(1 + s²)`, and `E[Re(h·ĥ*)/|ĥ|] = r·E|h|`. Five standard errors over 100,000 draws are 0.011.
#[test]
fn phase_correction_turns_by_the_estimate() {
    let clients: Vec<u32> = (0..100_000).collect();
    let round = Round::new(9, 0, 1, &clients).unwrap();
    for std in [0.2, 1.0, 3.0_f64] {
        let channels = fading("rayleigh").with_estimation_error(std).unwrap();
        let gains = phase_corrected(channels, PhaseError::None).realise(&round).unwrap();
        let mean = gains.gains().iter().sum::<f64>() / 100_000.0;
        let expected = 1.0 / (1.0 + std * std).sqrt();
        assert!((mean - expected).abs() < 0.011, "{std}: {mean} instead of {expected}");
    }
}

/// Long-term gains stay over a trial, differ between trials, and have the mean power 1. With this cell the power has a
/// standard deviation of about 1.1 over places and 1.9 with the fading: five standard errors over 100,000 clients are 0.03.
#[test]
fn long_term_gains_belong_to_a_trial() {
    let clients: Vec<u32> = (0..100_000).collect();
    let path_loss = cell("exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0.8");
    let channels = fading("rayleigh").with_path_loss(path_loss).unwrap();
    let round = |trial: u16, number| Round::new(6, trial, number, &clients).unwrap();
    let gains = |trial, number| channels.long_term_gains(&round(trial, number));
    assert_eq!(gains(0, 1), gains(0, 9));
    assert_ne!(gains(0, 1), gains(1, 1));
    let elsewhere = Round::new(6, Domain::Estimate.trial(0), 1, &clients).unwrap();
    assert_ne!(channels.long_term_gains(&elsewhere), gains(0, 1));
    assert_eq!(channels.long_term_gains(&elsewhere.placed_as_in(0)), gains(0, 1));
    let drawn = channels.draw(&round(0, 1)).unwrap();
    let plain = fading("rayleigh").draw(&round(0, 1)).unwrap();
    for ((h, gain), plain) in drawn.iter().zip(gains(0, 1)).zip(&plain) {
        assert_eq!(*h, plain * gain);
    }
    let count = clients.len() as f64;
    let power = drawn.iter().map(|h| h.norm_sqr()).sum::<f64>() / count;
    let amplitude = drawn.iter().map(|h| h.norm()).sum::<f64>() / count;
    assert!((power - 1.0).abs() < 0.03, "{power}");
    assert!((amplitude - channels.mean_amplitude()).abs() < 0.01, "{amplitude}");
}

/// Factors and pilots follow `10^(κ·PL/20)`. A client's sent and received amplitudes differ by its whole loss.
#[test]
fn cost_includes_the_power_control() {
    let clients: Vec<u32> = (0..50).collect();
    let round = Round::new(6, 0, 1, &clients).unwrap();
    let path_loss = cell("exponent=3.7,shadowing_db=8,min_distance=0.1,power_control=0.8");
    let channels = fading("rayleigh").with_path_loss(path_loss).unwrap();
    let sent = channels.sent_amplitudes(&round);
    // −(1 − κ)·PL = −((1 − κ)/κ)·κ·PL, up to the normalisation, which is common to all.
    let (received, first) = (channels.long_term_gains(&round), sent[0]);
    for (sent, received_here) in sent.iter().zip(&received) {
        let expected = (sent / first).powf(-0.25);
        assert!((received_here / received[0] / expected - 1.0).abs() < 1e-12);
    }
    let walsh = SequenceSet::walsh(50, 64).unwrap();
    let spread = floras(channels.clone(), walsh, Modulation::Real).transmission(&round).unwrap().unwrap();
    assert_eq!(spread.factors, sent);
    let power: f64 = sent.iter().map(|a| a * a).sum();
    assert!((spread.pilot_energy / (64.0 * power) - 1.0).abs() < 1e-12);
    let inverted = inversion(channels.clone(), 0.0).transmission(&round).unwrap().unwrap();
    let flat = inversion(fading("rayleigh"), 0.0);
    let drawn = channels.draw(&round).unwrap();
    let weakest = drawn.iter().map(|h| h.norm()).filter(|&h| h >= 0.3).fold(f64::INFINITY, f64::min);
    for ((factor, h), sent) in inverted.factors.iter().zip(&drawn).zip(&sent) {
        let expected = if h.norm() >= 0.3 { sent * weakest / h.norm() } else { 0.0 };
        assert!((factor - expected).abs() < 1e-12);
    }
    assert_eq!(flat.transmission(&round).unwrap().unwrap().pilot_energy, 50.0);
}

#[test]
fn unsuitable_channel_settings_are_refused() {
    let trace =
        Channels::from(Trace::from_reader("round,client,real,imaginary\n0,0,1,0\n".as_bytes()).unwrap());
    let fixed = Channels::fixed(&[Complex64::ONE]).unwrap();
    for channels in [fading("nakagami=2"), fading("none"), trace.clone(), fixed.clone()] {
        let error = channels.clone().with_ageing(ageing("correlation=0.9"), None).unwrap_err();
        assert!(
            error.to_string().starts_with("channels age only under Rayleigh and Rician fading"),
            "{error}"
        );
        assert_eq!(channels.clone().with_ageing(Ageing::None, None), Ok(channels));
    }
    for channels in [trace, fixed] {
        let error = channels.clone().with_path_loss(cell("exponent=2")).unwrap_err();
        assert!(
            error.to_string().starts_with("path loss needs channels drawn from a distribution"),
            "{error}"
        );
        assert_eq!(channels.clone().with_path_loss(PathLoss::None), Ok(channels));
    }
    assert!(fading("rayleigh").with_ageing(ageing("correlation=0.9"), Some(0)).is_err());
    for std in [-0.1, f64::NAN, 101.0] {
        assert!(fading("rayleigh").with_estimation_error(std).is_err());
    }
}
