//! The secret assignment from outside: agreement, refusals, secrecy of the types, uniformity, and
//! the published vectors.

#![expect(clippy::unwrap_used, reason = "a helper that fails should fail the test")]

mod agreement;
mod beacons;
mod restarts;
mod sealed_keys;
mod secrecy;
mod uniformity;
mod vectors;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use floras_phy::assignment::{
    AssignmentError, Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember, MAX_SEQUENCES,
    MemberState, PublicKey, SealedKey, permutation,
};
use proptest::{collection, prelude::*};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use sha2::{Digest, Sha256};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use zeroize::ZeroizeOnDrop;

const GROUP: GroupId = GroupId(*b"floras test room");
const OTHER_GROUP: GroupId = GroupId([0; 16]);
const EPOCH: Epoch = Epoch(5);
const SECRET: [u8; 32] = [0xa7; 32];

fn key() -> GroupKey {
    key_of(EPOCH)
}

fn key_of(epoch: Epoch) -> GroupKey {
    GroupKey::from_secret_bytes(GROUP, epoch, &SECRET)
}

fn beacon(slot: u64) -> Beacon {
    Beacon { group: GROUP, epoch: EPOCH, slot, sequences: 25, per_round: 20 }
}

fn order(key: &GroupKey, slot: u64, sequences: u32) -> Vec<u32> {
    permutation(key, slot, sequences).unwrap().to_vec()
}
