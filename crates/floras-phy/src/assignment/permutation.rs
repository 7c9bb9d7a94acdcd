//! The permutation of one slot: a key of its own through HKDF, a ChaCha20 keystream, an unbiased
//! shuffle.
//!
//! ```text
//! stream key = HKDF-SHA256(salt = "floras/group-key/v1", IKM = group key,
//!                          info = "floras/permutation/v1" ‖ group ‖ epoch ‖ slot ‖ N, 32 bytes)
//! w_1, w_2, … = ChaCha20(stream key, nonce 0, counter 0) as 32-bit little-endian words
//! π = (0, …, N−1);   for i = 0 … N−2:  swap π[i], π[i + U(N − i)]
//! U(b) = w mod b for the next word w < 2³² − (2³² mod b); greater words are skipped
//! ```
//!
//! Skipping makes `U(b)` exactly uniform on `0..b`, so every one of the `N!` orders is equally
//! likely if the words are uniform (Durstenfeld 1964). After step `i` the entries up to `i` are
//! final.

use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::{ChaCha20, Key, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;
use zeroize::{Zeroize, Zeroizing};

use super::{AssignmentError, GroupKey};

/// Maximum number of sequences that can be permuted, 2²⁴. It limits the memory that a beacon can
/// make a client allocate to 64 MiB.
pub const MAX_SEQUENCES: u32 = 1 << 24;

const SALT: &[u8; 19] = b"floras/group-key/v1";
const INFO_LABEL: &[u8; 21] = b"floras/permutation/v1";

/// The order of the `sequences` columns in `slot`: entry `i − 1` is the column, counted from 0, of
/// the client with index `i`.
///
/// The result is secret: it is wiped when dropped. This function keeps no record of slots; a client
/// that transmits uses [`GroupMember`](super::GroupMember), which refuses a slot that was used
/// before.
pub fn permutation(
    key: &GroupKey,
    slot: u64,
    sequences: u32,
) -> Result<Zeroizing<Vec<u32>>, AssignmentError> {
    if !(1..=MAX_SEQUENCES).contains(&sequences) {
        return Err(AssignmentError::SequencesOutOfRange { sequences });
    }
    let mut words = Keystream::new(&stream_key(key, slot, sequences));
    let mut order = Zeroizing::new(Vec::from_iter(0..sequences));
    for (i, remaining) in (2..=sequences).rev().enumerate() {
        order.swap(i, i + words.below(remaining) as usize);
    }
    Ok(order)
}

fn stream_key(key: &GroupKey, slot: u64, sequences: u32) -> Zeroizing<[u8; 32]> {
    let (mut prk, hkdf) = Hkdf::<Sha256>::extract(Some(SALT), key.secret());
    prk.as_mut_slice().zeroize();
    let info: [&[u8]; 5] = [
        INFO_LABEL,
        &key.group().0,
        &key.epoch().0.to_be_bytes(),
        &slot.to_be_bytes(),
        &sequences.to_be_bytes(),
    ];
    let mut okm = Zeroizing::new([0; 32]);
    hkdf.expand_multi_info(&info, okm.as_mut_slice())
        .expect("32 bytes are within the 8160 that HKDF-SHA256 can give");
    okm
}

/// ChaCha20's keystream as 32-bit words.
///
/// It is drawn in whole blocks, so that the cipher's own buffer holds no unused keystream.
struct Keystream {
    cipher: ChaCha20,
    block: Zeroizing<[u8; 64]>,
    taken: usize,
}

impl Keystream {
    fn new(key: &[u8; 32]) -> Self {
        let cipher = ChaCha20::new(<&Key>::from(key), &Nonce::default());
        let block = Zeroizing::new([0; 64]);
        Self { cipher, block, taken: 16 }
    }

    fn word(&mut self) -> u32 {
        if self.taken == 16 {
            self.block.fill(0);
            // The cipher ends after 2³² blocks; a shuffle of MAX_SEQUENCES takes about 2²⁰.
            self.cipher.apply_keystream(self.block.as_mut_slice());
            self.taken = 0;
        }
        let word = self.block.as_chunks().0[self.taken];
        self.taken += 1;
        u32::from_le_bytes(word)
    }

    /// A number uniform on `0..bound`, for `bound` of at least 1.
    fn below(&mut self, bound: u32) -> u32 {
        const WORDS: u64 = 1 << 32;
        let limit = WORDS - WORDS % u64::from(bound);
        loop {
            let word = self.word();
            if u64::from(word) < limit {
                return word % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assignment::vectors::{hex, number, read};
    use crate::assignment::{Epoch, GroupId};

    #[test]
    fn the_cipher_gives_the_keystream_of_rfc_8439() {
        // Appendix A.1, test vectors 1 and 2: zero key, zero nonce, blocks 0 and 1.
        let mut words = Keystream::new(&[0; 32]);
        let stream: Vec<u32> = std::iter::repeat_with(|| words.word()).take(17).collect();
        assert_eq!(stream[0].to_le_bytes(), [0x76, 0xb8, 0xe0, 0xad]);
        assert_eq!(stream[15].to_le_bytes(), [0xb2, 0xee, 0x65, 0x86]);
        assert_eq!(stream[16].to_le_bytes(), [0x9f, 0x07, 0xe7, 0xbe]);
    }

    #[test]
    fn words_beyond_the_last_multiple_are_skipped() {
        // For this bound a third of all words must be skipped. The bound is far above
        // MAX_SEQUENCES, where skipped words are rare.
        let bound = 0xaaaa_aaab;
        let mut plain = Keystream::new(&[7; 32]);
        let accepted: Vec<u32> =
            std::iter::repeat_with(|| plain.word()).filter(|&word| word < bound).take(1000).collect();
        let mut words = Keystream::new(&[7; 32]);
        let drawn: Vec<u32> = std::iter::repeat_with(|| words.below(bound)).take(1000).collect();
        assert_eq!(drawn, accepted);
    }

    #[test]
    fn the_stream_key_is_that_of_the_vectors() {
        for vector in read(include_str!("../../tests/vectors/assignment.json")) {
            let (group, epoch) = (GroupId(hex(&vector["group"])), Epoch(number(&vector["epoch"])));
            let key = GroupKey::from_secret_bytes(group, epoch, &hex(&vector["group_key"]));
            let slot = vector["slot"].as_u64().unwrap();
            let stream_key = stream_key(&key, slot, number(&vector["sequences"]));
            assert_eq!(*stream_key, hex(&vector["stream_key"]));
        }
    }
}
