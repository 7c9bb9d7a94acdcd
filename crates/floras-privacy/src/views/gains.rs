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

/// A range of gains.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gain {
    pub(crate) mass: f64,
    /// A bound on the mean.
    pub(crate) mean: f64,
    pub(crate) range: (f64, f64),
    /// About the logarithm of the mean.
    pub(crate) log: f64,
}

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
    /// `count` empty bins from the bin `first` on.
    pub(crate) fn empty(step: f64, first: i64, count: usize) -> Self {
        let (masses, weighted) = (vec![0.0; count], vec![0.0; count]);
        Self { step, first, masses, weighted, zero: 0.0, widths: 1 }
    }

    /// The bin of a value; `None` for 0.
    pub(crate) fn bin(value: f64, step: f64) -> Option<i64> {
        (value > 0.0).then(|| ((value.ln() / step) + 1e-9).floor() as i64)
    }

    /// Adds a mass with its mean to one of the bins, or to the mass at 0.
    pub(crate) fn add(&mut self, bin: Option<i64>, mean: f64, mass: f64) {
        match bin {
            Some(bin) => {
                let bin = (bin - self.first) as usize;
                self.masses[bin] += mass;
                self.weighted[bin] += mass * mean;
            }
            None => self.zero += mass,
        }
    }

    /// From masses, each with a smallest value and a mean, and each within one width.
    pub(crate) fn new(step: f64, parts: &[(f64, f64, f64)]) -> Self {
        let indices: Vec<Option<i64>> = parts.iter().map(|&(least, ..)| Self::bin(least, step)).collect();
        let positive = || indices.iter().flatten().copied();
        let (first, last) = (positive().min().unwrap_or(0), positive().max().unwrap_or(0));
        let mut bins = Self::empty(step, first, (last - first + 1) as usize);
        for (&(_, mean, mass), index) in parts.iter().zip(indices) {
            bins.add(index, mean, mass);
        }
        bins
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

    /// The range of the bins: the first one, and one after the last.
    pub(crate) fn range(&self) -> (i64, i64) {
        (self.first, self.first + self.masses.len() as i64)
    }

    /// The gains for the product of two independent quantities.
    pub(crate) fn gains(&self, other: &Self, boundaries: &Boundaries, side: Side) -> Vec<Gain> {
        let masses = convolved(&self.masses, &other.masses);
        let weighted = convolved(&self.weighted, &other.weighted);
        let widths = (self.widths + other.widths) as usize;
        let from = (self.first + other.first - boundaries.first) as usize;
        let boundaries = &boundaries.values[from..from + masses.len() + widths];
        let mut gains = Vec::with_capacity(masses.len() + 1);
        for ((&mass, &weighted), (from, to)) in
            masses.iter().zip(&weighted).zip(boundaries.iter().zip(&boundaries[widths..]))
        {
            if mass > 0.0 {
                let mean = (weighted / mass).clamp(from.product, to.product);
                let [start, end] = [from, to].map(|end| (end.product, end.gain));
                let mean = match side {
                    Side::Upper => largest_mean_gain(start, end, mean),
                    Side::Lower => least_mean_gain(start, end, mean),
                };
                gains.push(Gain { mass, mean, range: (to.gain, from.gain), log: from.log_gain });
            }
        }
        let total: f64 = self.masses.iter().sum::<f64>() + self.zero;
        let others: f64 = other.masses.iter().sum::<f64>() + other.zero;
        let without = self.zero * others + other.zero * (total - self.zero);
        if without > 0.0 {
            gains.push(Gain { mass: without, mean: 1.0, range: (1.0, 1.0), log: 0.0 });
        }
        gains
    }
}

/// The largest number of widths by which values of each factor may exceed the start of their bin.
const MAX_WIDTHS: i64 = 4;

/// Boundaries of bins of products, and the gains there.
pub(crate) struct Boundaries {
    first: i64,
    values: Vec<Boundary>,
}

#[derive(Clone, Copy)]
struct Boundary {
    product: f64,
    gain: f64,
    log_gain: f64,
}

impl Boundaries {
    /// For a factor in bins of some range, and another one.
    pub(crate) fn new((first, end): (i64, i64), other: &LogBins) -> Self {
        let (step, (other_first, other_end)) = (other.step, other.range());
        let (first, last) = (first + other_first, end + other_end + 2 * MAX_WIDTHS);
        let ratio = step.exp();
        let mut product = 0.0;
        let values = (first..=last).enumerate().map(|(number, bin)| {
            // Factors from one bin to the next are computed exactly at regular distances.
            product = if number.is_multiple_of(64) { (bin as f64 * step).exp() } else { ratio * product };
            Boundary { product, gain: gain(product), log_gain: gain(product).ln() }
        });
        Self { first, values: values.collect() }
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
        let gains = one.gains(&other, &Boundaries::new(one.range(), &other), Side::Upper);
        let gain = |x: f64| 1.0 / (1.0 + x * x).sqrt();
        let expected = [(0.5, 0.1), (1.5, 0.125), (2.0, 0.3), (6.0, 0.375), (0.0, 0.1)];
        for (product, mass) in expected {
            let close = |&&Gain { mass: found, mean, range: (low, high), .. }: &&Gain| {
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
