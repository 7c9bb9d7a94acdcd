//! Matching the vectors of two lists by similarity.

use rayon::prelude::*;

use super::inner::dot;

/// Pairs each row of one list with one of the other, most similar first. `None` if the other list is exhausted.
pub(super) fn by_correlation(ours: &[Vec<f32>], theirs: &[Vec<f32>]) -> Vec<Option<usize>> {
    let sizes = |rows: &[Vec<f32>]| -> Vec<f64> { rows.iter().map(|row| dot(row, row).sqrt()).collect() };
    let (our_sizes, their_sizes) = (sizes(ours), sizes(theirs));
    let row = |(i, one): (usize, &Vec<f32>)| -> Vec<(f64, usize, usize)> {
        let others = theirs.iter().zip(&their_sizes).enumerate();
        others.map(|(j, (other, size))| (cosine(dot(one, other), our_sizes[i] * size), i, j)).collect()
    };
    let mut pairs: Vec<(f64, usize, usize)> = ours.par_iter().enumerate().flat_map_iter(row).collect();
    pairs.sort_by(|one, other| other.0.total_cmp(&one.0).then((one.1, one.2).cmp(&(other.1, other.2))));
    let mut partners = vec![None; ours.len()];
    let mut taken = vec![false; theirs.len()];
    for (_, i, j) in pairs {
        if partners[i].is_none() && !taken[j] {
            partners[i] = Some(j);
            taken[j] = true;
        }
    }
    partners
}

/// Pairs the numbers of two lists of the same length by rank, which minimises the sum of squared differences.
pub(super) fn by_order(ours: &[f64], theirs: &[f64]) -> Vec<usize> {
    let ranked = |values: &[f64]| {
        let mut places: Vec<usize> = (0..values.len()).collect();
        places.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
        places
    };
    let mut partners = vec![0; ours.len()];
    for (one, other) in ranked(ours).into_iter().zip(ranked(theirs)) {
        partners[one] = other;
    }
    partners
}

/// `⟨a, b⟩/(‖a‖·‖b‖)`, and 0 if one of them is 0.
pub(super) fn correlation(a: &[f32], b: &[f32]) -> f64 {
    cosine(dot(a, b), (dot(a, a) * dot(b, b)).sqrt())
}

fn cosine(product: f64, sizes: f64) -> f64 {
    if sizes > 0.0 { product / sizes } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_similar_pair_is_taken_first() {
        let ours = [vec![1.0, 0.2], vec![1.0, 0.0], vec![0.0, -1.0]];
        let theirs = [vec![0.1, -3.0], vec![2.0, 0.0], vec![1.0, 1.0]];
        assert_eq!(by_correlation(&ours, &theirs), [Some(2), Some(1), Some(0)]);
        assert_eq!(by_correlation(&ours[..2], &theirs[1..2]), [None, Some(0)]);
    }

    #[test]
    fn the_strongest_is_paired_with_the_strongest() {
        assert_eq!(by_order(&[0.3, -2.0, 5.0], &[4.0, 0.0, -1.0]), [1, 2, 0]);
    }

    #[test]
    fn a_correlation_is_a_cosine() {
        assert!((correlation(&[1.0, 1.0], &[2.0, 0.0]) - 0.5_f64.sqrt()).abs() < 1e-7);
        assert_eq!(correlation(&[1.0, 1.0], &[0.0, 0.0]), 0.0);
    }
}
