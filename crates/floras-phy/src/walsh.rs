//! The fast Walsh–Hadamard transform, `L log₂ L` additions instead of `L²`.
//!
//! `H_{2L} = [[H_L, H_L], [H_L, −H_L]]`, with entries `(−1)^{popcount(row & column)}`.

use std::ops::{Add, Sub};

/// Replaces `rows` of `width` numbers each by `H·rows`, where the number of rows is a power of two.
///
/// Adjacent parameters in each row keep every addition on contiguous memory, at every stage. Stages are combined in
/// pairs where possible, which halves the memory traffic with the cache.
#[inline(always)]
pub(crate) fn transform_rows<T>(rows: &mut [T], width: usize)
where
    T: Copy + Add<Output = T> + Sub<Output = T>,
{
    debug_assert!((rows.len() / width).is_power_of_two());
    let mut half = width;
    while 4 * half <= rows.len() {
        for group in rows.chunks_exact_mut(4 * half) {
            let (upper, lower) = group.split_at_mut(2 * half);
            let ((a, b), (c, d)) = (upper.split_at_mut(half), lower.split_at_mut(half));
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                let (ab, a_b, cd, c_d) = (*a + *b, *a - *b, *c + *d, *c - *d);
                (*a, *b, *c, *d) = (ab + cd, a_b + c_d, ab - cd, a_b - c_d);
            }
        }
        half *= 4;
    }
    if half < rows.len() {
        let (upper, lower) = rows.split_at_mut(half);
        for (a, b) in upper.iter_mut().zip(lower) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// Number of values that the last stages of [`transform`] keep in a register.
const LANES: usize = 8;

/// Replaces `values` by `H·values`, where their number is a power of two: [`transform_rows`] for rows of one number.
#[inline(always)]
pub(crate) fn transform(values: &mut [f32]) {
    if values.len() < LANES {
        return transform_rows(values, 1);
    }
    // Rows of eight numbers, and then the stages within each of them.
    transform_rows(values, LANES);
    for lanes in values.as_chunks_mut::<LANES>().0 {
        let fours = butterflies::<4>(*lanes);
        let twos = butterflies::<2>(fours);
        *lanes = butterflies::<1>(twos);
    }
}

/// One stage within a register: sums and differences of the numbers at distance `HALF`.
#[inline(always)]
fn butterflies<const HALF: usize>(lanes: [f32; LANES]) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    for lane in 0..LANES {
        let other = lanes[lane ^ HALF];
        out[lane] = other + if lane & HALF == 0 { lanes[lane] } else { -lanes[lane] };
    }
    out
}

/// Entry of the Hadamard matrix: +1 or −1.
#[inline(always)]
pub(crate) fn sign(row: usize, column: usize) -> f64 {
    match (row & column).count_ones() % 2 {
        0 => 1.0,
        _ => -1.0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sums of small integers are exact.
    #[test]
    fn single_rows_have_the_same_transform() {
        for log_length in 0..10 {
            let values: Vec<f32> = (0..1_u32 << log_length).map(|i| (i * 37 % 19) as f32 - 9.0).collect();
            let (mut fast, mut rows) = (values.clone(), values);
            transform(&mut fast);
            transform_rows(&mut rows, 1);
            assert_eq!(fast, rows);
        }
    }

    proptest! {
        #[test]
        fn fast_and_direct_transforms_agree(
            (width, values) in (0_u32..7, 1_usize..5).prop_flat_map(|(log_length, width)| {
                (Just(width), prop::collection::vec(-9_i64..9, (1 << log_length) * width))
            })
        ) {
            let length = values.len() / width;
            let mut fast = values.clone();
            transform_rows(&mut fast, width);
            for row in 0..length {
                for column in 0..width {
                    let direct: i64 = (0..length).map(|l| sign(row, l) as i64 * values[l * width + column]).sum();
                    prop_assert_eq!(fast[row * width + column], direct);
                }
            }
        }
    }
}
