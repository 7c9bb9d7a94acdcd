//! The noise of the other clients' sequences, whose weights follow from estimates of their channels.

use std::sync::{Arc, Mutex, PoisonError};

use floras_core::Receiver;

use crate::engine::distribution::Side;
use crate::views::actual::coefficients::Coefficients;
use crate::views::actual::densities::groups;
use crate::views::actual::lower::{STRONG, Shared, narrow_groups};
use crate::views::estimates;
use crate::views::noise::{Noise, Term};
use crate::views::pilot::REACH;
use crate::views::receiver::{
    has_limit, is_monotone, noise_of_unused, term_of_branches, unused_term, with_bounded_weights,
};

/// Used sequences of the paper's receiver count as if their weights had this bound. Their noise is then smaller than the true one.
fn bounded() -> Receiver {
    Receiver::clipped(0.05).expect("0.05 is in range")
}
/// Relative width of panels of estimates up to [`USED_NEAR`], its maximum for larger ones, and width of the coefficient's cells, for the
/// noise of used sequences.
const USED_WIDTH: f64 = 0.002;
const USED_NEAR: f64 = 4.0;
const MAX_USED_WIDTH: f64 = 0.02;
const USED_STEP: f64 = 0.02;

/// Contributions of used sequences to `ν²`, for the receivers of recent calls; the steps of a calibration repeat them.
#[derive(Clone, Debug, Default)]
pub(super) struct UsedValues(Arc<Mutex<Vec<UsedValue>>>);

type UsedValue = ((Receiver, Side), Arc<[(f64, f64)]>);

impl PartialEq for UsedValues {
    /// Always equal, because the values follow from the coefficients.
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl UsedValues {
    /// Returns a stored value, or computes it; the last few values are stored.
    fn get_or_compute(
        &self,
        key: (Receiver, Side),
        compute: impl FnOnce() -> Vec<(f64, f64)>,
    ) -> Arc<[(f64, f64)]> {
        const KEPT: usize = 4;
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, values)) = known().iter().find(|(asked, _)| *asked == key) {
            return values.clone();
        }
        let values: Arc<[(f64, f64)]> = compute().into();
        let mut known = known();
        known.truncate(KEPT - 1);
        known.insert(0, (key, values.clone()));
        values
    }
}

impl Coefficients {
    /// `E[w(t + e)²]`: the mean contribution of a used sequence to `ν²`, for bounded weights.
    pub fn mean_square_weight(&self, receiver: Receiver) -> f64 {
        if let (Some(std), true) = (self.normal_std, self.branches > 1) {
            return term_of_branches(receiver, self.branches, (1.0 + std * std).sqrt(), 1).mean();
        }
        self.used_values(receiver, Side::Upper).iter().map(|&(value, mass)| value * mass).sum()
    }

    /// The distribution of `ν²` without a client's own share: unused sequences, and `others` used ones. Rounded down for an upper bound, up
    /// for a lower one.
    pub(super) fn other_noise(&self, receiver: Receiver, others: u64, unused: u64, side: Side) -> Noise {
        match (has_limit(receiver), self.normal_std) {
            (false, Some(std)) => {
                // Estimates of used sequences are normal too, and the sum of all 1/ĥ² is one Lévy number.
                let scale = unused as f64 + others as f64 / (1.0 + std * std).sqrt();
                if scale == 0.0 { Noise::of_sum(&[], side) } else { Noise::cauchy(scale, side) }
            }
            // The amount by which the true noise of used sequences is larger is unknown.
            (false, None) if others > 0 && side == Side::Lower => Noise::unlimited(),
            (false, None) => {
                let used = Noise::of_sum(&[self.used_term(bounded(), others, side)], side);
                if unused == 0 { used } else { noise_of_unused(receiver, unused, side).plus(&used) }
            }
            (true, _) if side == Side::Lower && with_bounded_weights(receiver) != receiver => {
                Noise::unlimited()
            }
            (true, _) => {
                Noise::of_sum(&[unused_term(receiver, unused), self.used_term(receiver, others, side)], side)
            }
        }
    }

    /// Values of `w(t + e)²` of another client with their probabilities, rounded down or, for a lower bound, up.
    fn used_values(&self, receiver: Receiver, side: Side) -> Arc<[(f64, f64)]> {
        self.used.get_or_compute((receiver, side), || self.compute_used_values(receiver, side))
    }

    fn compute_used_values(&self, receiver: Receiver, side: Side) -> Vec<(f64, f64)> {
        let most = self.seen.iter().map(|cell| cell.largest).fold(0.0, f64::max);
        let receiver = with_bounded_weights(receiver);
        let mut ends = vec![0.0, receiver.level().unwrap_or(1e-3)];
        while let Some(&last) = ends.last()
            && last < most + REACH
        {
            // Strong channels have little noise, which needs less accuracy.
            let width = USED_WIDTH * (last / USED_NEAR).max(1.0).sqrt();
            ends.push(last * (1.0 + width.min(MAX_USED_WIDTH)));
        }
        let channels: Vec<(f64, f64)> = match side {
            Side::Upper => groups(&self.seen, USED_STEP).map(|group| (group.mean, group.mass)).collect(),
            Side::Lower => {
                let channels = narrow_groups(&self.narrow).map(|group| {
                    // A stronger channel has a larger estimate, and so a smaller weight.
                    let shared = Shared::of(&group);
                    (if group.least >= STRONG { group.least } else { shared.channel }, shared.mass)
                });
                channels.collect()
            }
        };
        let masses = estimates::of_panels(&ends, channels);
        let value = |panel: usize| {
            let (from, to) = (ends[panel], ends[panel + 1]);
            let [one, other] = [from, to].map(|size| receiver.weight(size.max(1e-100), 1.0));
            let weight = match side {
                Side::Upper => one.min(other),
                // MMSE weights are largest at 1.
                Side::Lower if !is_monotone(receiver) && from < 1.0 && to > 1.0 => receiver.weight(1.0, 1.0),
                Side::Lower => one.max(other),
            };
            weight.powi(2)
        };
        masses
            .iter()
            .enumerate()
            .map(|(panel, &mass)| (value(panel), mass))
            .filter(|&(_, mass)| mass > 0.0)
            .collect()
    }

    fn used_term(&self, receiver: Receiver, count: u64, side: Side) -> Term {
        let mut values = self.used_values(receiver, side).to_vec();
        // Missing probability counts as no noise, or, for a lower bound, as the maximum noise.
        let missing = match side {
            Side::Upper => 0.0,
            Side::Lower => receiver.weight(receiver.level().unwrap_or(1.0), 1.0).powi(2),
        };
        let total: f64 = values.iter().map(|&(_, mass)| mass).sum();
        values.push((missing, (1.0 - total).max(0.0)));
        Term::discrete(count, values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without its own noise share, a client of the paper's decoder has Cauchy noise of scale `γ + (K − 1)·s/√(½ + s²)`. With its own share
    /// the scale is `γ_eff = γ + K·s/√(½ + s²)`. A quantile of `(scale/G)²` determines the scale.
    #[test]
    fn the_noise_of_the_whole_decoder_is_cauchy() {
        let s = 0.3_f64;
        let channel = Coefficients::normal(s, 0.5_f64.sqrt()).unwrap();
        let scale = 7.0 + 19.0 * s / (0.5 + s * s).sqrt();
        let noise = channel.other_noise(Receiver::Paper, 19, 7, Side::Upper);
        // P(ν² ≤ v) = P(|G| ≥ scale/√v).
        for share in [0.9, 0.5, 0.1] {
            let value = noise.quantile(share);
            let exact = libm::erfc(scale / value.sqrt() * std::f64::consts::FRAC_1_SQRT_2);
            assert!((exact / share - 1.0).abs() < 0.15, "{share}: {value}, {exact}");
        }
    }
}
