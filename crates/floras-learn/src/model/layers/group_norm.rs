//! Group normalisation: each sample's channels are normalised in groups.
//!
//! ```text
//! x̂ = (x − m)/√(v + 10⁻⁵),   y = γ_c·x̂ + β_c
//! ∂γ_c = Σ ∂y·x̂,   ∂β_c = Σ ∂y
//! ∂x = (g − mean(g) − x̂·mean(g·x̂))/√(v + 10⁻⁵),   g = γ_c·∂y
//! ```
//!
//! `m` and `v` are the mean and the (biased) variance over a group of a sample, and both means are over that group. Shapes stay as
//! they are; the parameters are `γ` and then `β`, one each per channel, at first 1 and 0. No statistics of other samples enter,
//! unlike in batch normalisation.
//!
//! # Citations
//!
//! Y. Wu and K. He, "Group normalization", ECCV 2018.

use super::{refused, sum};
use crate::data::Shape;
use crate::error::LearnError;

/// A normalisation layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GroupNorm {
    shape: Shape,
    groups: usize,
}

const EPSILON: f32 = 1e-5;

impl GroupNorm {
    pub(super) fn new(shape: Shape, groups: usize) -> Result<Self, LearnError> {
        if !shape.channels.is_multiple_of(groups) {
            let channels = shape.channels;
            return refused(format!(
                "{groups} groups do not divide the {channels} channels of an input of {shape}"
            ));
        }
        Ok(Self { shape, groups })
    }

    pub(super) fn channels(&self) -> usize {
        self.shape.channels
    }

    pub(super) fn initialise(&self, parameters: &mut Vec<f32>) {
        parameters.resize(parameters.len() + self.shape.channels, 1.0);
        parameters.resize(parameters.len() + self.shape.channels, 0.0);
    }

    /// Features of a group of one sample.
    fn group_size(&self) -> usize {
        self.shape.features() / self.groups
    }

    /// Writes the outputs, and `m` and `1/√(v + ε)` of each group.
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        outputs: &mut [f32],
        statistics: &mut Vec<[f32; 2]>,
    ) {
        let (scales, offsets) = parameters.split_at(self.shape.channels);
        let (size, pixels) = (self.group_size(), self.shape.pixels());
        statistics.clear();
        for (number, (inputs, outputs)) in
            inputs.chunks_exact(size).zip(outputs.chunks_exact_mut(size)).enumerate()
        {
            let mean = sum::of(inputs) / size as f32;
            let variance = sum::of_squares(inputs, mean) / size as f32;
            let inverse = 1.0 / (variance + EPSILON).sqrt();
            statistics.push([mean, inverse]);
            let first = number % self.groups * (size / pixels);
            let planes = inputs.chunks_exact(pixels).zip(outputs.chunks_exact_mut(pixels));
            for (channel, (inputs, outputs)) in (first..).zip(planes) {
                let scale = scales[channel] * inverse;
                let offset = offsets[channel] - mean * scale;
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        for (output, &input) in outputs.iter_mut().zip(inputs) {
                            *output = input.mul_add(scale, offset);
                        }
                    },
                );
            }
        }
    }

    /// Writes the gradients of the parameters and of the inputs.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        statistics: &[[f32; 2]],
        out_gradient: &[f32],
        gradient: &mut [f32],
        in_gradient: &mut [f32],
    ) {
        let (size, pixels) = (self.group_size(), self.shape.pixels());
        let scales = &parameters[..self.shape.channels];
        gradient.fill(0.0);
        let (scale_gradient, offset_gradient) = gradient.split_at_mut(self.shape.channels);
        for (number, &[mean, inverse]) in statistics.iter().enumerate() {
            let first = number % self.groups * (size / pixels);
            let group = number * size..(number + 1) * size;
            let (inputs, out_gradient) = (&inputs[group.clone()], &out_gradient[group.clone()]);
            let (mut sum_g, mut sum_gx) = (0.0, 0.0);
            let planes = inputs.chunks_exact(pixels).zip(out_gradient.chunks_exact(pixels));
            for (channel, (inputs, out_gradient)) in (first..).zip(planes.clone()) {
                let sum = sum::of(out_gradient);
                let with_x = sum::of_products(inputs, mean, out_gradient) * inverse;
                offset_gradient[channel] += sum;
                scale_gradient[channel] += with_x;
                sum_g += scales[channel] * sum;
                sum_gx += scales[channel] * with_x;
            }
            let (mean_g, mean_gx) = (sum_g / size as f32, sum_gx / size as f32);
            // ∂x = a_c·∂y + b·x + c
            let by_input = -inverse * inverse * mean_gx;
            let constant = -inverse * mean_g - by_input * mean;
            let in_gradient = in_gradient[group].chunks_exact_mut(pixels);
            for (channel, ((inputs, out_gradient), in_gradient)) in (first..).zip(planes.zip(in_gradient)) {
                let by_output = scales[channel] * inverse;
                pulp::Arch::new().dispatch(
                    #[inline(always)]
                    || {
                        for ((gradient, &input), &out) in in_gradient.iter_mut().zip(inputs).zip(out_gradient)
                        {
                            *gradient = by_output.mul_add(out, by_input.mul_add(input, constant));
                        }
                    },
                );
            }
        }
    }
}
