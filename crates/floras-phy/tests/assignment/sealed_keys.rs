//! Sealed keys that a client refuses.

use super::*;

#[test]
fn a_sealed_key_with_a_flipped_bit_fails() {
    let (dealer, client) =
        (ClientIdentity::from_secret_bytes(&[1; 32]), ClientIdentity::from_secret_bytes(&[2; 32]));
    let bytes = dealer.deal(&key(), &client.public_key()).unwrap().to_bytes();
    for bit in 0..8 * bytes.len() {
        let mut tampered = bytes;
        tampered[bit / 8] ^= 1 << (bit % 8);
        let opened = SealedKey::from_bytes(&tampered)
            .and_then(|sealed| client.open(&sealed, &dealer.public_key(), GROUP, EPOCH));
        let reason = opened.unwrap_err();
        let expected = match bit / 8 {
            0 => matches!(reason, AssignmentError::SealedKeyVersion { known: 1, .. }),
            1..17 => matches!(reason, AssignmentError::WrongGroup { .. }),
            17..21 => matches!(reason, AssignmentError::WrongEpoch { .. }),
            _ => reason == AssignmentError::SealedKeyRejected,
        };
        assert!(expected, "bit {bit}: {reason}");
    }
}

#[test]
fn a_rewritten_header_does_not_open() {
    let client = ClientIdentity::generate().unwrap();
    let public = client.public_key();
    let mut bytes = client.deal(&key(), &public).unwrap().to_bytes();
    bytes[17..21].copy_from_slice(&6u32.to_be_bytes());
    let renewed = SealedKey::from_bytes(&bytes).unwrap();
    assert_eq!(renewed.epoch(), Epoch(6));
    let refused = client.open(&renewed, &public, GROUP, Epoch(6)).unwrap_err();
    assert_eq!(refused, AssignmentError::SealedKeyRejected);

    let mut bytes = client.deal(&key(), &public).unwrap().to_bytes();
    bytes[1..17].copy_from_slice(&OTHER_GROUP.0);
    let moved = SealedKey::from_bytes(&bytes).unwrap();
    assert_eq!(moved.group(), OTHER_GROUP);
    let refused = client.open(&moved, &public, OTHER_GROUP, EPOCH).unwrap_err();
    assert_eq!(refused, AssignmentError::SealedKeyRejected);
}

#[test]
fn a_base_station_cannot_impersonate_the_dealer() {
    let [dealer, client, station] = [(); 3].map(|()| ClientIdentity::generate().unwrap());
    let forged = station.deal(&key(), &client.public_key()).unwrap();
    let refused = client.open(&forged, &dealer.public_key(), GROUP, EPOCH).unwrap_err();
    assert_eq!(refused, AssignmentError::SealedKeyRejected);
}

#[test]
fn a_base_station_cannot_open_what_it_relays() {
    let [dealer, client, station] = [(); 3].map(|()| ClientIdentity::generate().unwrap());
    let sealed = dealer.deal(&key(), &client.public_key()).unwrap();
    let refused = station.open(&sealed, &dealer.public_key(), GROUP, EPOCH).unwrap_err();
    assert_eq!(refused, AssignmentError::SealedKeyRejected);
    assert!(!sealed.to_bytes().windows(4).any(|window| window == &SECRET[..4]));
}

#[test]
fn sealed_keys_for_other_groups_are_refused() {
    let client = ClientIdentity::generate().unwrap();
    let public = client.public_key();
    let sealed = client.deal(&key(), &public).unwrap();
    let subject = "sealed key";
    let group = client.open(&sealed, &public, OTHER_GROUP, EPOCH).unwrap_err();
    assert_eq!(group, AssignmentError::WrongGroup { subject, got: GROUP, expected: OTHER_GROUP });
    let epoch = client.open(&sealed, &public, GROUP, Epoch(6)).unwrap_err();
    assert_eq!(epoch, AssignmentError::WrongEpoch { subject, got: EPOCH, expected: Epoch(6) });
}

#[test]
fn sealed_keys_of_wrong_length_or_version_fail() {
    for got in [0, 1, SealedKey::BYTES - 1, SealedKey::BYTES + 1] {
        let refused = SealedKey::from_bytes(&vec![1; got]).unwrap_err();
        assert_eq!(refused, AssignmentError::SealedKeyLength { got, expected: SealedKey::BYTES });
    }
    let refused = SealedKey::from_bytes(&[2; SealedKey::BYTES]).unwrap_err();
    assert_eq!(refused, AssignmentError::SealedKeyVersion { got: 2, known: 1 });
}

#[test]
fn a_public_key_of_low_order_is_refused() {
    let client = ClientIdentity::generate().unwrap();
    let zero = PublicKey::from_bytes([0; 32]);
    assert_eq!(client.deal(&key(), &zero), Err(AssignmentError::UnusablePublicKey));
    let sealed = client.deal(&key(), &client.public_key()).unwrap();
    client.open(&sealed, &zero, GROUP, EPOCH).unwrap_err();
}

#[test]
fn sealing_twice_gives_different_bytes() {
    let client = ClientIdentity::generate().unwrap();
    let deal = || client.deal(&key(), &client.public_key()).unwrap();
    assert_ne!(deal(), deal());
}
