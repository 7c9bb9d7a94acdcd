//! A perceptron: linear layers with rectified linear units between them, `softmax(W₂·max(0, W₁·x + b₁) + b₂)` and deeper.
//!
//! With `H₀ = X`, `H_l = max(0, H_{l−1}·W_lᵀ + b_l)` and `D_L` as for logistic regression on the last `H`, the gradient is
//!
//! ```text
//! ∂W_l = D_lᵀ·H_{l−1},   D_{l−1} = (D_l·W_l) ⊙ [H_{l−1} > 0]
//! ```
//!
//! with sums over the batch for the biases, and `2λw` everywhere.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Activations, Batch, Layer, Model, Scratch, Tensor};
use crate::error::{LearnError, require};
use crate::softmax::{self, Score};

/// A perceptron of any depth with rectified linear units.
#[derive(Clone, Debug, PartialEq)]
pub struct Perceptron {
    hidden: Vec<Layer>,
    output: Layer,
    l2: f32,
}

impl Perceptron {
    /// Largest number of hidden units of a layer.
    pub const MAX_HIDDEN: usize = 1 << 16;
    /// Largest number of hidden layers.
    pub const MAX_DEPTH: usize = 100;

    /// A model with these numbers of hidden units, one for each hidden layer, and with penalty `l2·‖w‖²`.
    pub fn new(features: usize, hidden: &[usize], classes: usize, l2: f64) -> Result<Self, LearnError> {
        require(features > 0 && classes > 1, "the model", "for at least 1 feature and 2 classes", "smaller")?;
        let allowed = || format!("between 1 and {}", Self::MAX_DEPTH);
        let depth = hidden.len();
        require((1..=Self::MAX_DEPTH).contains(&depth), "the number of hidden layers", allowed(), depth)?;
        let mut inputs = features;
        let mut layers = Vec::with_capacity(depth);
        for &outputs in hidden {
            let allowed = || format!("between 1 and {}", Self::MAX_HIDDEN);
            require(
                (1..=Self::MAX_HIDDEN).contains(&outputs),
                "the number of hidden units",
                allowed(),
                outputs,
            )?;
            layers.push(Layer { inputs, outputs });
            inputs = outputs;
        }
        require((0.0..=1e6).contains(&l2), "the penalty l2 (λ)", "between 0 and 1e6", l2)?;
        Ok(Self { hidden: layers, output: Layer { inputs, outputs: classes }, l2: l2 as f32 })
    }

    /// All layers, each with the place of its first parameter.
    fn layers(&self) -> impl DoubleEndedIterator<Item = (usize, Layer)> + ExactSizeIterator {
        let layers = self.hidden.iter().copied().chain([self.output]);
        let mut next = 0;
        let placed = layers.map(|layer| {
            let start = next;
            next += layer.parameters();
            (start, layer)
        });
        placed.collect::<Vec<_>>().into_iter()
    }

    /// Fills labels, features, hidden units and logits of the scratch memory.
    fn forward(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) {
        let samples = batch.count();
        batch.copy_labels(&mut scratch.labels);
        batch.copy_features(&mut scratch.features);
        scratch.hidden.resize_with(self.hidden.len(), Vec::new);
        for (depth, (start, layer)) in self.layers().enumerate() {
            let parameters = &parameters[start..start + layer.parameters()];
            let (before, rest) = scratch.hidden.split_at_mut(depth);
            let inputs = inputs(&scratch.features, before);
            let Some(units) = rest.first_mut() else {
                layer.forward(parameters, inputs, samples, &mut scratch.logits);
                break;
            };
            layer.forward(parameters, inputs, samples, units);
            for unit in units {
                // Not `max`, which would discard NaN.
                *unit = if *unit < 0.0 { 0.0 } else { *unit };
            }
        }
    }
}

/// The inputs of a layer: the units of the layer before it, or the features.
fn inputs<'a>(features: &'a [f32], before: &'a [Vec<f32>]) -> Activations<'a> {
    before.last().map_or(Activations::BySample(features), |units| Activations::ByUnit(units))
}

impl Model for Perceptron {
    fn features(&self) -> usize {
        self.hidden[0].inputs
    }

    fn classes(&self) -> usize {
        self.output.outputs
    }

    fn l2(&self) -> f32 {
        self.l2
    }

    fn tensors(&self) -> Vec<Tensor> {
        let depth = self.hidden.len();
        let tensors = self.layers().enumerate().map(|(place, (_, layer))| {
            let name = match place {
                _ if place == depth => "output".to_owned(),
                _ if depth == 1 => "hidden".to_owned(),
                _ => format!("hidden{}", place + 1),
            };
            let tensor = |kind: &str, shape| Tensor { name: format!("{name}.{kind}"), shape };
            [tensor("weight", vec![layer.outputs, layer.inputs]), tensor("bias", vec![layer.outputs])]
        });
        tensors.flatten().collect()
    }

    /// Normal weights of variance 2/inputs (He et al. 2015), which keep the scale of the units; zero biases.
    fn initialise(&self, randomness: &mut dyn Rng) -> Vec<f32> {
        let mut parameters = Vec::new();
        for (_, layer) in self.layers() {
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
        _: &mut dyn Rng,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64 {
        self.forward(parameters, batch, scratch);
        let loss_sum = softmax::gradient(&mut scratch.logits, &scratch.labels, &mut scratch.softmax);
        let [slopes, next] = &mut scratch.hidden_gradient;
        slopes.clear();
        slopes.extend_from_slice(&scratch.logits);
        for (depth, (start, layer)) in self.layers().enumerate().rev() {
            let range = start..start + layer.parameters();
            let before = &scratch.hidden[..depth];
            let (parameters, gradient) = (&parameters[range.clone()], &mut gradient[range]);
            layer.backward(parameters, inputs(&scratch.features, before), slopes, self.l2, gradient);
            let Some(units) = before.last() else { break };
            layer.backward_to_inputs(parameters, slopes, next);
            for (slope, &unit) in next.iter_mut().zip(units) {
                if unit == 0.0 {
                    *slope = 0.0;
                }
            }
            std::mem::swap(slopes, next);
        }
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
            let model = Perceptron::new(5, &[7], 3, l2).unwrap();
            gradient_meets_finite_differences(&model, &[5, 7, 3], &some_samples(5, 3, 13));
            let deep = Perceptron::new(5, &[7, 4, 6], 3, l2).unwrap();
            gradient_meets_finite_differences(&deep, &[5, 7, 4, 6, 3], &some_samples(5, 3, 13));
        }
    }

    #[test]
    fn initial_weights_have_the_variance_of_he() {
        let model = Perceptron::new(400, &[100], 10, 0.0).unwrap();
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
        assert!(Perceptron::new(5, &[], 3, 0.0).is_err());
        assert!(Perceptron::new(5, &[0], 3, 0.0).is_err());
        assert!(Perceptron::new(5, &[4, 0], 3, 0.0).is_err());
        assert!(Perceptron::new(5, &[1 << 20], 3, 0.0).is_err());
    }
}
