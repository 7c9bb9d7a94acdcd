//! The secrets that two clients share: a key for each pair, and a seed for each pair and slot.
//!
//! ```text
//! shared    = X25519(own private key, other public key)                                   RFC 7748
//! pair key  = HKDF-SHA256(salt "floras/pair-key/v1", shared,   "floras/pair/v1" ‖ group ‖ lower ‖ higher)
//! seed      = HKDF-SHA256(salt "floras/pair-key/v1", pair key, "floras/mask/v1" ‖ group ‖ epoch ‖ slot ‖ SHA-256(cohort))
//! ```
//!
//! The cohort is the list of the `K` participants' public keys. Two clients with different cohort lists have independent masks, which do
//! not cancel. If they had the same mask on different scales `σ_m/√K`, a base station that announces a small `K` to all but one client
//! would get that client's masks with little noise.
//!
//! `lower` and `higher` are the two public keys, in the order of their bytes. The client with the lower key adds the mask, the
//! other subtracts it: the base station, which orders the cohort, has no influence on the signs.

use std::collections::{HashMap, HashSet};
use std::fmt;

use hkdf::Hkdf;
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::assignment::{AssignmentError, Beacon, ClientIdentity, GroupId, PublicKey};
use crate::release::ReleaseKey;

const SALT: &[u8; 18] = b"floras/pair-key/v1";
const PAIR_LABEL: &[u8; 14] = b"floras/pair/v1";
const MASK_LABEL: &[u8; 14] = b"floras/mask/v1";

/// Whether a client adds or subtracts the mask of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskSign {
    /// The mask is added.
    Plus,
    /// The mask is subtracted.
    Minus,
}

impl MaskSign {
    /// The sign with which the client `own` adds the mask of its pair with `other`.
    pub fn of(own: PublicKey, other: PublicKey) -> Self {
        if own.to_bytes() < other.to_bytes() { Self::Plus } else { Self::Minus }
    }
}

/// The seed of one pair's mask in one slot: 32 secret bytes.
///
/// It is wiped when dropped, and cannot be copied, printed, compared, serialised or read back.
pub struct PairSeed(ReleaseKey);

impl PairSeed {
    /// A seed with known bytes, for a simulation, which draws them from a named stream. Clients that send real data get theirs from
    /// [`GroupMember::masked_slot`](crate::assignment::GroupMember::masked_slot), which uses no slot twice.
    pub fn from_bytes(secret: [u8; 32]) -> Self {
        Self(ReleaseKey::known(secret))
    }

    pub(super) fn key(&self) -> &ReleaseKey {
        &self.0
    }
}

/// The key inside wipes itself.
impl ZeroizeOnDrop for PairSeed {}

impl fmt::Debug for PairSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairSeed([redacted])")
    }
}

/// The seeds of one client's masks in one slot, one for each other client of the cohort.
///
/// [`mask_update`](super::mask_update) consumes them, so that they mask one update only.
pub struct SlotMasks(Vec<(PairSeed, MaskSign)>);

impl SlotMasks {
    /// The seeds of a simulated client, with the sign of each.
    pub fn simulated(seeds: Vec<(PairSeed, MaskSign)>) -> Self {
        Self(seeds)
    }

    /// `K`, the number of clients in the cohort, this one included.
    pub fn clients(&self) -> usize {
        self.0.len() + 1
    }

    pub(super) fn seeds(&self) -> &[(PairSeed, MaskSign)] {
        &self.0
    }
}

impl fmt::Debug for SlotMasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlotMasks").field("clients", &self.clients()).finish_non_exhaustive()
    }
}

/// The keys that a client shares with every other enrolled client of its group.
///
/// They are wiped when dropped. They need not be stored: the identity and the enrolled public keys yield them again.
pub struct PairKeys {
    own: PublicKey,
    group: GroupId,
    // On the heap, so that a growing map does not leave copies behind.
    keys: HashMap<PublicKey, Box<Zeroizing<[u8; 32]>>>,
}

impl PairKeys {
    /// Agrees on a key with each of `members`; the client itself, if listed, is skipped.
    ///
    /// # Arguments
    /// * `members`: public keys that were enrolled by a way which the base station does not control. For a key that the base station
    ///   inserts, it knows the masks.
    pub fn agree(
        identity: &ClientIdentity,
        group: GroupId,
        members: &[PublicKey],
    ) -> Result<Self, AssignmentError> {
        let own = identity.public_key();
        let mut keys = HashMap::with_capacity(members.len());
        for &member in members.iter().filter(|&&member| member != own) {
            let shared = identity.shared_secret(&member)?;
            let (lower, higher) = match MaskSign::of(own, member) {
                MaskSign::Plus => (own, member),
                MaskSign::Minus => (member, own),
            };
            let info: [&[u8]; 4] = [PAIR_LABEL, &group.0, &lower.to_bytes(), &higher.to_bytes()];
            let mut key = Box::new(Zeroizing::new([0; 32]));
            derive(&shared, &info, &mut key);
            keys.insert(member, key);
        }
        Ok(Self { own, group, keys })
    }

    /// The key shared with `member`, for the test vectors.
    #[cfg(test)]
    pub(super) fn key(&self, member: PublicKey) -> [u8; 32] {
        **self.keys[&member]
    }

    /// The group that the keys are for.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// The seeds for a cohort; an error unless this client is in the cohort at `index`.
    pub(crate) fn seeds(
        &self,
        beacon: &Beacon,
        index: u32,
        cohort: &[PublicKey],
        minimum: u32,
    ) -> Result<SlotMasks, AssignmentError> {
        self.check_cohort(beacon, index, cohort, minimum)?;
        let mut digest = Sha256::new();
        cohort.iter().for_each(|member| digest.update(member.to_bytes()));
        let digest = digest.finalize();
        let info: [&[u8]; 5] = [
            MASK_LABEL,
            &self.group.0,
            &beacon.epoch.0.to_be_bytes(),
            &beacon.slot.to_be_bytes(),
            digest.as_slice(),
        ];
        let mut seeds = Vec::with_capacity(cohort.len() - 1);
        for &member in cohort.iter().filter(|&&member| member != self.own) {
            let key = self.keys.get(&member).ok_or(AssignmentError::UnknownMember { member })?;
            let seed = ReleaseKey::filled(|seed| derive(key, &info, seed));
            seeds.push((PairSeed(seed), MaskSign::of(self.own, member)));
        }
        Ok(SlotMasks(seeds))
    }

    fn check_cohort(
        &self,
        beacon: &Beacon,
        index: u32,
        cohort: &[PublicKey],
        minimum: u32,
    ) -> Result<(), AssignmentError> {
        let per_round = beacon.per_round;
        if cohort.len() != per_round as usize {
            return Err(AssignmentError::CohortSize { got: cohort.len(), per_round });
        }
        if !(1..=per_round).contains(&index) {
            return Err(AssignmentError::IndexOutOfRange { index, per_round });
        }
        if cohort[index as usize - 1] != self.own {
            return Err(AssignmentError::NotAtIndex { index });
        }
        let mut seen = HashSet::with_capacity(cohort.len());
        if let Some(&member) = cohort.iter().find(|&&member| !seen.insert(member)) {
            return Err(AssignmentError::RepeatedMember { member });
        }
        let others = per_round - 1;
        if others < minimum {
            return Err(AssignmentError::CohortTooSmall { others, minimum });
        }
        Ok(())
    }
}

/// The secret fields wipe themselves.
impl ZeroizeOnDrop for PairKeys {}

impl fmt::Debug for PairKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairKeys")
            .field("own", &self.own)
            .field("group", &self.group)
            .field("members", &self.keys.len())
            .field("keys", &format_args!("[redacted]"))
            .finish()
    }
}

/// HKDF-SHA256 for 32 bytes, under the salt of this module.
fn derive(secret: &[u8; 32], info: &[&[u8]], out: &mut [u8; 32]) {
    let (mut prk, hkdf) = Hkdf::<Sha256>::extract(Some(SALT), secret);
    prk.as_mut_slice().zeroize();
    hkdf.expand_multi_info(info, out).expect("32 bytes are within the 8160 that HKDF-SHA256 can give");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_that_hold_secrets_wipe_themselves() {
        fn wipes(_: &impl ZeroizeOnDrop) {}
        let identity = ClientIdentity::from_secret_bytes(&[1; 32]);
        let other = ClientIdentity::from_secret_bytes(&[2; 32]).public_key();
        let pairs = PairKeys::agree(&identity, GroupId([7; 16]), &[other]).unwrap();
        wipes(&**pairs.keys.values().next().unwrap());
        wipes(PairSeed::from_bytes([3; 32]).key());
    }
}
