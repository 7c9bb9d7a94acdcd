//! Gold sequences: `u`, `v` and `u ⊕ Tᵏv` for every cyclic shift `k` of `v`, with `u` and `v` a preferred pair of
//! maximum-length sequences of `L = 2ⁿ − 1` chips.
//!
//! Any two of them, at any shift, have a product of `−1`, `−t` or `t − 2` over `L`, with `t = 1 + 2^⌊(n+2)/2⌋`. Without a
//! relative shift, as here, `u ⊕ Tⁱv` and `u ⊕ Tʲv` have `−1/L`. There is no preferred pair if 4 divides `n`.
//!
//! R. Gold, "Optimal binary sequences for spread spectrum multiplexing", IEEE Trans. Inf. Theory 13(4), 1967. The pairs are the
//! usual ones, as in D. V. Sarwate and M. B. Pursley, "Crosscorrelation properties of pseudorandom and related sequences",
//! Proc. IEEE 68(5), 1980.

/// `n` and a preferred pair of primitive polynomials: bit `i` is the coefficient of `xⁱ`.
const PREFERRED: [(u32, [u32; 2]); 5] = [
    (5, [0o45, 0o75]),
    (6, [0o103, 0o147]),
    (7, [0o211, 0o217]),
    (9, [0o1021, 0o1131]),
    (10, [0o2011, 0o2415]),
];

/// The allowed lengths, in words.
pub(super) const LENGTHS: &str = "31, 63, 127, 511 or 1023";

/// The first `count` sequences one after the other, with chips `±1/√L`; `None` if there is no preferred pair of this length.
pub(super) fn chips(count: usize, length: usize) -> Option<Vec<f64>> {
    let &(degree, pair) = PREFERRED.iter().find(|(degree, _)| (1 << degree) - 1 == length)?;
    let [u, v] = pair.map(|polynomial| maximum_length(degree, polynomial));
    let size = 1.0 / (length as f64).sqrt();
    let chip = |sequence: usize, chip: usize| {
        let is_negative = match sequence {
            0 => u[chip],
            1 => v[chip],
            shifted => u[chip] ^ v[(chip + shifted - 2) % length],
        };
        if is_negative { -size } else { size }
    };
    Some((0..count).flat_map(|sequence| (0..length).map(move |l| chip(sequence, l))).collect())
}

/// One period of the shift register with this characteristic polynomial: `s[t+n] = Σ_{i<n} pᵢ·s[t+i] mod 2`.
fn maximum_length(degree: u32, polynomial: u32) -> Vec<bool> {
    let mut state = 1_u32;
    let mut step = || {
        let out = state & 1 == 1;
        let taps = state & polynomial & ((1 << degree) - 1);
        state = state >> 1 | (taps.count_ones() & 1) << (degree - 1);
        out
    };
    (0..(1_u32 << degree) - 1).map(|_| step()).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// `±1` chips of the whole set.
    fn signs(length: usize) -> Vec<Vec<i32>> {
        let chips = chips(length + 2, length).unwrap();
        chips.chunks(length).map(|row| row.iter().map(|chip| chip.signum() as i32).collect()).collect()
    }

    fn product(a: &[i32], b: &[i32], shift: usize) -> i32 {
        (0..a.len()).map(|l| a[l] * b[(l + shift) % b.len()]).sum()
    }

    fn three_values(degree: u32) -> BTreeSet<i32> {
        let t = 1 + (1 << ((degree + 2) / 2));
        BTreeSet::from([-1, -t, t - 2])
    }

    #[test]
    fn registers_run_through_every_state() {
        for (degree, pair) in PREFERRED {
            for polynomial in pair {
                let bits = maximum_length(degree, polynomial);
                assert_eq!(bits.iter().filter(|&&bit| bit).count(), 1 << (degree - 1));
                let signs: Vec<i32> = bits.iter().map(|&bit| if bit { -1 } else { 1 }).collect();
                assert!((1..signs.len()).all(|shift| product(&signs, &signs, shift) == -1));
            }
        }
    }

    #[test]
    fn a_preferred_pair_takes_exactly_three_values() {
        for (degree, _) in PREFERRED {
            let length = (1 << degree) - 1;
            let set = signs(length);
            let found: BTreeSet<i32> = (0..length).map(|shift| product(&set[0], &set[1], shift)).collect();
            assert_eq!(found, three_values(degree), "n = {degree}");
        }
    }

    #[test]
    fn cross_correlations_take_three_values() {
        for degree in [5, 6] {
            let length = (1 << degree) - 1;
            let set = signs(length);
            let mut found = BTreeSet::new();
            for (i, a) in set.iter().enumerate() {
                for b in &set[..i] {
                    found.extend((0..length).map(|shift| product(a, b, shift)));
                }
            }
            assert_eq!(found, three_values(degree), "n = {degree}");
        }
    }

    #[test]
    fn sums_overlap_by_minus_one_in_step() {
        let set = signs(31);
        for i in 2..set.len() {
            assert!((2..i).all(|j| product(&set[i], &set[j], 0) == -1));
        }
    }
}
