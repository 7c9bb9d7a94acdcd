//! The scheme alone: its gains, its noise, its privacy statements and its keys.

#![expect(clippy::unwrap_used, reason = "tests")]

use custom_scheme::{CappedInversion, CappedInversionUplink};
use floras::core::View;
use floras::phy::{Channels, Complex64, Fading, Round, Uplink};
use floras::sim::inquiry::{self, ExperimentAccount, Find};
use floras::sim::{Experiment, ExperimentBuilder, schemes};

/// The default experiment with the scheme and these changes.
fn builder(changes: &[&str]) -> ExperimentBuilder {
    schemes::register::<CappedInversion>().unwrap();
    let start = ExperimentBuilder::new().assign("uplink.scheme=capped-inversion").unwrap();
    changes.iter().fold(start, |builder, change| builder.assign(change).unwrap())
}

fn experiment(changes: &[&str]) -> Experiment {
    builder(changes).build().unwrap()
}

/// Why the experiment is refused.
fn refusal(change: &str) -> String {
    builder(&[change]).build().unwrap_err().to_string()
}

/// The largest distance between the empirical distribution of the gains and `P(g ≤ t) = 1 − exp(−t²/p²)` for `t < 1`.
fn distance(gains: &[f64], max_gain: f64) -> f64 {
    let distribution = |t: f64| 1.0 - (-(t / max_gain).powi(2)).exp();
    let mut below: Vec<f64> = gains.iter().copied().filter(|&gain| gain < 1.0).collect();
    below.sort_by(f64::total_cmp);
    let count = gains.len() as f64;
    let at_the_cap = (below.len() as f64 / count - distribution(1.0)).abs();
    let steps = below.iter().enumerate();
    let distances = steps
        .map(|(i, &t)| (distribution(t) - i as f64 / count).max((i + 1) as f64 / count - distribution(t)));
    distances.fold(at_the_cap, f64::max)
}

/// 100 000 Rayleigh draws with seed 1. By the inequality of Dvoretzky, Kiefer and Wolfowitz the false-alarm rate is at most 1e-6
/// for each cap. A cap that is wrong by 5% moves the distribution by at least 0.018, and is missed with a probability below 1e-7.
#[test]
fn gains_follow_the_capped_rayleigh_distribution() {
    let clients: Vec<u32> = (0..100_000).collect();
    let threshold = (f64::ln(2.0 / 1e-6) / (2.0 * clients.len() as f64)).sqrt();
    let round = Round::new(1, 0, 1, &clients).unwrap();
    for max_gain in [0.5, 1.0, 2.0] {
        let scheme = CappedInversion { max_gain, ..CappedInversion::default() };
        let uplink = CappedInversionUplink::new(scheme, Fading::Rayleigh.into(), 0.1);
        let channel = uplink.realise(&round).unwrap();
        let found = distance(channel.gains(), max_gain);
        assert!(found < threshold, "{found} for a cap of {max_gain}");
        assert!(distance(channel.gains(), 1.05 * max_gain) > threshold);
    }
}

#[test]
fn noise_is_that_of_clients_and_receiver() {
    let channels = Channels::fixed(&[Complex64::new(0.0, 0.25), Complex64::new(-3.0, 0.0)]).unwrap();
    let uplink =
        CappedInversionUplink::new(CappedInversion { max_gain: 2.0, client_noise_std: 3.0 }, channels, 0.5);
    let channel = uplink.realise(&Round::new(1, 0, 1, &[0, 1]).unwrap()).unwrap();
    assert_eq!(channel.gains(), [0.5, 1.0]);
    let expected = f64::sqrt(9.0 * (0.25 + 1.0) + 0.25);
    assert!((channel.noise_std() - expected).abs() < 1e-12);
}

#[test]
fn chip_level_has_the_same_channel() {
    let clients: Vec<u32> = (0..20).collect();
    let scheme = CappedInversion { max_gain: 1.0, client_noise_std: 0.3 };
    let uplink = CappedInversionUplink::new(scheme, Fading::Rayleigh.into(), 0.1);
    for number in 1..20 {
        let round = Round::new(1, 0, number, &clients).unwrap();
        let (symbol, chip) =
            (uplink.realise(&round).unwrap(), uplink.link(&round).unwrap().effective().unwrap());
        for (left, right) in symbol.gains().iter().zip(chip.gains()) {
            assert!((left - right).abs() < 1e-12);
        }
        assert!((symbol.noise_std() - chip.noise_std()).abs() < 1e-12);
    }
}

/// Strong and weak channels, each with one dominant client and without receiver noise: the case where the bound is reached.
#[test]
fn no_channel_exceeds_the_any_channel_bound() {
    let (sensitivity, client_noise_std) = (2.0, 0.5);
    let scheme = CappedInversion { max_gain: 1e3, client_noise_std };
    let mut largest = 0.0;
    for strong in [1e-6, 1e-3, 1.0, 1e6] {
        let channels = Channels::fixed(&[strong, 0.0].map(Complex64::from)).unwrap();
        let uplink = CappedInversionUplink::new(scheme, channels, 0.0);
        let channel = uplink.realise(&Round::new(1, 0, 1, &[0, 1, 2]).unwrap()).unwrap();
        largest = channel.mu(sensitivity).into_iter().fold(largest, f64::max);
    }
    let bound = sensitivity / client_noise_std;
    assert!(largest <= bound * (1.0 + 1e-12) && largest >= bound * (1.0 - 1e-12), "{largest}");
}

/// `δ(ε)` of Gaussian noise: `Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)`.
fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let below = |x: f64| libm::erfc(-x / std::f64::consts::SQRT_2) / 2.0;
    below(mu / 2.0 - epsilon / mu) - epsilon.exp() * below(-mu / 2.0 - epsilon / mu)
}

/// All clients take part, so that `T` rounds are one Gaussian mechanism with `μ = √T·Δ/a`.
#[test]
fn any_channel_epsilon_equals_the_gaussian_mechanisms() {
    let changes = [
        "rounds=9",
        "clients.total=20",
        "clients.per_round=20",
        "privacy.clip=0.5",
        "uplink.client_noise_std=4",
    ];
    let account = ExperimentAccount::new(&experiment(&changes)).unwrap();
    let delta = experiment(&changes).settings().privacy.delta;
    for view in [View::AnyChannel, View::RawSignal] {
        let epsilon = account.epsilon(view).unwrap().unwrap();
        let mu = 3.0 * 1.0 / 4.0;
        assert!(gaussian_delta(mu, epsilon) <= delta, "{view}: {epsilon} is no upper bound");
        assert!(gaussian_delta(mu, 0.999 * epsilon) > delta, "{view}: {epsilon} is not tight");
    }
}

/// Without fading every gain is 1, so that `μ = Δ/√(K·a² + σ²)`.
#[test]
fn actual_epsilon_without_fading_has_a_closed_form() {
    let changes = [
        "rounds=4",
        "clients.total=20",
        "clients.per_round=20",
        "privacy.clip=1",
        "uplink.client_noise_std=0.5",
        "uplink.fading=none",
        "uplink.snr_db=0",
    ];
    let account = ExperimentAccount::new(&experiment(&changes)).unwrap();
    let delta = experiment(&changes).settings().privacy.delta;
    let epsilon = account.epsilon(View::Actual).unwrap().unwrap();
    let mu = 2.0 * 2.0 / f64::sqrt(20.0 * 0.25 + 1.0);
    assert!(gaussian_delta(mu, epsilon) <= delta && gaussian_delta(mu, 0.999 * epsilon) > delta, "{epsilon}");
}

#[test]
fn no_bound_is_stated_without_client_noise() {
    let report =
        ExperimentAccount::new(&experiment(&["privacy.clip=1", "rounds=1"])).unwrap().report().unwrap();
    let any_channel = report.views.get(View::AnyChannel).unwrap();
    assert_eq!((any_channel.epsilon, any_channel.guarantee), (None, false));
    assert!(any_channel.reason.as_ref().unwrap().contains("client noise"));
    for view in [View::Actual, View::RawSignal] {
        let estimate = report.views.get(view).unwrap();
        assert!(estimate.epsilon.is_some() && !estimate.guarantee, "{view}");
    }
    assert!(report.views.get(View::Idealised).is_none());
}

#[test]
fn calibrated_noise_meets_the_target() {
    let base = builder(&["privacy.clip=1", "rounds=10"]);
    let found = inquiry::calibrate_experiment(&base, 8.0, View::AnyChannel, Find::Noise).unwrap();
    assert_eq!(found.key, "uplink.client_noise_std");
    let epsilon = found.epsilon.unwrap();
    assert!((7.99..=8.0).contains(&epsilon), "{epsilon}");
}

#[test]
fn keys_out_of_range_are_refused_by_name() {
    assert_eq!(refusal("uplink.max_gain=0"), "uplink.max_gain must be between 0.001 and 1000, not 0");
    assert!(refusal("uplink.max_gain=nan").starts_with("uplink.max_gain must be"));
    assert!(refusal("uplink.client_noise_std=-1").starts_with("uplink.client_noise_std must be"));
    assert!(refusal("uplink.max_gain=\"much\"").contains("uplink.max_gain"));
}

#[test]
fn unknown_keys_are_refused_by_name() {
    assert_eq!(
        refusal("uplink.max_gian=1"),
        "there is no key uplink.max_gian; did you mean uplink.max_gain?"
    );
}

#[test]
fn experiment_file_has_the_keys() {
    let written = experiment(&["uplink.max_gain=3", "uplink.client_noise_std=0.25"]);
    let read = Experiment::parse("the same", &written.to_toml()).unwrap();
    assert_eq!(read, written);
    let scheme = read.settings().uplink.scheme.get::<CappedInversion>();
    assert_eq!(scheme, Some(&CappedInversion { max_gain: 3.0, client_noise_std: 0.25 }));
}
