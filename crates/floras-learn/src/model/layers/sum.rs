//! Sums over slices in one fixed order, on vector lanes.
//!
//! Each of 32 partial sums takes every 32nd value, and the partial sums are added pairwise. The order does not depend on the
//! processor.

const LANES: usize = 32;

/// The sum of all values.
pub(super) fn of(values: &[f32]) -> f32 {
    over(values, values, |x, _| x)
}

/// `Σ (x − c)·y`.
pub(super) fn of_products(x: &[f32], centre: f32, y: &[f32]) -> f32 {
    over(x, y, |x, y| (x - centre) * y)
}

/// `Σ (x − c)²`.
pub(super) fn of_squares(values: &[f32], centre: f32) -> f32 {
    over(values, values, |x, _| (x - centre) * (x - centre))
}

#[inline(always)]
fn over(x: &[f32], y: &[f32], term: impl Fn(f32, f32) -> f32) -> f32 {
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let mut sums = [0.0_f32; LANES];
            let (x, x_rest) = x.as_chunks::<LANES>();
            let (y, y_rest) = y.as_chunks::<LANES>();
            for (x, y) in x.iter().zip(y) {
                for lane in 0..LANES {
                    sums[lane] += term(x[lane], y[lane]);
                }
            }
            for (lane, (&x, &y)) in x_rest.iter().zip(y_rest).enumerate() {
                sums[lane] += term(x, y);
            }
            let mut width = LANES / 2;
            while width > 0 {
                for lane in 0..width {
                    sums[lane] += sums[lane + width];
                }
                width /= 2;
            }
            sums[0]
        },
    )
}
