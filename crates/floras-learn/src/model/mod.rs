//! Models: a loss and its gradient over whole batches, as functions of one flat slice of parameters.
//!
//! ```text
//! objective(w) = mean cross-entropy over the batch + λ‖w‖²
//! ```
//!
//! All other modules, up to the radio, use only this slice.

mod layers;
mod logistic;
mod narrow;
mod network;
mod perceptron;

use std::fmt::Debug;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rand::Rng;

use crate::data::Samples;
use crate::softmax::Score;

pub use layers::LayerChoice;
pub use logistic::Logistic;
pub use network::Network;
use network::NetworkMemory;
pub use perceptron::Perceptron;

/// Samples that are processed together: some rows of a set, in any order.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The data set that contains the samples of the batch.
    pub samples: &'a Samples,
    /// The rows of the data set that are in the batch.
    pub rows: &'a [u32],
}

impl<'a> Batch<'a> {
    /// Number of samples in the batch.
    pub fn count(&self) -> usize {
        self.rows.len()
    }

    /// Number of features of a sample.
    pub fn width(&self) -> usize {
        self.samples.width()
    }

    /// The features of one sample of the batch.
    #[inline(always)]
    pub fn row(&self, sample: usize) -> &'a [f32] {
        self.samples.row(self.rows[sample] as usize)
    }

    /// The labels of all samples.
    fn copy_labels(&self, labels: &mut Vec<u16>) {
        let all = self.samples.labels();
        labels.clear();
        labels.extend(self.rows.iter().map(|&row| all[row as usize]));
    }

    /// The features of all samples, in contiguous memory.
    fn copy_features(&self, features: &mut Vec<f32>) {
        features.clear();
        for sample in 0..self.count() {
            features.extend_from_slice(self.row(sample));
        }
    }
}

/// Buffers of a model, reused between calls.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    rows: Vec<u32>,
    labels: Vec<u16>,
    features: Vec<f32>,
    logits: Vec<f32>,
    /// The units of each hidden layer of a perceptron.
    hidden: Vec<Vec<f32>>,
    hidden_gradient: [Vec<f32>; 2],
    softmax: Vec<f32>,
    network: NetworkMemory,
}

/// A named part of the flat parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The name, as in `weight` or `hidden.bias`.
    pub name: String,
    /// Number of rows and columns of a matrix, or the length of a vector.
    pub shape: Vec<usize>,
}

impl Tensor {
    /// Number of parameters in the tensor.
    pub fn length(&self) -> usize {
        self.shape.iter().product()
    }
}

/// A classifier with a flat slice of parameters.
///
/// The caller must ensure that slices have length [`parameters`](Self::parameters), that batches are as wide as the
/// model, and that labels are below its number of classes.
pub trait Model: Debug + Send + Sync {
    /// Number of features of a sample.
    fn features(&self) -> usize;

    /// Number of classes.
    fn classes(&self) -> usize;

    /// `λ` of the penalty `λ‖w‖²` on weights and biases.
    fn l2(&self) -> f32;

    /// Whether it is softmax regression: linear in the features, so that its loss is convex and the gradient of a sample reveals
    /// the sample.
    fn is_softmax_regression(&self) -> bool {
        false
    }

    /// The parts of the flat slice, in order.
    fn tensors(&self) -> Vec<Tensor>;

    /// `d`, the number of parameters.
    fn parameters(&self) -> usize {
        self.tensors().iter().map(Tensor::length).sum()
    }

    /// Initial parameters, drawn from `randomness`; as many as [`Model::parameters`].
    fn initialise(&self, randomness: &mut dyn Rng) -> Vec<f32>;

    /// Writes the gradient of the objective; returns the mean cross-entropy, without the penalty. Models with dropout draw from
    /// `dropout`.
    fn gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        dropout: &mut dyn Rng,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64;

    /// Loss and accuracy of the model on a batch, without the penalty and without dropout.
    fn score(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Score;
}

/// The penalty `λ‖w‖²` of the objective.
pub fn penalty(model: &dyn Model, parameters: &[f32]) -> f64 {
    let squares: f64 = parameters.iter().map(|&value| f64::from(value) * f64::from(value)).sum();
    f64::from(model.l2()) * squares
}

/// A fully connected layer, `outputs × inputs` weights and then one bias per output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layer {
    inputs: usize,
    outputs: usize,
}

/// A matrix of activations: one row per sample, or one column per sample.
#[derive(Clone, Copy)]
enum Activations<'a> {
    BySample(&'a [f32]),
    ByUnit(&'a [f32]),
}

impl<'a> Activations<'a> {
    /// As a matrix with one row per sample.
    fn rows(self, samples: usize, width: usize) -> MatRef<'a, f32> {
        match self {
            Self::BySample(values) => MatRef::from_row_major_slice(values, samples, width),
            Self::ByUnit(values) => MatRef::from_row_major_slice(values, width, samples).transpose(),
        }
    }
}

impl Layer {
    fn parameters(self) -> usize {
        self.outputs * (self.inputs + 1)
    }

    fn split(self, parameters: &[f32]) -> (MatRef<'_, f32>, &[f32]) {
        let (weights, biases) = parameters.split_at(self.outputs * self.inputs);
        (MatRef::from_row_major_slice(weights, self.outputs, self.inputs), biases)
    }

    /// `W·Xᵀ + b`, unit after unit.
    fn forward(self, parameters: &[f32], inputs: Activations<'_>, samples: usize, out: &mut Vec<f32>) {
        let (weights, biases) = self.split(parameters);
        out.resize(self.outputs * samples, 0.0);
        for (unit, &bias) in out.chunks_exact_mut(samples).zip(biases) {
            unit.fill(bias);
        }
        let out = MatMut::from_row_major_slice_mut(out, self.outputs, samples);
        let inputs = inputs.rows(samples, self.inputs).transpose();
        matmul(out, Accum::Add, weights, inputs, 1.0, Par::Seq);
    }

    /// The gradient of the layer's parameters, from that of its outputs (unit after unit), and of `λ‖w‖²`.
    fn backward(
        self,
        parameters: &[f32],
        inputs: Activations<'_>,
        out_gradient: &[f32],
        l2: f32,
        gradient: &mut [f32],
    ) {
        let samples = out_gradient.len() / self.outputs;
        for (gradient, &parameter) in gradient.iter_mut().zip(parameters) {
            *gradient = 2.0 * l2 * parameter;
        }
        let (weights, biases) = gradient.split_at_mut(self.outputs * self.inputs);
        for (bias, unit) in biases.iter_mut().zip(out_gradient.chunks_exact(samples)) {
            *bias += unit.iter().sum::<f32>();
        }
        let weights = MatMut::from_row_major_slice_mut(weights, self.outputs, self.inputs);
        let out_gradient = MatRef::from_row_major_slice(out_gradient, self.outputs, samples);
        matmul(weights, Accum::Add, out_gradient, inputs.rows(samples, self.inputs), 1.0, Par::Seq);
    }

    /// The gradient of the layer's inputs, unit after unit: `Wᵀ·∂out`.
    fn backward_to_inputs(self, parameters: &[f32], out_gradient: &[f32], inputs_gradient: &mut Vec<f32>) {
        let samples = out_gradient.len() / self.outputs;
        let (weights, _) = self.split(parameters);
        inputs_gradient.resize(self.inputs * samples, 0.0);
        let inputs_gradient = MatMut::from_row_major_slice_mut(inputs_gradient, self.inputs, samples);
        let out_gradient = MatRef::from_row_major_slice(out_gradient, self.outputs, samples);
        matmul(inputs_gradient, Accum::Replace, weights.transpose(), out_gradient, 1.0, Par::Seq);
    }
}

/// Number of samples that [`score_all`] scores at once, which limits the scratch memory.
pub const SCORED_TOGETHER: usize = 512;

/// Loss and accuracy of a model on a whole data set.
pub fn score_all(model: &dyn Model, parameters: &[f32], samples: &Samples, scratch: &mut Scratch) -> Score {
    let mut score = Score::default();
    let mut rows = std::mem::take(&mut scratch.rows);
    for first in (0..samples.count()).step_by(SCORED_TOGETHER) {
        rows.clear();
        rows.extend(first as u32..(first + SCORED_TOGETHER).min(samples.count()) as u32);
        score = score.and(model.score(parameters, Batch { samples, rows: &rows }, scratch));
    }
    scratch.rows = rows;
    score
}

/// Checks of a gradient by an independent computation.
#[cfg(test)]
mod checks {
    use rand::SeedableRng;
    use rand::rngs::ChaCha8Rng;

    use super::*;

    /// The objective in double precision, sample by sample and straight from its definition.
    fn objective(widths: &[usize], l2: f64, parameters: &[f64], samples: &Samples) -> f64 {
        let mut loss = 0.0;
        for (sample, &label) in samples.labels().iter().enumerate() {
            let mut units: Vec<f64> = samples.row(sample).iter().map(|&x| f64::from(x)).collect();
            let mut rest = parameters;
            for (depth, pair) in widths.windows(2).enumerate() {
                let (inputs, outputs) = (pair[0], pair[1]);
                let (weights, biases) = rest.split_at(inputs * outputs);
                if depth > 0 {
                    units.iter_mut().for_each(|unit| *unit = unit.max(0.0));
                }
                let unit = |out: usize| -> f64 {
                    let row = &weights[out * inputs..][..inputs];
                    row.iter().zip(&units).map(|(w, x)| w * x).sum::<f64>() + biases[out]
                };
                units = (0..outputs).map(unit).collect();
                rest = &biases[outputs..];
            }
            let sum: f64 = units.iter().map(|logit| logit.exp()).sum();
            loss += sum.ln() - units[usize::from(label)];
        }
        let squares: f64 = parameters.iter().map(|w| w * w).sum();
        loss / samples.count() as f64 + l2 * squares
    }

    /// Central differences in double precision have an error of about 1e-9 here; single precision explains 2e-6.
    pub(super) fn gradient_meets_finite_differences(model: &dyn Model, widths: &[usize], samples: &Samples) {
        let parameters: Vec<f32> = (0..model.parameters()).map(|i| 0.3 * ((i + 1) as f32).sin()).collect();
        let exact: Vec<f64> = parameters.iter().map(|&value| f64::from(value)).collect();
        let l2 = f64::from(model.l2());
        let rows: Vec<u32> = (0..samples.count() as u32).collect();
        let batch = Batch { samples, rows: &rows };
        let mut gradient = vec![f32::NAN; parameters.len()];
        let mut unused = ChaCha8Rng::seed_from_u64(0);
        let loss = model.gradient(&parameters, batch, &mut unused, &mut Scratch::default(), &mut gradient);
        let scored = model.score(&parameters, batch, &mut Scratch::default()).mean_loss();
        let expected = objective(widths, l2, &exact, samples);
        assert!((loss + penalty(model, &parameters) - expected).abs() < 2e-6);
        assert!((scored - loss).abs() < 1e-9);
        for index in 0..parameters.len() {
            let moved = |by: f64| {
                let mut moved = exact.clone();
                moved[index] += by;
                objective(widths, l2, &moved, samples)
            };
            let slope = (moved(1e-6) - moved(-1e-6)) / 2e-6;
            let error = (slope - f64::from(gradient[index])).abs();
            assert!(error < 2e-6, "parameter {index}: {} instead of {slope}", gradient[index]);
        }
    }

    /// The score over all samples in their order, to compare with that of listed rows.
    pub(super) fn score_of_all(model: &dyn Model, parameters: &[f32], samples: &Samples) -> Score {
        score_all(model, parameters, samples, &mut Scratch::default())
    }

    pub(super) fn some_samples(width: usize, classes: usize, count: usize) -> Samples {
        let features = (0..count * width).map(|i| ((i * i + 3 * i) % 17) as f32 / 17.0 - 0.3).collect();
        let labels = (0..count).map(|i| ((i * 7 + i / 3) % classes) as u16).collect();
        Samples::new(width, classes, features, labels).unwrap()
    }
}
