//! The length of a quantised vector in the code of section 3.1.
//!
//! The norm takes 32 bits. Every level that is not 0 takes the distance to the previous one and the level in the recursive code of Elias,
//! and one bit for the sign.

/// Bits of the norm.
const NORM_BITS: u64 = 32;

/// Bits of a positive integer in the recursive code of Elias: its binary form, before it the length of that form less 1, and so on
/// down to 1, and one bit for the end.
fn elias_bits(mut number: u64) -> u64 {
    let mut bits = 1;
    while number > 1 {
        let length = u64::from(number.ilog2());
        bits += length + 1;
        number = length;
    }
    bits
}

/// Bits of a vector of levels. Signs of the levels do not matter.
pub(super) fn code_bits(levels: &[u32]) -> u64 {
    let (mut bits, mut last) = (NORM_BITS, 0);
    for (place, &level) in (1_u64..).zip(levels) {
        if level > 0 {
            bits += elias_bits(place - last) + 1 + elias_bits(level.into());
            last = place;
        }
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lengths as in tables of the omega code of Elias.
    #[test]
    fn integers_have_their_lengths() {
        let lengths = [
            (1, 1),
            (2, 3),
            (3, 3),
            (4, 6),
            (7, 6),
            (8, 7),
            (15, 7),
            (16, 11),
            (31, 11),
            (32, 12),
            (100, 13),
        ];
        for (number, bits) in lengths {
            assert_eq!(elias_bits(number), bits, "{number}");
        }
    }

    /// Distances 2 and 3, levels 1 and 4: 32 + (3 + 1 + 1) + (3 + 1 + 6).
    #[test]
    fn zeros_count_by_their_distances() {
        assert_eq!(code_bits(&[0, 1, 0, 0, 4, 0]), 47);
        assert_eq!(code_bits(&[0; 5]), 32);
    }
}
