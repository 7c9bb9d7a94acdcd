//! Lower bounds of curves compared with quadrature over the size of the estimate, the noise of the unused sequences and the
//! channel. Gauss rules of three points are used in narrow panels that end at every kink. They evaluate `μ = Δ·t/√(1 + u²ν²)`,
//! without cells and bins.

use floras_privacy::{AnyChannel, Coefficients, MuDistribution, Receiver, gaussian, normal};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

const SENSITIVITY: f64 = 2.0;
/// Relative error of the quadrature.
const ERROR: f64 = 1e-5;

/// Nodes and weights up to `to`. Panels grow by a constant factor from `to/1e7` on, and are at most `widest` wide.
fn nodes(to: f64, kinks: &[f64], ratio: f64, widest: f64) -> Vec<(f64, f64)> {
    let mut ends = vec![0.0, 1e-7 * to];
    while let Some(&last) = ends.last()
        && last < to
    {
        ends.push((last * ratio).min(last + widest).min(to));
    }
    ends.extend(kinks.iter().filter(|&&kink| kink > 0.0 && kink < to));
    ends.sort_by(f64::total_cmp);
    let panel = |pair: &[f64]| {
        let (middle, half) = (0.5 * (pair[0] + pair[1]), 0.5 * (pair[1] - pair[0]));
        let far = half * 0.6_f64.sqrt();
        [(middle - far, half * 5.0 / 9.0), (middle, half * 8.0 / 9.0), (middle + far, half * 5.0 / 9.0)]
    };
    ends.windows(2).flat_map(panel).collect()
}

/// The divisor `u(τ) = 1/|w(τ)|` for an estimate of this size.
fn divisor(receiver: Receiver, size: f64) -> f64 {
    1.0 / receiver.weight(size, 1.0).abs()
}

/// `ν` with its weights: `γ/|G|` for the paper's receiver, and one unused sequence for the others.
fn noises(receiver: Receiver, unused: u64, ratio: f64) -> Vec<(f64, f64)> {
    let of = |(g, weight): (f64, f64)| {
        let noise = if receiver == Receiver::Paper { unused as f64 / g } else { receiver.weight(g, 1.0) };
        (noise, 2.0 * weight * normal::density(g))
    };
    let kinks = [receiver.level().unwrap_or(0.0)];
    nodes(11.0, &kinks, ratio, ratio - 1.0).into_iter().map(of).collect()
}

/// `δ_t(ε)` for several `ε`.
fn at_channel<const N: usize>(
    receiver: Receiver,
    noises: &[(f64, f64)],
    t: f64,
    epsilons: [f64; N],
    ratio: f64,
) -> [f64; N] {
    let mut sums = [0.0; N];
    let kinks = [receiver.level().unwrap_or(0.0), t];
    for (size, weight) in nodes(t + 11.0, &kinks, ratio, 2.0 * (ratio - 1.0)) {
        let density = normal::density(size - t) + normal::density(size + t);
        if density < 1e-28 {
            continue;
        }
        let u = divisor(receiver, size);
        for &(noise, share) in noises {
            let mu = SENSITIVITY * t / (1.0 + (u * noise).powi(2)).sqrt();
            for (sum, epsilon) in sums.iter_mut().zip(epsilons) {
                *sum += weight * density * share * gaussian::delta(epsilon, mu);
            }
        }
    }
    sums
}

/// The bounds enclose the truth, and the lower one is within `looseness` of it.
#[track_caller]
fn encloses(distribution: &MuDistribution, epsilon: f64, truth: f64, looseness: f64, case: &str) {
    let (lower, upper) = (distribution.delta_lower(epsilon), distribution.delta_upper(epsilon));
    let case = format!("{case}, ε = {epsilon}: {lower:e} ≤ {truth:e} ≤ {upper:e}");
    assert!(lower <= truth * (1.0 + ERROR) + 1e-25 && truth <= upper * (1.0 + ERROR) + 1e-25, "{case}");
    assert!(truth < 1e-12 || lower >= truth * (1.0 - looseness), "{case}");
}

/// Regression test: here the lower bound was once 0.126189.
#[test]
fn a_known_point_of_the_paper_receiver() {
    let noises = noises(Receiver::Paper, 5, 1.05);
    let [truth] = at_channel(Receiver::Paper, &noises, 16.0, [0.0], 1.05);
    assert!((truth - 0.126_112).abs() < 2e-6, "{truth}");
    let distribution = AnyChannel::new(Receiver::Paper, 5, SENSITIVITY).unwrap().distribution_at(16.0);
    encloses(&distribution, 0.0, truth, 1e-3, "t = 16");
}

/// Channels from 0.1 to 300 noise levels, all receivers, curves at four `ε`.
#[test]
fn bounds_of_one_channel_enclose_quadrature() {
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(71);
    for number in 0..24 {
        let (receiver, unused) = match number % 4 {
            0 => (Receiver::Mmse, 1),
            1 => (Receiver::clipped(10_f64.powf(generator.random_range(-1.0..1.0))).unwrap(), 1),
            _ => (Receiver::Paper, 10_f64.powf(generator.random_range(0.0..2.5)) as u64),
        };
        let t = 10_f64.powf(generator.random_range(-1.0..2.5));
        let epsilons = [0.0, 0.3, 2.0, 12.0];
        let truths = at_channel(receiver, &noises(receiver, unused, 1.08), t, epsilons, 1.08);
        let distribution = AnyChannel::new(receiver, unused, SENSITIVITY).unwrap().distribution_at(t);
        for (epsilon, truth) in epsilons.into_iter().zip(truths) {
            encloses(&distribution, epsilon, truth, 0.05, &format!("{receiver:?}, γ = {unused}, t = {t}"));
        }
    }
}

/// `h` normal with a standard deviation of `√½`, from faint channels to strong ones.
#[test]
fn bounds_of_fading_channels_enclose_quadrature() {
    let epsilons = [0.0, 0.3, 2.0, 8.0];
    for (receiver, unused, noise_std) in [
        (Receiver::Paper, 5, 20.0),
        (Receiver::Paper, 5, 0.1),
        (Receiver::Paper, 20, 0.01),
        (Receiver::Mmse, 1, 0.3),
        (Receiver::clipped(1.0).unwrap(), 1, 1.0),
        (Receiver::clipped(1.0).unwrap(), 1, 0.01),
    ] {
        let std = 0.5_f64.sqrt() / noise_std;
        let noises = noises(receiver, unused, 1.25);
        let mut truths = [0.0; 4];
        for (x, weight) in nodes(9.0, &[], 1.7, 0.3) {
            let given = at_channel(receiver, &noises, std * x, epsilons, 1.25);
            for (truth, delta) in truths.iter_mut().zip(given) {
                *truth += 2.0 * weight * normal::density(x) * delta;
            }
        }
        let channel = Coefficients::normal(noise_std, 0.5_f64.sqrt()).unwrap();
        let distribution = channel.actual(receiver, 1, unused, SENSITIVITY).unwrap();
        for (epsilon, truth) in epsilons.into_iter().zip(truths) {
            encloses(
                &distribution,
                epsilon,
                truth,
                0.1,
                &format!("{receiver:?}, γ = {unused}, s = {noise_std}"),
            );
        }
    }
}
