//! Philox4x32-10 on many counters at once, written so that the compiler vectorises it.
//!
//! One round maps `(a, b, c, d)` to `(hi(M₁c) ⊕ b ⊕ k₀, lo(M₁c), hi(M₀a) ⊕ d ⊕ k₁, lo(M₀a))` and moves the key by
//! the Weyl constants (Salmon et al. 2011, section 3.3); ten rounds are one block.

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// The four output words of `LANES` blocks; word `j` of lane `i` is at `[j][i]`, for counters and outputs alike.
///
/// Words are stored in 64-bit lanes, because the 32×32→64-bit multiplication of vector units reads and writes them there: no
/// shuffles between rounds.
#[inline(always)]
pub(super) fn blocks<const LANES: usize>(
    mut key: [u32; 2],
    counters: [[u32; LANES]; 4],
) -> [[u32; LANES]; 4] {
    const LOW_HALF: u64 = 0xffff_ffff;
    let [mut a, mut b, mut c, mut d] = counters.map(|words| words.map(u64::from));
    for _ in 0..ROUNDS {
        for lane in 0..LANES {
            let from_a = (a[lane] & LOW_HALF) * MULTIPLIERS[0];
            let from_c = (c[lane] & LOW_HALF) * MULTIPLIERS[1];
            a[lane] = (from_c >> 32) ^ b[lane] ^ u64::from(key[0]);
            b[lane] = from_c;
            c[lane] = (from_a >> 32) ^ d[lane] ^ u64::from(key[1]);
            d[lane] = from_a;
        }
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    [a, b, c, d].map(|words| words.map(|word| word as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers published with Random123 (`kat_vectors`, philox4x32 10).
    #[test]
    fn published_known_answers_are_reproduced() {
        let answers = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in answers {
            assert_eq!(blocks(key, counter.map(|word| [word])), expected.map(|word| [word]));
        }
    }

    #[test]
    fn lanes_are_independent() {
        let counters = [[1, 2, 3, 4, 5], [10, 20, 30, 40, 50], [7, 7, 7, 7, 8], [0, u32::MAX, 0, 1, 2]];
        let together = blocks([11, 12], counters);
        for lane in 0..5 {
            let alone = blocks([11, 12], counters.map(|words| [words[lane]]));
            assert_eq!(together.map(|words| [words[lane]]), alone);
        }
    }
}
