//! The base station's weights, as far as privacy depends on them, and the noise of the unused sequences.
//!
//! In units of the despread noise `s`, with `τ = ĥ/s` the estimate of a sequence's channel, the weight is `w(τ)/s`. An
//! unused sequence has `τ = G`, a standard normal number, and adds `Y = w(G)²` to the square of the noise `ν`:
//!
//! | receiver | `w(τ)` | distribution of `ν² = Σ_{j≤γ} w(G_j)²` |
//! |---|---|---|
//! | paper | `1/τ` | `(γ/G)²`, one normal number for all: the Lévy distribution is stable |
//! | MMSE | `τ/(τ² + 1)` | a sum of bounded terms |
//! | clipped at `c` | `1/max(|τ|, c)` | a sum of bounded terms |

use std::f64::consts::SQRT_2;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use floras_core::{ClipLevel, Receiver};

use crate::engine::distribution::Side;
use crate::numerics::normal;
use crate::views::noise::{Noise, Sum, Term};

/// `u = 1/|w|` for an estimate of this size: what the decoder divides by. It is convex in the size.
pub(crate) fn divisor(receiver: Receiver, size: f64) -> f64 {
    match receiver {
        Receiver::Paper => size,
        Receiver::Mmse => size + 1.0 / size.max(1e-100),
        Receiver::Clipped(c) => size.max(c.get()),
    }
}

/// Whether the weights have a limit, so that the noise of a sequence has moments.
pub(crate) fn has_limit(receiver: Receiver) -> bool {
    match receiver {
        Receiver::Paper => false,
        Receiver::Mmse | Receiver::Clipped(_) => true,
    }
}

/// The size of estimates up to which the divisor is constant, or `small` where it is not.
pub(crate) fn flat_up_to(receiver: Receiver, small: f64) -> f64 {
    match receiver {
        Receiver::Clipped(c) => c.get(),
        Receiver::Paper | Receiver::Mmse => small,
    }
}

/// Whether `u` only grows with the estimate's size.
pub(crate) fn is_monotone(receiver: Receiver) -> bool {
    receiver != Receiver::Mmse
}

/// The distribution of `ν² = Σ_{j≤γ} w(G_j)²`, rounded down for an upper bound and up for a lower one. The last few are kept, because
/// several views ask for the same one.
pub(crate) fn noise_of_unused(receiver: Receiver, unused: u64, side: Side) -> Arc<Noise> {
    /// Rounded down and rounded up.
    type Shared = Arc<OnceLock<[Arc<Noise>; 2]>>;
    static RECENT: Mutex<Vec<(Receiver, u64, Shared)>> = Mutex::new(Vec::new());
    const KEPT: usize = 4;
    let mut recent = RECENT.lock().unwrap_or_else(PoisonError::into_inner);
    let known = recent.iter().position(|entry| (entry.0, entry.1) == (receiver, unused));
    let position = known.unwrap_or_else(|| {
        recent.truncate(KEPT - 1);
        recent.push((receiver, unused, Arc::default()));
        recent.len() - 1
    });
    recent[..=position].rotate_right(1);
    let noise = recent[0].2.clone();
    drop(recent);
    let compute = || {
        if !has_limit(receiver) {
            return [Side::Upper, Side::Lower].map(|side| Arc::new(Noise::cauchy(unused as f64, side)));
        }
        let sum = Sum::new(&[unused_term(receiver, unused)]);
        [Side::Upper, Side::Lower].map(|side| {
            // How much more noise there is in truth is not known.
            let is_unlimited = side == Side::Lower && with_bounded_weights(receiver) != receiver;
            Arc::new(if is_unlimited { Noise::unlimited() } else { sum.rounded(side) })
        })
    };
    let [down, up] = noise.get_or_init(compute);
    match side {
        Side::Upper => down.clone(),
        Side::Lower => up.clone(),
    }
}

/// The same with a level of at least [`LEAST_LEVEL`]: there is not more noise than in truth.
pub(crate) fn with_bounded_weights(receiver: Receiver) -> Receiver {
    let least = ClipLevel::new(LEAST_LEVEL).expect("0.01 is in range");
    receiver.with_level_at_least(least)
}

/// `Y = w(G)²`, for weights that are bounded.
pub(crate) fn unused_term(receiver: Receiver, count: u64) -> Term {
    match receiver {
        Receiver::Paper => unreachable!("the paper's weights are not bounded, and have a closed form"),
        Receiver::Mmse => Term::continuous(count, 0.25, mmse_mean(), |square| {
            // w < x beyond the roots of x·(τ² + 1) = τ.
            let x = square.sqrt();
            let root = (1.0 - 4.0 * square).max(0.0).sqrt();
            let (near, far) = (2.0 * x / (1.0 + root), (1.0 + root) / (2.0 * x));
            within(near) + beyond(far)
        }),
        Receiver::Clipped(c) => {
            let level = c.get().max(LEAST_LEVEL);
            Term::continuous(count, 1.0 / (level * level), clipped_mean(level), |square| {
                beyond(1.0 / square.sqrt())
            })
        }
    }
}

/// A level below this is taken as this one where the distribution of a sum is needed: the noise is then smaller than in truth.
pub(crate) const LEAST_LEVEL: f64 = 0.01;

/// `P(|G| ≤ x)`.
fn within(x: f64) -> f64 {
    if x > 1.0 { 1.0 - libm::erfc(x / SQRT_2) } else { libm::erf(x / SQRT_2) }
}

/// `P(|G| > x)`.
fn beyond(x: f64) -> f64 {
    libm::erfc(x / SQRT_2)
}

/// `m(c) = E[1/max(|G|, c)²] = P(|G| < c)/c² + 2(φ(c)/c − Φ(−c))`.
pub fn clipped_mean(c: f64) -> f64 {
    // The bracket cancels far out; φ(c)·(1/c − M(c)) does not.
    let bracket = normal::density(c) * normal::mills_slope(c) / c;
    within(c) / (c * c) + 2.0 * bracket
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
            let inside = within(c) / (c * c);
            assert!(
                (mean(Receiver::clipped(c).unwrap(), c) + inside - clipped_mean(c)).abs() < 1e-13 * inside,
                "{c}"
            );
        }
    }

    /// Medians of `ν` as printed in the table of the clipped projector: 4.1 and 9.6 for c = 1, 2.2 and 5.2 for c = 2.
    #[test]
    fn the_noise_of_a_sum_has_the_printed_median() {
        for (c, unused, median) in
            [(1.0, 20, 4.1), (1.0, 108, 9.6), (2.0, 20, 2.2), (2.0, 108, 5.2), (3.0, 236, 5.1)]
        {
            let noise = noise_of_unused(Receiver::clipped(c).unwrap(), unused, Side::Upper);
            let found = noise.quantile(0.5).sqrt();
            assert!((found - median).abs() < 0.051, "{found} for c = {c}, γ = {unused}");
        }
    }
}
