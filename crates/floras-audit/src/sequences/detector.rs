//! Detectors: scores for a sequence being in use.
//!
//! In units of the despread noise `s`, with `t = h/s` and `‖x‖ = C`, a sequence has a pilot and a payload energy
//!
//! ```text
//! p = ĥ/s ~ N(t, 1),     T = ‖h x + s n‖²/s² ~ χ'²_d(λ = t²C²),     independent of one another given t;  unused: t = 0
//! ln Λ(t) = p·t − t²/2 − t²C²/2 + ln ₀F₁(; d/2; t²C²T/4)
//! ```
//!
//! | detector | fading unknown | fading known |
//! |---|---|---|
//! | pilot | `|p|` | `E_t[e^{pt − t²/2}]`; grows with `|p|` if both signs are equally likely |
//! | energy | `T` | `T`: the average over any distribution of `t` grows with it |
//! | both | `max_t ln Λ(t)`, the generalised likelihood ratio | `E_t[Λ(t)]`, the best there is |
//!
//! `d/dt ln ₀F₁` is `C√T` times a ratio of Bessel functions, which is concave and below 1. So `ln Λ` has one peak for `t ≥ 0`,
//! and Newton's method finds it from above without overshooting.

use std::num::NonZeroUsize;
use std::sync::LazyLock;

use floras_phy::Floras;
use gauss_quad::GaussLegendre;

use super::bessel::{log_0f1, ratio};
use super::distribution::{ChannelDistribution, Density};

/// Number of nodes on either side of the peak of an average.
const NODES: usize = 24;
/// Values further below the peak than this, in the log domain, are neglected.
const DEEP: f64 = 25.0;

static RULE: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| rule(NODES));

/// Nodes and weights on `[−1, 1]`.
pub(super) fn rule(nodes: usize) -> Vec<(f64, f64)> {
    NonZeroUsize::new(nodes)
        .map(|degree| GaussLegendre::new(degree).as_node_weight_pairs().to_vec())
        .unwrap_or_default()
}

/// The observation of a sequence. The pilot is in units of the estimation error `s_p`, the energy in units of the despread
/// noise `s`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// `p = ĥ/s_p`.
    pub(crate) pilot: f64,
    /// `T = ‖z‖²/s²`.
    pub(crate) energy: f64,
}

/// The adversary's assumption about every update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Payload {
    /// Number of values per update, `d`.
    pub(crate) dimensions: f64,
    /// `C·s_p/s`: the change of the payload per unit of `t = h/s_p`, in units of its own noise.
    pub(crate) norm: f64,
}

impl Payload {
    /// Updates of `dimensions` parameters and norm `clip` over an uplink.
    pub(crate) fn over(floras: &Floras, dimensions: f64, clip: f64) -> Self {
        Self { dimensions, norm: clip * floras.settings().pilot.noise_ratio() }
    }
}

/// The likelihood's logarithm as a function of `t ≥ 0`.
#[derive(Clone, Copy)]
struct Evidence {
    pilot: f64,
    /// The factor of `t` in the argument of the Bessel function, `C√T`.
    root: f64,
    /// `1 + C²`.
    curvature: f64,
    /// Half the number of values per update, `d/2`.
    half: f64,
}

impl Evidence {
    fn new(seen: Seen, payload: Payload) -> Self {
        let Payload { dimensions, norm } = payload;
        let root = norm * seen.energy.sqrt();
        Self { pilot: seen.pilot.abs(), root, curvature: 1.0 + norm * norm, half: 0.5 * dimensions }
    }

    /// `ln Λ(t)` without the pilot's `p·t`.
    fn without_pilot(&self, t: f64) -> f64 {
        log_0f1(self.half, 0.25 * (t * self.root).powi(2)) - 0.5 * self.curvature * t * t
    }

    /// The `t ≥ 0` that maximises `|p|·t + without_pilot(t)`.
    fn peak(&self) -> f64 {
        let mut t = (self.pilot + self.root) / self.curvature;
        for _ in 0..60 {
            let z = t * self.root;
            if z <= 0.0 {
                // Without energy, this is a parabola, and its peak is the start value.
                return t.max(0.0);
            }
            let bessel = ratio(self.half, z);
            let slope = self.pilot - self.curvature * t + self.root * bessel;
            let rise = 1.0 - bessel * bessel - (2.0 * self.half - 1.0) * bessel / z;
            let bend = -self.curvature + self.root * self.root * rise;
            let step = slope / bend;
            if bend >= 0.0 || !step.is_finite() {
                return t;
            }
            t = (t - step).max(0.0);
            if step.abs() <= 1e-9 * t {
                break;
            }
        }
        t
    }
}

/// Logarithm of the generalised likelihood ratio.
pub(crate) fn generalised(seen: Seen, payload: Payload) -> f64 {
    let evidence = Evidence::new(seen, payload);
    let t = evidence.peak();
    evidence.pilot * t + evidence.without_pilot(t)
}

/// `ln E_t[Λ(t)]` with `t = h/s` and `h` of a known distribution.
pub(super) fn averaged(
    seen: Seen,
    payload: Payload,
    distribution: &ChannelDistribution,
    noise_std: f64,
) -> f64 {
    let evidence = Evidence::new(seen, payload);
    match distribution {
        ChannelDistribution::Points(points) => {
            let log = |&(h, weight): &(f64, f64)| {
                let t = h / noise_std;
                weight.ln() + seen.pilot * t + evidence.without_pilot(t.abs())
            };
            log_sum(&points.iter().map(log).collect::<Vec<f64>>())
        }
        ChannelDistribution::Density(density) => {
            let is_negative = seen.pilot < 0.0;
            Average { evidence, density, noise_std, is_negative }.logarithm()
        }
    }
}

fn log_sum(logs: &[f64]) -> f64 {
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    largest + logs.iter().map(|log| (log - largest).exp()).sum::<f64>().ln()
}

/// An integral over a density, around the integrand's peak: with a strong payload the peak is far narrower than the
/// distribution, with a weak one the distribution is narrower.
struct Average<'a> {
    evidence: Evidence,
    density: &'a Density,
    noise_std: f64,
    /// The pilot's sign.
    is_negative: bool,
}

impl Average<'_> {
    fn log_integrand(&self, t: f64) -> f64 {
        let (positive, negative) = self.density.at(t * self.noise_std);
        let (same, opposite) = if self.is_negative { (negative, positive) } else { (positive, negative) };
        let pilot = self.evidence.pilot * t;
        let sides = same + opposite * (-2.0 * pilot).exp();
        // If only the other sign is possible, the factor e^{−2pt} must not underflow before its logarithm is taken.
        let signed = if same > 0.0 { pilot + sides.ln() } else { opposite.ln() - pilot };
        signed + self.evidence.without_pilot(t)
    }

    fn logarithm(&self) -> f64 {
        let (low, high) = self.density.range();
        let (low, high) = (low / self.noise_std, high / self.noise_std);
        let scale = self.evidence.curvature.sqrt().recip().min(0.05 * (high - low));
        let (peak, top) = self.find_peak(low, high, scale);
        let left = self.reach(peak, top, -scale, low);
        let right = self.reach(peak, top, scale, high);
        let mut sum = 0.0;
        for (from, to) in [(left, peak), (peak, right)] {
            let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
            if half > 0.0 {
                let term = |&(node, weight): &(f64, f64)| {
                    weight * (self.log_integrand(middle + half * node) - top).exp()
                };
                sum += half * RULE.iter().map(term).sum::<f64>();
            }
        }
        top + (sum * self.noise_std).max(f64::MIN_POSITIVE).ln()
    }

    /// The peak of the integrand. The search starts at the peak of the likelihood, or at that of the distribution if the
    /// integrand is larger there.
    fn find_peak(&self, low: f64, high: f64, scale: f64) -> (f64, f64) {
        let at = |t: f64| (t, self.log_integrand(t));
        let inside = |t: f64| t.clamp(low, high);
        let (likeliest, usual) =
            (at(inside(self.evidence.peak())), at(inside(self.density.mode / self.noise_std)));
        let mut best = if likeliest.1 > usual.1 { likeliest } else { usual };
        let mut step = scale;
        for _ in 0..40 {
            let tries = [at(inside(best.0 + step)), at(inside(best.0 - step))];
            let better = if tries[0].1 > tries[1].1 { tries[0] } else { tries[1] };
            if better.1 > best.1 {
                best = better;
                step *= 2.0;
            } else {
                step *= 0.35;
            }
            if step < 0.1 * scale {
                break;
            }
        }
        best
    }

    /// The distance beyond which the integrand is negligible, or the end of the distribution.
    fn reach(&self, peak: f64, top: f64, step: f64, end: f64) -> f64 {
        let mut distance = 2.0 * step;
        loop {
            let place = peak + distance;
            if (place - end) * step >= 0.0 {
                return end;
            }
            if top - self.log_integrand(place) > DEEP {
                return place;
            }
            distance *= 1.5;
        }
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, PhaseError};

    use super::*;

    const CASES: [(f64, f64, f64, f64); 7] = [
        // p, T, d, C
        (0.3, 4000.0, 4010.0, 1.0),
        (-2.5, 4300.0, 4010.0, 1.0),
        (40.0, 5600.0, 4010.0, 1.0),
        (1.0, 1.3, 1.0, 0.5),
        (-0.2, 9.0, 3.0, 4.0),
        (25.0, 2.5e6, 4010.0, 63.32),
        (0.5, 4100.0, 4010.0, 63.32),
    ];

    fn seen((pilot, energy, dimensions, norm): (f64, f64, f64, f64)) -> (Seen, Payload) {
        (Seen { pilot, energy }, Payload { dimensions, norm })
    }

    #[test]
    fn the_generalised_ratio_is_the_maximum() {
        for case in CASES {
            let (seen, payload) = seen(case);
            let evidence = Evidence::new(seen, payload);
            let peak = evidence.peak();
            let at = |t: f64| evidence.pilot * t + evidence.without_pilot(t);
            let grid = (0..=40_000).map(|i| at(f64::from(i) / 40_000.0 * (2.0 * peak + 1.0)));
            let largest = grid.fold(f64::NEG_INFINITY, f64::max);
            let found = generalised(seen, payload);
            assert!(found >= largest - 1e-7 * largest.abs().max(1.0), "{case:?}: {found} below {largest}");
        }
    }

    /// A million equal steps over the whole distribution.
    #[test]
    fn the_average_equals_a_fine_sum() {
        let distributions = [
            (Fading::Rayleigh, Modulation::Real),
            (Fading::rician(20.0).unwrap(), Modulation::PhaseCorrected(PhaseError::None)),
            (Fading::Rayleigh, Modulation::PhaseCorrected(PhaseError::gaussian(1.0).unwrap())),
        ];
        for (fading, modulation) in distributions {
            let distribution = ChannelDistribution::new(fading, modulation);
            let ChannelDistribution::Density(density) = &distribution else { panic!("a density") };
            for noise_std in [0.02, 0.5] {
                for case in CASES {
                    let (seen, payload) = seen(case);
                    let evidence = Evidence::new(seen, payload);
                    let (low, high) = density.range();
                    let step = (high - low) / 1e6;
                    let log = |i: u32| {
                        let h = low + step * (f64::from(i) + 0.5);
                        let (positive, negative) = density.at(h);
                        let t = h / noise_std;
                        let sides = [positive.ln() + seen.pilot * t, negative.ln() - seen.pilot * t];
                        log_sum(&sides.map(|side| side.max(-1e300))) + evidence.without_pilot(t) + step.ln()
                    };
                    let expected = log_sum(&(0..1_000_000).map(log).collect::<Vec<f64>>());
                    let found = averaged(seen, payload, &distribution, noise_std);
                    let far = (found - expected).abs();
                    assert!(
                        far < 2e-3 * expected.abs().max(1.0),
                        "{fading} {case:?}: {found} and not {expected}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_known_channel_has_its_likelihood_ratio() {
        let distribution = ChannelDistribution::new(Fading::None, Modulation::Real);
        let found = averaged(
            Seen { pilot: 1.5, energy: 3.0 },
            Payload { dimensions: 1.0, norm: 2.0 },
            &distribution,
            0.5,
        );
        // t = 2, λ = 16: p·t − t²/2 − λ/2 + ln cosh(√(λT)).
        let expected = 3.0 - 2.0 - 8.0 + (16.0_f64 * 3.0).sqrt().cosh().ln();
        assert!((found - expected).abs() < 1e-9);
    }
}
