//! The divisors `u` of many channels: sizes of the estimate are cut at the same ends for all of them.
//!
//! Ends are integer powers of `e^step` and the kinks of the weights. The divisors at the ends, and the bins that they belong to, are
//! computed once; for each channel, only the probabilities remain. Estimates more than [`FAR`] above a channel count as the largest
//! one within that distance. They have larger divisors, and so smaller gains: an upper bound hardly grows, and a lower bound leaves
//! them out.

use floras_core::Receiver;

use crate::engine::distribution::Side;
use crate::views::gains::LogBins;
use crate::views::pilot::{End, MIN_PROBABILITY, REACH, mean_size, probabilities_between};
use crate::views::receiver::{divisor, flat_up_to, has_limit, is_monotone};

/// Maximum distance of an estimate above the channel. An estimate is further above with probability 4e-11.
const FAR: f64 = 6.5;

/// Panels of the size of the estimate, for channels in a range.
pub(crate) struct CommonPanels {
    receiver: Receiver,
    side: Side,
    step: f64,
    /// Sizes with their divisors, in ascending order.
    ends: Vec<(f64, f64)>,
    /// For each panel, the bin of its divisors; `None` if they count as 0.
    bins: Vec<Option<i64>>,
}

impl CommonPanels {
    /// For channels between `from` and `to`, with bins of width `step`. If weights are unbounded, divisors of estimates below `small`
    /// count as 0. For a lower bound they count as the largest of them, and unbounded divisors are omitted.
    pub(crate) fn new(receiver: Receiver, (from, to): (f64, f64), small: f64, step: f64, side: Side) -> Self {
        let start = flat_up_to(receiver, small);
        let (lowest, highest) = ((from - REACH).max(0.0), to + FAR);
        let number = |size: f64| (size.ln() / step + 1e-9).floor();
        let mut sizes = if lowest <= start { vec![0.0, start] } else { vec![(number(lowest) * step).exp()] };
        let mut next = number(lowest.max(start)) + 1.0;
        while sizes.last().is_some_and(|&end| end < highest) {
            sizes.push((next * step).exp());
            next += 1.0;
        }
        let ends: Vec<(f64, f64)> = sizes.into_iter().map(|size| (size, divisor(receiver, size))).collect();
        let bin = |panel: &[(f64, f64)]| {
            let (least, largest) = (panel[0].1.min(panel[1].1), panel[0].1.max(panel[1].1));
            let is_first = panel[0].0 == 0.0;
            let value = match side {
                Side::Upper if is_first && !has_limit(receiver) => 0.0,
                Side::Lower if least == 0.0 => largest,
                Side::Upper | Side::Lower => least,
            };
            LogBins::bin(value, step)
        };
        let bins = ends.windows(2).map(bin).collect();
        Self { receiver, side, step, ends, bins }
    }

    /// The range of the bins of all divisors: the first one, and one after the last.
    pub(crate) fn range(&self) -> (i64, i64) {
        let ends = self.ends.last().and_then(|&(_, divisor)| LogBins::bin(divisor, self.step));
        let used = || self.bins.iter().flatten().copied().chain(ends);
        (used().min().unwrap_or(0), used().max().unwrap_or(0) + 1)
    }

    /// The divisors of a client with the channel `t`, in bins.
    pub(crate) fn divisors(&self, t: f64) -> LogBins {
        let from = self.ends.partition_point(|&(size, _)| size <= t - REACH).saturating_sub(1);
        let last = self.ends.partition_point(|&(size, _)| size < t + FAR).min(self.ends.len() - 1);
        // The mass beyond the last end has the divisor of that end.
        let beyond = LogBins::bin(self.ends[last].1, self.step);
        let used = || self.bins[from..last].iter().chain([&beyond]).flatten().copied();
        let (first, end) = (used().min().unwrap_or(0), used().max().unwrap_or(0));
        let mut bins = LogBins::empty(self.step, first, (end - first + 1) as usize);
        let mut start = End::new(self.ends[from].0, t);
        let monotone = is_monotone(self.receiver);
        for panel in from..last {
            let end = End::new(self.ends[panel + 1].0, t);
            let (same, other) = probabilities_between(&start, &end);
            let probability = same + other;
            if probability >= MIN_PROBABILITY {
                let (at_start, at_end) = (self.ends[panel].1, self.ends[panel + 1].1);
                let (least, largest) = (at_start.min(at_end), at_start.max(at_end));
                let size = mean_size(&start, &end, t, same, other);
                match self.side {
                    Side::Upper => {
                        // u is convex in |τ| for every receiver, so at the mean of |τ| it is at most its mean.
                        let mean = if start.size > 0.0 {
                            divisor(self.receiver, size).clamp(least, largest)
                        } else {
                            least
                        };
                        bins.add(self.bins[panel], mean, probability);
                    }
                    // MMSE divisors are unbounded towards an estimate of 0.
                    Side::Lower if start.size == 0.0 && !monotone => {}
                    Side::Lower if least == 0.0 => bins.add(self.bins[panel], largest, probability),
                    Side::Lower => {
                        // For the same reason the mean is at most the chord.
                        let share = (size - start.size) / (end.size - start.size);
                        bins.add(self.bins[panel], at_start + share * (at_end - at_start), probability);
                    }
                }
            }
            start = end;
        }
        if self.side == Side::Upper {
            bins.add(beyond, self.ends[last].1, start.near_tail + start.far_tail);
        }
        // Divisors of MMSE weights at the ends of panels are not boundaries of bins.
        if monotone { bins } else { bins.unaligned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numerics::normal;
    use crate::numerics::quadrature::equal_panels;
    use crate::views::gains::Boundaries;

    /// The mean of `g` over all estimates, from bins and from an integration rule that resolves the kinks. Bins of half the width bring
    /// the bounds closer.
    #[test]
    fn bins_enclose_the_mean_gain() {
        for receiver in [
            Receiver::Paper,
            Receiver::Mmse,
            Receiver::clipped(1.0).unwrap(),
            Receiver::clipped(0.1).unwrap(),
        ] {
            for (t, noise) in [(0.3, 4.0), (1.0, 0.1), (4.0, 17.0), (40.0, 2.0), (3000.0, 20.0)] {
                let gain = |tau: f64| 1.0 / (1.0 + noise * divisor(receiver, tau).powi(2)).sqrt();
                let nodes = equal_panels(t - 12.0, t + 12.0, 6000);
                let exact: f64 = nodes.iter().map(|&(x, w)| w * normal::density(x - t) * gain(x.abs())).sum();
                let bound = |side: Side, step: f64| {
                    let small = if receiver == Receiver::Mmse { 0.1 } else { 1e-4 };
                    let panels = CommonPanels::new(receiver, (0.0, t), small, step, side);
                    let root = f64::sqrt(noise);
                    let noise = LogBins::new(step, &[(root, root, 1.0)]);
                    let boundaries = Boundaries::new(panels.range(), &noise);
                    let gains = panels.divisors(t).gains(&noise, &boundaries, side);
                    let total: f64 = gains.iter().map(|gain| gain.mass).sum();
                    // A lower bound omits the smallest estimates if their divisors are unbounded.
                    assert!(total < 1.0 + 1e-12, "{receiver:?} {t}: {total}");
                    assert!(side == Side::Lower || total > 1.0 - 1e-12, "{receiver:?} {t}: {total}");
                    gains.iter().map(|gain| gain.mass * gain.mean).sum::<f64>()
                };
                let [wide, narrow] =
                    [0.02, 0.01].map(|step| [Side::Lower, Side::Upper].map(|side| bound(side, step)));
                for [low, high] in [wide, narrow] {
                    assert!(
                        low <= exact * (1.0 + 1e-9) && exact <= high * (1.0 + 1e-9),
                        "{receiver:?} {t}: {low} {exact} {high}"
                    );
                }
                // The smallest estimates share one MMSE divisor.
                let most = if receiver == Receiver::Mmse { 1.02 } else { 1.003 };
                assert!(narrow[1] <= exact * most, "{receiver:?} {t}: {exact} {}", narrow[1]);
                assert!(narrow[1] <= wide[1] * (1.0 + 1e-6), "{receiver:?} {t}");
            }
        }
    }
}
