//! ChaCha20 (RFC 8439), sixteen blocks in parallel.
//!
//! A mask needs eight bytes of keystream for each value and each pair of clients, so that the cipher takes most of the time.
//! Here every lane of a vector register computes one block. Blocks are not rearranged into a byte stream, because the mask
//! format refers to blocks and words. The bits are those of the crate `chacha20`, which the tests compare with. The running
//! time does not depend on secret values.

use pulp::Simd;

/// Number of blocks computed in parallel.
pub(super) const BLOCKS: usize = 16;

/// Word `w` of block `b` is `rows[w][b]`.
pub(super) type Rows = [[u32; BLOCKS]; 16];

/// The constant words of the initial state, "expand 32-byte k" in ASCII.
const CONSTANTS: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
const COUNTERS: [u32; BLOCKS] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// The words of a key.
pub(super) fn key_words(key: &[u8; 32]) -> [u32; 8] {
    let (words, _) = key.as_chunks();
    std::array::from_fn(|word| u32::from_le_bytes(words[word]))
}

/// Writes the blocks from `first_block` on, with a nonce of zeros.
#[inline(always)]
pub(super) fn fill<S: Simd>(simd: S, key: &[u32; 8], first_block: u32, rows: &mut Rows) {
    let counters = S::as_simd_u32s(&COUNTERS).0;
    for (part, &counter) in counters.iter().enumerate() {
        let mut start = [simd.splat_u32s(0); 16];
        for row in 0..4 {
            start[row] = simd.splat_u32s(CONSTANTS[row]);
        }
        for row in 0..8 {
            start[4 + row] = simd.splat_u32s(key[row]);
        }
        start[12] = simd.add_u32s(simd.splat_u32s(first_block), counter);
        let mut state = start;
        for _ in 0..10 {
            quarter_round(simd, &mut state, [0, 4, 8, 12]);
            quarter_round(simd, &mut state, [1, 5, 9, 13]);
            quarter_round(simd, &mut state, [2, 6, 10, 14]);
            quarter_round(simd, &mut state, [3, 7, 11, 15]);
            quarter_round(simd, &mut state, [0, 5, 10, 15]);
            quarter_round(simd, &mut state, [1, 6, 11, 12]);
            quarter_round(simd, &mut state, [2, 7, 8, 13]);
            quarter_round(simd, &mut state, [3, 4, 9, 14]);
        }
        for row in 0..16 {
            S::as_mut_simd_u32s(&mut rows[row]).0[part] = simd.add_u32s(state[row], start[row]);
        }
    }
}

#[inline(always)]
fn quarter_round<S: Simd>(simd: S, state: &mut [S::u32s; 16], [a, b, c, d]: [usize; 4]) {
    state[a] = simd.add_u32s(state[a], state[b]);
    state[d] = xor_rotated::<S, 16>(simd, state[d], state[a]);
    state[c] = simd.add_u32s(state[c], state[d]);
    state[b] = xor_rotated::<S, 12>(simd, state[b], state[c]);
    state[a] = simd.add_u32s(state[a], state[b]);
    state[d] = xor_rotated::<S, 8>(simd, state[d], state[a]);
    state[c] = simd.add_u32s(state[c], state[d]);
    state[b] = xor_rotated::<S, 7>(simd, state[b], state[c]);
}

/// `left ^ right`, rotated to the left.
#[inline(always)]
fn xor_rotated<S: Simd, const BITS: u32>(simd: S, left: S::u32s, right: S::u32s) -> S::u32s {
    let mixed = simd.xor_u32s(left, right);
    let high = simd.wrapping_dyn_shl_u32s(mixed, simd.splat_u32s(BITS));
    let low = simd.wrapping_dyn_shr_u32s(mixed, simd.splat_u32s(32 - BITS));
    simd.or_u32s(high, low)
}

#[cfg(test)]
mod tests {
    use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
    use chacha20::{ChaCha20, Key, Nonce};

    use super::*;

    struct Fill<'a> {
        key: [u8; 32],
        first_block: u32,
        rows: &'a mut Rows,
    }

    impl pulp::WithSimd for Fill<'_> {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            fill(simd, &key_words(&self.key), self.first_block, self.rows);
        }
    }

    fn expected(key: [u8; 32], first_block: u32) -> Rows {
        let mut cipher = ChaCha20::new(&Key::from(key), &Nonce::default());
        cipher.seek(64 * u64::from(first_block));
        let mut bytes = [0; 64 * BLOCKS];
        cipher.apply_keystream(&mut bytes);
        let (words, _) = bytes.as_chunks();
        std::array::from_fn(|word| std::array::from_fn(|block| u32::from_le_bytes(words[16 * block + word])))
    }

    #[test]
    fn blocks_are_those_of_the_crate() {
        for byte in 0_u8..50 {
            let key = std::array::from_fn(|at| (5 * byte).wrapping_add(at as u8));
            for first_block in [0, 16, 1 << 20, u32::MAX - 31] {
                let mut rows = [[0; BLOCKS]; 16];
                pulp::Arch::new().dispatch(Fill { key, first_block, rows: &mut rows });
                assert_eq!(rows, expected(key, first_block));
                let mut portable = [[0; BLOCKS]; 16];
                fill(pulp::Scalar::new(), &key_words(&key), first_block, &mut portable);
                assert_eq!(rows, portable);
            }
        }
    }

    /// RFC 8439, appendix A.1, test vectors 1 and 2: key and nonce of zeros, blocks 0 and 1.
    #[test]
    fn blocks_are_those_of_the_rfc() {
        let mut rows = [[0; BLOCKS]; 16];
        pulp::Arch::new().dispatch(Fill { key: [0; 32], first_block: 0, rows: &mut rows });
        assert_eq!(rows[0][0].to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad]);
        assert_eq!(rows[15][0].to_le_bytes(), [0xb2, 0xee, 0x65, 0x86]);
        assert_eq!(rows[0][1].to_le_bytes(), [0x9f, 0x07, 0xe7, 0xbe]);
    }
}
