//! The views of the clipped projector: tables of the text, inequalities, and samples of the pilot and the unused sequences.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::{
    Account, AnyChannel, ClipLevel, Clipping, Coefficients, Composition, Curve, MuDistribution, Neighbours,
    PrivacyUnit, Receiver, Sampling, Setting, View, gaussian, idealised, simple_bound,
};
use proptest::prelude::*;
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;

const SENSITIVITY: f64 = 2.0;

fn epsilon(curve: &dyn Curve) -> f64 {
    Composition::new(curve, Sampling::Everyone, 1).unwrap().epsilon(1e-5).unwrap().upper
}

#[track_caller]
fn is_near(found: f64, printed: f64, tolerance: f64, what: &str) {
    assert!((found / printed - 1.0).abs() < tolerance, "{what}: {found}, printed {printed}");
}

/// Reference values use 1,500 draws of the noise, with a stated accuracy of 1%. Two printed decimals add half a percent. Our values
/// bound the truth from above.
#[test]
fn the_any_channel_table_is_reproduced() {
    for (c, unused, any, strong, simple) in [
        (1.0, 20, 6.01, 1.95, 7.63),
        (1.0, 108, 2.08, 0.76, 2.58),
        (2.0, 20, 7.55, 3.88, 9.09),
        (2.0, 108, 2.61, 1.50, 3.12),
        (3.0, 108, 3.41, 2.34, 3.93),
        (3.0, 236, 2.13, 1.51, 2.47),
    ] {
        let what = |column: &str| format!("c = {c}, γ = {unused}, {column}");
        let curve = AnyChannel::new(Receiver::clipped(c).unwrap(), unused, SENSITIVITY).unwrap();
        is_near(epsilon(&curve), any, 0.02, &what("any channel"));
        is_near(epsilon(curve.strong_client()), strong, 0.01, &what("strong client"));
        is_near(
            epsilon(&simple_bound(ClipLevel::new(c).unwrap(), unused, SENSITIVITY).unwrap()),
            simple,
            0.01,
            &what("simple bound"),
        );
    }
    let paper = AnyChannel::new(Receiver::Paper, 10, SENSITIVITY).unwrap();
    assert!(epsilon(&paper) >= 25.1, "25.1 or more: {}", epsilon(&paper));
    is_near(epsilon(paper.strong_client()), 1.7227, 1e-4, "the paper's strong client");
}

/// `|h|` of Rayleigh fading when its phase is corrected: density `2h·e^{−h²}`.
fn rayleigh(noise_std: f64) -> Coefficients {
    Coefficients::from_density(noise_std, (0.0, 8.0), |h| h * (-h * h).exp()).unwrap()
}

fn real(noise_std: f64) -> Coefficients {
    Coefficients::normal(noise_std, 0.5_f64.sqrt()).unwrap()
}

fn despread(snr_db: f64, sequences: u64) -> f64 {
    10_f64.powf(-snr_db / 20.0) / (sequences as f64).sqrt()
}

/// Reference values by Monte Carlo, `L = N`, one round, `δ` = 1e-5. A sampled tail of 1e-5 is accurate to a few percent.
#[test]
fn the_table_of_actual_channels_is_reproduced() {
    let clipped = |c: f64| Receiver::clipped(c).unwrap();
    for (snr, is_real, receiver, unused, printed) in [
        (20.0, true, Receiver::Paper, 10, 14.0),
        (20.0, true, Receiver::Paper, 108, 3.96),
        (20.0, true, clipped(1.0), 10, 5.8),
        (20.0, true, clipped(1.0), 20, 3.60),
        (20.0, true, clipped(2.0), 44, 3.04),
        (20.0, false, Receiver::Paper, 10, 5.2),
        (20.0, false, clipped(1.0), 10, 4.03),
        (20.0, false, clipped(2.0), 20, 4.15),
        (0.0, false, Receiver::Paper, 200, 3.55),
        (0.0, false, clipped(1.0), 44, 2.76),
    ] {
        let noise_std = despread(snr, 20 + unused);
        let channel = if is_real { real(noise_std) } else { rayleigh(noise_std) };
        let distribution = channel.actual(receiver, 20, unused, SENSITIVITY).unwrap();
        is_near(
            epsilon(&distribution),
            printed,
            0.04,
            &format!("{snr} dB, real: {is_real}, {receiver:?}, γ = {unused}"),
        );
    }
}

/// 200,000 draws of the pilot and the noise, 5 standard errors: one false alarm in 1.7 million per case. The bounds may be 1% apart,
/// so a distribution that is off by 3% in `δ` fails.
#[test]
fn distributions_of_mu_follow_samples() {
    const DRAWS: usize = 200_000;
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(21);
    for (receiver, unused, channel, epsilon) in [
        (Receiver::clipped(1.0).unwrap(), 1, Some(3.0), 4.0),
        (Receiver::clipped(1.0).unwrap(), 20, Some(2.0), 1.0),
        (Receiver::clipped(1.0).unwrap(), 20, Some(0.7), 0.1),
        (Receiver::clipped(2.0).unwrap(), 30, Some(4.0), 1.0),
        (Receiver::clipped(0.1).unwrap(), 20, Some(2.0), 0.5),
        (Receiver::Mmse, 20, Some(2.0), 1.0),
        (Receiver::Paper, 10, Some(2.0), 1.0),
        (Receiver::clipped(1.0).unwrap(), 10, None, 1.5),
        (Receiver::clipped(1.0).unwrap(), 1, None, 3.0),
        (Receiver::Mmse, 10, None, 6.0),
        (Receiver::Paper, 10, None, 0.5),
    ] {
        let distribution = match channel {
            Some(t) => AnyChannel::new(receiver, unused, SENSITIVITY).unwrap().distribution_at(t),
            None => idealised(receiver, unused, SENSITIVITY).unwrap(),
        };
        let mut normal = || -> f64 { generator.sample(StandardNormal) };
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..DRAWS {
            let noise: f64 = (0..unused).map(|_| receiver.weight(normal(), 1.0).powi(2)).sum();
            let mu = match channel {
                Some(t) => {
                    let w = receiver.weight(t + normal(), 1.0).abs();
                    SENSITIVITY * t * w / (w * w + noise).sqrt()
                }
                None => SENSITIVITY / noise.sqrt(),
            };
            let delta = gaussian::delta(epsilon, mu);
            sum += delta;
            squares += delta * delta;
        }
        let mean = sum / DRAWS as f64;
        let error = 5.0 * ((squares / DRAWS as f64 - mean * mean) / DRAWS as f64).sqrt();
        let (lower, upper) = (distribution.delta_lower(epsilon), distribution.delta_upper(epsilon));
        let case =
            format!("{receiver:?}, γ = {unused}, t = {channel:?}: {mean} ± {error}, {lower} to {upper}");
        assert!(error < 0.12 * mean, "{case}");
        assert!(mean - error <= upper && mean + error >= lower, "{case}");
        assert!(upper < 1.1 * lower, "{case}");
    }
}

/// The supremum is accurate to 1e-4 for every tried channel. (Beyond 50 the limit of a strong client applies, whose distribution is
/// rounded less than that of a single channel.)
#[test]
fn the_any_channel_curve_is_above_every_channel() {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(22);
    for (receiver, unused) in [
        (Receiver::clipped(1.0).unwrap(), 20),
        (Receiver::clipped(2.0).unwrap(), 108),
        (Receiver::clipped(0.3).unwrap(), 5),
        (Receiver::Mmse, 20),
        (Receiver::Paper, 10),
        // For small ε, the curve changes within a millionth of its range.
        (Receiver::Paper, 2000),
        (Receiver::clipped(1.0).unwrap(), 1),
    ] {
        let curve = AnyChannel::new(receiver, unused, SENSITIVITY).unwrap();
        for _ in 0..25 {
            let t = 10_f64.powf(generator.random_range(-2.0..1.7));
            let distribution = curve.distribution_at(t);
            for power in [-6.0, -3.0, -1.5, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0] {
                let epsilon = 10_f64.powf(power + generator.random_range(0.0..0.5));
                let (any, one) = (curve.upper(epsilon) + curve.infinite(), distribution.delta_upper(epsilon));
                assert!(
                    any >= one * (1.0 - 1e-4),
                    "{receiver:?}, γ = {unused}, t = {t}, ε = {epsilon}: {any:e} and {one:e}"
                );
            }
        }
    }
}

/// A curve whose range includes a large `ε` changes within a millionth of it, near 0.
#[test]
fn the_any_channel_curve_bounds_small_epsilons() {
    let curve = AnyChannel::new(Receiver::Paper, 1697, 20.4).unwrap();
    for t in [0.3, 0.86, 2.0] {
        let distribution = curve.distribution_at(t);
        for epsilon in [1e-6, 3.8e-6, 1e-4, 0.01] {
            let (any, one) = (curve.upper(epsilon), distribution.delta_lower(epsilon));
            assert!(any >= one, "t = {t}, ε = {epsilon}: {any:e} and {one:e}");
        }
    }
}

#[test]
fn any_channel_is_between_fading_and_simple_bound() {
    let unused = 20;
    for receiver in
        [Receiver::clipped(1.0).unwrap(), Receiver::clipped(2.0).unwrap(), Receiver::Mmse, Receiver::Paper]
    {
        let any = AnyChannel::new(receiver, unused, SENSITIVITY).unwrap();
        let epsilons = [0.01, 0.3, 1.0, 3.0, 8.0, 20.0];
        for snr in [0.0, 20.0, 40.0] {
            let noise_std = despread(snr, 20 + unused);
            let constant = Coefficients::from_values(noise_std, &[(1.0, 1.0)]).unwrap();
            for channel in [real(noise_std), rayleigh(noise_std), constant] {
                let distribution = channel.actual(receiver, 20, unused, SENSITIVITY).unwrap();
                for epsilon in epsilons {
                    let (bound, actual) =
                        (any.upper(epsilon) + any.infinite(), distribution.delta_lower(epsilon));
                    assert!(
                        bound >= actual * (1.0 - 1e-4),
                        "{receiver:?}, {snr} dB, ε = {epsilon}: {bound:e}, {actual:e}"
                    );
                }
            }
        }
        if let Receiver::Clipped(c) = receiver {
            let simple = simple_bound(c, unused, SENSITIVITY).unwrap();
            for epsilon in epsilons {
                assert!(
                    simple.delta_upper(epsilon) >= any.lower(epsilon) * (1.0 - 1e-4),
                    "c = {c}, ε = {epsilon}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// `μ` with the noise of other used sequences ≤ `μ` without it ≤ `Δ(1 + |e|/c)/ν_γ`, for arbitrary channels.
    #[test]
    fn the_chain_of_inequalities_holds(
        log_t in -3.0_f64..4.0,
        e in -8.0_f64..8.0,
        log_c in -2.0_f64..1.0,
        unused in prop::collection::vec(-6.0_f64..6.0, 1..20),
        used in prop::collection::vec(-100.0_f64..100.0, 0..20),
        is_negative: bool,
    ) {
        let c = 10_f64.powf(log_c);
        let t = 10_f64.powf(log_t) * if is_negative { -1.0 } else { 1.0 };
        let receiver = Receiver::clipped(c).unwrap();
        let square = |estimates: &[f64]| estimates.iter().map(|&tau| receiver.weight(tau, 1.0).powi(2)).sum::<f64>();
        let w = receiver.weight(t + e, 1.0).abs();
        let mu = |noise: f64| SENSITIVITY * t.abs() * w / noise.sqrt();
        let exact = mu(w * w + square(&unused) + square(&used));
        let without_used = mu(w * w + square(&unused));
        let simple = SENSITIVITY * (1.0 + e.abs() / c) / square(&unused).sqrt();
        prop_assert!(exact <= without_used * (1.0 + 1e-12) && without_used <= simple * (1.0 + 1e-12));
    }
}

/// The paper's normalisation at its own scale: C = 63 and Δ = 21·C for 20 clients. For such numbers the table behind the any-channel
/// curve is coarse, but must still bound a strong client, which is one of its channels.
#[test]
fn the_any_channel_tail_bounds_strong_clients() {
    let setting = Setting {
        clip: 63.32,
        sequences: 21,
        per_round: 20,
        clients: 20,
        delta: 1e-5,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: Clipping::Paper,
        receiver: Receiver::Paper,
        channel: None,
        ..Setting::default()
    };
    let account = Account::of(&setting).unwrap();
    let delta = |view, epsilon| account.delta_at(view, 1, epsilon).unwrap().unwrap();
    for epsilon in [1e4, 1e5, 1e6] {
        assert!(delta(View::AnyChannel, epsilon) >= delta(View::Idealised, epsilon), "at {epsilon}");
    }
}

#[test]
fn distributions_without_noise_or_range_are_refused() {
    for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
        assert!(idealised(receiver, 0, 1.0).is_err() && AnyChannel::new(receiver, 0, 1.0).is_err());
        assert!(idealised(receiver, 1, f64::NAN).is_err() && idealised(receiver, 1, 0.0).is_err());
    }
    assert!(simple_bound(ClipLevel::ONE, 0, 1.0).is_err());
    assert!(
        matches!(idealised(Receiver::Paper, 4, 2.0), Ok(MuDistribution::HalfNormal { scale }) if scale == 0.5)
    );
}

/// Regression test: values of `μ` far below 1 were once rounded to 0.
#[test]
fn tiny_sensitivities_are_not_taken_for_none() {
    for receiver in [Receiver::clipped(1.0).unwrap(), Receiver::Mmse, Receiver::Paper] {
        for sensitivity in [1e-3, 2e-7, 1e-12, 1e-20] {
            let any = AnyChannel::new(receiver, 20, sensitivity).unwrap();
            for t in [0.5, 3.0, 20.0] {
                let distribution = any.distribution_at(t);
                for epsilon in [0.0, 0.1 * sensitivity, sensitivity] {
                    let (bound, reached) =
                        (any.upper(epsilon) + any.infinite(), distribution.delta_lower(epsilon));
                    assert!(
                        bound >= reached,
                        "{receiver:?}, Δ = {sensitivity}, t = {t}: {bound:e} < {reached:e}"
                    );
                }
            }
        }
    }
}
