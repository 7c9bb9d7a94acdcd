//! A fully connected layer.
//!
//! ```text
//! y[o] = b[o] + Σ_i W[o, i]·x[i],     ∂W = ∂Yᵀ·X,   ∂b = Σ ∂y,   ∂X = ∂Y·W
//! ```
//!
//! Any shape of `I` features becomes `O × 1 × 1`. The parameters are `W`, `O × I`, and then `b`, one per output. `X` and `Y` have one
//! row per sample.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

/// A linear layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Linear {
    pub(super) inputs: usize,
    pub(super) outputs: usize,
}

impl Linear {
    pub(super) fn weights(&self) -> usize {
        self.inputs * self.outputs
    }

    fn matrix<'a>(&self, parameters: &'a [f32]) -> MatRef<'a, f32> {
        MatRef::from_row_major_slice(&parameters[..self.weights()], self.outputs, self.inputs)
    }

    /// Writes the outputs of all samples.
    pub(super) fn forward(&self, parameters: &[f32], inputs: &[f32], outputs: &mut [f32]) {
        let biases = &parameters[self.weights()..];
        outputs.chunks_exact_mut(self.outputs).for_each(|row| row.copy_from_slice(biases));
        let samples = outputs.len() / self.outputs;
        let inputs = MatRef::from_row_major_slice(inputs, samples, self.inputs);
        let outputs = MatMut::from_row_major_slice_mut(outputs, samples, self.outputs);
        matmul(outputs, Accum::Add, inputs, self.matrix(parameters).transpose(), 1.0, Par::Seq);
    }

    /// Writes the gradient of the parameters, and that of the inputs if it is asked for.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        out_gradient: &[f32],
        gradient: &mut [f32],
        in_gradient: Option<&mut [f32]>,
    ) {
        let samples = out_gradient.len() / self.outputs;
        let (weights, biases) = gradient.split_at_mut(self.weights());
        biases.fill(0.0);
        for row in out_gradient.chunks_exact(self.outputs) {
            biases.iter_mut().zip(row).for_each(|(bias, gradient)| *bias += gradient);
        }
        let out_gradient = MatRef::from_row_major_slice(out_gradient, samples, self.outputs);
        let inputs = MatRef::from_row_major_slice(inputs, samples, self.inputs);
        let weights = MatMut::from_row_major_slice_mut(weights, self.outputs, self.inputs);
        matmul(weights, Accum::Replace, out_gradient.transpose(), inputs, 1.0, Par::Seq);
        if let Some(in_gradient) = in_gradient {
            let in_gradient = MatMut::from_row_major_slice_mut(in_gradient, samples, self.inputs);
            matmul(in_gradient, Accum::Replace, out_gradient, self.matrix(parameters), 1.0, Par::Seq);
        }
    }
}
