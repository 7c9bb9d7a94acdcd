//! The actual channel: the leakage of the base station's own decoder, averaged over a distribution of fading.
//!
//! Client `k` has the coefficient `t = h_k/s`, the pilot adds `e`, and with the divisor `u = u(t + e)` ([`crate::views::pilot`])
//!
//! ```text
//! μ_k = Δ·|t|·g,     g = 1/√(1 + u²·(ν_γ² + ν_used²)),     ν_used² = Σ_{j ≠ k used} w(t_j + e_j)²
//! ```
//!
//! all in units of `s`. No client is dropped. If a client fades (`t + e → 0`), the paper's receiver amplifies it together with the noise of
//! its own sequence, and `μ_k → Δ·|t|` for any `γ`.
//!
//! A base station that stores its raw samples despreads every sequence separately, and the only noise is that of the channel. Its samples
//! are complex, so it has the whole amplitude for any modulation: `μ_k = Δ·|h|/s`.
//!
//! # How the distribution of `μ` is bounded
//! Coefficients are in cells of `ln t`, each with its mass and mean. For each cell the divisor `u` and the noise `ν` are in bins whose
//! logarithms add ([`crate::views::gains`]). Every step keeps a range and a mean that bound the true ones, so [`crate::Cells`] bounds the
//! curve. No integration rule has to resolve the transition of `δ_G`.
//!
//! # Several branches
//! Under Rayleigh fading with `B` real branches, the channel is a vector of `B` independent normal numbers, `t = ‖h‖/s`. A client's own
//! share is bounded by that of one branch, as in [`crate::views::any_channel`]. The estimate of another client has the length of `B` normal
//! numbers of variance `1 + E[h²]/s²`, so its noise is exact. There is no lower bound, and no bound at all under other fading. Raw samples
//! show `‖h‖` over both branches of all antennas.

mod coefficients;
mod densities;
mod lower;
mod upper;
mod used;

use floras_core::Receiver;

pub use self::coefficients::Coefficients;
use crate::account::Source;
use crate::engine::distribution::{CellsBuilder, MuDistribution, Side};
use crate::error::{PrivacyError, require, require_positive};
use crate::setting::Setting;
use crate::views::DetailSource;
use crate::views::actual::densities::RAW_STEP;
use crate::views::gains::{Gain, STEP};
use crate::views::noise::Noise;
use crate::views::pilot::BEYOND_REACH;
use crate::views::receiver::{term_of_branches, with_growing_divisor};

/// Coefficients below this value have nearly the same estimates.
const FAINT: f64 = 0.05;
/// Parts of the coefficients that are computed at the same time: every fourth cell.
const PARTS: [usize; 4] = [0, 1, 2, 3];
/// Width of their cells in `ln t`.
const FAINT_STEP: f64 = 5.0 * STEP;

/// The assumption of an average over the channels.
pub(super) const ONE_DISTRIBUTION: &str =
    "the channels of all clients have one distribution, drawn independently for every client and round";

/// The view of a federation.
pub(super) fn view(setting: &Setting) -> Result<(Source, DetailSource), PrivacyError> {
    if setting.channel.as_ref().is_some_and(|channel| !channel.bounds_actual()) {
        let reason = "with several branches there is a bound for Rayleigh fading only".to_owned();
        return Ok((Source::Nothing(reason), DetailSource::Absent));
    }
    let source = setting.decoded(|decoder| {
        setting.averaged(|channel| {
            let channel = channel.scaled(decoder.channel_scale);
            channel.actual(decoder.receiver, setting.per_round, decoder.unused, decoder.sensitivity)
        })
    })?;
    Ok((source.assuming([ONE_DISTRIBUTION]), DetailSource::Absent))
}

impl Coefficients {
    /// The distribution of `μ` of the whole decoder for one of `per_round` clients, with `unused` unused sequences.
    pub fn actual(
        &self,
        receiver: Receiver,
        per_round: u64,
        unused: u64,
        sensitivity: f64,
    ) -> Result<MuDistribution, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        if self.branches > 1 || matches!(receiver, Receiver::Regularised(_)) {
            return self.actual_bound(receiver, per_round, unused, sensitivity);
        }
        let others = self.other_noise(receiver, per_round.saturating_sub(1), unused, Side::Upper);
        let (cells, small) = self.cells_above(receiver, &others, sensitivity);
        let channel = self.clone();
        Ok(cells.build_above(move || {
            let others = channel.other_noise(receiver, per_round.saturating_sub(1), unused, Side::Lower);
            channel.cells_below(receiver, &others, small, sensitivity)
        }))
    }

    /// An upper bound only: a client's own weight is replaced by that of one branch with a growing divisor.
    fn actual_bound(
        &self,
        receiver: Receiver,
        per_round: u64,
        unused: u64,
        sensitivity: f64,
    ) -> Result<MuDistribution, PrivacyError> {
        let count = per_round.saturating_sub(1);
        let others = match self.normal_std {
            Some(std) => {
                let scale = (1.0 + std * std).sqrt();
                Noise::of_sum(
                    &[
                        term_of_branches(receiver, self.branches, 1.0, unused),
                        term_of_branches(receiver, self.branches, scale, count),
                    ],
                    Side::Upper,
                )
            }
            None if self.branches == 1 => self.other_noise(receiver, count, unused, Side::Upper),
            None => {
                let least = "1, or Rayleigh fading, for a bound of the actual view";
                require(false, "the number of branches", least, self.branches.into())?;
                Noise::unlimited()
            }
        };
        let growing = with_growing_divisor(receiver);
        Ok(self.cells_above(growing, &others, sensitivity).0.build())
    }

    /// The distribution of `μ = Δ·|h|/s` for a base station that stores its raw samples.
    pub fn raw_signal(&self, sensitivity: f64) -> Result<MuDistribution, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        let largest = self.amplitude.iter().map(|cell| sensitivity * cell.largest).fold(0.0, f64::max);
        let amplitude = self.amplitude.clone();
        let cells_of = move |side: Side| {
            let mut cells = CellsBuilder::new(largest, RAW_STEP, side);
            // A coefficient that may be 0 counts as 0 in a lower bound.
            for cell in amplitude.iter().filter(|cell| side == Side::Upper || cell.least > 0.0) {
                let [mean, least, largest] = [cell.mean, cell.least, cell.largest].map(|t| sensitivity * t);
                cells.add_range(mean, (least, largest), cell.mass);
            }
            cells
        };
        let mut above = cells_of(Side::Upper);
        above.add_infinite(BEYOND_REACH);
        Ok(above.build_above(move || cells_of(Side::Lower)))
    }
}

/// Adds the gains of some coefficients to cells of `μ`. The amplitudes are the mean, the smallest and the largest `Δ·t`.
fn add_gains(cells: &mut CellsBuilder, gains: &[Gain], [mean, least, largest]: [f64; 3], mass: f64) {
    let log_mean = mean.ln();
    for gain in gains {
        let range = (least * gain.range.0, largest * gain.range.1);
        cells.add_near(log_mean + gain.log, mean * gain.mean, range, mass * gain.mass);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::distribution::Values;
    use crate::engine::sampling::Curve;
    use crate::numerics::gaussian;

    /// Used sequences whose distribution is not normal count with less than their true noise.
    #[test]
    fn other_clients_never_make_a_curve_larger() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::clipped(1.0).unwrap()] {
            let channel = Coefficients::from_values(0.05, &[(0.3, 1.0), (0.8, 1.0), (1.1, 1.0)]).unwrap();
            let at = |clients: u64| channel.actual(receiver, clients, 10, 2.0).unwrap().upper(1.0);
            let (alone, many) = (at(1), at(200));
            assert!(many < alone, "{receiver:?}: {many} and {alone}");
        }
    }

    #[test]
    fn a_raw_signal_has_only_channel_noise() {
        let channel = Coefficients::from_values(0.5, &[(1.0, 1.0), (-2.0, 1.0)]).unwrap();
        let distribution = channel.raw_signal(2.0).unwrap();
        for epsilon in [0.1, 1.0, 10.0] {
            let exact = 0.5 * (gaussian::delta(epsilon, 4.0) + gaussian::delta(epsilon, 8.0));
            assert!((distribution.upper(epsilon) / exact - 1.0).abs() < 1e-12);
            // No receiver can show more than its samples do.
            let actual = channel.actual(Receiver::clipped(1.0).unwrap(), 3, 5, 2.0).unwrap();
            assert!(actual.lower(epsilon) <= distribution.upper(epsilon));
        }
        // Without other sequences there is no other noise.
        let alone = channel.actual(Receiver::Paper, 1, 0, 2.0).unwrap();
        assert!((alone.upper(1.0) / distribution.upper(1.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_normal_channel_agrees_with_its_density() {
        let std = 0.5_f64.sqrt();
        let named = Coefficients::normal(0.1, std).unwrap();
        let density = Coefficients::from_density(0.1, (0.0, 12.0 * std), |h| (-h * h).exp()).unwrap();
        let at = |channel: &Coefficients| {
            let values = channel.seen.iter().map(|cell| (0.1 * cell.mean, cell.mass));
            MuDistribution::Values(Values::new(values)).upper(0.3)
        };
        assert!((at(&named) / at(&density) - 1.0).abs() < 1e-9);
        // Half-normal: Δ|h|/s has the distribution of a·|G|.
        let half_normal = MuDistribution::HalfNormal { scale: 0.1 * std / 0.1 };
        assert!((at(&named) / half_normal.upper(0.3) - 1.0).abs() < 1e-4);
        // Raw samples show both branches: a Rayleigh amplitude, whose square is exponential.
        let raw = named.raw_signal(0.1).unwrap();
        let nodes = crate::numerics::quadrature::equal_panels(0.0, 9.0, 400);
        let exact: f64 =
            nodes.iter().map(|&(r, w)| w * 2.0 * r * (-r * r).exp() * gaussian::delta(0.3, r)).sum();
        assert!(raw.lower(0.3) <= exact && exact <= raw.upper(0.3), "{exact}");
        assert!(raw.upper(0.3) < 1.001 * raw.lower(0.3));
    }
}
