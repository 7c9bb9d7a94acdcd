//! Errors of the paper that no other test shows. The book's page `docs/reference/errata.md` links here.

use floras_privacy::cauchy::CauchyRound;
use floras_privacy::published::{PublishedComposition, PublishedRound, Weight, batch_ratio};
use floras_privacy::{
    Account, AnyChannel, Clipping, Coefficients, Curve, LocalWork, Neighbours, PrivacyUnit, Receiver,
    Sampling, Setting, View,
};

/// `ln` of the Cauchy density of scale `γ`, without its constant.
fn log_cauchy(x: f64, gamma: f64) -> f64 {
    -(x * x + gamma * gamma).ln()
}

/// The largest value of a function over a fine grid of the line.
fn largest(mut value: impl FnMut(f64) -> f64) -> f64 {
    (-200_000..=200_000).map(|step| value(f64::from(step) * 1e-3)).fold(f64::NEG_INFINITY, f64::max)
}

/// Appendix A turns the difference of two neighbours into one coordinate. A product of Cauchy densities is not the same in every
/// direction: the same difference, spread evenly over `d` coordinates, has a larger loss.
#[test]
fn products_of_cauchy_densities_are_not_rotation_invariant() {
    let (clip, gamma) = (1.0, 5.0);
    let loss_of_one = |shift: f64| largest(|x| log_cauchy(x, gamma) - log_cauchy(x - shift, gamma));
    let along_one_axis = loss_of_one(2.0 * clip);
    assert!((along_one_axis - 2.0 * f64::asinh(clip / gamma)).abs() < 1e-6);
    for (dimension, factor) in [(4, 1.9), (100, 9.9), (4010, 63.0)] {
        let spread = dimension as f64 * loss_of_one(2.0 * clip / f64::from(dimension).sqrt());
        assert!(spread > factor * along_one_axis, "d = {dimension}: {spread} and {along_one_axis}");
    }
}

/// The density of the decoder's noise is `(‖x‖² + γ²)^{−(d+1)/2}` up to a constant. Along the line through both neighbours, the
/// logarithm of the ratio is `(d+1)/2` times that of one coordinate. Off the line it is smaller.
#[test]
fn the_largest_loss_grows_with_the_dimension() {
    let (clip, gamma) = (1.0, 5.0);
    for dimension in [1_u32, 2, 10, 4010] {
        let half = 0.5 * (f64::from(dimension) + 1.0);
        let direct = half * largest(|x| log_cauchy(x, gamma) - log_cauchy(x - 2.0 * clip, gamma));
        let holds = CauchyRound::new(clip, gamma, u64::from(dimension)).unwrap().pure_epsilon();
        assert!((direct / holds - 1.0).abs() < 1e-6, "d = {dimension}: {direct} and {holds}");
    }
    let printed = PublishedRound::new(Weight::client(1.0).unwrap(), clip, gamma).unwrap().pure().as_printed();
    let holds = |dimension| CauchyRound::new(clip, gamma, dimension).unwrap().pure_epsilon();
    assert!((holds(1) / printed - 1.0).abs() < 1e-12);
    assert!((holds(4010) / printed - 2005.5).abs() < 1e-6);
}

/// "Unanimously the tightest": `T·u < √(2T·ln(1/δ))·u + T·u²/2` whenever `T ≤ 2·ln(1/δ) = 23.03`, for every `u`.
#[test]
fn up_to_23_rounds_plain_sums_are_tighter() {
    for weight in [1e-4, 0.01, 0.05, 0.5, 1.0] {
        for gamma in [1.0, 5.0, 10.0, 100.0] {
            let round = PublishedRound::new(Weight::client(weight).unwrap(), 1.0, gamma).unwrap();
            let epsilon =
                |composition, rounds| round.epsilon(composition, rounds, 1e-5).unwrap().as_printed();
            for rounds in 1..=23 {
                let (plain, renyi) = (
                    epsilon(PublishedComposition::Sequential, rounds),
                    epsilon(PublishedComposition::Renyi, rounds),
                );
                assert!(plain < renyi, "w = {weight}, γ = {gamma}, T = {rounds}: {plain} and {renyi}");
            }
        }
    }
}

/// All ways to choose `count` of `0..all`.
fn choices(all: u64, count: u32) -> impl Iterator<Item = u64> {
    (0..1_u64 << all).filter(move |set| set.count_ones() == count)
}

/// Appendix A treats all combinations of clients and mini-batches as equally likely. Clients are chosen first, and the client with the
/// additional sample has more possible mini-batches, so each of its combinations is rarer. The probability is `(K/M)·b/(D + 1)`,
/// counted here; the printed `pq/(1 + pq)` is above it.
#[test]
fn the_printed_sample_weight_exceeds_its_probability() {
    for (clients, per_round, samples, batch) in [(5, 2, 6, 3), (4, 3, 5, 1), (3, 1, 7, 6)] {
        let selections: Vec<u64> = choices(clients, per_round).collect();
        let selected =
            selections.iter().filter(|&&set| set & 1 == 1).count() as f64 / selections.len() as f64;
        let batches: Vec<u64> = choices(samples + 1, batch).collect();
        let drawn = batches.iter().filter(|&&set| set & 1 == 1).count() as f64 / batches.len() as f64;
        let (p, q) = (f64::from(per_round) / clients as f64, batch_ratio(u64::from(batch), samples).unwrap());
        let (probability, printed) = (selected * drawn, Weight::item(q, p).unwrap().value());
        assert!((probability - p * q / (1.0 + q)).abs() < 1e-12);
        assert!(printed > 1.04 * probability, "{printed} and {probability}");
    }
}

/// Appendix A bounds the loss of `𝓜(𝒟)` against the mixture `𝓜(𝒟′)` by `ln(1 + w·(2C√(C²+γ²) − 2C²)/γ²)`, and calls it the larger of
/// the two losses. The loss exceeds that bound, and is the smaller of the two. The larger loss is bounded as printed, so the result is
/// unaffected.
#[test]
fn the_two_losses_are_printed_in_reverse() {
    let (clip, gamma) = (1.0_f64, 5.0);
    let root = clip.hypot(gamma);
    let ratio = |x: f64| (log_cauchy(x - 2.0 * clip, gamma) - log_cauchy(x, gamma)).exp();
    for weight in [0.01, 0.1, 0.5, 0.9] {
        let to_mixture = largest(|x| -(1.0 - weight + weight * ratio(x)).ln());
        let from_mixture = largest(|x| (1.0 - weight + weight * ratio(x)).ln());
        let printed =
            |sign: f64| (weight * (2.0 * clip * root + sign * 2.0 * clip * clip) / (gamma * gamma)).ln_1p();
        assert!(to_mixture > printed(-1.0), "w = {weight}: {to_mixture}, bounded by {}", printed(-1.0));
        assert!(to_mixture < from_mixture, "w = {weight}: {to_mixture} and {from_mixture}");
        assert!((from_mixture - printed(1.0)).abs() < 1e-6, "w = {weight}");
    }
}

/// If a client's estimate is close to 0, its signal and the noise of its own sequence are multiplied by the same large number:
/// `μ → Δ·t` for any `γ`. The clipped projector has no such point.
#[test]
fn unused_sequences_do_not_hide_a_small_estimate() {
    let (sensitivity, t) = (2.0, 4.0);
    let mu = |receiver: Receiver, estimate: f64, noise: f64| {
        let weight = receiver.weight(estimate, 1.0);
        sensitivity * t * weight / weight.hypot(noise)
    };
    for noise in [10.0, 1e3, 1e6] {
        let paper = mu(Receiver::Paper, 1e-9, noise);
        assert!((paper / (sensitivity * t) - 1.0).abs() < 1e-5, "ν = {noise}: {paper}");
        assert!(mu(Receiver::clipped(1.0).unwrap(), 1e-9, noise) < 1.01 * sensitivity * t / noise);
    }
    // So the worst channel leaks much even if strong clients are well hidden.
    for unused in [20, 108] {
        let paper = AnyChannel::new(Receiver::Paper, unused, sensitivity).unwrap();
        assert!(paper.lower(10.0) > 1e-5 && paper.strong_client().upper(1.0) < 1e-5, "γ = {unused}");
    }
}

/// A federation of the paper's receiver, without a radio.
fn setting(sequences: u64, per_round: u64, clients: u64) -> Setting {
    Setting {
        clip: 1.0,
        sequences,
        per_round,
        clients,
        delta: 1e-5,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: Clipping::Each,
        receiver: Receiver::Paper,
        channel: None,
        ..Setting::default()
    }
}

/// Theorem 2 counts one mini-batch per client and round. After an epoch every sample was used, and hiding a sample is as hard as
/// hiding its client: the printed 0.257 compares with 3.425.
#[test]
fn samples_of_every_round_count_like_their_client() {
    let (batch, samples) = (20, 200);
    let epsilon = |unit| {
        let account = Account::of(&Setting { unit, ..setting(25, 20, 200) }).unwrap();
        account.epsilon(View::Idealised, 100).unwrap().unwrap()
    };
    let one_step = epsilon(PrivacyUnit::Item { batch, samples, local: LocalWork::ONE_STEP });
    let epochs = epsilon(PrivacyUnit::Item { batch, samples, local: LocalWork::Epochs });
    assert_eq!(epochs, epsilon(PrivacyUnit::Client));
    let weight = Weight::item(batch_ratio(batch, samples).unwrap(), 0.1).unwrap();
    let round = PublishedRound::new(weight, 1.0, 5.0).unwrap();
    let printed = round.epsilon(PublishedComposition::Renyi, 100, 1e-5).unwrap().as_printed();
    for (found, expected) in [(printed, 0.2566), (one_step, 0.4802), (epochs, 3.425)] {
        assert!((found / expected - 1.0).abs() < 2e-3, "{found}, not {expected}");
    }
}

/// A base station that stores its samples: forty times as many unused sequences change nothing, if the sequences have the same length.
#[test]
fn the_raw_signal_ignores_unused_sequences() {
    let raw_signal = |sequences| {
        let channel = Coefficients::normal(0.1 / 16.0, 0.5_f64.sqrt()).unwrap();
        let setting = Setting { channel: Some(channel), ..setting(sequences, 20, 20) };
        let account = Account::of(&setting).unwrap();
        let epsilon = account.epsilon(View::RawSignal, 1).unwrap();
        (epsilon, account.delta_at(View::RawSignal, 1, 3e4).unwrap().unwrap())
    };
    assert_eq!(raw_signal(25), raw_signal(220));
    let (epsilon, delta) = raw_signal(25);
    assert!(epsilon.is_none() && delta > 1e-3, "{epsilon:?}, {delta}");
}

/// Theorem 3 states `p = K/M` and its proof uses `K/(M + 1)`: replaced clients and added ones. Both have a rigorous form here.
#[test]
fn replaced_and_added_clients_have_different_probabilities() {
    let sampling = |neighbours| Setting { neighbours, ..setting(25, 20, 20) }.sampling();
    assert_eq!(sampling(Neighbours::ReplaceOne), Sampling::Everyone);
    let added = sampling(Neighbours::AddRemove);
    assert!(matches!(added, Sampling::AddRemove(_)) && (added.probability() - 20.0 / 21.0).abs() < 1e-15);
}
