//! Dropout, in place: during training each value is zero with probability `p`, and the others are scaled.
//!
//! ```text
//! y = m·x,   m = 0 with probability p, 1/(1 − p) otherwise,     ∂x = m·∂y
//! ```
//!
//! Shapes stay as they are. `p` is rounded to a multiple of 2⁻¹⁶, and the scale belongs to the rounded `p`, so that the mean of
//! `m` is 1. Each value uses 16 bits of the generator.
//!
//! # Citations
//!
//! N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever and R. Salakhutdinov, "Dropout: a simple way to prevent neural networks
//! from overfitting", JMLR 15, 2014.

use rand::Rng;

/// A dropout layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Dropout {
    /// Draws of 16 bits below this number become zero.
    zeros: u16,
}

impl Dropout {
    /// The probability must be from 0 to below 1.
    pub(super) fn new(probability: f32) -> Self {
        Self { zeros: (probability * 65_536.0).round().min(65_535.0) as u16 }
    }

    fn scale(self) -> f32 {
        65_536.0 / (65_536.0 - f32::from(self.zeros))
    }

    /// Draws the factors `m` and multiplies the values by them.
    pub(super) fn forward(
        self,
        values: &mut [f32],
        randomness: &mut dyn Rng,
        bytes: &mut Vec<u8>,
        factors: &mut Vec<f32>,
    ) {
        bytes.resize(2 * values.len(), 0);
        randomness.fill_bytes(bytes);
        factors.resize(values.len(), 0.0);
        let (zeros, scale) = (self.zeros, self.scale());
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                let draws = bytes.as_chunks::<2>().0;
                for ((value, factor), &draw) in values.iter_mut().zip(factors).zip(draws) {
                    *factor = if u16::from_le_bytes(draw) < zeros { 0.0 } else { scale };
                    *value *= *factor;
                }
            },
        );
    }

    /// Multiplies the gradient by the factors.
    pub(super) fn backward(factors: &[f32], gradient: &mut [f32]) {
        pulp::Arch::new().dispatch(
            #[inline(always)]
            || {
                gradient.iter_mut().zip(factors).for_each(|(gradient, factor)| *gradient *= factor);
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    #[test]
    fn zeros_have_the_stated_probability() {
        const COUNT: usize = 100_000;
        for probability in [0.0_f32, 0.25, 0.5, 0.9] {
            let (mut values, mut factors) = (vec![1.0; COUNT], Vec::new());
            let mut generator = ChaCha8Rng::seed_from_u64(2);
            Dropout::new(probability).forward(&mut values, &mut generator, &mut Vec::new(), &mut factors);
            assert_eq!(values, factors);
            let p = f64::from(probability);
            let zeros = values.iter().filter(|&&value| value == 0.0).count() as f64;
            // Five standard deviations.
            assert!((zeros - COUNT as f64 * p).abs() <= 5.0 * (COUNT as f64 * p * (1.0 - p)).sqrt());
            let scale = 1.0 / (1.0 - p);
            assert!(
                values.iter().all(|&value| value == 0.0 || (f64::from(value) - scale).abs() < 1e-4 * scale)
            );
            let mut gradient = vec![2.0; COUNT];
            Dropout::backward(&factors, &mut gradient);
            assert!(gradient.iter().zip(&values).all(|(gradient, value)| *gradient == 2.0 * value));
        }
    }
}
