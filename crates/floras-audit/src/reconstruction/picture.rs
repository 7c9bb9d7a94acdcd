//! From an update to a picture.
//!
//! For softmax regression the gradient of one sample `(x, y)` is an outer product, whatever the model:
//!
//! ```text
//! ∂(W, b) = (p − e_y) ⊗ (x, 1)
//! ```
//!
//! so the leading right singular vector of the `classes × (features + 1)` matrix is the sample, up to a factor. A sum of
//! several such gradients does not have rank one. Its row of class `c` is `Σ_k (p_k,c − 1[y_k = c])·(x_k, 1)`: minus the
//! samples of that class, plus a faint mean of all.
//!
//! # Citations
//! L. T. Phong et al., *Privacy-preserving deep learning via additively homomorphic encryption*, IEEE Transactions on
//! Information Forensics and Security 13(5), 2018, section 3.

use floras_sim::DataChoice;

/// Number of steps of the power method. If they do not suffice, two directions are equally strong and no picture is
/// recognisable.
const STEPS: usize = 300;

/// The size of a picture, and the mapping from features to pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Canvas {
    pub(super) width: usize,
    pub(super) height: usize,
    /// Whether the features are planes of red, green and blue instead of grey.
    colour: bool,
}

impl Canvas {
    /// `None` if the samples are not pictures.
    pub(super) fn of(set: &DataChoice) -> Option<Self> {
        let (side, colour) = set.picture()?;
        Some(Self { width: side, height: side, colour })
    }

    /// The brightness of every pixel.
    pub(super) fn brightness(self, features: &[f64]) -> Vec<f64> {
        let pixels = self.width * self.height;
        if !self.colour || features.len() < 3 * pixels {
            return features.to_vec();
        }
        // Luma of ITU-R BT.601.
        (0..pixels)
            .map(|at| {
                0.299 * features[at] + 0.587 * features[at + pixels] + 0.114 * features[at + 2 * pixels]
            })
            .collect()
    }
}

/// An update in the model's layout: the rows of `W`, one per class, then `b`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Update<'a> {
    pub(super) values: &'a [f32],
    pub(super) classes: usize,
}

impl Update<'_> {
    /// A class's row of the matrix, its bias last.
    fn row(&self, class: usize) -> impl Iterator<Item = f64> + '_ {
        let features = self.values.len() / self.classes - 1;
        let weights = &self.values[class * features..][..features];
        let bias = &self.values[self.classes * features + class];
        weights.iter().chain([bias]).map(|&value| f64::from(value))
    }

    /// The sample of a single gradient, up to a positive factor.
    pub(super) fn sample(&self) -> Vec<f64> {
        let rows: Vec<Vec<f64>> = (0..self.classes).map(|class| self.row(class).collect()).collect();
        let left = leading(&rows);
        let mut right = vec![0.0; rows.first().map_or(0, Vec::len)];
        for (row, weight) in rows.iter().zip(&left) {
            right.iter_mut().zip(row).for_each(|(sum, value)| *sum += weight * value);
        }
        correct_sign(&mut right);
        right.pop();
        right
    }

    /// The samples of one class from a sum of gradients, up to a positive factor.
    pub(super) fn samples_of(&self, class: usize) -> Vec<f64> {
        // An update is minus a gradient step, so the row of its own class contains a sample with negative sign.
        let mut row: Vec<f64> = self.row(class).map(|value| -value).collect();
        row.pop();
        row
    }
}

/// Corrects the sign of a picture, and so that of a channel estimate: `(x, 1)` has bias 1 and non-negative pixels, so the
/// right sign makes their sum positive.
fn correct_sign(sample: &mut [f64]) {
    if sample.iter().sum::<f64>() < 0.0 {
        sample.iter_mut().for_each(|value| *value = -*value);
    }
}

/// The leading left singular vector, by the power method on the Gram matrix of the rows.
fn leading(rows: &[Vec<f64>]) -> Vec<f64> {
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(x, y)| x * y).sum() };
    let products: Vec<Vec<f64>> =
        rows.iter().map(|row| rows.iter().map(|other| product(row, other)).collect()).collect();
    // The column of the longest row has a component in the leading direction.
    let longest = (0..rows.len()).max_by(|&a, &b| products[a][a].total_cmp(&products[b][b])).unwrap_or(0);
    let mut vector = products.get(longest).cloned().unwrap_or_default();
    for _ in 0..STEPS {
        let norm = product(&vector, &vector).sqrt();
        if norm == 0.0 || !norm.is_finite() {
            break;
        }
        vector.iter_mut().for_each(|value| *value /= norm);
        vector = products.iter().map(|row| product(row, &vector)).collect();
    }
    vector
}

/// Pearson's correlation; 0 if either side is constant.
pub(super) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let (mut covariance, mut square_a, mut square_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        covariance += a * b;
        square_a += a * a;
        square_b += b * b;
    }
    let scale = (square_a * square_b).sqrt();
    if scale > 0.0 { covariance / scale } else { 0.0 }
}

/// Values from 0 to 1 as grey.
pub(super) fn grey(values: &[f64]) -> Vec<u8> {
    values.iter().map(|value| (255.0 * value.clamp(0.0, 1.0)).round() as u8).collect()
}

/// Values of any scale as grey: the 2nd percentile is black, the 98th is white.
pub(super) fn stretched(values: &[f64]) -> Vec<u8> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| sorted.get((share * (sorted.len() as f64 - 1.0)).round() as usize).copied();
    let (low, high) = (at(0.02).unwrap_or(0.0), at(0.98).unwrap_or(0.0));
    let range = if high > low { high - low } else { 1.0 };
    grey(&values.iter().map(|value| (value - low) / range).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `(p − e_y) ⊗ (x, 1)` in the layout of the model.
    fn gradient(sample: &[f32], label: usize, classes: usize) -> Vec<f32> {
        let error = |class: usize| 1.0 / classes as f32 - f32::from(u8::from(class == label));
        let weights = (0..classes).flat_map(|class| sample.iter().map(move |x| error(class) * x));
        weights.chain((0..classes).map(error)).collect()
    }

    #[test]
    fn a_gradient_reveals_its_sample_without_its_sign() {
        let sample = [0.0, 0.25, 0.5, 1.0, 0.0, 0.75];
        let wanted = sample.map(f64::from);
        for sign in [1.0, -1.0] {
            let values: Vec<f32> = gradient(&sample, 2, 4).iter().map(|value| sign * value).collect();
            let found = Update { values: &values, classes: 4 }.sample();
            assert!(correlation(&found, &wanted) > 1.0 - 1e-12);
            assert!(found[3] > 0.0);
        }
    }

    /// By hand: two samples of classes 0 and 1 of two, so that row 0 is −½·x_0 + ½·x_1.
    #[test]
    fn a_sum_shows_the_mean_of_a_class() {
        let (first, second) = ([1.0, 0.0, 1.0], [0.0, 1.0, 1.0]);
        let sum: Vec<f32> =
            gradient(&first, 0, 2).iter().zip(gradient(&second, 1, 2)).map(|(a, b)| a + b).collect();
        let update = Update { values: &sum, classes: 2 };
        assert_eq!(update.samples_of(0), [0.5, -0.5, 0.0]);
        assert_eq!(update.samples_of(1), [-0.5, 0.5, 0.0]);
    }

    /// Rows (3, 0) and (0, 2): the singular values are 3 and 2, and the leading direction is the first axis.
    #[test]
    fn the_power_method_finds_the_larger_singular_value() {
        let left = leading(&[vec![3.0, 0.0], vec![0.0, 2.0]]);
        assert!((left[0].abs() - 9.0).abs() < 1e-12 && left[1].abs() < 1e-12, "{left:?}");
        assert_eq!(leading(&[vec![0.0, 0.0], vec![0.0, 0.0]]), [0.0, 0.0]);
    }

    #[test]
    fn correlation_and_grey_do_what_they_say() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[-2.0, -4.0, -6.0]) + 1.0).abs() < 1e-12);
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
        assert_eq!(grey(&[-0.1, 0.0, 0.5, 1.0, 1.1]), [0, 0, 128, 255, 255]);
        let ramp: Vec<f64> = (0..101).map(f64::from).collect();
        let shown = stretched(&ramp);
        assert_eq!((shown[2], shown[50], shown[98], shown[100]), (0, 128, 255, 255));
        assert_eq!(stretched(&[4.0; 3]), [0; 3]);
        assert!(stretched(&[]).is_empty());
    }

    #[test]
    fn colours_become_their_brightness() {
        let canvas = Canvas { width: 1, height: 1, colour: true };
        assert!((canvas.brightness(&[1.0, 1.0, 1.0])[0] - 1.0).abs() < 1e-12);
        assert!((canvas.brightness(&[0.0, 1.0, 0.0])[0] - 0.587).abs() < 1e-12);
        assert!(Canvas::of(&DataChoice::Synthetic { features: 4, classes: 2, separation: 1.0 }).is_none());
    }
}
