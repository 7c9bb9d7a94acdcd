//! Global average pooling: the mean of each channel.
//!
//! ```text
//! y[c] = Σ_{i, j} x[c, i, j]/(H·W),     ∂x[c, i, j] = ∂y[c]/(H·W)
//! ```
//!
//! `C × H × W` becomes `C × 1 × 1`.

use super::sum;

/// Writes the mean of each plane of `pixels` values.
pub(super) fn forward(pixels: usize, inputs: &[f32], outputs: &mut [f32]) {
    for (output, plane) in outputs.iter_mut().zip(inputs.chunks_exact(pixels)) {
        *output = sum::of(plane) / pixels as f32;
    }
}

/// Writes the gradient of the inputs.
pub(super) fn backward(pixels: usize, out_gradient: &[f32], in_gradient: &mut [f32]) {
    for (plane, &gradient) in in_gradient.chunks_exact_mut(pixels).zip(out_gradient) {
        plane.fill(gradient / pixels as f32);
    }
}
