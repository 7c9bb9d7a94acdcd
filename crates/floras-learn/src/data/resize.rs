//! Bicubic reduction of square images, antialiased as MATLAB's `imresize` does it.
//!
//! With `s` = new side / old side, output pixel `j` lies at `u_j = (j + ½)/s − ½` of the input, and
//!
//! ```text
//! w_ji = k(s·(u_j − i)) / Σ_i' k(s·(u_j − i')),      Y = W·X·Wᵀ
//!
//!         1.5|x|³ − 2.5|x|² + 1               |x| ≤ 1
//! k(x) = −0.5|x|³ + 2.5|x|² − 4|x| + 2    1 < |x| ≤ 2          (Keys 1981, eq. 15: a = −½)
//!         0                                   otherwise
//! ```
//!
//! The kernel is stretched by 1/s, so that it also removes frequencies above those of the coarser grid. Outside the
//! image, the pixel at the border counts, as in older releases of MATLAB; newer ones mirror the image there.
//! The result can be slightly outside the range of the input.
//!
//! # Citations
//!
//! R. Keys, "Cubic convolution interpolation for digital image processing", IEEE Trans. ASSP 29(6), 1981.

/// The weights that reduce an image of `from`×`from` pixels to one of `to`×`to`.
pub(super) struct Reduction {
    from: usize,
    rows: Vec<Weights>,
}

/// A row of `W` without the zeros around it.
struct Weights {
    first: usize,
    values: Vec<f64>,
}

impl Reduction {
    /// Needs `0 < to ≤ from`.
    pub(super) fn new(from: usize, to: usize) -> Self {
        Self { from, rows: (0..to).map(|row| Weights::new(row, from, to)).collect() }
    }

    /// Appends the reduced image, row after row. It is computed in double precision.
    pub(super) fn apply(&self, image: &[f64], reduced: &mut Vec<f32>) {
        let mut row = vec![0.0; self.from];
        for vertical in &self.rows {
            row.fill(0.0);
            for (weight, pixels) in
                vertical.values.iter().zip(image.chunks_exact(self.from).skip(vertical.first))
            {
                row.iter_mut().zip(pixels).for_each(|(sum, pixel)| *sum += weight * pixel);
            }
            reduced.extend(self.rows.iter().map(|horizontal| horizontal.dot(&row) as f32));
        }
    }
}

impl Weights {
    fn new(row: usize, from: usize, to: usize) -> Self {
        let scale = to as f64 / from as f64;
        let centre = (row as f64 + 0.5) / scale - 0.5;
        let reach = 2.0 / scale;
        let last = from as f64 - 1.0;
        let mut dense = vec![0.0; from];
        for position in (centre - reach).floor() as i64..=(centre + reach).ceil() as i64 {
            let position = position as f64;
            dense[position.clamp(0.0, last) as usize] += kernel(scale * (centre - position));
        }
        let sum: f64 = dense.iter().sum();
        let used = |value: &f64| *value != 0.0;
        let first = dense.iter().position(used).unwrap_or(0);
        let end = dense.iter().rposition(used).map_or(0, |last| last + 1);
        Self { first, values: dense[first..end].iter().map(|value| value / sum).collect() }
    }

    fn dot(&self, row: &[f64]) -> f64 {
        self.values.iter().zip(&row[self.first..]).map(|(weight, pixel)| weight * pixel).sum()
    }
}

fn kernel(x: f64) -> f64 {
    let x = x.abs();
    if x <= 1.0 {
        (1.5 * x - 2.5) * x * x + 1.0
    } else if x <= 2.0 {
        ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{digits20, digits28};
    use super::*;

    fn reduced(image: &[f64], from: usize, to: usize) -> Vec<f32> {
        let mut pixels = Vec::new();
        Reduction::new(from, to).apply(image, &mut pixels);
        pixels
    }

    /// The definition, as one double sum for each pixel: nothing is separated, folded or cut off.
    fn directly(image: &[f64], from: usize, to: usize) -> Vec<f64> {
        let (scale, side) = (to as f64 / from as f64, from as i64);
        let inside = |at: i64| at.clamp(0, side - 1) as usize;
        let pixel = |row: i64, column: i64| image[inside(row) * from + inside(column)];
        let centre = |at: usize| (at as f64 + 0.5) / scale - 0.5;
        let mut result = Vec::new();
        for (row, column) in (0..to * to).map(|at| (at / to, at % to)) {
            let (mut sum, mut total) = (0.0, 0.0);
            for (i, j) in (-side..2 * side).flat_map(|i| (-side..2 * side).map(move |j| (i, j))) {
                let weight = scale
                    * keys(scale * (centre(row) - i as f64))
                    * scale
                    * keys(scale * (centre(column) - j as f64));
                sum += weight * pixel(i, j);
                total += weight;
            }
            result.push(sum / total);
        }
        result
    }

    /// Keys' kernel for any `a`, in his own form.
    fn keys(s: f64) -> f64 {
        let (a, s) = (-0.5, s.abs());
        match s {
            0.0..1.0 => (a + 2.0) * s.powi(3) - (a + 3.0) * s.powi(2) + 1.0,
            1.0..2.0 => a * s.powi(3) - 5.0 * a * s.powi(2) + 8.0 * a * s - 4.0 * a,
            _ => 0.0,
        }
    }

    #[test]
    fn the_same_size_keeps_the_image() {
        let image: Vec<f64> = (0..25).map(|pixel| f64::from(pixel) / 32.0).collect();
        assert!(reduced(&image, 5, 5).iter().zip(&image).all(|(&new, &old)| f64::from(new) == old));
    }

    #[test]
    fn a_slope_stays_straight_away_from_the_border() {
        let image: Vec<f64> = (0..28 * 28).map(|pixel| f64::from(pixel % 28)).collect();
        let pixels = reduced(&image, 28, 14);
        for column in 2..12 {
            let expected = 2.0 * column as f32 + 0.5;
            assert!(
                (pixels[5 * 14 + column] - expected).abs() < 1e-5,
                "{} at {column}",
                pixels[5 * 14 + column]
            );
        }
    }

    #[test]
    fn pixels_at_the_border_extend_outside() {
        let mut image = [0.0; 16];
        image[..4].fill(1.0);
        // Above, half of the kernel sees the first line and beyond. Below, its end does: (k(1¾) + k(1¼))/2.
        assert_eq!(reduced(&image, 4, 2), [0.5, 0.5, -0.046875, -0.046875]);
    }

    #[test]
    fn the_direct_double_sum_agrees_on_digits() {
        let (large, small) = (digits28(20, 1).unwrap().train, digits20(20, 1).unwrap().train);
        for sample in [0, 7, 18] {
            let image: Vec<f64> = large.row(sample).iter().copied().map(f64::from).collect();
            let slow = directly(&image, 28, 20);
            assert!(
                small.row(sample).iter().zip(slow).all(|(&fast, slow)| (f64::from(fast) - slow).abs() < 2e-7)
            );
        }
    }

    #[test]
    fn at_most_six_pixels_of_a_row_count() {
        let reduction = Reduction::new(28, 20);
        assert!(reduction.rows.iter().all(|row| row.values.len() <= 6));
        assert!(reduction.rows.iter().all(|row| (row.values.iter().sum::<f64>() - 1.0).abs() < 1e-15));
    }

    proptest! {
        #[test]
        fn a_constant_image_stays_constant(value in 0.0..1.0, from in 1_usize..40, cut in 0_usize..40) {
            let to = from.saturating_sub(cut).max(1);
            for pixel in reduced(&vec![value; from * from], from, to) {
                prop_assert!((f64::from(pixel) - value).abs() < 1e-7);
            }
        }

        #[test]
        fn the_direct_double_sum_agrees_on_noise(
            image in prop::collection::vec(0.0..1.0, 100),
            to in 4_usize..=10,
        ) {
            for (fast, slow) in reduced(&image, 10, to).into_iter().zip(directly(&image, 10, to)) {
                prop_assert!((fast - slow as f32).abs() < 1e-6, "{fast} and {slow}");
            }
        }
    }
}
