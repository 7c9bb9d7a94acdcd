//! The group key: 32 secret bytes that all clients of a group share and the base station must not
//! have.

use std::fmt;

use zeroize::{ZeroizeOnDrop, Zeroizing};

use super::{AssignmentError, Epoch, GroupId, entropy};

/// The secret from which every round's permutation comes, with the group and epoch it is for.
///
/// It is wiped when dropped. It cannot be printed, copied, compared, serialised or read back as
/// bytes; the only way out of the process is sealed, through
/// [`ClientIdentity::deal`](super::ClientIdentity::deal).
pub struct GroupKey {
    group: GroupId,
    epoch: Epoch,
    // On the heap, so that moving the key does not leave copies behind on the stack.
    secret: Box<Zeroizing<[u8; 32]>>,
}

impl GroupKey {
    /// A fresh key from the operating system's randomness. Make only one for each epoch.
    pub fn generate(group: GroupId, epoch: Epoch) -> Result<Self, AssignmentError> {
        let mut key = Self::blank(group, epoch);
        entropy::fill(key.secret_mut())?;
        Ok(key)
    }

    /// A key that the clients agreed on by other means. It must be 32 uniformly random bytes; a
    /// password is not.
    pub fn from_secret_bytes(group: GroupId, epoch: Epoch, secret: &[u8; 32]) -> Self {
        let mut key = Self::blank(group, epoch);
        key.secret_mut().copy_from_slice(secret);
        key
    }

    /// The group this key is for.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The epoch this key is for.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// A key of zeros, to be filled in place.
    pub(super) fn blank(group: GroupId, epoch: Epoch) -> Self {
        let secret = Box::new(Zeroizing::new([0; 32]));
        Self { group, epoch, secret }
    }

    pub(super) fn secret(&self) -> &[u8; 32] {
        &self.secret
    }

    pub(super) fn secret_mut(&mut self) -> &mut [u8; 32] {
        &mut self.secret
    }
}

/// The secret field wipes itself.
impl ZeroizeOnDrop for GroupKey {}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupKey")
            .field("group", &self.group)
            .field("epoch", &self.epoch)
            .field("secret", &format_args!("[redacted]"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_that_holds_the_secret_wipes_itself() {
        fn wipes(_: &impl ZeroizeOnDrop) {}
        let key = GroupKey::blank(GroupId([1; 16]), Epoch(1));
        wipes(&*key.secret);
    }
}
