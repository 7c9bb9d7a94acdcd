//! The size of a channel estimate, if the channel itself is random.
//!
//! For channels `t` with probabilities `m_t`, in units of the despread noise, the size of the estimate has the density
//!
//! ```text
//! f(x) = Σ_t m_t·[φ(x − t) + φ(x + t)]
//! ```
//!
//! The probability of a panel is a sum of differences of tails over all channels. Weak channels are closer together than the standard
//! deviation of the pilot's noise, so `ln f` is smooth there. It is interpolated at Chebyshev nodes. The probability of a narrow panel is
//! the integral of the interpolant, to a relative 1e-11. The cost is almost the same for a few hundred and a few thousand panels.

use crate::numerics::normal;
use crate::numerics::quadrature::short_panel;
use crate::numerics::table::Smooth;
use crate::views::pilot::{self, REACH};

/// Up to this size, `ln f` is interpolated. A panel's relative width is at most 0.5% there, and four nodes integrate `f` over it.
const NEAR: f64 = 20.0;
/// Maximum length of a piece of the interpolant.
const LONGEST: f64 = 1.0;
/// Relative tolerance of the interpolant.
const TOLERANCE: f64 = 3e-13;
/// For fewer channels, the sum over channels is faster.
const FEW: usize = 8;

fn add_tails(masses: &mut [f64], ends: &[f64], channels: &[(f64, f64)]) {
    for &(channel, share) in channels {
        let (first, probabilities) = pilot::probabilities(ends, channel);
        for (mass, probability) in masses[first..].iter_mut().zip(probabilities) {
            *mass += share * probability;
        }
    }
}

/// The probabilities of panels of an estimate's size between ascending ends. The first end is 0, each other is at most 0.5% above the
/// previous one up to [`NEAR`], and the last is beyond all estimates. Each channel comes with its probability.
pub(crate) fn of_panels(ends: &[f64], mut channels: Vec<(f64, f64)>) -> Vec<f64> {
    // Channels may be unordered. Equal ones are merged, such as all faint channels.
    channels.sort_by(|a, b| a.0.total_cmp(&b.0));
    channels.dedup_by(|next, last| {
        let same = next.0 == last.0;
        if same {
            last.1 += next.1;
        }
        same
    });
    let mut masses = vec![0.0; ends.len() - 1];
    // Number of panels in the interpolated range.
    let near = if channels.len() <= FEW { 1 } else { ends.partition_point(|&end| end <= NEAR).max(2) - 1 };
    let smooth = Smooth::new(
        |x| density(within_reach(&channels, x, x), x),
        ends[1],
        ends[near].max(ends[1]),
        LONGEST,
        TOLERANCE,
    );
    for panel in 0..near {
        let (from, to) = (ends[panel], ends[panel + 1]);
        let part = |(x, weight): (f64, f64)| smooth.value(x).map(|value| weight * value);
        let integral = if panel == 0 { None } else { short_panel(from, to).map(part).sum() };
        match integral {
            Some(integral) => masses[panel] = integral,
            None => {
                add_tails(&mut masses[panel..=panel], &[from, to], within_reach(&channels, from, to));
            }
        }
    }
    let far = &ends[near..];
    let strong = within_reach(&channels, far[0], far[far.len() - 1]);
    add_tails(&mut masses[near..], far, strong);
    // The total must be that of the channels: a missing share would count as a channel without an estimate.
    let all: f64 = channels.iter().map(|&(_, share)| share).sum();
    let scale = all / masses.iter().sum::<f64>();
    masses.iter_mut().for_each(|mass| *mass *= scale);
    masses
}

/// The channels whose estimates can be in a range.
fn within_reach(channels: &[(f64, f64)], from: f64, to: f64) -> &[(f64, f64)] {
    let first = channels.partition_point(|&(channel, _)| channel < from - REACH);
    let last = channels.partition_point(|&(channel, _)| channel <= to + REACH);
    &channels[first..last]
}

/// Density `f(x)` of an estimate's size, for channels with their probabilities.
fn density(channels: &[(f64, f64)], x: f64) -> f64 {
    let of = |&(channel, share): &(f64, f64)| {
        share * (normal::density(x - channel) + pilot::mirrored(x, channel, || normal::density(x + channel)))
    };
    channels.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(start: f64, to: f64) -> Vec<f64> {
        let mut ends = vec![0.0, start];
        while let Some(&last) = ends.last()
            && last < to
        {
            ends.push(last * 1.002);
        }
        ends
    }

    /// Many channels: two far apart, each with others nearby, weak ones and strong ones. Each panel is compared with a sum over
    /// channels.
    #[test]
    fn panels_have_the_probabilities_of_all_channels() {
        let spread = |from: f64, ratio: f64, count: usize| -> Vec<(f64, f64)> {
            let channel =
                |i: usize| (from * ratio.powi(i as i32), (1.0 + (i % 7) as f64) / (4.0 * count as f64));
            (0..count).map(channel).collect()
        };
        let apart: Vec<(f64, f64)> = spread(0.1, 1.01, 6).into_iter().chain(spread(19.0, 1.01, 6)).collect();
        for channels in [spread(1e-4, 1.02, 780), spread(1e-3, 1.01, 600), spread(30.0, 1.1, 30), apart] {
            for start in [1e-3, 0.3, 8.0, 40.0] {
                let most = channels.last().map_or(0.0, |&(channel, _)| channel);
                let ends = ends(start, most + REACH);
                let found = of_panels(&ends, channels.clone());
                let mut exact = vec![0.0; ends.len() - 1];
                add_tails(&mut exact, &ends, &channels);
                for (panel, (found, exact)) in found.iter().zip(&exact).enumerate() {
                    // Differences of tails lose digits.
                    let lost = 1e-15 / (exact + 1e-300);
                    let close = (found - exact).abs() <= (1e-11 + lost) * exact + 1e-30;
                    assert!(close, "from {start}, panel {panel} at {}: {found:e}, {exact:e}", ends[panel]);
                }
                let [found, exact] = [found, exact].map(|masses| masses.iter().sum::<f64>());
                assert!((found - exact).abs() < 1e-13, "from {start}: {found}, {exact}");
            }
        }
    }
}
