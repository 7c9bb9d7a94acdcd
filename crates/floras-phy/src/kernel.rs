//! Code shared by the kernels of both fidelities: tasks over the parameters, and weighted sums of rows.
//!
//! A kernel runs under `pulp`'s dispatch, which compiles it for each kind of vector unit and takes the best one that the processor
//! has. Everything below must be inlined into it: `#[inline(always)]`, `for` loops, and no closures with more than trivial work.

use floras_core::random::TILE;
use rayon::prelude::*;

use crate::error::{UplinkError, require_count};
use crate::updates;

/// Number of parameters per task: enough to make tasks cheap, few enough to share the work evenly.
pub(crate) const TASK: usize = 128 * TILE;

/// How the updates of some parameters become their decoded sums.
pub(crate) trait Kernel: Sync {
    /// Decodes the parameters from `first` on, a multiple of [`TILE`]; `rows` are the updates' values there. Returns the
    /// largest magnitude on the air, or 0 if nothing is on the air.
    fn decode(&self, rows: &[&[f32]], first: usize, decoded: &mut [f32]) -> f32;
}

/// Decodes the updates of `clients` clients, on the threads of the current `rayon` pool; returns the largest magnitude
/// on the air.
///
/// NaN and infinities always reach the sum, even under a gain of zero. So updates are checked only if a sum is not finite, to name
/// the invalid value.
pub(crate) fn run<U: AsRef<[f32]> + Sync>(
    kernel: &impl Kernel,
    updates: &[U],
    clients: usize,
    decoded: &mut [f32],
) -> Result<f32, UplinkError> {
    let parameters = updates::check_shape(updates, clients)?;
    require_count("places for the decoded parameters", parameters, decoded.len())?;
    let run_task = |(task, decoded): (usize, &mut [f32])| {
        let range = task * TASK..task * TASK + decoded.len();
        let rows: Vec<&[f32]> = updates.iter().map(|update| &update.as_ref()[range.clone()]).collect();
        pulp::Arch::new().dispatch(Task { kernel, rows: &rows, first: range.start, decoded })
    };
    let Outcome { finite, largest } = if parameters <= TASK {
        // Handing a single task to another thread would take longer than a small round.
        run_task((0, decoded))
    } else {
        decoded.par_chunks_mut(TASK).enumerate().map(run_task).reduce(|| Outcome::EMPTY, Outcome::and)
    };
    if finite {
        return Ok(largest);
    }
    updates::check_finite(updates)?;
    let parameter = decoded.iter().position(|value| !value.is_finite()).unwrap_or_default();
    Err(UplinkError::Overflow { parameter })
}

/// The result of one or more tasks.
struct Outcome {
    /// Whether all sums are finite.
    finite: bool,
    /// The largest magnitude on the air.
    largest: f32,
}

impl Outcome {
    const EMPTY: Self = Self { finite: true, largest: 0.0 };

    fn and(self, other: Self) -> Self {
        Self { finite: self.finite && other.finite, largest: self.largest.max(other.largest) }
    }
}

/// One task: the decoded values of consecutive parameters.
struct Task<'a, K> {
    kernel: &'a K,
    rows: &'a [&'a [f32]],
    first: usize,
    decoded: &'a mut [f32],
}

impl<K: Kernel> pulp::WithSimd for Task<'_, K> {
    type Output = Outcome;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) -> Outcome {
        let largest = self.kernel.decode(self.rows, self.first, self.decoded);
        Outcome { finite: all_finite(self.decoded), largest }
    }
}

/// Checks every value; a vector unit does this faster than stopping early.
#[inline(always)]
fn all_finite(values: &[f32]) -> bool {
    let mut finite = true;
    for value in values {
        finite &= value.is_finite();
    }
    finite
}

/// `sums[i] += Σ_k weights[k]·rows[k][first + i]`, the terms of each sum in the order of the rows.
///
/// Memory is read fastest from many rows in parallel, so the rows are taken in groups, which do not change the order.
#[inline(always)]
pub(crate) fn add_weighted(weights: &[f32], mut rows: &[&[f32]], first: usize, sums: &mut [f32]) {
    let (by_twenty, rest) = weights.as_chunks::<20>();
    let (by_five, by_one) = rest.as_chunks::<5>();
    for weights in by_twenty {
        rows = add_group(weights, rows, first, sums);
    }
    for weights in by_five {
        rows = add_group(weights, rows, first, sums);
    }
    for &weight in by_one {
        rows = add_group(&[weight], rows, first, sums);
    }
}

/// Adds `Σ_k (gains[k] + j·crosses[k])·(row_k[2i] + j·row_k[2i+1])` to the pairs of `sums`, client by client. `first` is even; a last
/// value without a partner counts as a real number.
#[inline(always)]
pub(crate) fn add_rotated(gains: &[f32], crosses: &[f32], rows: &[&[f32]], first: usize, sums: &mut [f32]) {
    let length = sums.len();
    let (pairs, last) = sums.as_chunks_mut::<2>();
    for ((&gain, &cross), row) in gains.iter().zip(crosses).zip(rows) {
        let (values, left) = row[first..first + length].as_chunks::<2>();
        for ([re, im], &[x, y]) in pairs.iter_mut().zip(values) {
            *re = cross.mul_add(-y, gain.mul_add(x, *re));
            *im = cross.mul_add(x, gain.mul_add(y, *im));
        }
        for (re, &x) in last.iter_mut().zip(left) {
            *re = gain.mul_add(x, *re);
        }
    }
}

/// Adds the first `COUNT` rows and returns the others.
#[inline(always)]
fn add_group<'r, 'x, const COUNT: usize>(
    weights: &[f32; COUNT],
    rows: &'r [&'x [f32]],
    first: usize,
    sums: &mut [f32],
) -> &'r [&'x [f32]] {
    let (taken, others) = rows.split_at(COUNT);
    let length = sums.len();
    let taken: [&[f32]; COUNT] = std::array::from_fn(|row| &taken[row][first..first + length]);
    for index in 0..length {
        let mut sum = sums[index];
        for row in 0..COUNT {
            sum = weights[row].mul_add(taken[row][index], sum);
        }
        sums[index] = sum;
    }
    others
}
