//! Approximate message passing: a sparse vector from fewer noisy measurements.
//!
//! From `y = A·v + noise` with the [projection](Projection) `A`, `s × d`:
//!
//! ```text
//! τ_t = ‖z_t‖/√s,     v_{t+1} = soft(v_t + Aᵀz_t, α·τ_t),     z_{t+1} = y − A·v_{t+1} + z_t·‖v_{t+1}‖₀/s
//! ```
//!
//! from `v_0 = 0` and `z_0 = y`, with `soft(x, θ) = sign(x)·max(|x| − θ, 0)`. The factor `α` is the minimax one for `s/d`, which recovers
//! the largest number of values without noise. The last term keeps the errors of `v_t + Aᵀz_t` nearly Gaussian, with the standard
//! deviation `τ_t`.
//!
//! That is proved for matrices with independent entries. For the projection here, tests compare it with such matrices.
//!
//! # Citations
//! Donoho, Maleki, Montanari, *Message-passing algorithms for compressed sensing*, PNAS 106 (2009). Bayati, Montanari, *The dynamics of
//! message passing on dense graphs, with applications to compressed sensing*, IEEE Trans. Inf. Theory 57 (2011).

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use crate::error::{UplinkError, require, require_count};
use crate::projection::{LANES, Projection};
use crate::walsh;

/// The energy of the residual, relative to that of the measurements, at which a vector is recovered within the precision of `f32`.
const EXACT: f32 = 1e-12;

/// Recovery by approximate message passing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amp {
    iterations: u32,
    tolerance: f32,
}

/// A recovered vector.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovered {
    /// One value for each parameter.
    pub vector: Vec<f32>,
    /// Number of iterations until it converged, or the maximum.
    pub iterations: u32,
}

impl Amp {
    /// The largest number of iterations.
    pub const MAX_ITERATIONS: u32 = 100_000;

    /// At most `iterations` iterations, from 1 to [`MAX_ITERATIONS`](Self::MAX_ITERATIONS). They stop when the energy of the residual
    /// changes by less than its `tolerance`th part in an iteration; `tolerance` is from 0 to 1.
    pub fn new(iterations: u32, tolerance: f64) -> Result<Self, UplinkError> {
        let holds = (1..=Self::MAX_ITERATIONS).contains(&iterations);
        require(holds, "the number of iterations", "between 1 and 100000", iterations.into())?;
        require((0.0..=1.0).contains(&tolerance), "the tolerance", "between 0 and 1", tolerance)?;
        Ok(Self { iterations, tolerance: tolerance as f32 })
    }

    /// Recovers a vector from measurements in the order of [`Projection::project`]. All of them are finite.
    pub fn recover(&self, projection: &Projection, measured: &[f32]) -> Result<Recovered, UplinkError> {
        require_count("measurements", projection.measurements(), measured.len())?;
        let mut received = vec![0.0; projection.size()];
        projection.rows().iter().zip(measured).for_each(|(&row, value)| received[row as usize] = *value);
        Ok(self.recover_rows(projection, &received))
    }

    /// [`recover`](Self::recover) from measurements at the rows of the transform, with 0 at the other rows.
    pub(crate) fn recover_rows(&self, projection: &Projection, received: &[f32]) -> Recovered {
        let (size, parameters) = (projection.size(), projection.parameters());
        let (mut residual, mut image) = (received.to_vec(), vec![0.0; size]);
        let mut vector = vec![0.0; parameters];
        let iterations = pulp::Arch::new().dispatch(Iterations {
            limits: *self,
            measurements: projection.measurements() as f32,
            factor: threshold_factor(projection.measurements() as f64 / parameters as f64) as f32,
            weights: projection.weights(),
            received,
            residual: &mut residual,
            image: &mut image,
            vector: &mut vector,
        });
        vector.iter_mut().zip(projection.signs()).for_each(|(value, sign)| *value *= sign);
        Recovered { vector, iterations }
    }
}

/// `α`, the minimax threshold in standard deviations for `share = s/d`: the place of the maximum of [`recoverable`].
fn threshold_factor(share: f64) -> f64 {
    let share = share.min(1.0);
    let (mut low, mut high) = (0.0, 8.0);
    for _ in 0..60 {
        let third = (high - low) / 3.0;
        match recoverable(share, low + third) < recoverable(share, high - third) {
            true => low += third,
            false => high -= third,
        }
    }
    0.5 * (low + high)
}

/// Number of values, per measurement, up to which the threshold factor `alpha` recovers a vector without noise.
fn recoverable(share: f64, alpha: f64) -> f64 {
    let density = (-0.5 * alpha * alpha).exp() / (2.0 * PI).sqrt();
    // The mean squared error of a value 0, in units of the noise.
    let of_zero = (1.0 + alpha * alpha) * libm::erfc(alpha * FRAC_1_SQRT_2) - 2.0 * alpha * density;
    (1.0 - of_zero / share) / (1.0 + alpha * alpha - of_zero)
}

/// The iterations, on the vector with flipped signs: soft thresholds do not depend on signs.
struct Iterations<'a> {
    limits: Amp,
    measurements: f32,
    factor: f32,
    weights: &'a [f32],
    received: &'a [f32],
    residual: &'a mut [f32],
    image: &'a mut [f32],
    vector: &'a mut [f32],
}

impl pulp::WithSimd for Iterations<'_> {
    type Output = u32;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> u32 {
        let Self { limits, measurements, factor, weights, received, residual, image, vector } = self;
        let weight = measurements.sqrt().recip();
        let all = squares(received);
        let mut energy = all;
        for iteration in 1..=limits.iterations {
            if energy <= EXACT * all {
                return iteration - 1;
            }
            image.copy_from_slice(residual);
            walsh::transform(image);
            let (inner, padding) = image.split_at_mut(vector.len());
            let kept = shrink(vector, inner, weight, factor * (energy / measurements).sqrt());
            padding.fill(0.0);
            walsh::transform(image);
            let before = energy;
            energy = update(residual, received, image, weights, kept / measurements);
            if (before - energy).abs() <= limits.tolerance * before {
                return iteration;
            }
        }
        limits.iterations
    }
}

/// The sum of squares.
#[inline(always)]
fn squares(values: &[f32]) -> f32 {
    let mut sums = [0.0; LANES];
    let (blocks, last) = values.as_chunks::<LANES>();
    for block in blocks {
        for lane in 0..LANES {
            sums[lane] += block[lane] * block[lane];
        }
    }
    let mut sum: f32 = sums.iter().sum();
    for value in last {
        sum += value * value;
    }
    sum
}

/// Replaces `vector` by `soft(vector + weight·image, threshold)` and copies it to `image`. Returns the number of values that are not 0.
#[inline(always)]
fn shrink(vector: &mut [f32], image: &mut [f32], weight: f32, threshold: f32) -> f32 {
    let mut counts = [0.0; LANES];
    let (blocks, last) = vector.as_chunks_mut::<LANES>();
    let (of_blocks, of_last) = image.as_chunks_mut::<LANES>();
    for (block, image) in blocks.iter_mut().zip(of_blocks) {
        for lane in 0..LANES {
            let value = soft(block[lane] + weight * image[lane], threshold);
            counts[lane] += if value == 0.0 { 0.0 } else { 1.0_f32 };
            block[lane] = value;
            image[lane] = value;
        }
    }
    let mut count: f32 = counts.iter().sum();
    for (value, image) in last.iter_mut().zip(of_last) {
        *value = soft(*value + weight * *image, threshold);
        count += if *value == 0.0 { 0.0 } else { 1.0 };
        *image = *value;
    }
    count
}

#[inline(always)]
fn soft(value: f32, threshold: f32) -> f32 {
    (value.abs() - threshold).max(0.0).copysign(value)
}

/// Replaces `residual` by `received − weights·image + onsager·residual`. Returns the sum of its squares.
#[inline(always)]
fn update(residual: &mut [f32], received: &[f32], image: &[f32], weights: &[f32], onsager: f32) -> f32 {
    let mut sums = [0.0; LANES];
    let (blocks, last) = residual.as_chunks_mut::<LANES>();
    let (received, last_received) = received.as_chunks::<LANES>();
    let (image, last_image) = image.as_chunks::<LANES>();
    let (weights, last_weights) = weights.as_chunks::<LANES>();
    for (((block, received), image), weights) in blocks.iter_mut().zip(received).zip(image).zip(weights) {
        for lane in 0..LANES {
            block[lane] = received[lane] - weights[lane] * image[lane] + onsager * block[lane];
            sums[lane] += block[lane] * block[lane];
        }
    }
    let mut sum: f32 = sums.iter().sum();
    for (((value, received), image), weight) in
        last.iter_mut().zip(last_received).zip(last_image).zip(last_weights)
    {
        *value = received - weight * image + onsager * *value;
        sum += *value * *value;
    }
    sum
}

#[cfg(test)]
mod tests {
    use floras_core::random::{Purpose, StreamName};

    use super::*;

    /// Normal numbers of a stream of their own.
    fn normals(trial: u16, count: usize) -> Vec<f64> {
        let mut values = vec![0.0_f32; count];
        StreamName::new(9, Purpose::BENCHMARK).trial(trial).normals().fill(0, &mut values);
        values.into_iter().map(f64::from).collect()
    }

    /// A vector with `count` normal values at random places.
    fn sparse(trial: u16, parameters: usize, count: usize) -> Vec<f64> {
        let mut order: Vec<usize> = (0..parameters).collect();
        let keys = normals(trial, parameters);
        order.sort_by(|a, b| keys[*a].total_cmp(&keys[*b]));
        let values = normals(trial + 1000, count);
        let mut vector = vec![0.0; parameters];
        order.into_iter().zip(values).for_each(|(place, value)| vector[place] = value);
        vector
    }

    fn projection(trial: u16, parameters: usize, measurements: usize) -> Projection {
        let mut stream = StreamName::new(9, Purpose::PROJECTION).trial(trial).stream();
        Projection::draw(&mut stream, parameters, measurements).unwrap()
    }

    fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
        matrix.iter().map(|row| row.iter().zip(vector).map(|(a, x)| a * x).sum()).collect()
    }

    fn as_f32(values: &[f64]) -> Vec<f32> {
        values.iter().map(|x| *x as f32).collect()
    }

    /// `‖found − vector‖²/‖vector‖²`
    fn relative_error(found: &[f64], vector: &[f64]) -> f64 {
        let square = |values: &mut dyn Iterator<Item = f64>| values.map(|x| x * x).sum::<f64>();
        square(&mut found.iter().zip(vector).map(|(a, b)| a - b)) / square(&mut vector.iter().copied())
    }

    /// The iterations as they are in the papers, with any matrix, in double precision.
    fn textbook(matrix: &[Vec<f64>], received: &[f64], iterations: u32) -> Vec<f64> {
        let (measurements, parameters) = (matrix.len() as f64, matrix[0].len());
        let alpha = threshold_factor(measurements / parameters as f64);
        let (mut vector, mut residual) = (vec![0.0; parameters], received.to_vec());
        for _ in 0..iterations {
            let tau = (residual.iter().map(|z| z * z).sum::<f64>() / measurements).sqrt();
            for (place, x) in vector.iter_mut().enumerate() {
                let sum: f64 = matrix.iter().zip(&residual).map(|(row, z)| row[place] * z).sum();
                let noisy = *x + sum;
                *x = noisy.signum() * (noisy.abs() - alpha * tau).max(0.0);
            }
            let kept = vector.iter().filter(|x| **x != 0.0).count() as f64;
            let image = times(matrix, &vector);
            for ((z, y), image) in residual.iter_mut().zip(received).zip(image) {
                *z = y - image + *z * kept / measurements;
            }
        }
        vector
    }

    fn gaussian_matrix(trial: u16, parameters: usize, measurements: usize) -> Vec<Vec<f64>> {
        let entries = normals(trial + 2000, parameters * measurements);
        let scale = (measurements as f64).powf(-0.5);
        entries.chunks(parameters).map(|row| row.iter().map(|x| scale * x).collect()).collect()
    }

    /// The largest share is that of the phase transition of Donoho and Tanner for the cross-polytope, 0.386 at `s/d = ½`.
    #[test]
    fn thresholds_are_minimax() {
        let best = |share| recoverable(share, threshold_factor(share));
        assert!((best(0.5) - 0.386).abs() < 1e-3, "{}", best(0.5));
        for share in [0.1, 0.5, 0.9] {
            let alpha = threshold_factor(share);
            assert!([-0.01, 0.01].iter().all(|step| recoverable(share, alpha + step) < best(share)));
        }
    }

    #[test]
    fn fast_iterations_are_the_textbooks() {
        let projection = projection(0, 150, 70);
        let unit = |place: usize| (0..150).map(|i| f32::from(u8::from(i == place))).collect::<Vec<_>>();
        let columns: Vec<Vec<f32>> =
            (0..150).map(|place| projection.project(&unit(place)).unwrap()).collect();
        let matrix: Vec<Vec<f64>> =
            (0..70).map(|row| columns.iter().map(|column| f64::from(column[row])).collect()).collect();
        let received: Vec<f64> = times(&matrix, &sparse(0, 150, 12))
            .iter()
            .zip(normals(1, 70))
            .map(|(y, n)| y + 0.1 * n)
            .collect();
        for iterations in [1, 5, 25] {
            let slow = textbook(&matrix, &received, iterations);
            let fast = Amp::new(iterations, 0.0).unwrap().recover(&projection, &as_f32(&received)).unwrap();
            assert_eq!(fast.iterations, iterations);
            assert!(fast.vector.iter().zip(&slow).all(|(a, b)| (f64::from(*a) - b).abs() < 1e-4));
        }
    }

    /// Ten random problems for each matrix, without noise: below the phase transition of 0.386 both recover every vector, above it both
    /// fail. With noise of 10% per measurement both have the same error within 15%; the mean of ten has a standard error of about 3%.
    #[test]
    fn transforms_recover_as_gaussian_matrices_do() {
        let (parameters, measurements) = (512, 256);
        let errors = |kept: usize, noise: f64| {
            let of_trial = |trial: u16| {
                let vector = sparse(trial, parameters, kept);
                let add = |image: Vec<f64>| -> Vec<f64> {
                    image
                        .iter()
                        .zip(normals(trial + 3000, measurements))
                        .map(|(y, n)| y + noise * n)
                        .collect()
                };
                let matrix = gaussian_matrix(trial, parameters, measurements);
                let dense = textbook(&matrix, &add(times(&matrix, &vector)), 100);
                let projection = projection(trial, parameters, measurements);
                let image = projection.project(&as_f32(&vector)).unwrap();
                let received = as_f32(&add(image.iter().map(|y| f64::from(*y)).collect()));
                let fast = Amp::new(100, 0.0).unwrap().recover(&projection, &received).unwrap().vector;
                let fast: Vec<f64> = fast.into_iter().map(f64::from).collect();
                [relative_error(&dense, &vector), relative_error(&fast, &vector)]
            };
            (0..10).map(of_trial).collect::<Vec<_>>()
        };
        assert!(errors(64, 0.0).iter().flatten().all(|error| *error < 1e-4), "{:?}", errors(64, 0.0));
        assert!(errors(166, 0.0).iter().flatten().all(|error| *error > 1e-2), "{:?}", errors(166, 0.0));
        for kept in [40, 150] {
            let errors = errors(kept, 0.1);
            let mean = |matrix: usize| errors.iter().map(|error| error[matrix]).sum::<f64>() / 10.0;
            let ratio = mean(1) / mean(0);
            assert!((0.6..1.15).contains(&ratio), "{kept}: {} and {}", mean(0), mean(1));
        }
    }

    #[test]
    fn iterations_stop_when_nothing_changes() {
        let projection = projection(0, 400, 200);
        let vector = as_f32(&sparse(0, 400, 20));
        let measured = projection.project(&vector).unwrap();
        let found = Amp::new(1000, 1e-4).unwrap().recover(&projection, &measured).unwrap();
        assert!(found.iterations < 100, "{}", found.iterations);
        assert!(found.vector.iter().zip(&vector).all(|(a, b)| (a - b).abs() < 1e-3));
        let nothing = Amp::new(1000, 0.0).unwrap().recover(&projection, &[0.0; 200]).unwrap();
        assert_eq!(nothing, Recovered { vector: vec![0.0; 400], iterations: 0 });
        for (iterations, tolerance) in [(0, 0.0), (200_000, 0.0), (1, -1.0), (1, f64::NAN)] {
            assert!(Amp::new(iterations, tolerance).is_err());
        }
        assert!(Amp::new(1, 0.0).unwrap().recover(&projection, &[0.0; 3]).is_err());
    }
}
