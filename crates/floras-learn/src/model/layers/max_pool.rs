//! Max pooling: the largest value of each square of pixels.
//!
//! ```text
//! y[c, i, j] = max_{u, v < k} x[c, k·i + u, k·j + v],     ∂x = ∂y at the first largest pixel of its square, else 0
//! ```
//!
//! `C × H × W` becomes `C × ⌊H/k⌋ × ⌊W/k⌋`; pixels beyond the last complete square have no effect.

use super::refused;
use crate::data::Shape;
use crate::error::LearnError;

/// A pooling layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct MaxPool {
    input: Shape,
    side: usize,
}

impl MaxPool {
    pub(super) fn new(input: Shape, side: usize) -> Result<Self, LearnError> {
        if side > input.height || side > input.width {
            return refused(format!(
                "a square of {side}x{side} pixels does not fit into an input of {input}"
            ));
        }
        Ok(Self { input, side })
    }

    pub(super) fn output(&self) -> Shape {
        let Shape { channels, height, width } = self.input;
        Shape::new(channels, height / self.side, width / self.side)
    }

    /// Writes the largest values, and their places in their planes.
    pub(super) fn forward(&self, inputs: &[f32], outputs: &mut [f32], places: &mut Vec<u32>) {
        let output = self.output();
        places.resize(outputs.len(), 0);
        let planes = inputs.chunks_exact(self.input.pixels());
        let outputs = outputs.chunks_exact_mut(output.pixels());
        let places = places.chunks_exact_mut(output.pixels());
        for ((plane, outputs), places) in planes.zip(outputs).zip(places) {
            let rows = outputs.chunks_exact_mut(output.width).zip(places.chunks_exact_mut(output.width));
            for (i, (outputs, places)) in rows.enumerate() {
                for (j, (output, place)) in outputs.iter_mut().zip(places).enumerate() {
                    let first = i * self.side * self.input.width + j * self.side;
                    let (mut largest, mut at) = (plane[first], first);
                    for u in 0..self.side {
                        let start = first + u * self.input.width;
                        for (v, &value) in plane[start..start + self.side].iter().enumerate() {
                            let is_larger = value > largest || value.is_nan();
                            largest = if is_larger { value } else { largest };
                            at = if is_larger { start + v } else { at };
                        }
                    }
                    (*output, *place) = (largest, at as u32);
                }
            }
        }
    }

    /// Writes the gradient of the inputs.
    pub(super) fn backward(&self, places: &[u32], out_gradient: &[f32], in_gradient: &mut [f32]) {
        in_gradient.fill(0.0);
        let pixels = self.output().pixels();
        let planes = in_gradient.chunks_exact_mut(self.input.pixels());
        for ((plane, places), gradient) in
            planes.zip(places.chunks_exact(pixels)).zip(out_gradient.chunks_exact(pixels))
        {
            for (&place, &gradient) in places.iter().zip(gradient) {
                plane[place as usize] = gradient;
            }
        }
    }
}
