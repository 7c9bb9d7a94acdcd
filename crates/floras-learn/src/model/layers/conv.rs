//! Two-dimensional convolution with square kernels.
//!
//! ```text
//! y[o, i, j] = b[o] + Σ_{c, u, v} W[o, c, u, v]·x[c, s·i + u − p, s·j + v − p],     x = 0 outside of the image
//! ```
//!
//! `C × H × W` becomes `O × H' × W'` with `H' = ⌊(H + 2p − k)/s⌋ + 1`. The parameters are `W`, `O × C × k × k`, and then `b`, one
//! per output channel.
//!
//! As a matrix product: `Y = W·X'`, where column `(i, j)` of `X'` lists the inputs under the kernel at that position. Then
//! `∂W = ∂Y·X'ᵀ`, and `∂X' = Wᵀ·∂Y` is added back to the pixels. `X'` is made for some rows of positions at a time, so that it stays in
//! the second-level cache.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};

use super::{refused, sum};
use crate::data::Shape;
use crate::error::LearnError;

/// A convolution layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Conv {
    input: Shape,
    output: Shape,
    kernel: usize,
    stride: usize,
    padding: usize,
    has_bias: bool,
}

/// Size and step of a kernel, in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kernel {
    pub(super) side: usize,
    pub(super) stride: usize,
    pub(super) padding: usize,
    pub(super) has_bias: bool,
}

/// Largest number of values of `X'` that are in memory at once, if a row of positions has no more.
const TILE: usize = 1 << 16;

/// Matrices that live from one call to the next only to save their allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    inputs: Vec<f32>,
    gradient: Vec<f32>,
}

impl Conv {
    pub(super) fn new(input: Shape, channels: usize, kernel: Kernel) -> Result<Self, LearnError> {
        let Kernel { side, stride, padding, has_bias } = kernel;
        let along = |length: usize| Some((length + 2 * padding).checked_sub(side)? / stride + 1);
        let (Some(height), Some(width)) = (along(input.height), along(input.width)) else {
            return refused(format!(
                "a kernel of {side}x{side} pixels does not fit into an input of {input} with padding {padding}"
            ));
        };
        let output = Shape::new(channels, height, width);
        Ok(Self { input, output, kernel: side, stride, padding, has_bias })
    }

    pub(super) fn output(&self) -> Shape {
        self.output
    }

    /// Number of inputs of one output: `C·k²`.
    pub(super) fn fan_in(&self) -> usize {
        self.input.channels * self.kernel * self.kernel
    }

    /// The shape of `W`.
    pub(super) fn weight_shape(&self) -> Vec<usize> {
        vec![self.output.channels, self.input.channels, self.kernel, self.kernel]
    }

    pub(super) fn has_bias(&self) -> bool {
        self.has_bias
    }

    fn weights(&self) -> usize {
        self.output.channels * self.fan_in()
    }

    /// Rows of positions in a tile.
    fn tile_rows(&self) -> usize {
        (TILE / (self.fan_in() * self.output.width)).clamp(1, self.output.height)
    }

    /// Calls `work` with every tile: its first row of positions and the number of rows.
    fn tiles(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (height, rows) = (self.output.height, self.tile_rows());
        (0..height).step_by(rows).map(move |first| (first, rows.min(height - first)))
    }

    /// Writes the outputs of all samples.
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        outputs: &mut [f32],
        columns: &mut Columns,
    ) {
        let (weights, biases) = parameters.split_at(self.weights());
        let weights = MatRef::from_row_major_slice(weights, self.output.channels, self.fan_in());
        let images = inputs.chunks_exact(self.input.features());
        for (image, outputs) in images.zip(outputs.chunks_exact_mut(self.output.features())) {
            if self.has_bias {
                for (plane, &bias) in outputs.chunks_exact_mut(self.output.pixels()).zip(biases) {
                    plane.fill(bias);
                }
            }
            let accumulate = if self.has_bias { Accum::Add } else { Accum::Replace };
            for (first, rows) in self.tiles() {
                self.gather(image, first, rows, &mut columns.inputs);
                let count = rows * self.output.width;
                let gathered = MatRef::from_row_major_slice(&columns.inputs, self.fan_in(), count);
                let outputs = MatMut::from_row_major_slice_mut(
                    &mut *outputs,
                    self.output.channels,
                    self.output.pixels(),
                );
                let outputs = outputs.subcols_mut(first * self.output.width, count);
                matmul(outputs, accumulate, weights, gathered, 1.0, Par::Seq);
            }
        }
    }

    /// Writes the gradient of the parameters, and that of the inputs if it is asked for.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        out_gradient: &[f32],
        gradient: &mut [f32],
        mut in_gradient: Option<&mut [f32]>,
        columns: &mut Columns,
    ) {
        let (channels, pixels) = (self.output.channels, self.output.pixels());
        let weights = MatRef::from_row_major_slice(&parameters[..self.weights()], channels, self.fan_in());
        let (weight_gradient, bias_gradient) = gradient.split_at_mut(self.weights());
        let mut accumulate = Accum::Replace;
        bias_gradient.fill(0.0);
        let images = inputs.chunks_exact(self.input.features());
        let samples = images.zip(out_gradient.chunks_exact(self.output.features()));
        for (sample, (image, out_gradient)) in samples.enumerate() {
            for (bias, plane) in bias_gradient.iter_mut().zip(out_gradient.chunks_exact(pixels)) {
                *bias += sum::of(plane);
            }
            let out_gradient = MatRef::from_row_major_slice(out_gradient, channels, pixels);
            let mut in_gradient = in_gradient.as_deref_mut().map(|all| {
                let size = self.input.features();
                let one = &mut all[sample * size..(sample + 1) * size];
                one.fill(0.0);
                one
            });
            for (first, rows) in self.tiles() {
                let count = rows * self.output.width;
                let out_gradient = out_gradient.subcols(first * self.output.width, count);
                self.gather(image, first, rows, &mut columns.inputs);
                let gathered = MatRef::from_row_major_slice(&columns.inputs, self.fan_in(), count);
                let weights_out =
                    MatMut::from_row_major_slice_mut(&mut *weight_gradient, channels, self.fan_in());
                matmul(weights_out, accumulate, out_gradient, gathered.transpose(), 1.0, Par::Seq);
                accumulate = Accum::Add;
                if let Some(in_gradient) = &mut in_gradient {
                    columns.gradient.resize(self.fan_in() * count, 0.0);
                    let spread =
                        MatMut::from_row_major_slice_mut(&mut columns.gradient, self.fan_in(), count);
                    matmul(spread, Accum::Replace, weights.transpose(), out_gradient, 1.0, Par::Seq);
                    self.scatter(&columns.gradient, first, rows, in_gradient);
                }
            }
        }
    }

    /// Writes the columns of `X'` for some rows of positions: row `(c, u, v)` after row.
    fn gather(&self, image: &[f32], first: usize, rows: usize, columns: &mut Vec<f32>) {
        columns.resize(self.fan_in() * rows * self.output.width, 0.0);
        let mut lines = columns.chunks_exact_mut(self.output.width);
        for plane in image.chunks_exact(self.input.pixels()) {
            for (u, v) in (0..self.kernel * self.kernel).map(|at| (at / self.kernel, at % self.kernel)) {
                let inside = self.inside(v);
                for (row, line) in (first..first + rows).zip(&mut lines) {
                    let Some(pixels) = self.line(plane, row, u) else {
                        line.fill(0.0);
                        continue;
                    };
                    line[..inside.start].fill(0.0);
                    line[inside.end..].fill(0.0);
                    if inside.is_empty() {
                        continue;
                    }
                    let from = inside.start * self.stride + v - self.padding;
                    let line = &mut line[inside.clone()];
                    if self.stride == 1 {
                        line.copy_from_slice(&pixels[from..from + line.len()]);
                    } else {
                        let pixels = pixels[from..].iter().step_by(self.stride);
                        line.iter_mut().zip(pixels).for_each(|(to, &pixel)| *to = pixel);
                    }
                }
            }
        }
    }

    /// Adds `∂X'` to the pixels that [`gather`](Self::gather) reads.
    fn scatter(&self, columns: &[f32], first: usize, rows: usize, in_gradient: &mut [f32]) {
        let mut lines = columns.chunks_exact(self.output.width);
        for plane in in_gradient.chunks_exact_mut(self.input.pixels()) {
            for (u, v) in (0..self.kernel * self.kernel).map(|at| (at / self.kernel, at % self.kernel)) {
                let inside = self.inside(v);
                for (row, line) in (first..first + rows).zip(&mut lines) {
                    let Some(start) = self.line_start(row, u).filter(|_| !inside.is_empty()) else {
                        continue;
                    };
                    let from = start + inside.start * self.stride + v - self.padding;
                    let line = &line[inside.clone()];
                    if self.stride == 1 {
                        let pixels = &mut plane[from..from + line.len()];
                        pixels.iter_mut().zip(line).for_each(|(pixel, &value)| *pixel += value);
                    } else {
                        let pixels = plane[from..].iter_mut().step_by(self.stride);
                        pixels.zip(line).for_each(|(pixel, &value)| *pixel += value);
                    }
                }
            }
        }
    }

    /// The positions of a row at which column `v` of the kernel lies inside of the image.
    fn inside(&self, v: usize) -> std::ops::Range<usize> {
        // s·j + v − p from 0 to W − 1
        let start = self.padding.saturating_sub(v).div_ceil(self.stride).min(self.output.width);
        let end = (self.input.width + self.padding).saturating_sub(v).div_ceil(self.stride);
        start..end.clamp(start, self.output.width)
    }

    /// Where the image's row under row `u` of the kernel begins in its plane; `None` outside of the image.
    fn line_start(&self, row: usize, u: usize) -> Option<usize> {
        let row = (row * self.stride + u).checked_sub(self.padding)?;
        (row < self.input.height).then_some(row * self.input.width)
    }

    fn line<'a>(&self, plane: &'a [f32], row: usize, u: usize) -> Option<&'a [f32]> {
        let start = self.line_start(row, u)?;
        Some(&plane[start..start + self.input.width])
    }
}
