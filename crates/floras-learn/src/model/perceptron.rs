//! A perceptron with one hidden layer: `softmax(W₂·max(0, W₁·x + b₁) + b₂)`.
//!
//! With `H = max(0, X·W₁ᵀ + b₁)` and `D` as for logistic regression on `H`, the gradient is
//!
//! ```text
//! ∂W₂ = Dᵀ·H,   ∂W₁ = Eᵀ·X,   E = (D·W₂) ⊙ [H > 0]
//! ```
//!
//! with sums over the batch for the biases, and `2λw` everywhere.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Activations, Batch, Layer, Model, Scratch, Tensor};
use crate::error::{LearnError, require};
use crate::softmax::{self, Score};

/// A two-layer perceptron with rectified linear units.
#[derive(Clone, Debug, PartialEq)]
pub struct Perceptron {
    hidden: Layer,
    output: Layer,
    l2: f32,
}

impl Perceptron {
    /// Largest number of hidden units.
    pub const MAX_HIDDEN: usize = 1 << 16;

    /// A model with `hidden` hidden units, with penalty `l2·‖w‖²`.
    pub fn new(features: usize, hidden: usize, classes: usize, l2: f64) -> Result<Self, LearnError> {
        require(features > 0 && classes > 1, "the model", "for at least 1 feature and 2 classes", "smaller")?;
        let allowed = || format!("between 1 and {}", Self::MAX_HIDDEN);
        require((1..=Self::MAX_HIDDEN).contains(&hidden), "the number of hidden units", allowed(), hidden)?;
        require((0.0..=1e6).contains(&l2), "the penalty l2 (λ)", "between 0 and 1e6", l2)?;
        Ok(Self {
            hidden: Layer { inputs: features, outputs: hidden },
            output: Layer { inputs: hidden, outputs: classes },
            l2: l2 as f32,
        })
    }

    /// Fills labels, features, hidden units and logits of the scratch memory.
    fn forward(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) {
        let samples = batch.count();
        let (first, second) = parameters.split_at(self.hidden.parameters());
        batch.copy_labels(&mut scratch.labels);
        batch.copy_features(&mut scratch.features);
        let inputs = Activations::BySample(&scratch.features);
        self.hidden.forward(first, inputs, samples, &mut scratch.hidden);
        for unit in &mut scratch.hidden {
            // Not `max`, which would discard NaN.
            *unit = if *unit < 0.0 { 0.0 } else { *unit };
        }
        let hidden = Activations::ByUnit(&scratch.hidden);
        self.output.forward(second, hidden, samples, &mut scratch.logits);
    }
}

impl Model for Perceptron {
    fn features(&self) -> usize {
        self.hidden.inputs
    }

    fn classes(&self) -> usize {
        self.output.outputs
    }

    fn l2(&self) -> f32 {
        self.l2
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (hidden, output) = (self.hidden, self.output);
        vec![
            Tensor { name: "hidden.weight", shape: vec![hidden.outputs, hidden.inputs] },
            Tensor { name: "hidden.bias", shape: vec![hidden.outputs] },
            Tensor { name: "output.weight", shape: vec![output.outputs, output.inputs] },
            Tensor { name: "output.bias", shape: vec![output.outputs] },
        ]
    }

    /// Normal weights of variance 2/inputs (He et al. 2015), which keep the scale of the units; zero biases.
    fn initialise(&self, randomness: &mut dyn Rng) -> Vec<f32> {
        let mut parameters = Vec::with_capacity(self.hidden.parameters() + self.output.parameters());
        for layer in [self.hidden, self.output] {
            let scale = (2.0 / layer.inputs as f32).sqrt();
            let mut weight = || -> f32 { StandardNormal.sample(&mut *randomness) };
            parameters.extend((0..layer.inputs * layer.outputs).map(|_| scale * weight()));
            parameters.resize(parameters.len() + layer.outputs, 0.0);
        }
        parameters
    }

    fn gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64 {
        self.forward(parameters, batch, scratch);
        let loss_sum = softmax::gradient(&mut scratch.logits, &scratch.labels, &mut scratch.softmax);
        let (first, second) = parameters.split_at(self.hidden.parameters());
        let (first_gradient, second_gradient) = gradient.split_at_mut(self.hidden.parameters());
        let hidden = Activations::ByUnit(&scratch.hidden);
        self.output.backward(second, hidden, &scratch.logits, self.l2, second_gradient);
        self.output.backward_to_inputs(second, &scratch.logits, &mut scratch.hidden_gradient);
        for (gradient, &unit) in scratch.hidden_gradient.iter_mut().zip(&scratch.hidden) {
            if unit == 0.0 {
                *gradient = 0.0;
            }
        }
        let inputs = Activations::BySample(&scratch.features);
        self.hidden.backward(first, inputs, &scratch.hidden_gradient, self.l2, first_gradient);
        loss_sum / batch.count() as f64
    }

    fn score(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Score {
        self.forward(parameters, batch, scratch);
        softmax::score(&mut scratch.logits, &scratch.labels, &mut scratch.softmax)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::super::checks::{gradient_meets_finite_differences, some_samples};
    use super::*;

    #[test]
    fn the_gradient_meets_finite_differences() {
        for l2 in [0.0, 0.05] {
            let model = Perceptron::new(5, 7, 3, l2).unwrap();
            gradient_meets_finite_differences(&model, &[5, 7, 3], &some_samples(5, 3, 13));
        }
    }

    #[test]
    fn initial_weights_have_the_variance_of_he() {
        let model = Perceptron::new(400, 100, 10, 0.0).unwrap();
        let parameters = model.initialise(&mut ChaCha8Rng::seed_from_u64(5));
        assert_eq!(parameters.len(), model.parameters());
        let (weights, rest) = parameters.split_at(40_000);
        let variance = weights.iter().map(|w| w * w).sum::<f32>() / 40_000.0;
        // The relative standard error is √(2/40000) = 0.7%; five of them see a wrong factor.
        assert!((variance * 200.0 - 1.0).abs() < 0.036, "{variance}");
        assert!(rest[..100].iter().all(|&bias| bias == 0.0));
        assert!(parameters[parameters.len() - 10..].iter().all(|&bias| bias == 0.0));
    }

    #[test]
    fn a_model_without_hidden_units_is_refused() {
        assert!(Perceptron::new(5, 0, 3, 0.0).is_err());
        assert!(Perceptron::new(5, 1 << 20, 3, 0.0).is_err());
    }
}
