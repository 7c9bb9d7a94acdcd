//! The key of one release.

use std::fmt;

use chacha20::cipher::{KeyIvInit, StreamCipher, StreamCipherSeek};
use chacha20::{ChaCha20, Key, Nonce};
use rand::TryRng;
use rand::rngs::SysRng;
use zeroize::{ZeroizeOnDrop, Zeroizing};

use crate::error::UplinkError;

/// The first four bytes of a nonce: which words the stream holds.
const MAIN: u32 = 0;
const FURTHER: u32 = 1;

/// 256 secret bits from which the noise of **one** release comes.
///
/// A release consumes its key, so that no noise is used twice, also not after a restart or in a forked process; a fresh
/// key costs a microsecond. It is wiped when dropped, and cannot be copied, printed, compared, serialised or read back.
pub struct ReleaseKey {
    // On the heap, so that moving the key does not leave copies behind on the stack.
    secret: Box<Zeroizing<[u8; 32]>>,
}

impl ReleaseKey {
    /// A fresh key from the operating system.
    pub fn generate() -> Result<Self, UplinkError> {
        let mut key = Self { secret: Box::new(Zeroizing::new([0; 32])) };
        SysRng.try_fill_bytes(key.secret.as_mut_slice()).map_err(|_| UplinkError::NoRandomness)?;
        Ok(key)
    }

    /// A key with known bytes, for simulations and tests.
    pub(crate) fn known(secret: [u8; 32]) -> Self {
        Self { secret: Box::new(Zeroizing::new(secret)) }
    }

    /// A key that `fill` writes in place, so that no copy stays behind on the stack.
    pub(crate) fn filled(fill: impl FnOnce(&mut [u8; 32])) -> Self {
        let mut key = Self { secret: Box::new(Zeroizing::new([0; 32])) };
        fill(&mut key.secret);
        key
    }

    /// The key, for the cipher.
    pub(crate) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    /// The words of the values from index `first` on, eight bytes per value; `first` must be a multiple of 8.
    pub(super) fn words_from(&self, first: u64) -> Words {
        let mut cipher = self.cipher(MAIN, 0);
        // In units of 64 bytes: a nonce has 2³² of them, which is 2³⁵ values.
        cipher.seek(8 * first);
        Words(cipher)
    }

    /// The words that follow the first word of pair `pair`.
    pub(crate) fn further_words(&self, pair: u64) -> Words {
        Words(self.cipher(FURTHER, pair))
    }

    fn cipher(&self, kind: u32, number: u64) -> ChaCha20 {
        let mut nonce = Nonce::default();
        nonce[..4].copy_from_slice(&kind.to_le_bytes());
        nonce[4..].copy_from_slice(&number.to_le_bytes());
        ChaCha20::new(<&Key>::from(&**self.secret), &nonce)
    }
}

/// The secret field wipes itself.
impl ZeroizeOnDrop for ReleaseKey {}

impl fmt::Debug for ReleaseKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReleaseKey").field("secret", &format_args!("[redacted]")).finish()
    }
}

/// A stream of ChaCha20, read as words of 64 bits. The cipher wipes its key when dropped.
pub(crate) struct Words(ChaCha20);

impl Words {
    /// Fills `words` with the next words.
    pub(super) fn fill<const COUNT: usize>(&mut self, words: &mut WordBuffer<COUNT>) {
        words.0.fill([0; 8]);
        self.0.apply_keystream(words.0.as_flattened_mut());
    }

    /// The next word.
    pub(super) fn next_word(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.0.apply_keystream(&mut bytes);
        u64::from_le_bytes(bytes)
    }
}

/// Words of 64 bits as the bytes of the stream; wiped when dropped.
pub(super) struct WordBuffer<const COUNT: usize>(Zeroizing<[[u8; 8]; COUNT]>);

impl<const COUNT: usize> WordBuffer<COUNT> {
    pub(super) fn new() -> Self {
        Self(Zeroizing::new([[0; 8]; COUNT]))
    }

    /// The words as little-endian bytes.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[[u8; 8]; COUNT] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, appendix A.1, test vector 1: key and nonce of zeros, counter 0.
    #[test]
    fn words_are_those_of_the_rfc() {
        let key = ReleaseKey::known([0; 32]);
        let mut words = key.words_from(0);
        assert_eq!(words.next_word(), u64::from_le_bytes([0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90]));
        // Test vector 2: counter 1.
        let mut words = key.words_from(8);
        assert_eq!(words.next_word(), u64::from_le_bytes([0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a]));
    }

    #[test]
    fn words_are_those_of_the_cipher_anywhere() {
        let secret = std::array::from_fn(|byte| byte as u8);
        let key = ReleaseKey::known(secret);
        let mut whole = vec![0; 8 * 4096];
        ChaCha20::new(<&Key>::from(&secret), &Nonce::default()).apply_keystream(&mut whole);
        let mut buffer = WordBuffer::<128>::new();
        for first in [0, 128, 3968] {
            key.words_from(first).fill(&mut buffer);
            assert_eq!(buffer.bytes().as_flattened(), &whole[8 * first as usize..][..8 * 128]);
        }
    }

    #[test]
    fn further_words_of_pairs_differ() {
        let key = ReleaseKey::known([7; 32]);
        let words = [key.words_from(0), key.further_words(0), key.further_words(1)]
            .map(|mut words| words.next_word());
        assert!(words[0] != words[1] && words[1] != words[2] && words[0] != words[2]);
    }

    #[test]
    fn a_key_wipes_itself_and_prints_nothing() {
        fn wipes(_: &impl ZeroizeOnDrop) {}
        let key = ReleaseKey::known([0xab; 32]);
        wipes(&*key.secret);
        assert_eq!(format!("{key:?}"), "ReleaseKey { secret: [redacted] }");
    }

    #[test]
    fn keys_of_the_system_differ() {
        let words = || ReleaseKey::generate().unwrap().words_from(0).next_word();
        assert_ne!(words(), words());
    }
}
