//! Independent clients agree on the permutation.

use super::*;

#[test]
fn clients_of_a_group_get_distinct_columns() {
    let dealer = ClientIdentity::generate().unwrap();
    let dealt = GroupKey::generate(GROUP, EPOCH).unwrap();
    let mut columns = BTreeSet::new();
    for index in 1..=20 {
        let client = ClientIdentity::generate().unwrap();
        let relayed = dealer.deal(&dealt, &client.public_key()).unwrap().to_bytes();
        let sealed = SealedKey::from_bytes(&relayed).unwrap();
        let opened = client.open(&sealed, &dealer.public_key(), GROUP, EPOCH).unwrap();
        assert_eq!(order(&opened, 9, 64), order(&dealt, 9, 64));

        let column = GroupMember::new(opened).sequence_for(&beacon(9), index).unwrap();
        assert!(column < 25);
        columns.insert(column);
    }
    assert_eq!(columns.len(), 20);
}

#[test]
fn the_column_is_the_permutations_entry() {
    for index in 1..=20 {
        let column = GroupMember::new(key()).sequence_for(&beacon(3), index).unwrap();
        assert_eq!(column, order(&key(), 3, 25)[index as usize - 1] as usize);
    }
}

#[test]
fn each_input_changes_the_permutation() {
    // With 64 sequences two unrelated permutations are equal with probability 1/64!.
    let other_key = GroupKey::from_secret_bytes(GROUP, EPOCH, &[0xa8; 32]);
    let other_group = GroupKey::from_secret_bytes(OTHER_GROUP, EPOCH, &SECRET);
    let mut longer = order(&key(), 1, 65);
    longer.retain(|&column| column != 64);
    let orders = BTreeSet::from([
        order(&key(), 1, 64),
        order(&key(), 2, 64),
        order(&other_key, 1, 64),
        order(&other_group, 1, 64),
        order(&key_of(Epoch(6)), 1, 64),
        longer,
    ]);
    assert_eq!(orders.len(), 6);
}

#[test]
fn two_generated_keys_differ() {
    let fresh = || GroupKey::generate(GROUP, EPOCH).unwrap();
    assert_ne!(order(&fresh(), 1, 64), order(&fresh(), 1, 64));
    let identity = || ClientIdentity::generate().unwrap();
    assert_ne!(identity().public_key(), identity().public_key());
}

#[test]
fn an_identity_survives_storage() {
    let client = ClientIdentity::generate().unwrap();
    let restored = ClientIdentity::from_secret_bytes(&client.to_secret_bytes());
    assert_eq!(restored.public_key(), client.public_key());

    let sealed = client.deal(&key(), &client.public_key()).unwrap();
    let opened = restored.open(&sealed, &client.public_key(), GROUP, EPOCH).unwrap();
    assert_eq!(order(&opened, 1, 64), order(&key(), 1, 64));
}
