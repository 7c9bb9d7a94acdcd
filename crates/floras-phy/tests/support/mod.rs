//! Code shared by the statistical tests: samples of decoded rounds, and tests that compare them.

#![expect(dead_code, reason = "each test file uses a part")]

use floras_phy::*;
use rayon::prelude::*;
use statrs::distribution::ContinuousCDF;
use statrs::stats_tests::NaNPolicy;
use statrs::stats_tests::ks_test::{
    KSOneSampleAlternativeMethod, KSTwoSampleAlternativeMethod, ks_onesample, ks_twosample,
};

/// A Kolmogorov–Smirnov test below this p-value has failed. Seeds are fixed, so a test that passes once passes always;
/// over all tests together, a new choice of seeds would raise a false alarm less than once in a hundred choices.
pub(crate) const SIGNIFICANCE: f64 = 1e-5;

/// p-value of a sample under a distribution.
pub(crate) fn p_value(sample: Vec<f64>, distribution: &impl ContinuousCDF<f64, f64>) -> f64 {
    ks_onesample(sample, distribution, KSOneSampleAlternativeMethod::TwoSidedAsymptotic, NaNPolicy::Error)
        .expect("sound test input")
        .1
}

/// p-value of two samples under the hypothesis of one common distribution.
pub(crate) fn common_p_value(left: Vec<f64>, right: Vec<f64>) -> f64 {
    ks_twosample(left, right, KSTwoSampleAlternativeMethod::TwoSidedAsymptotic, NaNPolicy::Error)
        .expect("sound test input")
        .1
}

pub(crate) fn snr(snr_db: f64) -> Snr {
    Snr::new(snr_db, SnrConvention::Symbol).expect("sound test input")
}

/// Decodes the same updates in `rounds` rounds.
pub(crate) fn decode_rounds(
    uplink: &dyn Uplink,
    updates: &[Vec<f32>],
    fidelity: Fidelity,
    seed: u64,
    rounds: u32,
) -> Vec<Vec<f32>> {
    let clients: Vec<u32> = (0..updates.len() as u32).collect();
    (0..rounds)
        .into_par_iter()
        .map(|number| {
            let round = Round::new(seed, 0, number + 1, &clients).expect("sound test input");
            transmit(uplink, &round, updates, fidelity).expect("sound test input").sum
        })
        .collect()
}

/// A channel trace of zeros: no client's signal reaches the base station.
pub(crate) fn silent_fading(clients: u32, rounds: u32) -> Channels {
    let mut rows = "round,client,real,imaginary\n".to_owned();
    for round in 0..rounds {
        for client in 0..clients {
            rows += &format!("{round},{client},0,0\n");
        }
    }
    Trace::from_reader(rows.as_bytes()).expect("sound test input").into()
}
