//! Sums of products with the widest vector instructions of the processor. Every sum has the same order on every processor,
//! and no product is fused with an addition. So the results are identical to the last digit.

use pulp::{Arch, Simd, WithSimd};

/// Number of partial sums of a dot product.
const LANES: usize = 8;
/// Number of rows of a convolution that are added in one pass.
const ROWS: usize = 4;

/// The sum of the products, up to the shorter length. Several partial sums run in parallel, because one in order is slow.
pub(crate) fn dot(one: &[f64], other: &[f64]) -> f64 {
    Arch::new().dispatch(Dot { one, other })
}

struct Dot<'a> {
    one: &'a [f64],
    other: &'a [f64],
}

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> f64 {
        let count = self.one.len().min(self.other.len());
        let (one, other) = (self.one[..count].chunks_exact(LANES), self.other[..count].chunks_exact(LANES));
        let rest: f64 = one.remainder().iter().zip(other.remainder()).map(|(a, b)| a * b).sum();
        let mut sums = [0.0; LANES];
        for (one, other) in one.zip(other) {
            for lane in 0..LANES {
                sums[lane] += one[lane] * other[lane];
            }
        }
        sums.iter().sum::<f64>() + rest
    }
}

/// `Σ_i one_i·other_{k−i}` for every `k`: the masses of a sum of two independent integers. Empty if one of them is empty.
pub(crate) fn convolved(one: &[f64], other: &[f64]) -> Vec<f64> {
    if one.is_empty() || other.is_empty() {
        return Vec::new();
    }
    let count = one.len() + other.len() - 1;
    // Zeros around the second factor and at the end of the first one make all passes equal.
    let rows = one.len().next_multiple_of(ROWS);
    let mut padded = vec![0.0; other.len() + 2 * (ROWS - 1)];
    padded[ROWS - 1..ROWS - 1 + other.len()].copy_from_slice(other);
    let mut sums = vec![0.0; rows + other.len() - 1];
    Arch::new().dispatch(Convolve { one, padded: &padded, sums: &mut sums });
    sums.truncate(count);
    sums
}

struct Convolve<'a> {
    one: &'a [f64],
    padded: &'a [f64],
    sums: &'a mut [f64],
}

impl WithSimd for Convolve<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let reach = self.padded.len() - (ROWS - 1);
        for (pass, rows) in self.one.chunks(ROWS).enumerate() {
            let factor = |row: usize| rows.get(row).copied().unwrap_or(0.0);
            let factors: [f64; ROWS] = std::array::from_fn(factor);
            if factors == [0.0; ROWS] {
                continue;
            }
            let sums = &mut self.sums[pass * ROWS..][..reach];
            let [first, second, third, fourth]: [&[f64]; ROWS] =
                std::array::from_fn(|row| &self.padded[ROWS - 1 - row..][..reach]);
            for i in 0..reach {
                // The order of the rows, as if they were added one after another.
                let sum = sums[i] + factors[0] * first[i] + factors[1] * second[i];
                sums[i] = sum + factors[2] * third[i] + factors[3] * fourth[i];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: f64) -> Vec<f64> {
        (0..count).map(|i| if i % 5 == 3 { 0.0 } else { (seed + i as f64).sin() }).collect()
    }

    /// Compared with the definition to the last digit, for lengths that are not multiples of the lanes or rows.
    #[test]
    fn convolutions_are_sums_in_order() {
        for (one, other) in [(1, 1), (3, 7), (4, 4), (17, 5), (5, 17), (40, 33)] {
            let (a, b) = (numbers(one, 0.3), numbers(other, 1.7));
            let mut expected = vec![0.0; one + other - 1];
            for (i, x) in a.iter().enumerate() {
                for (j, y) in b.iter().enumerate() {
                    expected[i + j] += x * y;
                }
            }
            assert_eq!(convolved(&a, &b), expected, "{one} and {other}");
        }
        assert_eq!(convolved(&[], &[1.0]), []);
    }

    #[test]
    fn dot_products_reach_as_far_as_both() {
        for (one, other) in [(0, 3), (5, 5), (8, 9), (100, 37)] {
            let (a, b) = (numbers(one, 0.1), numbers(other, 2.3));
            let expected: f64 = a.iter().zip(&b).map(|(x, y)| x * y).sum();
            assert!((dot(&a, &b) - expected).abs() < 1e-14, "{one} and {other}");
        }
    }
}
