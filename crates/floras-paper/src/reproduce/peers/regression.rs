//! Generated data of linear regressions, and the small linear algebra that they need.

use floras_core::random::StreamName;

use super::{FEATURES, LABEL_NOISE};

/// Steps of the power method. Eigenvalues 1% apart are separated to a relative error of 10⁻¹⁷.
const POWER_STEPS: u32 = 2000;

/// A symmetric matrix, row by row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Symmetric {
    size: usize,
    entries: Vec<f64>,
}

impl Symmetric {
    pub(super) fn zero(size: usize) -> Self {
        Self { size, entries: vec![0.0; size * size] }
    }

    /// Adds `factor` times the product of a vector with itself.
    pub(super) fn add_square(&mut self, vector: &[f32], factor: f64) {
        for (row, &left) in self.entries.chunks_mut(self.size).zip(vector) {
            for (entry, &right) in row.iter_mut().zip(vector) {
                *entry += factor * f64::from(left) * f64::from(right);
            }
        }
    }

    /// Adds `factor` times another matrix of the same size.
    pub(super) fn add(&mut self, other: &Self, factor: f64) {
        self.entries.iter_mut().zip(&other.entries).for_each(|(entry, other)| *entry += factor * other);
    }

    /// Adds `value` to the diagonal.
    pub(super) fn add_diagonal(&mut self, value: f64) {
        self.entries.iter_mut().step_by(self.size + 1).for_each(|entry| *entry += value);
    }

    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        self.entries.chunks(self.size).map(|row| dot(row, vector)).collect()
    }

    /// The smallest and the largest eigenvalue of a positive definite matrix, by the power method.
    pub(super) fn extremes(&self) -> (f64, f64) {
        let largest = self.dominant();
        let mut rest = Self::zero(self.size);
        rest.add(self, -1.0);
        rest.add_diagonal(largest);
        (largest - rest.dominant(), largest)
    }

    /// The largest eigenvalue of a positive semidefinite matrix.
    fn dominant(&self) -> f64 {
        // A start without symmetry is not orthogonal to the eigenvector by accident.
        let mut vector: Vec<f64> = (1..=self.size).map(|place| 1.0 + (place as f64).sqrt()).collect();
        let mut value = 0.0;
        for _ in 0..POWER_STEPS {
            let next = self.times(&vector);
            value = norm(&next);
            if value == 0.0 {
                return 0.0;
            }
            vector = next.into_iter().map(|entry| entry / value).collect();
        }
        value
    }

    /// The solution `w` of `self·w = right` for a positive definite matrix, by elimination.
    pub(super) fn solve(&self, right: &[f64]) -> Vec<f64> {
        let size = self.size;
        let (mut left, mut solution) = (self.entries.clone(), right.to_vec());
        for pivot in 0..size {
            for row in (0..size).filter(|&row| row != pivot) {
                let factor = left[row * size + pivot] / left[pivot * size + pivot];
                for column in 0..size {
                    left[row * size + column] -= factor * left[pivot * size + column];
                }
                solution[row] -= factor * solution[pivot];
            }
        }
        solution.iter().enumerate().map(|(row, value)| value / left[row * size + row]).collect()
    }
}

/// Samples `(x, y)` with standard normal features and `y = wᵀx` plus normal noise.
pub(super) struct Regression {
    pub(super) features: Vec<Vec<f32>>,
    pub(super) labels: Vec<f64>,
}

impl Regression {
    /// `samples` samples of trial `trial`.
    pub(super) fn generate(seed: u64, trial: u16, samples: u32, weights: &[f64], noise_std: f64) -> Self {
        let name = |purpose, sample| StreamName::new(seed, purpose).trial(trial).client(sample);
        let features: Vec<Vec<f32>> = (0..samples)
            .map(|sample| {
                let mut row = vec![0.0; weights.len()];
                name(FEATURES, sample).normals().fill(0, &mut row);
                row
            })
            .collect();
        let label = |(sample, row): (u32, &Vec<f32>)| {
            let mut noise = [0.0];
            name(LABEL_NOISE, sample).normals().fill(0, &mut noise);
            let exact: f64 = row.iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum();
            exact + noise_std * f64::from(noise[0])
        };
        let labels = (0..).zip(&features).map(label).collect();
        Self { features, labels }
    }

    /// The mean of `x·xᵀ` and the mean of `x·y` over some samples.
    pub(super) fn moments(&self, samples: std::ops::Range<usize>) -> (Symmetric, Vec<f64>) {
        let size = self.features.first().map_or(0, Vec::len);
        let (mut square, mut cross) = (Symmetric::zero(size), vec![0.0; size]);
        let share = 1.0 / samples.len().max(1) as f64;
        for (row, label) in self.features[samples.clone()].iter().zip(&self.labels[samples]) {
            square.add_square(row, share);
            cross.iter_mut().zip(row).for_each(|(sum, x)| *sum += share * f64::from(*x) * label);
        }
        (square, cross)
    }
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

pub(super) fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The matrix [[2, 1], [1, 3]] has the eigenvalues (5 ± √5)/2 and the inverse [[3, −1], [−1, 2]]/5.
    fn example() -> Symmetric {
        Symmetric { size: 2, entries: vec![2.0, 1.0, 1.0, 3.0] }
    }

    #[test]
    fn eigenvalues_of_two_by_two_matrices() {
        let (smallest, largest) = example().extremes();
        assert!((smallest - (5.0 - 5.0_f64.sqrt()) / 2.0).abs() < 1e-12);
        assert!((largest - (5.0 + 5.0_f64.sqrt()) / 2.0).abs() < 1e-12);
    }

    #[test]
    fn solutions_of_two_by_two_systems() {
        let solution = example().solve(&[1.0, 2.0]);
        assert!((solution[0] - 0.2).abs() < 1e-12 && (solution[1] - 0.6).abs() < 1e-12, "{solution:?}");
    }

    /// Standard errors are 0.014 for squares, 0.01 for products and 0.002 for weights.
    #[test]
    fn generated_data_have_the_stated_moments() {
        let data = Regression::generate(1, 0, 10_000, &[1.0, -2.0], 0.2);
        let (square, cross) = data.moments(0..10_000);
        let expected = [1.0, 0.0, 0.0, 1.0];
        assert!(square.entries.iter().zip(expected).all(|(found, entry)| (found - entry).abs() < 0.06));
        let weights = square.solve(&cross);
        assert!((weights[0] - 1.0).abs() < 0.01 && (weights[1] + 2.0).abs() < 0.01, "{weights:?}");
    }
}
