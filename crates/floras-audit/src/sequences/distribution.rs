//! The distribution of a client's signed coefficient `h` at the base station: the knowledge of an adversary who knows the
//! fading.
//!
//! | modulation | `h` | density at `x > 0` |
//! |---|---|---|
//! | real | `|h|·cos θ`, `θ` uniform | `(1/π)∫₀^∞ f(√(x²+u²))/√(x²+u²) du`, the same at `−x` |
//! | phase-corrected | `|h|·cos(error)` | `E[f(x/|c|)/|c|]` over the errors with `c = cos(error)` of the sign of `x` |
//!
//! where `f` is the density of `|h|`. A distribution without fading consists of point masses.

use std::f64::consts::PI;

use floras_core::{Fading, Modulation, PhaseError};
use statrs::distribution::{ContinuousCDF, Normal};

/// Number of points of a table.
const POINTS: usize = 1024;
/// Number of angles that represent a distribution of phase errors.
const ANGLES: usize = 256;

/// The distribution of `h`.
#[derive(Clone, Debug)]
pub(super) enum ChannelDistribution {
    /// Point masses: values of `h` with their probabilities.
    Points(Vec<(f64, f64)>),
    /// Densities on both sides of 0.
    Density(Density),
}

/// A table of densities over `|h|`, linear between its points.
#[derive(Clone, Debug)]
pub(super) struct Density {
    low: f64,
    step: f64,
    positive: Vec<f64>,
    negative: Vec<f64>,
    /// The mode of `|h|`.
    pub(super) mode: f64,
}

impl ChannelDistribution {
    pub(super) fn new(fading: Fading, modulation: Modulation) -> Self {
        let range = fading.amplitude_range();
        let cosines = match modulation {
            Modulation::Real if fading == Fading::None => vec![(1.0, 1.0)],
            Modulation::Real => return Self::Density(real_part(fading, range.1)),
            Modulation::PhaseCorrected(error) => cosines(error),
            // Both branches together hold the whole amplitude.
            Modulation::Complex => vec![(1.0, 1.0)],
        };
        if range.0 == range.1 {
            return Self::Points(
                cosines.iter().map(|&(cosine, weight)| (range.0 * cosine, weight)).collect(),
            );
        }
        Self::Density(corrected(fading, range, &cosines))
    }

    /// Whether `h` and `−h` are equally likely; a pilot's sign then carries no information.
    pub(super) fn is_symmetric(&self) -> bool {
        match self {
            Self::Points(_) => false,
            Self::Density(density) => density.positive == density.negative,
        }
    }

    /// Whether `h` is never negative.
    pub(super) fn is_positive(&self) -> bool {
        match self {
            Self::Points(points) => points.iter().all(|&(h, _)| h >= 0.0),
            Self::Density(density) => density.negative.iter().all(|&value| value == 0.0),
        }
    }
}

impl Density {
    fn tabulate(low: f64, high: f64, at: impl Fn(f64) -> (f64, f64)) -> Self {
        let step = (high - low) / (POINTS - 1) as f64;
        // Some densities have no value at 0 itself.
        let place = |i: usize| (low + step * i as f64).max(0.25 * step);
        let (positive, negative): (Vec<f64>, Vec<f64>) = (0..POINTS).map(|i| at(place(i))).unzip();
        let mut density = Self { low, step, positive, negative, mode: low };
        let total = density.mass();
        let sides = density.positive.iter_mut().chain(&mut density.negative);
        sides.for_each(|value| *value /= total);
        let height = |i: usize| density.positive[i] + density.negative[i];
        let likeliest = (0..POINTS).fold(0, |best, i| if height(i) > height(best) { i } else { best });
        density.mode = place(likeliest);
        density
    }

    fn mass(&self) -> f64 {
        let sides = self.positive.iter().zip(&self.negative).enumerate();
        let end = |i: usize| if i == 0 || i == POINTS - 1 { 0.5 } else { 1.0 };
        sides.map(|(i, (positive, negative))| end(i) * (positive + negative)).sum::<f64>() * self.step
    }

    /// The range of `|h|`.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.low, self.low + self.step * (POINTS - 1) as f64)
    }

    /// The densities at `h = size` and at `h = −size`.
    pub(super) fn at(&self, size: f64) -> (f64, f64) {
        let place = (size - self.low) / self.step;
        if !(0.0..=(POINTS - 1) as f64).contains(&place) {
            return (0.0, 0.0);
        }
        let cell = (place as usize).min(POINTS - 2);
        let part = place - cell as f64;
        let between = |side: &[f64]| side[cell] + part * (side[cell + 1] - side[cell]);
        (between(&self.positive), between(&self.negative))
    }
}

/// The real part of a channel with a uniform phase.
fn real_part(fading: Fading, high: f64) -> Density {
    Density::tabulate(0.0, high, |x| {
        let value = if fading == Fading::Rayleigh { (-x * x).exp() } else { project(fading, x, high) };
        (value, value)
    })
}

/// `∫₀^∞ f(√(x²+u²))/√(x²+u²) du`, up to a constant factor, by the trapezoid rule in `ln u`.
fn project(fading: Fading, x: f64, high: f64) -> f64 {
    const STEPS: i32 = 400;
    let (from, to) = ((1e-5 * high).ln(), high.ln());
    let term = |i: i32| {
        let u = (from + (to - from) * f64::from(i) / f64::from(STEPS)).exp();
        let r = (x * x + u * u).sqrt();
        fading.amplitude_density(r).unwrap_or(0.0) * u / r
    };
    (0..=STEPS).map(term).sum()
}

/// Equally likely values of the cosine of a phase error.
fn cosines(error: PhaseError) -> Vec<(f64, f64)> {
    let levels = (0..ANGLES).map(|i| (i as f64 + 0.5) / ANGLES as f64);
    let angles: Vec<f64> = match error {
        PhaseError::None => vec![0.0],
        PhaseError::Uniform(half_width) => levels.map(|level| half_width.get() * level).collect(),
        // Beyond a few turns every angle is equally likely.
        PhaseError::Gaussian(std) if std.get() > 2.0 * PI => levels.map(|level| PI * level).collect(),
        PhaseError::Gaussian(std) => {
            levels.map(|level| std.get() * Normal::standard().inverse_cdf(0.5 + 0.5 * level)).collect()
        }
    };
    let weight = 1.0 / angles.len() as f64;
    angles.into_iter().map(|angle| (angle.cos(), weight)).collect()
}

fn corrected(fading: Fading, (low, high): (f64, f64), cosines: &[(f64, f64)]) -> Density {
    let amplitude = |x: f64| fading.amplitude_density(x).unwrap_or(0.0);
    let smallest = cosines.iter().map(|(cosine, _)| cosine.abs()).fold(1.0, f64::min);
    Density::tabulate(low * smallest, high, |x| {
        let side = |sign: f64| -> f64 {
            let of = cosines.iter().filter(|(cosine, _)| cosine * sign > 0.0);
            of.map(|(cosine, weight)| weight * amplitude(x / cosine.abs()) / cosine.abs()).sum()
        };
        (side(1.0), side(-1.0))
    })
}

#[cfg(test)]
mod tests {
    use floras_core::{Receiver, Snr, SnrConvention};
    use floras_phy::{Floras, FlorasSettings, Round, SequenceSet};

    use super::*;

    /// Every cell of the table compared with drawn channels: Kolmogorov–Smirnov with a false-alarm rate of about 1e-4 per
    /// distribution (`√n·D > 2.25`); a table that was off by 1% of the probability anywhere would reach `√n·D = 4.5`.
    #[test]
    fn tables_agree_with_drawn_channels() {
        let gaussian = |std: f64| Modulation::PhaseCorrected(PhaseError::gaussian(std).unwrap());
        let uniform = |width: f64| Modulation::PhaseCorrected(PhaseError::uniform(width).unwrap());
        let distributions = [
            (Fading::Rayleigh, Modulation::Real),
            (Fading::rician(4.0).unwrap(), Modulation::Real),
            (Fading::nakagami(2.0).unwrap(), Modulation::Real),
            (Fading::Rayleigh, Modulation::PhaseCorrected(PhaseError::None)),
            (Fading::rician(50.0).unwrap(), Modulation::PhaseCorrected(PhaseError::None)),
            (Fading::Rayleigh, uniform(1.0)),
            (Fading::nakagami(3.0).unwrap(), gaussian(0.8)),
        ];
        for (fading, modulation) in distributions {
            let ChannelDistribution::Density(density) = ChannelDistribution::new(fading, modulation) else {
                panic!("{fading}")
            };
            let mut drawn = draw(fading, modulation, 200_000);
            drawn.sort_by(f64::total_cmp);
            let statistic = distance(&density, &drawn) * (drawn.len() as f64).sqrt();
            assert!(statistic < 2.25, "{fading}, {modulation:?}: {statistic}");
        }
    }

    fn draw(fading: Fading, modulation: Modulation, count: u32) -> Vec<f64> {
        let settings = FlorasSettings {
            sequences: SequenceSet::walsh(2048, 2048).unwrap(),
            modulation,
            receiver: Receiver::Paper,
            channels: fading.into(),
            snr: Snr::new(20.0, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        };
        let floras = Floras::new(settings);
        let clients: Vec<u32> = (0..2048).collect();
        let rounds = 0..count / 2048;
        let amplitudes =
            |round| floras.despread(&Round::new(7, 0, round + 1, &clients).unwrap()).unwrap().amplitudes;
        rounds.flat_map(amplitudes).collect()
    }

    /// The largest distance between the table's distribution function and that of sorted draws.
    fn distance(density: &Density, drawn: &[f64]) -> f64 {
        let (low, high) = density.range();
        let fine = (high - low) / 16_000.0;
        let mut places: Vec<f64> = (0..16_000).map(|i| low + fine * (i as f64 + 0.5)).collect();
        places = places.iter().rev().map(|x| -x).chain(places.iter().copied()).collect();
        let (mut below, mut largest) = (0.0, 0.0_f64);
        for x in places {
            let (positive, negative) = density.at(x.abs());
            below += fine * if x > 0.0 { positive } else { negative };
            let count = drawn.partition_point(|&h| h <= x + 0.5 * fine);
            largest = largest.max((below - count as f64 / drawn.len() as f64).abs());
        }
        largest
    }

    #[test]
    fn signs_are_known_where_phases_are_corrected() {
        let distribution = ChannelDistribution::new;
        assert!(distribution(Fading::Rayleigh, Modulation::Real).is_symmetric());
        let corrected = Modulation::PhaseCorrected(PhaseError::None);
        assert!(distribution(Fading::Rayleigh, corrected).is_positive());
        assert!(
            distribution(Fading::None, corrected).is_positive()
                && distribution(Fading::None, Modulation::Real).is_positive()
        );
        let wrong =
            distribution(Fading::Rayleigh, Modulation::PhaseCorrected(PhaseError::gaussian(1.0).unwrap()));
        assert!(!wrong.is_symmetric() && !wrong.is_positive());
    }
}
