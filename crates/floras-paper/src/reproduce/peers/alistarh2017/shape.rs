//! Vectors of several shapes, and what the quantiser of this project makes of them.

use floras_core::random::{Purpose, StreamName};
use floras_core::{Fading, Snr, SnrConvention};
use floras_phy::{Aggregation, CodeRate, Digital, DigitalSettings, Round};
use floras_sim::SimError;
use rand::RngExt;

use super::elias::code_bits;

/// The entries of a vector.
const ENTRIES: Purpose = Purpose(85);

/// How the absolute values of a vector are distributed. Signs are random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Gaussian,
    Laplace,
    Uniform,
    Equal,
}

impl Shape {
    pub(super) const ALL: [Self; 4] = [Self::Gaussian, Self::Laplace, Self::Uniform, Self::Equal];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Gaussian => "Gaussian",
            Self::Laplace => "Laplace",
            Self::Uniform => "uniform",
            Self::Equal => "equal values",
        }
    }

    pub(super) fn vector(self, seed: u64, trial: u16, entries: usize) -> Vec<f32> {
        let name = StreamName::new(seed, ENTRIES).trial(trial).client(self as u32);
        if self == Self::Gaussian {
            let mut vector = vec![0.0; entries];
            name.normals().fill(0, &mut vector);
            return vector;
        }
        let mut stream = name.stream();
        let mut entry = || {
            let uniform: f64 = stream.random();
            let magnitude = match self {
                Self::Laplace => -(1.0 - uniform).ln(),
                Self::Uniform => uniform,
                Self::Gaussian | Self::Equal => 1.0,
            };
            let sign = if stream.random::<bool>() { 1.0 } else { -1.0 };
            (sign * magnitude) as f32
        };
        (0..entries).map(|_| entry()).collect()
    }
}

/// The uplink `digital` with `levels` levels, over a channel that loses no update.
pub(super) fn digital(levels: u32) -> Result<Digital, SimError> {
    Ok(Digital::new(DigitalSettings {
        levels: Some(levels),
        rate: CodeRate::Bits(1.0),
        central_noise_std: 0.0,
        length: 1,
        channels: Fading::None.into(),
        snr: Snr::new(30.0, SnrConvention::Symbol)?,
    })?)
}

/// Mean measurements of a vector over some draws of its quantisation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Measured {
    /// `⟨Q(v), v⟩/‖v‖²`, of mean 1 without bias.
    pub(super) projection: f64,
    /// The squared error `‖Q(v) − v‖²/‖v‖²`: at least 0.
    pub(super) variance: f64,
    /// The second moment `‖Q(v)‖²/‖v‖²`: at least 0.
    pub(super) second_moment: f64,
    /// Entries other than 0.
    pub(super) nonzeros: f64,
    /// Bits in the code of section 3.1.
    pub(super) bits: f64,
}

impl Measured {
    /// Quantises `vector` as the update of a client in the rounds `1..=draws` of a trial. It reaches the base station as it was quantised.
    pub(super) fn of(
        vector: &[f32],
        levels: u32,
        seed: u64,
        trial: u16,
        client: u32,
        draws: u32,
    ) -> Result<Self, SimError> {
        let uplink = digital(levels)?;
        let square: f64 = vector.iter().map(|x| f64::from(*x).powi(2)).sum();
        let per_level = f64::from(levels) / square.sqrt();
        let mut total = Self::default();
        for round in 1..=draws {
            let clients = [client];
            let round = Round::new(seed, trial, round, &clients)?;
            let quantised = Aggregation::default().run(&uplink, round, &[vector])?.sum;
            let sum = |term: fn(f64, f64) -> f64| -> f64 {
                let pairs = quantised.iter().zip(vector);
                pairs.map(|(q, v)| term(f64::from(*q), f64::from(*v))).sum::<f64>() / square
            };
            let level = |q: &f32| (f64::from(q.abs()) * per_level).round() as u32;
            let found: Vec<u32> = quantised.iter().map(level).collect();
            total.projection += sum(|q, v| q * v);
            total.variance += sum(|q, v| (q - v).powi(2));
            total.second_moment += sum(|q, _| q * q);
            total.nonzeros += found.iter().filter(|&&level| level > 0).count() as f64;
            total.bits += code_bits(&found) as f64;
        }
        let mean = |total: f64| total / f64::from(draws);
        Ok(Self {
            projection: mean(total.projection),
            variance: mean(total.variance),
            second_moment: mean(total.second_moment),
            nonzeros: mean(total.nonzeros),
            bits: mean(total.bits),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With equal values at the fraction `f` between two levels, a vector has the variance `n·f(1 − f)/s²`: here f = 0.4, 40,000 entries with a
    /// relative standard error of 0.3%, of which the test allows five.
    #[test]
    fn equal_values_have_their_variance() {
        let measured = Measured::of(&Shape::Equal.vector(1, 0, 40_000), 80, 1, 0, 3, 1).unwrap();
        let expected = 40_000.0 * 0.24 / 6_400.0;
        assert!((measured.variance / expected - 1.0).abs() < 0.015, "{measured:?}");
        assert!((measured.nonzeros / 16_000.0 - 1.0).abs() < 0.03, "{measured:?}");
    }

    /// The mean absolute values are 0.7979, 0.7071 and 0.8660 of the root mean square; 40,000 entries have relative standard errors below 0.6%.
    #[test]
    fn shapes_have_their_mean_magnitudes() {
        let expected = [
            (Shape::Gaussian, 0.7979),
            (Shape::Laplace, std::f64::consts::FRAC_1_SQRT_2),
            (Shape::Uniform, 0.8660),
            (Shape::Equal, 1.0),
        ];
        for (shape, expected) in expected {
            let vector = shape.vector(1, 0, 40_000);
            let mean = vector.iter().map(|x| f64::from(x.abs())).sum::<f64>() / 40_000.0;
            let square = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 40_000.0;
            assert!((mean / square.sqrt() - expected).abs() < 0.02, "{shape:?}");
            let positive = vector.iter().filter(|&&x| x > 0.0).count();
            assert!((19_000..21_000).contains(&positive), "{shape:?}: {positive}");
        }
    }
}
