//! The clients' updates, checked before they go on the air.

use rayon::prelude::*;

use crate::error::UplinkError;
use crate::random::TILE;

/// Parameters that one task works on: enough to make tasks cheap, few enough to share the work evenly.
pub(crate) const TASK: usize = 128 * TILE;

/// The common number of parameters `d` of one update for each of `clients` clients.
pub(crate) fn check_shape<U: AsRef<[f32]>>(updates: &[U], clients: usize) -> Result<usize, UplinkError> {
    if updates.len() != clients {
        return Err(UplinkError::UpdateCount { updates: updates.len(), clients });
    }
    let lengths = || updates.iter().map(|update| update.as_ref().len());
    let expected = lengths().next().filter(|&length| length > 0).ok_or(UplinkError::EmptyUpdate)?;
    match lengths().enumerate().find(|&(_, length)| length != expected) {
        Some((index, found)) => Err(UplinkError::LengthMismatch { index, expected, found }),
        None => Ok(expected),
    }
}

/// Names the first value that is not finite.
pub(crate) fn check_finite<U: AsRef<[f32]>>(updates: &[U]) -> Result<(), UplinkError> {
    for (index, update) in updates.iter().enumerate() {
        let values = update.as_ref();
        if let Some(parameter) = values.iter().position(|value| !value.is_finite()) {
            return Err(UplinkError::NotFinite { index, parameter, value: values[parameter] });
        }
    }
    Ok(())
}

/// Decodes a sum in tasks of [`TASK`] parameters, on the threads of the current `rayon` pool.
///
/// `decode` takes the updates' parameters of one task, the number of the first one, and the place for their sums; it
/// tells whether all sums are finite. NaN and infinities always reach the sum, even under a gain of zero, so that the
/// updates need not be read twice to find them: only when a sum is not finite are they searched for the culprit.
pub(crate) fn decode_in_tasks<U: AsRef<[f32]> + Sync>(
    updates: &[U],
    decoded: &mut [f32],
    decode: impl Fn(&[&[f32]], usize, &mut [f32]) -> bool + Sync,
) -> Result<(), UplinkError> {
    let decode_task = |(task, decoded): (usize, &mut [f32])| {
        let range = task * TASK..task * TASK + decoded.len();
        let rows: Vec<&[f32]> = updates.iter().map(|update| &update.as_ref()[range.clone()]).collect();
        decode(&rows, range.start, decoded)
    };
    let finite = match decoded.len() <= TASK {
        // Handing a single task to another thread would take longer than many a round.
        true => decode_task((0, decoded)),
        false => decoded.par_chunks_mut(TASK).enumerate().map(decode_task).reduce(|| true, |a, b| a && b),
    };
    if finite {
        return Ok(());
    }
    check_finite(updates)?;
    let parameter = decoded.iter().position(|value| !value.is_finite()).unwrap_or_default();
    Err(UplinkError::Overflow { parameter })
}

/// Whether all values are finite. Looks at every one of them, which a vector unit does faster than stopping early.
#[inline(always)]
pub(crate) fn all_finite(values: &[f32]) -> bool {
    let mut finite = true;
    for value in values {
        finite &= value.is_finite();
    }
    finite
}

/// `sums[i] += Σ_k weights[k]·rows[k][first + i]`, the terms of each sum in the order of the rows.
///
/// Memory is read fastest from many rows at once, so the rows are taken in groups, which do not change the order.
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
