//! Masks of an independent implementation, `tests/vectors/masks.py`.

use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{MaskGrid, MaskSign, PairKeys, add_mask};
use crate::assignment::vectors::{hex, number, read};
use crate::assignment::{Beacon, ClientIdentity, Epoch, GroupId, PublicKey};

fn vectors() -> Vec<Value> {
    read(include_str!("../../tests/vectors/masks.json"))
}

fn cohort(vector: &Value) -> Vec<PublicKey> {
    vector["cohort"].as_array().unwrap().iter().map(|member| PublicKey::from_bytes(hex(member))).collect()
}

fn grid(vector: &Value) -> MaskGrid {
    let std = |name: &str| vector[name].as_f64().unwrap();
    MaskGrid::new(cohort(vector).len() as u32, std("mask_std"), std("noise_std")).unwrap()
}

/// Both clients of each pair: key, seed, signs and all values of the mask.
#[test]
fn both_ends_make_the_masks_of_the_vectors() {
    let vectors = vectors();
    assert_eq!(vectors.len(), 8);
    for vector in &vectors {
        let cohort = cohort(vector);
        let group = GroupId(hex(&vector["group"]));
        let beacon = Beacon {
            group,
            epoch: Epoch(number(&vector["epoch"])),
            slot: vector["slot"].as_u64().unwrap(),
            sequences: cohort.len() as u32,
            per_round: cohort.len() as u32,
        };
        let identities = ["first", "second"]
            .map(|end| ClientIdentity::from_secret_bytes(&hex(&vector[&format!("{end}_private")])));
        for (identity, member) in identities.iter().zip(&cohort) {
            assert_eq!(identity.public_key(), *member);
        }
        assert_eq!(cohort[0].to_bytes(), hex(&vector["first_public"]));
        assert_eq!(cohort[1].to_bytes(), hex(&vector["second_public"]));
        for (own, other) in [(0, 1), (1, 0)] {
            let shared = identities[own].shared_secret(&cohort[other]).unwrap();
            assert_eq!(*shared, hex(&vector["shared"]));
            let pairs = PairKeys::agree(&identities[own], group, &cohort).unwrap();
            assert_eq!(pairs.key(cohort[other]), hex(&vector["pair_key"]));
            let masks = pairs.seeds(&beacon, own as u32 + 1, &cohort, 1).unwrap();
            // The others follow in the order of the cohort.
            let (seed, sign) = &masks.seeds()[0];
            assert_eq!(*seed.key().secret(), hex(&vector["seed"]));
            let first_adds = vector["first_adds"].as_bool().unwrap();
            assert_eq!(*sign == MaskSign::Plus, first_adds == (own == 0));

            let mut values = vec![0; vector["count"].as_u64().unwrap() as usize];
            add_mask(seed, MaskSign::Plus, &grid(vector), &mut values).unwrap();
            let start: Vec<i64> = serde_json::from_value(vector["mask_start"].clone()).unwrap();
            assert_eq!(values[..start.len()], start);
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_be_bytes()).collect();
            let digest: [u8; 32] = Sha256::digest(bytes).into();
            assert_eq!(digest, hex(&vector["mask_sha256"]));
        }
    }
    let continued = |vector: &Value| vector["continued_pairs"].as_u64().unwrap();
    assert!(vectors.iter().map(continued).sum::<u64>() > 3, "the vectors reach the further words");
}

#[test]
fn grids_are_those_of_the_vectors() {
    for vector in vectors() {
        let grid = grid(&vector);
        assert_eq!(Some(grid.pair_std()), vector["pair_std"].as_f64());
        assert_eq!(Some(grid.fine_step()), vector["fine_step"].as_f64());
        assert_eq!(Some(grid.sent_step()), vector["sent_step"].as_f64());
    }
}
