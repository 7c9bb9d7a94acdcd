//! The base station's weights, as far as they determine privacy, and the noise of the unused sequences.
//!
//! In units of the despread noise `s`, with `τ = ĥ/s` the estimate of a sequence's channel, the weight is `w(τ)/s`. An
//! unused sequence has `τ = G`, a standard normal number, and adds `Y = w(G)²` to the square of the noise `ν`:
//!
//! | receiver | `w(τ)` | distribution of `ν² = Σ_{j≤γ} w(G_j)²` |
//! |---|---|---|
//! | paper | `1/τ` | `(γ/G)²`, one normal number for all: the Lévy distribution is stable |
//! | MMSE | `τ/(τ² + 1)` | a sum of bounded terms |
//! | clipped at `c` | `1/max(|τ|, c)` | a sum of bounded terms |
//!
//! With `B` real branches an estimate is a vector, and the size of its weights is `w(‖τ‖)`. An unused sequence has `‖τ‖ = R`, the length
//! of `B` standard normal numbers, and adds `Y = w(R)²`. From two branches on, the paper's receiver is treated as one with bounded
//! weights. This omits noise at the smallest `R`, so the computed noise is at most the true noise. One unused sequence has the closed form
//! `ν = 1/R`.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use floras_core::{ClipLevel, Receiver};

use crate::engine::distribution::Side;
use crate::numerics::quadrature::narrow_panels;
use crate::numerics::{chi, normal};
use crate::views::noise::{Noise, Sum, Term};

/// The divisor of the decoder, `u = 1/|w|`, for an estimate of this size. It is convex in the size.
pub(crate) fn divisor(receiver: Receiver, size: f64) -> f64 {
    match receiver {
        Receiver::Paper => size,
        Receiver::Mmse => size + 1.0 / size.max(1e-100),
        Receiver::Regularised(kappa) => size + kappa.get() / size.max(1e-100),
        Receiver::Clipped(c) => size.max(c.get()),
    }
}

/// Whether the weights are bounded, so that the noise of a sequence has moments.
pub(crate) fn has_limit(receiver: Receiver) -> bool {
    match receiver {
        Receiver::Paper => false,
        Receiver::Mmse | Receiver::Regularised(_) | Receiver::Clipped(_) => true,
    }
}

/// The size of estimates up to which the divisor is constant; `small` if it is not constant anywhere.
pub(crate) fn flat_up_to(receiver: Receiver, small: f64) -> f64 {
    match receiver {
        Receiver::Clipped(c) => c.get(),
        Receiver::Paper | Receiver::Mmse | Receiver::Regularised(_) => small,
    }
}

/// Whether `u` never decreases with the estimate's size.
pub(crate) fn is_monotone(receiver: Receiver) -> bool {
    receiver.regularisation().is_none()
}

/// A receiver whose divisor `u` grows with the size of the estimate and is nowhere above the given one's: `|τ| + κ/|τ|` is at least
/// `max(|τ|, 2√κ)`.
pub(crate) fn with_growing_divisor(receiver: Receiver) -> Receiver {
    let level = receiver.regularisation().map(|kappa| 2.0 * kappa.sqrt());
    level.and_then(|level| Receiver::clipped(level).ok()).unwrap_or(receiver)
}

/// The distribution of `ν² = Σ_{j≤γ} w(G_j)²`, rounded down for an upper bound and up for a lower one. The last few results are stored,
/// because several views need the same one.
pub(crate) fn noise_of_unused(receiver: Receiver, unused: u64, side: Side) -> Arc<Noise> {
    noise_of_branches(receiver, 1, unused, side)
}

/// The same for sequences that are received on several branches.
pub(crate) fn noise_of_branches(receiver: Receiver, branches: u32, unused: u64, side: Side) -> Arc<Noise> {
    type Key = (Receiver, u32, u64);
    /// Rounded down, and rounded up.
    type Shared = Arc<OnceLock<[Arc<Noise>; 2]>>;
    static RECENT: Mutex<Vec<(Key, Shared)>> = Mutex::new(Vec::new());
    const KEPT: usize = 4;
    let key = (receiver, branches, unused);
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = recent.iter().position(|entry| entry.0 == key);
    let position = known.unwrap_or_else(|| {
        recent.truncate(KEPT - 1);
        recent.push((key, Arc::default()));
        recent.len() - 1
    });
    recent[..=position].rotate_right(1);
    let noise = recent[0].1.clone();
    drop(recent);
    let compute = || {
        let is_limited = has_limit(receiver);
        if !is_limited && branches == 1 {
            return [Side::Upper, Side::Lower].map(|side| Arc::new(Noise::cauchy(unused as f64, side)));
        }
        let sum = Sum::new(&[term_of_branches(receiver, branches, 1.0, unused)]);
        [Side::Upper, Side::Lower].map(|side| {
            // The amount by which the true noise is larger is unknown.
            let is_unknown = !is_limited || with_bounded_weights(receiver) != receiver;
            let is_unlimited = side == Side::Lower && is_unknown;
            Arc::new(if is_unlimited { Noise::unlimited() } else { sum.rounded(side) })
        })
    };
    let [down, up] = noise.get_or_init(compute);
    match side {
        Side::Upper => down.clone(),
        Side::Lower => up.clone(),
    }
}

/// The same receiver with a level of at least [`MIN_LEVEL`]: its noise is at most the true noise.
pub(crate) fn with_bounded_weights(receiver: Receiver) -> Receiver {
    let least = ClipLevel::new(MIN_LEVEL).expect("0.01 is in range");
    receiver.with_level_at_least(least)
}

/// One term `Y = w(G)²` per unused sequence, for bounded weights.
pub(crate) fn unused_term(receiver: Receiver, count: u64) -> Term {
    term_of_branches(receiver, 1, 1.0, count)
}

/// `Y = w(a·R)²` for the length `R` of a vector of `branches` standard normal numbers. Unbounded weights are replaced by bounded ones.
pub(crate) fn term_of_branches(receiver: Receiver, branches: u32, scale: f64, count: u64) -> Term {
    // Estimates of a, in units of a.
    let within = move |size: f64| chi::within(branches, size / scale);
    let beyond = move |size: f64| chi::beyond(branches, size / scale);
    let kappa = receiver.regularisation();
    let is_simple = branches == 1 && scale == 1.0;
    let mean_of = |from: f64| mean_square_weight(receiver, branches, scale, from);
    match kappa {
        Some(kappa) => {
            let mean = if is_simple && kappa == 1.0 { mmse_mean() } else { mean_of(0.0) };
            Term::continuous(count, 0.25 / kappa, mean, move |square| {
                // w < x beyond the roots of x·(τ² + κ) = τ.
                let x = square.sqrt();
                let root = (1.0 - 4.0 * kappa * square).max(0.0).sqrt();
                let (near, far) = (2.0 * kappa * x / (1.0 + root), (1.0 + root) / (2.0 * x));
                within(near) + beyond(far)
            })
        }
        None => {
            let level = match receiver.level() {
                Some(c) => c.max(MIN_LEVEL),
                None => rare_length(branches, scale).max(MIN_LEVEL),
            };
            let mean = match is_simple {
                true => clipped_mean(level),
                false => within(level) / (level * level) + mean_of(level),
            };
            Term::continuous(count, 1.0 / (level * level), mean, move |square| beyond(1.0 / square.sqrt()))
        }
    }
}

/// `E[w(a·R)²; a·R > from]`, by an integration rule in `ln R`. Weights other than those of a regularised receiver are `1/(a·R)` there.
fn mean_square_weight(receiver: Receiver, branches: u32, scale: f64, from: f64) -> f64 {
    let highest = (f64::from(branches).sqrt() + 14.0).ln();
    // Below this, the probability of R is negligible for the mean.
    let lowest = (from / scale).max(1e-9).ln().min(highest);
    let weight = |size: f64| match receiver.regularisation() {
        Some(kappa) => size / (size * size + kappa),
        None => 1.0 / size,
    };
    let value = |x: f64| {
        let length = x.exp();
        length * chi::density(branches, length) * weight(scale * length).powi(2)
    };
    narrow_panels(&[lowest, highest], 0.05).iter().map(|&(x, w)| w * value(x)).sum()
}

/// A length that `a·R` is rarely below. For shorter estimates, the paper's weights count as those at this length.
fn rare_length(branches: u32, scale: f64) -> f64 {
    const RARE: f64 = 1e-4;
    let (mut low, mut high) = (0.0, f64::from(branches).sqrt());
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if chi::within(branches, middle) < RARE { low = middle } else { high = middle }
    }
    scale * low
}

/// Lower levels count as this one in the distribution of a sum: the noise is then at most the true noise.
pub(crate) const MIN_LEVEL: f64 = 0.01;

/// `m(c) = E[1/max(|G|, c)²] = P(|G| < c)/c² + 2(φ(c)/c − Φ(−c))`.
pub fn clipped_mean(c: f64) -> f64 {
    // For large c the bracket cancels; φ(c)·(1/c − M(c)) does not.
    let bracket = normal::density(c) * normal::mills_slope(c) / c;
    chi::within(1, c) / (c * c) + 2.0 * bracket
}

/// The mean contribution of an unused sequence to `ν²`, in units of the pilot's noise: `E[1/max(R, c)²]` for the length `R` of a vector of
/// `branches` standard normal numbers.
pub fn clipped_mean_of_branches(c: f64, branches: u32) -> f64 {
    match branches {
        1 => clipped_mean(c),
        _ => chi::within(branches, c) / (c * c) + mean_square_weight(Receiver::Paper, branches, 1.0, c),
    }
}

/// `E[G²/(G² + 1)²] = M(1) − ½`, with the Mills ratio `M`.
fn mmse_mean() -> f64 {
    normal::mills_ratio(1.0) - 0.5
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::quadrature::equal_panels;

    #[test]
    fn means_are_those_of_the_integrals() {
        assert!((clipped_mean(1.0) - 0.849).abs() < 5e-4, "as in the text");
        let mean = |receiver: Receiver, from: f64| -> f64 {
            let nodes = equal_panels(from, from + 30.0, 200);
            nodes.iter().map(|&(x, w)| 2.0 * w * normal::density(x) * receiver.weight(x, 1.0).powi(2)).sum()
        };
        assert!((mean(Receiver::Mmse, 0.0) - mmse_mean()).abs() < 1e-13);
        for c in [0.1, 1.0, 2.5, 8.0] {
            let inside = chi::within(1, c) / (c * c);
            assert!(
                (mean(Receiver::clipped(c).unwrap(), c) + inside - clipped_mean(c)).abs() < 1e-13 * inside,
                "{c}"
            );
        }
    }

    /// `E[1/R²; R > c] = P(χ_{B−2} > c)/(B − 2)`, and `E[R²/(R² + κ)²]` by an integration rule in `R`.
    #[test]
    fn means_over_branches_have_their_closed_forms() {
        for branches in [3, 4, 8, 128] {
            for c in [0.05, 1.0, 2.5] {
                let less = f64::from(branches - 2);
                let expected = chi::within(branches, c) / (c * c) + chi::beyond(branches - 2, c) / less;
                let found = clipped_mean_of_branches(c, branches);
                assert!((found / expected - 1.0).abs() < 1e-12, "{branches}, {c}: {found}, not {expected}");
            }
        }
        // E₁(½)/2 + P(χ_2 < 1), with E₁(½) = 0.5597735948 (Abramowitz and Stegun, table 5.1).
        let expected = 0.5 * 0.559_773_594_8 + 1.0 - (-0.5_f64).exp();
        assert!((clipped_mean_of_branches(1.0, 2) - expected).abs() < 1e-9);
        for (branches, kappa) in [(1, 0.3), (2, 1.0), (2, 3.0), (8, 3.0)] {
            let receiver = Receiver::regularised(kappa).unwrap();
            let nodes = equal_panels(0.0, 30.0, 600).into_iter();
            let expected: f64 =
                nodes.map(|(x, w)| w * chi::density(branches, x) * receiver.weight(x, 1.0).powi(2)).sum();
            let found = mean_square_weight(receiver, branches, 1.0, 0.0);
            assert!((found / expected - 1.0).abs() < 1e-11, "{branches}, {kappa}: {found}, not {expected}");
        }
    }

    #[test]
    fn growing_divisors_are_nowhere_larger() {
        for receiver in [Receiver::Mmse, Receiver::regularised(3.0).unwrap(), Receiver::Paper] {
            let growing = with_growing_divisor(receiver);
            assert!(is_monotone(growing));
            for size in (1..400).map(|step| 0.05 * f64::from(step)) {
                assert!(
                    divisor(growing, size) <= divisor(receiver, size) * (1.0 + 1e-12),
                    "{receiver} {size}"
                );
            }
        }
    }

    /// Medians of `ν` as printed in the table of the clipped projector: 4.1 and 9.6 for c = 1, 2.2 and 5.2 for c = 2.
    #[test]
    fn the_noise_sum_has_the_printed_median() {
        for (c, unused, median) in
            [(1.0, 20, 4.1), (1.0, 108, 9.6), (2.0, 20, 2.2), (2.0, 108, 5.2), (3.0, 236, 5.1)]
        {
            let noise = noise_of_unused(Receiver::clipped(c).unwrap(), unused, Side::Upper);
            let found = noise.quantile(0.5).sqrt();
            assert!((found - median).abs() < 0.051, "{found} for c = {c}, γ = {unused}");
        }
    }
}
