//! Code shared by the schemes whose clients vote with the signs of their updates.

use super::Sent;

/// The margin of every parameter's vote: clients with a value of at least 0, minus the others. A value of 0 is a vote for `+`.
pub(super) fn add_margins<'a>(
    updates: impl Iterator<Item = &'a Sent<'a>>,
    first: usize,
    margins: &mut [f32],
) {
    for update in updates {
        pulp::Arch::new().dispatch(AddSigns { values: &update.direction()[first..], margins });
    }
}

struct AddSigns<'a> {
    values: &'a [f32],
    margins: &'a mut [f32],
}

impl pulp::WithSimd for AddSigns<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, _: S) {
        for (margin, x) in self.margins.iter_mut().zip(self.values) {
            *margin += if *x >= 0.0 { 1.0 } else { -1.0 };
        }
    }
}

/// The decoded sum of votes, from `+1` and `−1` in place: a vote moves each of `clients` by `step`.
pub(super) fn scale_votes(votes: &mut [f32], clients: usize, step: f64) {
    let scale = (clients as f64 * step) as f32;
    votes.iter_mut().for_each(|vote| *vote *= scale);
}
