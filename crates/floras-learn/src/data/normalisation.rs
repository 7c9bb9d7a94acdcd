//! Normalisation of each channel by published constants.
//!
//! ```text
//! x ← (x − mean_c)/deviation_c
//! ```
//!
//! The constants are those of the complete training sets, as published with many implementations. They are fixed numbers and do not
//! depend on the samples of an experiment, so that they leak nothing about them.

use super::{DataSet, Samples};

/// Mean and standard deviation of each channel's features, which are between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Normalisation {
    means: &'static [f32],
    deviations: &'static [f32],
}

impl Normalisation {
    /// The constants of MNIST.
    pub const MNIST: Self = Self { means: &[0.1307], deviations: &[0.3081] };
    /// The constants of Fashion-MNIST.
    pub const FASHION_MNIST: Self = Self { means: &[0.2860], deviations: &[0.3530] };
    /// The constants of CIFAR-10: red, green and blue.
    pub const CIFAR10: Self =
        Self { means: &[0.4914, 0.4822, 0.4465], deviations: &[0.2470, 0.2435, 0.2616] };

    /// Both parts of a data set, normalised. The set must have as many channels as there are constants.
    pub fn apply(self, set: DataSet) -> DataSet {
        let normalised = |samples: Samples| samples.normalised(self.means, self.deviations);
        DataSet { train: normalised(set.train), test: normalised(set.test) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Shape, digits28};
    use super::*;

    #[test]
    fn normalised_digits_have_mean_zero() {
        let set = Normalisation::MNIST.apply(digits28(4000, 1000).unwrap());
        let features = set.train.features();
        let count = features.len() as f64;
        let mean = features.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
        let square = features.iter().map(|&value| f64::from(value).powi(2)).sum::<f64>() / count;
        // The embedded digits are a twelfth of MNIST.
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.03, "{mean} {square}");
    }

    #[test]
    fn every_channel_has_its_own_constants() {
        let features = vec![0.4914, 0.4914, 0.4822, 0.7257, 0.4465, 0.1849];
        let samples = Samples::of_shape(Shape::new(3, 1, 2), 2, features, vec![0]).unwrap();
        let set = DataSet { train: samples.clone(), test: samples };
        let normalised = Normalisation::CIFAR10.apply(set).test;
        for (found, expected) in normalised.row(0).iter().zip([0.0, 0.0, 0.0, 1.0, 0.0, -1.0]) {
            assert!((found - expected).abs() < 1e-6);
        }
    }
}
