//! A public random projection of updates to fewer numbers, computed by a fast transform.
//!
//! ```text
//! A = S·H·D/√s,       s × d
//! ```
//!
//! `D` flips the signs of the `d` parameters at random, `H` is the [Walsh–Hadamard matrix](crate::SequenceSet) of the next power of two
//! `n ≥ max(d, s)`, and `S` takes `s` of its rows at random. Every column has norm 1, as those of a matrix with independent entries
//! `N(0, 1/s)` have in the mean. Signs and rows are drawn from a public stream, which all clients and the base station have.
//!
//! # Citations
//! Ailon, Chazelle, *The fast Johnson–Lindenstrauss transform and approximate nearest neighbors*, SIAM J. Comput. 39 (2009). Do, Gan,
//! Nguyen, Tran, *Fast and efficient compressive sensing using structurally random matrices*, IEEE TSP 60 (2012).

use floras_core::random::Stream;
use rand::{Rng, RngExt};

use crate::error::{UplinkError, require, require_count};
use crate::walsh;

/// A random projection of `d` parameters to `s` measurements.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// The diagonal of `D`, with `d` entries ±1.
    signs: Vec<f32>,
    /// The `s` rows of `H`, in the order of the measurements.
    rows: Vec<u32>,
    /// `1/√s` for each of the `n` rows of `H` that is measured, 0 for the others.
    weights: Vec<f32>,
}

impl Projection {
    /// The largest number of parameters, and of measurements.
    pub const MAX_SIZE: usize = 1 << 28;

    /// Draws a projection of `parameters` parameters to `measurements` numbers; both are from 1 to [`MAX_SIZE`](Self::MAX_SIZE).
    pub fn draw(stream: &mut Stream, parameters: usize, measurements: usize) -> Result<Self, UplinkError> {
        let holds = |size: usize| (1..=Self::MAX_SIZE).contains(&size);
        let allowed = "between 1 and 268435456";
        require(holds(parameters), "the number of parameters", allowed, parameters as f64)?;
        require(holds(measurements), "the number of measurements", allowed, measurements as f64)?;
        let size = parameters.max(measurements).next_power_of_two();
        let mut signs = Vec::with_capacity(parameters.next_multiple_of(32));
        while signs.len() < parameters {
            let word = stream.next_u32();
            signs.extend((0..32).map(|bit| if word >> bit & 1 == 0 { 1.0 } else { -1.0 }));
        }
        signs.truncate(parameters);
        let mut rows: Vec<u32> = (0..size as u32).collect();
        for place in 0..measurements {
            rows.swap(place, stream.random_range(place..size));
        }
        rows.truncate(measurements);
        let mut weights = vec![0.0; size];
        let weight = (measurements as f64).powf(-0.5) as f32;
        rows.iter().for_each(|&row| weights[row as usize] = weight);
        Ok(Self { signs, rows, weights })
    }

    /// `d`, the number of parameters.
    pub fn parameters(&self) -> usize {
        self.signs.len()
    }

    /// `s`, the number of measurements.
    pub fn measurements(&self) -> usize {
        self.rows.len()
    }

    /// `A·vector`: the measurements of a vector with one value for each parameter.
    pub fn project(&self, vector: &[f32]) -> Result<Vec<f32>, UplinkError> {
        require_count("parameters of a projected vector", self.parameters(), vector.len())?;
        let (image, _) = self.project_rows(vector);
        Ok(self.rows.iter().map(|&row| image[row as usize]).collect())
    }

    /// The measurements of a vector at the [`rows`](Self::rows) of the transform, and the sum of their squares.
    fn project_rows(&self, vector: &[f32]) -> (Vec<f32>, f32) {
        let mut image: Vec<f32> = vector.iter().zip(&self.signs).map(|(value, sign)| sign * value).collect();
        image.resize(self.size(), 0.0);
        let square = pulp::Arch::new().dispatch(Measure { projection: self, image: &mut image });
        (image, square)
    }

    /// `n`, the size of the transform.
    pub(crate) fn size(&self) -> usize {
        self.weights.len()
    }

    /// The rows of the transform, in the order of the measurements.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The diagonal of `D`.
    pub(crate) fn signs(&self) -> &[f32] {
        &self.signs
    }

    /// `1/√s` for rows that are measured, 0 for the others.
    pub(crate) fn weights(&self) -> &[f32] {
        &self.weights
    }

    /// Replaces values whose signs are flipped, with 0 at the places beyond the parameters, by their measurements: at the
    /// [`rows`](Self::rows), with 0 at the other places. Returns the sum of their squares. To be inlined into a kernel that runs under
    /// `pulp`'s dispatch.
    #[inline(always)]
    pub(crate) fn measure(&self, image: &mut [f32]) -> f32 {
        walsh::transform(image);
        let mut squares = [0.0; LANES];
        let (blocks, last) = image.as_chunks_mut::<LANES>();
        let (of_blocks, of_last) = self.weights.as_chunks::<LANES>();
        for (block, weights) in blocks.iter_mut().zip(of_blocks) {
            for lane in 0..LANES {
                block[lane] *= weights[lane];
                squares[lane] += block[lane] * block[lane];
            }
        }
        let mut sum: f32 = squares.iter().sum();
        for (value, weight) in last.iter_mut().zip(of_last) {
            *value *= weight;
            sum += *value * *value;
        }
        sum
    }
}

/// A call of [`Projection::measure`].
struct Measure<'a> {
    projection: &'a Projection,
    image: &'a mut [f32],
}

impl pulp::WithSimd for Measure<'_> {
    type Output = f32;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> f32 {
        self.projection.measure(self.image)
    }
}

/// Number of partial sums, which a vector unit adds at once. The order of additions does not depend on the unit.
pub(crate) const LANES: usize = 16;

#[cfg(test)]
mod tests {
    use floras_core::random::{Purpose, StreamName};

    use super::*;

    fn draw(parameters: usize, measurements: usize) -> Projection {
        let mut stream = StreamName::new(3, Purpose::PROJECTION).stream();
        Projection::draw(&mut stream, parameters, measurements).unwrap()
    }

    #[test]
    fn projections_are_the_stated_matrix() {
        for (parameters, measurements) in [(1, 1), (5, 3), (40, 17), (17, 40), (100, 128)] {
            let projection = draw(parameters, measurements);
            let scale = (measurements as f64).sqrt();
            let vector: Vec<f32> = (0..parameters).map(|i| (i * 7 % 11) as f32 - 5.0).collect();
            let direct = |&row: &u32| {
                let term = |(place, x): (usize, &f32)| {
                    walsh::sign(row as usize, place) * f64::from(x * projection.signs()[place])
                };
                vector.iter().enumerate().map(term).sum::<f64>() / scale
            };
            let expected: Vec<f64> = projection.rows().iter().map(direct).collect();
            let projected = projection.project(&vector).unwrap();
            assert_eq!(projected.len(), measurements);
            for (found, expected) in projected.iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 1e-4, "{found}, {expected}");
            }
            let square = projection.project_rows(&vector).1;
            let expected: f64 = expected.iter().map(|x| x * x).sum();
            assert!((f64::from(square) / expected - 1.0).abs() < 1e-5);
        }
    }

    /// The squared norm of a projected unit vector has mean 1 and variance at most `2/s`. The mean of 400 draws with `s = 64` has a
    /// standard error below 0.009; the test allows five.
    #[test]
    fn norms_are_kept_on_average() {
        let vector: Vec<f32> = (0..200).map(|i| ((i * i % 23) as f32 - 11.0) / 93.0).collect();
        let norm: f64 = vector.iter().map(|x| f64::from(x * x)).sum();
        let mut stream = StreamName::new(4, Purpose::PROJECTION).stream();
        let mean = (0..400).map(|_| {
            let projection = Projection::draw(&mut stream, 200, 64).unwrap();
            f64::from(projection.project_rows(&vector).1) / norm
        });
        let mean = mean.sum::<f64>() / 400.0;
        assert!((mean - 1.0).abs() < 0.045, "{mean}");
    }

    #[test]
    fn rows_are_distinct_and_sizes_checked() {
        let projection = draw(60, 64);
        let mut rows = projection.rows().to_vec();
        rows.sort_unstable();
        assert!(rows.iter().copied().eq(0..64));
        assert!(projection.signs().contains(&1.0) && projection.signs().contains(&-1.0));
        let mut stream = StreamName::new(3, Purpose::PROJECTION).stream();
        assert!(Projection::draw(&mut stream, 0, 1).is_err());
        assert!(Projection::draw(&mut stream, 1, 0).is_err());
        assert!(projection.project(&[0.0; 3]).is_err());
    }
}
