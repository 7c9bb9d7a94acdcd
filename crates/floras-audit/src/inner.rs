//! Inner products: single precision within short blocks, double precision across blocks.

/// Number of partial sums that the processor computes in parallel.
const LANES: usize = 16;
/// Number of values per block.
const BLOCK: usize = 1024;

/// The inner product `⟨left, right⟩`.
pub(super) fn dot(left: &[f32], right: &[f32]) -> f64 {
    let blocks = left.chunks(BLOCK).zip(right.chunks(BLOCK));
    blocks.map(|(left, right)| dot_of_block(left, right)).sum()
}

fn dot_of_block(left: &[f32], right: &[f32]) -> f64 {
    let ((left, left_rest), (right, right_rest)) = (left.as_chunks::<LANES>(), right.as_chunks::<LANES>());
    let mut lanes = [0.0_f32; LANES];
    for (left, right) in left.iter().zip(right) {
        for lane in 0..LANES {
            lanes[lane] += left[lane] * right[lane];
        }
    }
    let rest = left_rest.iter().zip(right_rest).map(|(a, b)| f64::from(a * b));
    lanes.iter().map(|&lane| f64::from(lane)).chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_products_are_right_at_every_length() {
        for length in [0, 1, 15, 16, 17, 1023, 1024, 1025, 4010] {
            let left: Vec<f32> = (0..length).map(|i| (i % 7) as f32 - 2.5).collect();
            let right: Vec<f32> = (0..length).map(|i| (i % 5) as f32 * 0.25).collect();
            let exact: f64 = left.iter().zip(&right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((dot(&left, &right) - exact).abs() < 1e-3, "{length}");
        }
    }
}
