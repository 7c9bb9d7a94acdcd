//! Code shared by the schemes whose clients vote with the signs of their updates.

/// The margin of every parameter's vote: clients with a value of at least 0, minus the others. A value of 0 is a vote for `+`.
pub(super) fn add_margins(updates: &[&[f32]], first: usize, margins: &mut [f32]) {
    for update in updates {
        for (margin, x) in margins.iter_mut().zip(&update[first..]) {
            *margin += if *x >= 0.0 { 1.0 } else { -1.0 };
        }
    }
}

/// The decoded sum of votes, from `+1` and `−1` in place: a vote moves each of `clients` by `step`.
pub(super) fn scale_votes(votes: &mut [f32], clients: usize, step: f64) {
    let scale = (clients as f64 * step) as f32;
    votes.iter_mut().for_each(|vote| *vote *= scale);
}
