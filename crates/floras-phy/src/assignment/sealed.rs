//! The sealed key as it travels, 101 bytes: a public header, then HPKE's ciphertext of the group key.
//!
//! ```text
//! version (1) ‖ group (16) ‖ epoch (4, big-endian) ‖ enc (32) ‖ ciphertext (32) ‖ tag (16)
//! ```

use super::{AssignmentError, Epoch, GroupId};

/// The only format version there is.
const VERSION: u8 = 1;

const GROUP: usize = 16;
const EPOCH: usize = 4;
const ENC: usize = 32;
const CIPHERTEXT: usize = 32;
const TAG: usize = 16;

/// A group key sealed by the dealer for one client. Public: the base station may relay and keep it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedKey {
    pub(super) group: GroupId,
    pub(super) epoch: Epoch,
    pub(super) enc: [u8; ENC],
    pub(super) ciphertext: [u8; CIPHERTEXT],
    pub(super) tag: [u8; TAG],
}

impl SealedKey {
    /// Number of bytes in a sealed key.
    pub const BYTES: usize = 1 + GROUP + EPOCH + ENC + CIPHERTEXT + TAG;

    /// The group named in the header. It is not authenticated until the key is opened.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The epoch named in the header. It is not authenticated until the key is opened.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Version, group, epoch and ciphertext as [`SealedKey::BYTES`] bytes, in the order of the assignment format.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let epoch = self.epoch.0.to_be_bytes();
        let mut bytes = [VERSION; Self::BYTES];
        let mut rest = &mut bytes[1..];
        for field in [&self.group.0[..], &epoch, &self.enc, &self.ciphertext, &self.tag] {
            let (head, tail) = rest.split_at_mut(field.len());
            head.copy_from_slice(field);
            rest = tail;
        }
        bytes
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Refuses any other length or version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AssignmentError> {
        let bytes: &[u8; Self::BYTES] = bytes
            .try_into()
            .map_err(|_| AssignmentError::SealedKeyLength { got: bytes.len(), expected: Self::BYTES })?;
        let [version, fields @ ..] = bytes;
        if *version != VERSION {
            return Err(AssignmentError::SealedKeyVersion { got: *version, known: VERSION });
        }
        let mut rest = &fields[..];
        Ok(Self {
            group: GroupId(take(&mut rest)),
            epoch: Epoch(u32::from_be_bytes(take(&mut rest))),
            enc: take(&mut rest),
            ciphertext: take(&mut rest),
            tag: take(&mut rest),
        })
    }
}

/// Cuts the next field off the front of `rest`.
fn take<const LEN: usize>(rest: &mut &[u8]) -> [u8; LEN] {
    let (field, tail) = rest.split_first_chunk().expect("the fields add up to the length that was checked");
    *rest = tail;
    *field
}
