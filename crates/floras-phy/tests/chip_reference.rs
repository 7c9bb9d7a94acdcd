//! Both fidelities compared with distributions that an independent simulation recorded: `reference/chip_level.py`, written from
//! the paper's text.
//!
//! Each comparison is a two-sample Kolmogorov–Smirnov test: [`ROUNDS`] rounds of the library, and 100,000 rounds of the script,
//! of which 499 quantiles are recorded. The distance is taken at these quantiles only. That lowers it, by at most 1/500, so that
//! the p-values are upper bounds.
//!
//! **False alarms.** Each comparison fails below `p =` [`SIGNIFICANCE`] = 4.7·10⁻⁶: with new seeds, correct code fails in any
//! of them with a probability of at most [`FALSE_ALARM`]. Seeds are fixed, so that a test that passes once passes always.
//!
//! **Power.** Both samples together weigh as much as `n = 10,000·100,000/110,000 ≈ 9,100` rounds against a known distribution,
//! and a comparison fails at a distance of `2.52/√n = 0.0264`. A true distance of 0.041 is found with a probability of at least
//! 99%: the empirical distance at its point has a standard deviation of at most `0.5/√n = 0.0053`, and up to 1/500 is lost
//! between quantiles. `ν` is roughly `γ/|G|` with a standard normal `G`, whose distribution function moves by `0.48·x` if the
//! scale is off by `x`. So a `ν` that is off by 9% is found, and a decoded value, roughly Cauchy, that is off by 26%.
//! Tails beyond the quantiles of 0.2% and 99.8% are not compared.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

mod support;

use std::sync::LazyLock;

use floras_core::random::{Purpose, StreamName};
use floras_phy::*;
use rayon::prelude::*;
use serde_json::Value;
use support::snr;

/// Rounds of the library in each comparison.
const ROUNDS: u32 = 10_000;
/// Probability that correct code fails with new seeds, over the whole file.
const FALSE_ALARM: f64 = 1e-3;
/// Comparisons: 26 settings at 2 fidelities in 4 quantities, and the channel powers of 7 settings.
const COMPARISONS: usize = 26 * 2 * 4 + 7;
const SIGNIFICANCE: f64 = FALSE_ALARM / COMPARISONS as f64;

const BOTH: [(Fidelity, u64); 2] = [(Fidelity::Symbol, 41), (Fidelity::Chip, 42)];
/// The compared quantities, in the order of [`sample`].
const QUANTITIES: [&str; 4] = ["nu", "mean_gain", "decoded", "rms_error"];
/// Parameters of an update; the script has as many.
const PARAMETERS: usize = 4;

static REFERENCE: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("reference/chip_level.json")).unwrap());

/// The recorded settings.
fn settings() -> Vec<&'static Value> {
    REFERENCE["settings"].as_array().unwrap().iter().collect()
}

/// The recorded settings with complex reception.
fn complex_settings() -> Vec<&'static Value> {
    settings().into_iter().filter(|setting| setting["modulation"] == "complex").collect()
}

fn integer(setting: &Value, name: &str) -> usize {
    setting[name].as_u64().unwrap().try_into().unwrap()
}

fn name(setting: &Value) -> String {
    let mut setting = setting.clone();
    setting.as_object_mut().unwrap().retain(|key, _| key != "quantiles" && key != "note");
    setting.to_string()
}

/// The settings of the library that a recorded setting describes. The script draws new Gaussian sequences in each round, so `seed`
/// differs between rounds here, too.
fn uplink_settings(setting: &Value, seed: u64) -> FlorasSettings {
    let (count, length) = (integer(setting, "sequences"), integer(setting, "length"));
    let family = setting["family"].as_str().unwrap().parse().unwrap();
    let repetitions = integer(setting, "pilot_repetitions").try_into().unwrap();
    FlorasSettings {
        sequences: SequenceSet::new(family, count, length, seed).unwrap(),
        modulation: match setting["modulation"].as_str().unwrap() {
            "real" => Modulation::Real,
            "phase_corrected" => Modulation::PhaseCorrected(PhaseError::None),
            "complex" => Modulation::Complex,
            other => panic!("no modulation {other}"),
        },
        antennas: integer(setting, "antennas"),
        receiver: Receiver::Paper,
        channels: Fading::Rayleigh.into(),
        snr: snr(setting["snr_db"].as_f64().unwrap()),
        pilot: Pilot::new(setting["pilot_amplitude"].as_f64().unwrap(), repetitions).unwrap(),
        projector: setting["projector"].as_str().unwrap().parse().unwrap(),
        ..FlorasSettings::default()
    }
}

/// [`ROUNDS`] rounds of the library: one list for each of [`QUANTITIES`].
fn sample(
    setting: &Value,
    (fidelity, seed): (Fidelity, u64),
    change: impl Fn(&mut FlorasSettings) + Sync,
) -> [Vec<f64>; 4] {
    let clients: Vec<u32> = (0..integer(setting, "clients") as u32).collect();
    let one_round = |number: u32| {
        let mut settings = uplink_settings(setting, (seed << 32) + u64::from(number));
        change(&mut settings);
        let round = Round::new(seed, 0, number, &clients).unwrap();
        let mut payload = vec![0.0; clients.len() * PARAMETERS];
        StreamName::new(seed, Purpose::BENCHMARK).round(number).normals().fill(0, &mut payload);
        let updates: Vec<&[f32]> = payload.chunks(PARAMETERS).collect();
        let Decoded { sum, channel } = transmit(&Floras::new(settings), &round, &updates, fidelity).unwrap();
        let square_error = |parameter: usize| {
            let exact: f64 = updates.iter().map(|update| f64::from(update[parameter])).sum();
            (f64::from(sum[parameter]) - exact).powi(2)
        };
        let mean_square = (0..PARAMETERS).map(square_error).sum::<f64>() / PARAMETERS as f64;
        let mean_gain = channel.gains().iter().sum::<f64>() / clients.len() as f64;
        [channel.noise_std(), mean_gain, sum[0].into(), mean_square.sqrt()]
    };
    let rounds: Vec<[f64; 4]> = (1..=ROUNDS).into_par_iter().map(one_round).collect();
    [0, 1, 2, 3].map(|quantity| rounds.iter().map(|round| round[quantity]).collect())
}

/// p-value of a sample under the hypothesis that it has the distribution of the recorded quantity.
fn p_value(setting: &Value, quantity: &str, sample: &[f64]) -> f64 {
    let reference = REFERENCE["rounds"].as_f64().unwrap();
    let quantiles: Vec<f64> = serde_json::from_value(setting["quantiles"][quantity].clone()).unwrap();
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let size = sorted.len() as f64;
    let levels = (quantiles.len() + 1) as f64;
    let distance = quantiles
        .iter()
        .enumerate()
        .map(|(index, &quantile)| {
            let below = sorted.partition_point(|&value| value <= quantile) as f64 / size;
            (below - (index + 1) as f64 / levels).abs()
        })
        .fold(0.0, f64::max);
    kolmogorov(distance * (size * reference / (size + reference)).sqrt())
}

/// `P(K > x)` for the limiting distribution of `√n` times the Kolmogorov–Smirnov distance.
fn kolmogorov(x: f64) -> f64 {
    let term = |k: i32| -(-1_f64).powi(k) * (-2.0 * f64::from(k * k) * x * x).exp();
    if x < 0.3 { 1.0 } else { 2.0 * (1..=20).map(term).sum::<f64>() }
}

/// The same samples fail after multiplication by a factor: by 1.1, and by 1.3 for the decoded value, whose symmetric distribution
/// function moves less.
#[test]
fn both_fidelities_have_the_recorded_distributions() {
    let compared = settings().len() * BOTH.len() * QUANTITIES.len();
    assert_eq!(COMPARISONS, compared + complex_settings().len());
    for setting in settings() {
        for run in BOTH {
            for (quantity, values) in QUANTITIES.iter().zip(sample(setting, run, |_| {})) {
                let p = p_value(setting, quantity, &values);
                assert!(p > SIGNIFICANCE, "{}, {:?}, {quantity}: p = {p}", name(setting), run.0);
                let factor = if *quantity == "decoded" { 1.3 } else { 1.1 };
                let wrong: Vec<f64> = values.iter().map(|value| factor * value).collect();
                let p = p_value(setting, quantity, &wrong);
                assert!(p < SIGNIFICANCE, "{}, {:?}, {quantity}: no power, p = {p}", name(setting), run.0);
            }
        }
    }
}

/// An uplink that differs in one setting from the recorded one fails in at least one quantity.
#[test]
fn an_uplink_with_a_wrong_setting_is_rejected() {
    type Change = fn(&mut FlorasSettings);
    // The place in the list of recorded settings, and what is wrong.
    let wrong: [(usize, &str, Change); 12] = [
        (0, "1 dB less noise", |settings| settings.snr = snr(1.0)),
        (3, "no phase correction", |settings| settings.modulation = Modulation::Real),
        (5, "one unused sequence too many", |s| s.sequences = SequenceSet::walsh(31, 32).unwrap()),
        (11, "the paper's pilot", |settings| settings.pilot = Pilot::default()),
        (11, "one repetition less", |settings| settings.pilot = Pilot::new(2.0, 2).unwrap()),
        (14, "orthonormal sequences", |s| s.sequences = SequenceSet::walsh(30, 32).unwrap()),
        (15, "a normalised projector", |settings| settings.projector = Projector::Normalised),
        (16, "the printed projector", |settings| settings.projector = Projector::Printed),
        (19, "one branch", |settings| settings.modulation = Modulation::Real),
        (20, "two antennas", |settings| settings.antennas = 2),
        (22, "one antenna", |settings| settings.antennas = 1),
        (24, "two parameters in a symbol", |s| s.parameters_per_symbol = ParametersPerSymbol::Two),
    ];
    let settings = settings();
    for (index, change_name, change) in wrong {
        let samples = sample(settings[index], BOTH[1], change);
        let p_values = QUANTITIES.iter().zip(&samples).map(|(name, x)| p_value(settings[index], name, x));
        let lowest = p_values.fold(1.0, f64::min);
        assert!(lowest < SIGNIFICANCE, "{change_name} passes with p = {lowest}");
    }
}

/// Over all antennas of one client.
#[test]
fn antennas_receive_the_recorded_power() {
    for setting in complex_settings() {
        let antennas = integer(setting, "antennas");
        let channels = Channels::from(Fading::Rayleigh);
        let power = |number| {
            let round = Round::new(43, 0, number, &[0]).unwrap();
            let drawn = channels.draw_antennas(&round, antennas).unwrap();
            drawn.iter().map(|antenna| antenna[0].norm_sqr()).sum()
        };
        let powers: Vec<f64> = (1..=ROUNDS).map(power).collect();
        let p = p_value(setting, "channel_power", &powers);
        assert!(p > SIGNIFICANCE, "{}: p = {p}", name(setting));
        let louder: Vec<f64> = powers.iter().map(|power| 1.1 * power).collect();
        assert!(p_value(setting, "channel_power", &louder) < SIGNIFICANCE, "{}: no power", name(setting));
    }
}
