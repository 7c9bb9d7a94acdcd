//! The pilot: what the base station's estimate of a client's channel does to the client's weight.
//!
//! In units of the despread noise `s` the estimate is `τ = t + e` with a standard normal `e`, and the decoder divides by
//! `u(τ) = 1/|w(τ)|`: `|τ|` (paper), `max(|τ|, c)` (clipped) or `|τ| + 1/|τ|` (MMSE). With noise `ν²` from the other sequences,
//!
//! ```text
//! μ = Δ·t·g,     g = 1/√(1 + ν²u²)
//! ```
//!
//! The estimate's size is cut into [`Panel`]s, each with its exact probability, the range of `u` and a bound on its mean. In
//! a panel of relative width `h`, `g` lies between its chord and its tangent up to `h³`, so that its mean is known to `h³`
//! without any rule of integration.

use crate::normal;
use crate::receiver::Receiver;

/// Estimates further than this from the channel are counted as infinite losses.
pub(crate) const REACH: f64 = 12.0;
/// The probability of an estimate beyond [`REACH`], and more than that of any other tail that is left out.
pub(crate) const BEYOND_REACH: f64 = 1e-32;
/// Ends of panels grow by this factor.
const RATIO: f64 = 1.02;
/// What a panel's mean of `g` may be off by, relatively: `h³` times the third derivative, at most 5·h³/8.
const CURVED: f64 = 1.0 + 1e-5;
/// Panels with less probability are counted as infinite losses.
const NEVER: f64 = 1e-40;
/// The smallest estimate that is told from 0.
const SMALLEST: f64 = 1e-12;

/// Estimates of about the same size.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Panel {
    pub(crate) probability: f64,
    /// `u` at its least and at its largest.
    pub(crate) least: f64,
    pub(crate) largest: f64,
    /// A mean of `u` that is not above the true one.
    pub(crate) mean: f64,
}

impl Panel {
    /// `g` at the least `u`, at the largest one, and a bound on its mean, under noise `ν²`.
    pub(crate) fn gains(&self, noise: f64) -> (f64, (f64, f64)) {
        let gain = |u: f64| 1.0 / (1.0 + noise * u * u).sqrt();
        let (high, low) = (gain(self.least), gain(self.largest));
        if self.least == self.largest {
            return (high, (high, high));
        }
        let share = (self.mean - self.least) / (self.largest - self.least);
        let chord = high + share * (low - high);
        ((chord.max(gain(self.mean)) * CURVED).min(high), (low, high))
    }
}

/// Ends of panels of `|τ|`, wherever an estimate of the channel `t` can lie.
pub(crate) fn ends(receiver: Receiver, t: f64) -> Vec<f64> {
    let to = t + REACH;
    let from = (t - REACH).max(0.0);
    let start = match receiver {
        Receiver::Clipped(c) => c,
        Receiver::Paper | Receiver::Mmse => SMALLEST,
    };
    let mut ends = if from <= start { vec![0.0] } else { Vec::new() };
    // MMSE weights turn at 1, where an end has to lie.
    let first = match receiver {
        Receiver::Clipped(_) | Receiver::Paper => from.max(start),
        Receiver::Mmse => RATIO.powf((from.max(start).ln() / RATIO.ln()).floor()),
    };
    let mut end = first;
    while end < to {
        ends.push(end);
        // Very small estimates are rare, and need not be known as well.
        end *= if end < 1e-3 { RATIO.powi(10) } else { RATIO };
        if receiver == Receiver::Mmse && (end - 1.0).abs() < 1e-6 {
            end = 1.0;
        }
    }
    ends.push(end);
    ends
}

/// Ends of panels for all channels up to `most`: no wider than `width`, relatively, and than a tenth of the pilot noise's
/// deviation. The first one reaches up to `small` at least.
pub(crate) fn narrow_ends(receiver: Receiver, most: f64, small: f64, width: f64) -> Vec<f64> {
    let to = most + REACH;
    let mut ends = vec![0.0];
    let mut end = match receiver {
        Receiver::Clipped(c) => c,
        Receiver::Paper | Receiver::Mmse => small,
    };
    while end < to {
        ends.push(end);
        let next = ((1.0 + width) * end).min(end + 0.1);
        // MMSE weights turn at 1, where an end has to lie.
        end = if receiver == Receiver::Mmse && end < 1.0 && next > 1.0 { 1.0 } else { next };
    }
    ends.push(end.max(to));
    ends
}

/// The probabilities of panels between some ends for a client with the channel `t`, from the first one within reach on.
pub(crate) fn probabilities(ends: &[f64], t: f64) -> (usize, Vec<f64>) {
    let from = ends.partition_point(|&end| end <= t - REACH).saturating_sub(1);
    // P(|τ| < size) less 1 where that is close to 0: no digits are lost in either tail.
    let below = |size: f64| {
        let (near, far) = (size - t, size + t);
        if near < 0.0 {
            normal::cdf(near) - normal::cdf(-far)
        } else {
            -(normal::cdf(-near) + normal::cdf(-far))
        }
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

/// A narrow panel for channels that are not known: its mean holds for any of them within reach.
pub(crate) fn blind_panel(receiver: Receiver, from: f64, to: f64) -> Panel {
    let [one, other] = [from, to].map(|size| receiver.divisor(size));
    let (least, largest) = (one.min(other), one.max(other));
    if from == 0.0 {
        // The smallest estimates divide by the least that is possible.
        return Panel { probability: 1.0, least, largest: least, mean: least };
    }
    // The density of the estimate grows or falls by at most a factor of e^{REACH·width}, which moves the mean by less than this.
    let width = to - from;
    let lowest = (0.5 * (from + to) - REACH * width * width / 12.0).max(from);
    let highest = (0.5 * (from + to) + REACH * width * width / 12.0).min(to);
    let mean = receiver.divisor(lowest).min(receiver.divisor(highest)).clamp(least, largest);
    Panel { probability: 1.0, least, largest, mean }
}

/// The panels between some ends, for a client with the channel `t`. What they leave out is below [`BEYOND_REACH`].
pub(crate) fn panels(receiver: Receiver, ends: &[f64], t: f64) -> impl Iterator<Item = Panel> + '_ {
    let windows = ends.windows(2).map(|pair| (pair[0], pair[1]));
    windows.filter_map(move |(from, to)| {
        // Both signs of the estimate.
        let sides = [(from - t, to - t), (from + t, to + t)];
        let [same, other] = sides.map(|(a, b)| normal::between(a, b));
        let probability = same + other;
        if probability < NEVER {
            return None;
        }
        let [near, far] = sides.map(|(a, b)| normal::density(a) - normal::density(b));
        let mean = ((t * (same - other) + near + far) / probability).clamp(from, to);
        let ends = [from, to].map(|size| receiver.divisor(size));
        let (least, largest) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
        // u is convex in |τ| for every receiver, so that it is not above its mean at the mean of |τ|.
        let mean = receiver.divisor(mean).clamp(least, largest);
        Some(Panel { probability, least, largest, mean })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quadrature::equal_panels;

    /// The mean of `g` over all estimates, by panels and by a plain rule with kinks resolved: between them lies less than 1e-4.
    #[test]
    fn panels_enclose_the_mean_gain() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::Clipped(1.0), Receiver::Clipped(0.1)] {
            for (t, noise) in [(0.3, 4.0), (1.0, 0.1), (4.0, 17.0), (40.0, 2.0), (3000.0, 20.0)] {
                let ends = ends(receiver, t);
                let (mut low, mut mean, mut total) = (0.0, 0.0, 0.0);
                for panel in panels(receiver, &ends, t) {
                    let (bound, (least, most)) = panel.gains(noise);
                    assert!(least <= bound && bound <= most);
                    low += panel.probability * least;
                    mean += panel.probability * bound;
                    total += panel.probability;
                }
                let gain = |tau: f64| 1.0 / (1.0 + noise * receiver.divisor(tau).powi(2)).sqrt();
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
