//! The actual channel: what the base station's own decoder gives away, averaged over a law of fading.
//!
//! Client `k` has the coefficient `t = h_k/s`, the pilot adds `e`, and with `w = |w(t + e)|`
//!
//! ```text
//! μ_k = Δ·|t|·w/√(w² + ν_γ² + ν_used²),    ν_used² = Σ_{j ≠ k used} w(t_j + e_j)²
//! ```
//!
//! all in units of `s`. Nothing is dropped: when a client fades (`t + e → 0`), the paper's receiver amplifies it together with
//! the noise of its own sequence, and `μ_k → Δ·|t|` whatever `γ` is.
//!
//! A base station that keeps its raw samples despreads every sequence by itself and meets the channel's own noise and
//! nothing more: `μ_k = Δ·|t|`. With phase correction it can undo what the correction left, so that `t = |h|/s`; with real
//! modulation `t` is the one real branch that the receiver looks at.

use std::f64::consts::{FRAC_PI_2, PI};

use crate::error::{PrivacyError, require, require_positive};
use crate::law::{COARSE_CELL, CellsBuilder, Law, Values};
use crate::noise::{Noise, Term};
use crate::pilot;
use crate::quadrature::narrow_panels;
use crate::receiver::Receiver;

/// Pairs of coefficient and pilot noise that are rarer than this are counted as infinite.
const RARE: f64 = 1e-26;
/// Used sequences of the paper's receiver count as if their weights were bounded like this: their noise is then smaller
/// than in truth.
const BOUNDED: Receiver = Receiver::Clipped(0.25);

/// The law of a client's channel as the base station sees it: `|h|/s` with its weights, where `h` is real after modulation.
#[derive(Clone, Debug, PartialEq)]
pub struct Coefficients {
    nodes: Vec<(f64, f64)>,
    /// Standard deviation of `h/s`, if `h` is normal around 0: Rayleigh fading and real modulation.
    normal_std: Option<f64>,
    /// The same with phases that are corrected exactly: raw samples can be turned afterwards.
    turned: Option<Vec<(f64, f64)>>,
}

/// The law of `|h|`, the amplitude of a complex channel coefficient.
pub enum Amplitude<'a> {
    /// Always the same: a cable.
    Constant(f64),
    /// A density, which need not be normalised.
    Density {
        /// Where the amplitude lies.
        range: (f64, f64),
        /// The density there.
        density: &'a dyn Fn(f64) -> f64,
    },
}

/// The law of the angle `θ` between a channel and the axis that the base station looks along: it sees `|h|·cos θ`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Angle {
    /// None: phases are corrected.
    Zero,
    /// Uniform over the circle: nobody corrects phases.
    Uniform,
    /// Uniform up to this many radians on both sides.
    Within(f64),
    /// Normal with this standard deviation in radians.
    Normal(f64),
}

impl Coefficients {
    /// The law of `|h|·|cos θ|` in units of the despread noise.
    pub fn new(noise_std: f64, amplitude: &Amplitude<'_>, angle: Angle) -> Result<Self, PrivacyError> {
        match amplitude {
            Amplitude::Constant(size) => {
                let values: Vec<(f64, f64)> =
                    angle.cosines().into_iter().map(|(cosine, weight)| (size * cosine, weight)).collect();
                let law = Self::from_values(noise_std, &values)?;
                Ok(Self { turned: Some(vec![(size.abs() / noise_std, 1.0)]), ..law })
            }
            Amplitude::Density { range, density } => match angle {
                Angle::Zero => Self::from_density(noise_std, *range, density),
                Angle::Uniform => {
                    let (low, high) = *range;
                    Self::from_density(noise_std, (0.0, high), |x| real_part_density(density, low, high, x))
                }
                Angle::Within(_) | Angle::Normal(_) => {
                    let cosines = angle.cosines();
                    let product = |x: f64| -> f64 {
                        cosines.iter().map(|&(cosine, weight)| weight * density(x / cosine) / cosine).sum()
                    };
                    let turned = Self::from_density(noise_std, *range, density)?.nodes;
                    let law = Self::from_density(noise_std, (0.0, range.1), product)?;
                    Ok(Self { turned: Some(turned), ..law })
                }
            },
        }
    }

    /// From the density of `|h|` on a range; it need not be normalised.
    pub fn from_density(
        noise_std: f64,
        range: (f64, f64),
        density: impl Fn(f64) -> f64,
    ) -> Result<Self, PrivacyError> {
        require_positive("the despread noise", noise_std)?;
        require_positive("the largest channel coefficient", range.1)?;
        let (from, to) = (range.0.max(0.0) / noise_std, range.1 / noise_std);
        // What happens around the pilot's own noise is on the scale of 1; beyond, on that of the law.
        let mut points: Vec<f64> = vec![from];
        let mut width: f64 = (0.05 * (to - from)).min(1.0);
        while let Some(&last) = points.last()
            && last < to
        {
            if last > 10.0 {
                width = width.max(0.25 * last).min(0.08 * (to - from));
            }
            points.push((last + width).min(to));
        }
        let weighted = |(t, weight): (f64, f64)| (t, weight * density(t * noise_std));
        Self::from_nodes(narrow_panels(&points, f64::INFINITY).into_iter().map(weighted).collect(), None)
    }

    /// `h` normal around 0 with this standard deviation: Rayleigh fading under real modulation, `std = √½`.
    pub fn normal(noise_std: f64, std: f64) -> Result<Self, PrivacyError> {
        require_positive("the standard deviation of the channel", std)?;
        let density = |h: f64| crate::normal::density(h / std);
        let law = Self::from_density(noise_std, (0.0, 12.0 * std), density)?;
        Ok(Self { normal_std: Some(std / noise_std), ..law })
    }

    /// Values of `h` with their weights.
    pub fn from_values(noise_std: f64, values: &[(f64, f64)]) -> Result<Self, PrivacyError> {
        require_positive("the despread noise", noise_std)?;
        for &(h, _) in values {
            require(h.is_finite(), "a channel coefficient", "finite", h)?;
        }
        Self::from_nodes(values.iter().map(|&(h, weight)| (h.abs() / noise_std, weight)).collect(), None)
    }

    fn from_nodes(mut nodes: Vec<(f64, f64)>, normal_std: Option<f64>) -> Result<Self, PrivacyError> {
        let total: f64 = nodes.iter().map(|&(_, weight)| weight).sum();
        require(
            total.is_finite() && total > 0.0,
            "the density of the channel",
            "finite and not zero everywhere",
            total,
        )?;
        nodes.iter_mut().for_each(|(_, weight)| *weight /= total);
        nodes.retain(|&(_, weight)| weight > 0.0);
        Ok(Self { nodes, normal_std, turned: None })
    }

    /// The law of `μ` of the whole decoder for one of `per_round` clients, with `unused` sequences to spare.
    pub fn actual(
        &self,
        receiver: Receiver,
        per_round: u64,
        unused: u64,
        sensitivity: f64,
    ) -> Result<Law, PrivacyError> {
        receiver.check()?;
        require_positive("the sensitivity", sensitivity)?;
        let others = self.other_noise(receiver, per_round.saturating_sub(1), unused);
        let largest = self.nodes.iter().map(|&(t, _)| sensitivity * t).fold(0.0, f64::max);
        let mut cells = CellsBuilder::new(largest, COARSE_CELL, others.slack);
        cells.add_infinite(pilot::BEYOND_REACH);
        for &(t, weight) in &self.nodes {
            for (estimate, share) in pilot::estimates(receiver, t) {
                let both = weight * share;
                if both < RARE {
                    cells.add_infinite(both);
                    continue;
                }
                let w = receiver.weight(estimate);
                for &(noise, mass) in others.values() {
                    cells.add(sensitivity * t * w / (w * w + noise).sqrt(), both * mass);
                }
            }
            cells.add_infinite(weight * others.none);
        }
        Ok(cells.build())
    }

    /// `E[w(t + e)²]`: what a used sequence adds to `ν²` on average, for weights that are bounded.
    pub fn mean_square_weight(&self, receiver: Receiver) -> f64 {
        let of_client = |&(t, weight): &(f64, f64)| {
            let squares = pilot::estimates(receiver, t).into_iter();
            weight * squares.map(|(estimate, share)| share * receiver.weight(estimate).powi(2)).sum::<f64>()
        };
        self.nodes.iter().map(of_client).sum()
    }

    /// The law of `μ = Δ·|h|/s` for a base station that keeps its raw samples.
    pub fn raw_signal(&self, sensitivity: f64) -> Result<Law, PrivacyError> {
        require_positive("the sensitivity", sensitivity)?;
        let nodes = self.turned.as_ref().unwrap_or(&self.nodes);
        Ok(Law::Values(Values::new(nodes.iter().map(|&(t, weight)| (sensitivity * t, weight)))))
    }

    /// The law of `ν²` less a client's own share: unused sequences, and `others` used ones.
    fn other_noise(&self, receiver: Receiver, others: u64, unused: u64) -> Noise {
        match (receiver, self.normal_std) {
            (Receiver::Paper, Some(std)) => {
                // Estimates of used sequences are normal too, and 1/ĥ² of all of them together is one Lévy number.
                let scale = unused as f64 + others as f64 / (1.0 + std * std).sqrt();
                Noise::cauchy(scale)
            }
            (Receiver::Paper, None) => {
                let used = Noise::of_sum(&[self.used_term(BOUNDED, others)]);
                let mut all = if unused == 0 { used } else { receiver.noise_of_unused(unused).plus(&used) };
                // How much more noise there is in truth is not known.
                all.slack = 1.0;
                all
            }
            (Receiver::Mmse | Receiver::Clipped(_), _) => {
                Noise::of_sum(&[receiver.unused_term(unused), self.used_term(receiver, others)])
            }
        }
        .coarse()
    }

    /// `w(t + e)²` of other clients.
    fn used_term(&self, receiver: Receiver, count: u64) -> Term {
        let squares = self.nodes.iter().flat_map(|&(t, weight)| {
            let estimates = pilot::estimates(receiver, t).into_iter();
            estimates.map(move |(estimate, share)| (receiver.weight(estimate).powi(2), weight * share))
        });
        Term::discrete(count, Noise::new(squares).values().to_vec())
    }
}

impl Angle {
    /// `|cos θ|` with its weights, finer where it comes near 0.
    fn cosines(self) -> Vec<(f64, f64)> {
        let density: Box<dyn Fn(f64) -> f64> = match self {
            Self::Zero | Self::Within(0.0) | Self::Normal(0.0) => return vec![(1.0, 1.0)],
            Self::Uniform | Self::Within(_) => Box::new(|_| 1.0),
            Self::Normal(std) => Box::new(move |angle| crate::normal::density(angle / std)),
        };
        let most = match self {
            Self::Within(half_width) => half_width,
            // Wider laws are uniform for all that can be told.
            Self::Normal(std) if std < 1.5 => 8.0 * std,
            _ => FRAC_PI_2,
        };
        let wide = !matches!(self, Self::Within(_)) && most == FRAC_PI_2;
        let mut points = vec![0.0, most];
        for quarter in 0..(most / PI).ceil() as usize + 1 {
            let zero = FRAC_PI_2 + quarter as f64 * PI;
            let near = (0..12).flat_map(|power| [zero - 0.5_f64.powi(power), zero + 0.5_f64.powi(power)]);
            points.extend(near.chain([zero]));
        }
        points.retain(|&point| (0.0..=most).contains(&point));
        points.sort_by(f64::total_cmp);
        points.dedup();
        let nodes = narrow_panels(&points, 0.5);
        let weights = nodes.iter().map(|&(angle, weight)| weight * if wide { 1.0 } else { density(angle) });
        let total: f64 = weights.clone().sum();
        nodes.iter().zip(weights).map(|(&(angle, _), weight)| (angle.cos().abs(), weight / total)).collect()
    }
}

/// The density of `r·|cos θ|` with a uniform angle: `(2/π)∫ f(√(x² + y²))/√(x² + y²) dy`.
fn real_part_density(density: &dyn Fn(f64) -> f64, low: f64, high: f64, x: f64) -> f64 {
    let leg = |radius: f64| (radius * radius - x * x).max(0.0).sqrt();
    let (from, to) = (leg(low), leg(high));
    if to <= from {
        return 0.0;
    }
    let points: Vec<f64> = (0..=12).map(|i| from + (to - from) * f64::from(i) / 12.0).collect();
    let at = |y: f64| {
        let radius = x.hypot(y);
        density(radius) / radius
    };
    narrow_panels(&points, f64::INFINITY).into_iter().map(|(y, weight)| weight * at(y)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian;
    use crate::sampling::Curve;

    /// Without its own share of the noise counted, a client of the paper's decoder meets Cauchy noise of scale
    /// `γ + (K − 1)·s/√(½ + s²)`; with it, `γ_eff = γ + K·s/√(½ + s²)`. A quantile of `(scale/G)²` tells the scale.
    #[test]
    fn the_noise_of_the_whole_decoder_is_cauchy() {
        let s = 0.3_f64;
        let channel = Coefficients::normal(s, 0.5_f64.sqrt()).unwrap();
        let scale = 7.0 + 19.0 * s / (0.5 + s * s).sqrt();
        let noise = channel.other_noise(Receiver::Paper, 19, 7);
        // P(ν² ≤ v) = P(|G| ≥ scale/√v).
        for share in [0.9, 0.5, 0.1] {
            let value = noise.quantile(share);
            let exact = libm::erfc(scale / value.sqrt() * std::f64::consts::FRAC_1_SQRT_2);
            assert!((exact / share - 1.0).abs() < 0.15, "{share}: {value}, {exact}");
        }
    }

    /// Those used sequences whose law is not normal are counted with less noise than they make.
    #[test]
    fn other_clients_never_make_a_curve_larger() {
        for receiver in [Receiver::Paper, Receiver::Mmse, Receiver::Clipped(1.0)] {
            let channel = Coefficients::from_values(0.05, &[(0.3, 1.0), (0.8, 1.0), (1.1, 1.0)]).unwrap();
            let at = |clients: u64| channel.actual(receiver, clients, 10, 2.0).unwrap().upper(1.0);
            let (alone, many) = (at(1), at(200));
            assert!(many < alone, "{receiver:?}: {many} and {alone}");
        }
    }

    #[test]
    fn a_raw_signal_shows_the_channel_s_own_noise_and_nothing_more() {
        let channel = Coefficients::from_values(0.5, &[(1.0, 1.0), (-2.0, 1.0)]).unwrap();
        let law = channel.raw_signal(2.0).unwrap();
        for epsilon in [0.1, 1.0, 10.0] {
            let exact = 0.5 * (gaussian::delta(epsilon, 4.0) + gaussian::delta(epsilon, 8.0));
            assert!((law.upper(epsilon) / exact - 1.0).abs() < 1e-12);
            // Whatever the receiver does with them, it cannot show more than the samples do.
            let actual = channel.actual(Receiver::Clipped(1.0), 3, 5, 2.0).unwrap();
            assert!(actual.lower(epsilon) <= law.upper(epsilon));
        }
        // Without any other sequence there is no other noise.
        let alone = channel.actual(Receiver::Paper, 1, 0, 2.0).unwrap();
        assert!((alone.upper(1.0) / law.upper(1.0) - 1.0).abs() < 1e-3);
    }

    #[test]
    fn a_normal_channel_is_the_same_by_its_density() {
        let std = 0.5_f64.sqrt();
        let named = Coefficients::normal(0.1, std).unwrap();
        let density = Coefficients::from_density(0.1, (0.0, 12.0 * std), |h| (-h * h).exp()).unwrap();
        let at = |channel: &Coefficients| channel.raw_signal(0.1).unwrap().upper(0.3);
        assert!((at(&named) / at(&density) - 1.0).abs() < 1e-12);
        // Half-normal: Δ|h|/s has the law of a·|G|.
        let half_normal = Law::HalfNormal { scale: 0.1 * std / 0.1 };
        assert!((at(&named) / half_normal.upper(0.3) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn coefficients_out_of_range_are_refused() {
        assert!(Coefficients::normal(0.0, 1.0).is_err() && Coefficients::normal(1.0, f64::NAN).is_err());
        assert!(Coefficients::from_values(1.0, &[]).is_err());
        assert!(Coefficients::from_values(1.0, &[(1.0, 1.0), (f64::INFINITY, 1.0)]).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 1.0), |_| 0.0).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 1.0), |_| f64::NAN).is_err());
        assert!(Coefficients::from_density(1.0, (0.0, 0.0), |_| 1.0).is_err());
        let channel = Coefficients::normal(1.0, 1.0).unwrap();
        assert!(channel.raw_signal(-1.0).is_err());
        assert!(channel.actual(Receiver::Clipped(0.0), 2, 2, 1.0).is_err());
        assert!(channel.actual(Receiver::Paper, 2, 2, 0.0).is_err());
    }

    /// Rayleigh amplitudes seen along one axis are normal with variance ½.
    #[test]
    fn the_real_part_of_rayleigh_fading_is_normal() {
        let density = |x: f64| x * (-x * x).exp();
        let amplitude = Amplitude::Density { range: (0.0, 9.0), density: &density };
        let seen = Coefficients::new(0.1, &amplitude, Angle::Uniform).unwrap();
        let named = Coefficients::normal(0.1, 0.5_f64.sqrt()).unwrap();
        let wide = Coefficients::new(0.1, &amplitude, Angle::Normal(50.0)).unwrap();
        let half_circle = Coefficients::new(0.1, &amplitude, Angle::Within(FRAC_PI_2)).unwrap();
        for epsilon in [0.01, 0.3, 2.0] {
            let at = |channel: &Coefficients| {
                let values = channel.nodes.iter().map(|&(t, weight)| (0.1 * t, weight));
                Law::Values(Values::new(values)).upper(epsilon)
            };
            assert!((at(&seen) / at(&named) - 1.0).abs() < 1e-6, "{epsilon}");
            assert!((at(&wide) / at(&named) - 1.0).abs() < 1e-3, "{epsilon}");
            assert!((at(&half_circle) / at(&named) - 1.0).abs() < 1e-3, "{epsilon}");
        }
    }

    /// A cable with phases that are off by up to 0.5 radians: `E|cos θ| = sin(½)/½`.
    #[test]
    fn a_phase_error_weakens_a_client() {
        let cable = Coefficients::new(1.0, &Amplitude::Constant(1.0), Angle::Within(0.5)).unwrap();
        let mean: f64 = cable.nodes.iter().map(|&(t, weight)| t * weight).sum();
        assert!((mean - 0.5_f64.sin() / 0.5).abs() < 1e-9);
        let normal = Coefficients::new(1.0, &Amplitude::Constant(1.0), Angle::Normal(0.2)).unwrap();
        let mean: f64 = normal.nodes.iter().map(|&(t, weight)| t * weight).sum();
        assert!((mean - (-0.02_f64).exp()).abs() < 1e-9, "E cos θ = e^(−σ²/2), and cos θ is positive here");
        // Whoever keeps the raw samples turns them back.
        let raw = normal.raw_signal(2.0).unwrap();
        assert!((raw.upper(0.5) / gaussian::delta(0.5, 2.0) - 1.0).abs() < 1e-12);
    }
}
