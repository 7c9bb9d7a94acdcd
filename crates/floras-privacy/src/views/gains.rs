//! The gain `g = 1/√(1 + u²ν²)` of a client, which depends on the divisor `u` and on the noise `ν` through their product only.
//!
//! So both are sorted into bins of their logarithms, all of one width, and the bin of a product is the sum of two indices. A bin
//! keeps its mass and its mean; means of independent factors multiply. The products in one bin span two widths. There, `g` is
//! between its chord and its tangent up to the cube of the width.
//!
//! Because `g` decreases, upper bounds on gains use means that are not above the true ones, and lower bounds means that are not
//! below.

use floras_core::Receiver;

use crate::engine::distribution::Side;
use crate::numerics::vectors::convolved;
use crate::views::noise::{Noise, NoiseCell};
use crate::views::pilot::{gain, largest_mean_gain, least_mean_gain};

/// Width of a bin in the logarithm.
pub(crate) const STEP: f64 = 0.01;

/// Width of a bin for a receiver: the paper's divisors span many bins, and need less accuracy.
pub(crate) fn step(receiver: Receiver) -> f64 {
    if receiver == Receiver::Paper { 2.0 * STEP } else { STEP }
}

/// The mass, the mean and the range of a gain.
pub(crate) type Gain = (f64, f64, (f64, f64));

/// Masses and means of a positive quantity in bins of its logarithm, and the mass at 0.
#[derive(Clone, Debug)]
pub(crate) struct LogBins {
    step: f64,
    first: i64,
    masses: Vec<f64>,
    /// For each bin, its mass times its mean.
    weighted: Vec<f64>,
    zero: f64,
    /// Values in a bin exceed its start by at most this many widths.
    widths: i64,
}

impl LogBins {
    /// From masses, each with a smallest value and a mean, and each within one width.
    pub(crate) fn new(step: f64, parts: &[(f64, f64, f64)]) -> Self {
        let index = |&(least, ..): &(f64, f64, f64)| {
            if least > 0.0 { Some(((least.ln() / step) + 1e-9).floor() as i64) } else { None }
        };
        let indices: Vec<Option<i64>> = parts.iter().map(index).collect();
        let positive = || indices.iter().flatten().copied();
        let (first, last) = (positive().min().unwrap_or(0), positive().max().unwrap_or(0));
        let count = (last - first + 1) as usize;
        let (mut masses, mut weighted) = (vec![0.0; count], vec![0.0; count]);
        let mut zero = 0.0;
        for (&(_, mean, mass), index) in parts.iter().zip(indices) {
            match index {
                Some(index) => {
                    let bin = (index - first) as usize;
                    masses[bin] += mass;
                    weighted[bin] += mass * mean;
                }
                None => zero += mass,
            }
        }
        Self { step, first, masses, weighted, zero, widths: 1 }
    }

    /// The noise `ν`, from its square rounded for the same side.
    pub(crate) fn of_noise(noise: &Noise, step: f64, side: Side) -> Self {
        let part = |cell: &NoiseCell| {
            let (least, largest) = (cell.least.sqrt(), cell.largest.sqrt());
            match side {
                // The root is concave: its mean is not below the chord, and not above the root of the mean.
                Side::Upper => (least, cell.chord(least, largest), cell.mass),
                Side::Lower if cell.least > 0.0 => (least, cell.mean.sqrt(), cell.mass),
                Side::Lower => (largest, largest, cell.mass),
            }
        };
        let mut bins = Self::new(step, &noise.cells().iter().map(part).collect::<Vec<_>>());
        // A cell begins within a bin. It ends after its own width, which is half of the width of the square's cell.
        let widest =
            noise.cells().iter().filter(|cell| cell.least > 0.0).map(|cell| cell.largest / cell.least);
        let width = 0.5 * widest.fold(1.0, f64::max).ln();
        bins.widths = 1 + ((width / step - 1e-9).ceil() as i64).max(1);
        bins
    }

    /// The same bins, whose values may extend one width further.
    pub(crate) fn unaligned(mut self) -> Self {
        self.widths += 1;
        self
    }

    /// The gains for the product of two independent quantities. Each bin has its mass, a bound on the mean and the range.
    pub(crate) fn gains(&self, other: &Self, side: Side) -> Vec<Gain> {
        let first = self.first + other.first;
        let masses = convolved(&self.masses, &other.masses);
        let weighted = convolved(&self.weighted, &other.weighted);
        let widths = (self.widths + other.widths) as usize;
        let ratio = self.step.exp();
        // Products at the boundaries of bins, and their gains.
        let mut boundary = 0.0;
        let boundaries: Vec<(f64, f64)> = (0..masses.len() + widths)
            .map(|bin| {
                // Factors from one bin to the next are computed exactly at regular distances.
                boundary = if bin.is_multiple_of(64) {
                    ((first + bin as i64) as f64 * self.step).exp()
                } else {
                    ratio * boundary
                };
                (boundary, gain(boundary))
            })
            .collect();
        let mut gains: Vec<Gain> = Vec::with_capacity(masses.len() + 1);
        for (bin, (&mass, &weighted)) in masses.iter().zip(&weighted).enumerate() {
            if mass > 0.0 {
                let (from, to) = (boundaries[bin], boundaries[bin + widths]);
                let mean = (weighted / mass).clamp(from.0, to.0);
                let bound = match side {
                    Side::Upper => largest_mean_gain(from, to, mean),
                    Side::Lower => least_mean_gain(from, to, mean),
                };
                gains.push((mass, bound, (to.1, from.1)));
            }
        }
        let total: f64 = self.masses.iter().sum::<f64>() + self.zero;
        let others: f64 = other.masses.iter().sum::<f64>() + other.zero;
        let without = self.zero * others + other.zero * (total - self.zero);
        if without > 0.0 {
            gains.push((without, 1.0, (1.0, 1.0)));
        }
        gains
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two values each: four products, each within its bin, and a gain of 1 if a factor is 0.
    #[test]
    fn gains_are_those_of_all_products() {
        let one = LogBins::new(STEP, &[(0.5, 0.5, 0.25), (2.0, 2.0, 0.75)]);
        let other = LogBins::new(STEP, &[(0.0, 0.0, 0.1), (1.0, 1.0, 0.4), (3.0, 3.0, 0.5)]);
        let gains = one.gains(&other, Side::Upper);
        let gain = |x: f64| 1.0 / (1.0 + x * x).sqrt();
        let expected = [(0.5, 0.1), (1.5, 0.125), (2.0, 0.3), (6.0, 0.375), (0.0, 0.1)];
        for (product, mass) in expected {
            let close = |&&(found, mean, (low, high)): &&Gain| {
                (found - mass).abs() < 1e-12
                    && low <= gain(product) + 1e-12
                    && gain(product) <= high + 1e-12
                    && (mean / gain(product) - 1.0).abs() < 1e-3
            };
            assert!(gains.iter().any(|found| close(&found)), "{product}: {gains:?}");
        }
        assert_eq!(gains.len(), expected.len());
    }
}
