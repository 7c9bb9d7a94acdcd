//! The pilot: the effect of the base station's channel estimate on a client's weight.
//!
//! In units of the despread noise `s` the estimate is `τ = t + e` with a standard normal `e`, and the decoder divides by
//! `u(τ) = 1/|w(τ)|`: `|τ|` (paper), `max(|τ|, c)` (clipped) or `|τ| + 1/|τ|` (MMSE). With noise `ν²` from the other sequences,
//!
//! ```text
//! μ = Δ·t·g,     g = 1/√(1 + ν²u²)
//! ```
//!
//! The range of the estimate's size is cut into [`Panel`]s, each with its exact probability, the range of `u` and a bound on its mean. In
//! a panel of relative width `h`, `g` is between its chord and its tangent up to `h³`. So its mean is known up to `h³` without an
//! integration rule.

use std::f64::consts::FRAC_1_SQRT_2;

use floras_core::Receiver;

use crate::numerics::normal;
use crate::views::gains::LogBins;
use crate::views::noise::Noise;
use crate::views::receiver::{divisor, is_monotone};

/// Maximum distance of an estimate from the channel; larger distances count as infinite losses.
pub(crate) const REACH: f64 = 12.0;
/// Upper bound on the probability of an estimate beyond [`REACH`], and of any other tail that is left out.
pub(crate) const BEYOND_REACH: f64 = 1e-32;
/// Factor for the relative error of a panel's mean of `g`: `h³` times the third derivative, at most 5·h³/8.
const CURVED: f64 = 1.0 + 1e-5;
/// From this argument on, the tail of a standard normal number is 0 as a double.
const TAIL_IS_ZERO: f64 = 40.0;
/// Panels with less probability count as infinite losses.
pub(crate) const MIN_PROBABILITY: f64 = 1e-40;

/// A range of sizes of the estimate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) probability: f64,
    /// Minimum of `u`; a test also needs the maximum.
    pub(crate) least: f64,
    #[cfg(test)]
    pub(crate) largest: f64,
    /// A lower bound on the mean of `u`.
    pub(crate) mean: f64,
}

impl Panel {
    /// `g` at the smallest and at the largest `u`, and an upper bound on its mean, under noise `ν²`.
    #[cfg(test)]
    fn gains(&self, noise: f64) -> (f64, (f64, f64)) {
        let [least, largest, mean] = [self.least, self.largest, self.mean].map(|u| noise.sqrt() * u);
        let (from, to) = ((least, gain(least)), (largest, gain(largest)));
        (largest_mean_gain(from, to, mean), (to.1, from.1))
    }
}

/// `g = 1/√(1 + x²)`.
pub(crate) fn gain(x: f64) -> f64 {
    1.0 / (1.0 + x * x).sqrt()
}

/// An upper bound on the mean of `g`, for `x` between two values, each with its gain, and with a mean of at least `mean`.
pub(crate) fn largest_mean_gain((least, high): (f64, f64), (largest, low): (f64, f64), mean: f64) -> f64 {
    if least == largest {
        return high;
    }
    let chord = high + (mean - least) / (largest - least) * (low - high);
    (chord.max(gain(mean)) * CURVED).min(high)
}

/// A lower bound on the mean of `g`, for `x` between two values, each with its gain, and with a mean of at most `mean`. `g` is concave below
/// `√½` and convex above, and `|g'''| < 2`. So near `√½`, `|g''|` is below twice the width, and the mean of `g` is below `g` at the mean by at
/// most a quarter of the cubed width.
pub(crate) fn least_mean_gain((least, high): (f64, f64), (largest, low): (f64, f64), mean: f64) -> f64 {
    if least == largest {
        return low;
    }
    if least >= FRAC_1_SQRT_2 {
        gain(mean)
    } else if largest <= FRAC_1_SQRT_2 {
        high + (mean - least) / (largest - least) * (low - high)
    } else {
        (gain(mean) - 0.25 * (largest - least).powi(3)).max(low)
    }
}

/// The weakest channel for [`divisors_between`], where the divisor at the strongest deviation still grows with the estimate.
pub(crate) fn weakest_to_couple(receiver: Receiver) -> f64 {
    REACH + receiver.level().unwrap_or(0.0).max(4.0)
}

/// Divisors `u'`, in bins, for all channels `t` between two strong ones. Given the same pilot noise `e` for all of them,
/// `t/√(1 + u(t + e)²ν²) ≤ t₁/√(1 + u'²ν²)`, because `u' ≤ t₁·u(t + e)/t`.
///
/// For `e ≥ 0`, `u(t + e)/t` falls with `t`, so `u' = u(t₁ + e)`. For `e < 0`, `(t + e)/t` rises with `t`, so `u' = t₁/t₀·u(t₀ + e)`. The
/// second part of an MMSE divisor, `1/(t(t + e))`, always falls, and `u'` is smaller by a share `η`: with `r = t₁/t₀` and
/// `τ = t₀ + e`, it is enough that `η·r·(τ + 1/τ) ≥ r/τ − 1/(t₁ + e)`. This holds for all `τ` if it holds for the smallest.
pub(crate) fn divisors_between(receiver: Receiver, from: f64, to: f64, step: f64) -> LogBins {
    let factor = weaker_factor(receiver, from, to);
    // Ends whose divisors, after scaling, are integer powers of e^step again.
    let inner = |from: f64, to: f64, factor: f64| {
        let number = |size: f64| (factor * size).ln() / step;
        let range = (number(from) + 1e-9).floor() as i64 + 1..=(number(to) - 1e-9).ceil() as i64 - 1;
        let ends = range.map(move |index| (index as f64 * step).exp() / factor);
        [from].into_iter().chain(ends).chain([to]).collect::<Vec<_>>()
    };
    let of = |t: f64, ends: &[f64], factor: f64| {
        let scaled = move |panel: Panel| (factor * panel.least, factor * panel.mean, panel.probability);
        panels(receiver, ends, t).into_iter().map(scaled)
    };
    let weaker = of(from, &inner(from - REACH, from, factor), factor);
    let stronger = of(to, &inner(to, to + REACH, 1.0), 1.0);
    let bins = LogBins::new(step, &weaker.chain(stronger).collect::<Vec<_>>());
    // Divisors of MMSE weights at the ends of panels are not boundaries of bins.
    if is_monotone(receiver) { bins } else { bins.unaligned() }
}

/// `r·(1 − η)`, the factor of [`divisors_between`] for weaker estimates.
fn weaker_factor(receiver: Receiver, from: f64, to: f64) -> f64 {
    let ratio = to / from;
    if is_monotone(receiver) {
        return ratio;
    }
    let least = from - REACH;
    let share = (ratio - least / (least + to - from)) / (ratio * (least * least + 1.0));
    ratio * (1.0 - share)
}

/// A size below which estimates need not be distinguished. Dividing by them makes no difference relative to a client's own noise; with
/// MMSE weights, their weights are small.
pub(crate) fn small_estimate(receiver: Receiver, noise: &Noise) -> f64 {
    if receiver == Receiver::Mmse { 0.1 } else { (0.02 / noise.quantile(0.9).sqrt()).clamp(1e-9, 1e-3) }
}

/// The probabilities of panels between some ends for a client with the channel `t`, and the index of the first panel within reach.
pub(crate) fn probabilities(ends: &[f64], t: f64) -> (usize, Vec<f64>) {
    let from = ends.partition_point(|&end| end <= t - REACH).saturating_sub(1);
    // P(|τ| < size), minus 1 from `size = t` on, so that no digits are lost in either tail.
    let below = |size: f64| {
        let (near, far) = (size - t, size + t);
        let near_tail = normal::tail(near.abs());
        let far_tail = mirrored(size, t, || normal::tail(far));
        if near < 0.0 { near_tail - far_tail } else { -(near_tail + far_tail) }
    };
    let mut probabilities = Vec::new();
    let mut start = (ends[from], below(ends[from]));
    for &end in &ends[from + 1..] {
        let up_to = below(end);
        let crossing = if start.0 < t && end >= t { 1.0 } else { 0.0 };
        probabilities.push((up_to - start.1 + crossing).max(0.0));
        start = (end, up_to);
        if end > t + REACH {
            break;
        }
    }
    (from, probabilities)
}

/// Product of an estimate's size and the channel from which on the density around `−t` is negligible: `e^{−2·20}` is 4e-18.
const NEGLIGIBLE: f64 = 20.0;

/// The normal density around `−t` at a size, or its tail. It is 0 where it is negligible relative to the density around `t`:
/// `φ(x + t)/φ(x − t) = e^{−2xt}`.
pub(crate) fn mirrored(size: f64, t: f64, value: impl FnOnce() -> f64) -> f64 {
    if size * t > NEGLIGIBLE { 0.0 } else { value() }
}

/// The panels between some positive ends, for a client with the channel `t`. The omitted probability is below [`BEYOND_REACH`].
fn panels(receiver: Receiver, ends: &[f64], t: f64) -> Vec<Panel> {
    let mut panels = Vec::with_capacity(ends.len());
    let mut before = ends.first().map(|&end| (End::new(end, t), divisor(receiver, end)));
    for end in ends.iter().skip(1).map(|&end| (End::new(end, t), divisor(receiver, end))) {
        let Some((start, at_start)) = before.replace(end) else { break };
        let (end, at_end) = end;
        let (same, other) = probabilities_between(&start, &end);
        let probability = same + other;
        if probability < MIN_PROBABILITY {
            continue;
        }
        let (least, largest) = (at_start.min(at_end), at_start.max(at_end));
        // u is convex in |τ| for every receiver, so at the mean of |τ| it is at most its mean.
        let mean = divisor(receiver, mean_size(&start, &end, t, same, other)).clamp(least, largest);
        panels.push(Panel {
            probability,
            least,
            #[cfg(test)]
            largest,
            mean,
        });
    }
    panels
}

/// The end of a panel: what the two normal densities, around `t` and around `−t`, have there and beyond.
#[derive(Clone, Copy)]
pub(crate) struct End {
    pub(crate) size: f64,
    near: f64,
    near_density: f64,
    /// Tail of the nearer density beyond this end, `Φ(−|near|)`.
    pub(crate) near_tail: f64,
    far_density: f64,
    pub(crate) far_tail: f64,
}

impl End {
    pub(crate) fn new(size: f64, t: f64) -> Self {
        let (near, far) = (size - t, size + t);
        let of = |x: f64| {
            if x > TAIL_IS_ZERO {
                return (0.0, 0.0);
            }
            let density = normal::density(x);
            (density, density * normal::mills_ratio(x))
        };
        let (near_density, near_tail) = of(near.abs());
        let (far_density, far_tail) = if size * t > NEGLIGIBLE { (0.0, 0.0) } else { of(far) };
        Self { size, near, near_density, near_tail, far_density, far_tail }
    }
}

/// The probability of estimates between two ends, of the channel's sign and of the other one.
pub(crate) fn probabilities_between(start: &End, end: &End) -> (f64, f64) {
    let same = if end.near < 0.0 {
        end.near_tail - start.near_tail
    } else if start.near < 0.0 {
        1.0 - end.near_tail - start.near_tail
    } else {
        start.near_tail - end.near_tail
    };
    (same, start.far_tail - end.far_tail)
}

/// The mean size of estimates between two ends, with their probabilities from [`probabilities_between`].
pub(crate) fn mean_size(start: &End, end: &End, t: f64, same: f64, other: f64) -> f64 {
    let moments = start.near_density - end.near_density + start.far_density - end.far_density;
    ((t * (same - other) + moments) / (same + other)).clamp(start.size, end.size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::quadrature::equal_panels;

    /// Pilot noise `e` and channels `t` between two ends, on a grid: the divisor for all of them is at most `t₁·u(t + e)/t`. For `e < 0` it
    /// is computed from its definition, with the share of the MMSE receiver.
    #[test]
    fn one_divisor_bounds_all_channels_between() {
        for receiver in [
            Receiver::Paper,
            Receiver::Mmse,
            Receiver::clipped(1.0).unwrap(),
            Receiver::clipped(7.0).unwrap(),
        ] {
            let weakest = weakest_to_couple(receiver);
            for (from, ratio) in [(weakest, 1.002), (weakest, 1.3), (30.0, 1.05), (500.0, 2.0)] {
                let to = from * ratio;
                let factor = weaker_factor(receiver, from, to);
                for i in 0..=240 {
                    let e = -REACH + 0.1 * f64::from(i);
                    let (end, factor) = if e < 0.0 { (from, factor) } else { (to, 1.0) };
                    let shared = factor * divisor(receiver, end + e);
                    for j in 0..=20 {
                        let t = from * ratio.powf(f64::from(j) / 20.0);
                        let least = to / t * divisor(receiver, t + e);
                        assert!(
                            shared <= least * (1.0 + 1e-12),
                            "{receiver:?}, {t}, e = {e}: {shared} {least}"
                        );
                        assert!(ratio > 1.01 || shared >= least * 0.98, "{receiver:?}, {t}, e = {e}");
                    }
                }
            }
        }
    }

    /// The mean of `g` over all estimates, from panels and from an integration rule that resolves the kinks: they differ by less than
    /// 1e-4.
    #[test]
    fn panels_enclose_the_mean_gain() {
        for receiver in [
            Receiver::Paper,
            Receiver::Mmse,
            Receiver::clipped(1.0).unwrap(),
            Receiver::clipped(0.1).unwrap(),
        ] {
            for (t, noise) in [(0.3, 4.0), (1.0, 0.1), (4.0, 17.0), (40.0, 2.0), (3000.0, 20.0)] {
                let number = ((t + REACH) / 1e-15).ln() / 0.02;
                let mut ends: Vec<f64> =
                    (0..=number as i32 + 1).map(|i| 1e-15 * (0.02 * f64::from(i)).exp()).collect();
                // The kink of clipped weights.
                ends.extend(receiver.level());
                ends.sort_by(f64::total_cmp);
                ends.retain(|&end| end > 0.97 * (t - REACH));
                let (mut low, mut mean, mut total) = (0.0, 0.0, 0.0);
                for panel in panels(receiver, &ends, t) {
                    let (bound, (least, most)) = panel.gains(noise);
                    assert!(least <= bound && bound <= most);
                    low += panel.probability * least;
                    mean += panel.probability * bound;
                    total += panel.probability;
                }
                let gain = |tau: f64| 1.0 / (1.0 + noise * divisor(receiver, tau).powi(2)).sqrt();
                let nodes = equal_panels(t - 12.0, t + 12.0, 6000);
                let exact: f64 = nodes.iter().map(|&(x, w)| w * normal::density(x - t) * gain(x.abs())).sum();
                assert!((total - 1.0).abs() < 1e-12, "{receiver:?} {t}: {total}");
                assert!(
                    low <= exact && exact <= mean * (1.0 + 1e-7),
                    "{receiver:?} {t}: {low} {exact} {mean}"
                );
                assert!(mean <= exact * (1.0 + 1e-4), "{receiver:?} {t}: {exact} {mean}");
            }
        }
    }
}
