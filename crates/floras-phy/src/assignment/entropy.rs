//! Random bytes for keys: always from the operating system, and a failure there is an error, not a
//! panic.

use std::convert::Infallible;

use chacha20::cipher::{KeyIvInit, StreamCipher};
use chacha20::{ChaCha20, Key, Nonce};
use rand::rngs::SysRng;
use rand::{TryCryptoRng, TryRng};
use zeroize::Zeroizing;

use super::AssignmentError;

/// Fills `secret` from the operating system.
pub(super) fn fill(secret: &mut [u8]) -> Result<(), AssignmentError> {
    SysRng.try_fill_bytes(secret).map_err(|_| AssignmentError::Randomness)
}

/// A ChaCha20 keystream under a fresh seed.
///
/// The `hpke` crate requires a generator that cannot fail. The operating system's generator can
/// fail, so its bytes are drawn here, where an error can be returned.
pub(super) struct SeededRng(ChaCha20);

impl SeededRng {
    pub(super) fn from_system() -> Result<Self, AssignmentError> {
        let mut seed = Zeroizing::new([0; 32]);
        fill(seed.as_mut_slice())?;
        Ok(Self::from_seed(&seed))
    }

    pub(super) fn from_seed(seed: &[u8; 32]) -> Self {
        Self(ChaCha20::new(<&Key>::from(seed), &Nonce::default()))
    }
}

impl TryRng for SeededRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut word = [0; 4];
        self.try_fill_bytes(&mut word)?;
        Ok(u32::from_le_bytes(word))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut word = [0; 8];
        self.try_fill_bytes(&mut word)?;
        Ok(u64::from_le_bytes(word))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(0);
        self.0.apply_keystream(bytes);
        Ok(())
    }
}

impl TryCryptoRng for SeededRng {}
