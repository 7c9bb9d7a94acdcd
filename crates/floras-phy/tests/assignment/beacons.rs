//! Beacons that a client refuses.

use super::*;

#[test]
fn slots_must_increase() {
    let mut member = GroupMember::new(key());
    member.sequence_for(&beacon(7), 1).unwrap();
    for slot in [7, 6, 0] {
        let refused = member.sequence_for(&beacon(slot), 2);
        assert_eq!(refused, Err(AssignmentError::SlotNotNew { slot, last: 7 }));
    }
    member.sequence_for(&beacon(8), 1).unwrap();
}

#[test]
fn first_and_last_slot_are_usable_once() {
    let mut member = GroupMember::new(key());
    member.sequence_for(&beacon(0), 1).unwrap();
    member.sequence_for(&beacon(0), 1).unwrap_err();
    member.sequence_for(&beacon(u64::MAX), 1).unwrap();
    member.sequence_for(&beacon(u64::MAX), 1).unwrap_err();
}

/// Why a beacon is refused, having checked that the refusal leaves the slot to a good beacon.
fn refusal(bad: Beacon, index: u32) -> AssignmentError {
    let mut member = GroupMember::new(key()).with_minimum_unused(4);
    let reason = member.sequence_for(&bad, index).unwrap_err();
    assert_eq!(member.state().last_slot, None);
    member.sequence_for(&beacon(bad.slot), 20).unwrap();
    reason
}

#[test]
fn beacons_of_other_groups_or_epochs_are_refused() {
    let subject = "beacon";
    let (got, expected) = (OTHER_GROUP, GROUP);
    let foreign = Beacon { group: got, ..beacon(7) };
    assert_eq!(refusal(foreign, 1), AssignmentError::WrongGroup { subject, got, expected });
    for got in [Epoch(4), Epoch(6)] {
        let stale = Beacon { epoch: got, ..beacon(7) };
        let expected = AssignmentError::WrongEpoch { subject, got, expected: EPOCH };
        assert_eq!(refusal(stale, 1), expected);
    }
}

#[test]
fn a_beacon_with_impossible_sizes_is_refused() {
    let sized = |sequences, per_round| {
        let bad = Beacon { sequences, per_round, ..beacon(7) };
        refusal(bad, 1)
    };
    assert_eq!(sized(25, 0), AssignmentError::NoParticipants);
    assert_eq!(sized(0, 0), AssignmentError::NoParticipants);
    let (sequences, per_round) = (19, 20);
    let too_few = AssignmentError::TooFewSequences { sequences, per_round };
    assert_eq!(sized(sequences, per_round), too_few);
    let sequences = MAX_SEQUENCES + 1;
    let too_many = AssignmentError::SequencesOutOfRange { sequences };
    assert_eq!(sized(sequences, per_round), too_many);
    let too_full = AssignmentError::TooFewUnused { unused: 3, minimum: 4 };
    assert_eq!(sized(23, 20), too_full);
}

#[test]
fn an_index_outside_one_to_k_is_refused() {
    for index in [0, 21, 25, u32::MAX] {
        let reason = AssignmentError::IndexOutOfRange { index, per_round: 20 };
        assert_eq!(refusal(beacon(7), index), reason);
    }
}

#[test]
fn a_client_can_demand_more_sequences_than_clients() {
    let full = Beacon { sequences: 20, ..beacon(1) };
    GroupMember::new(key()).sequence_for(&full, 20).unwrap();
    let mut careful = GroupMember::new(key()).with_minimum_unused(5);
    careful.sequence_for(&full, 20).unwrap_err();
    careful.sequence_for(&beacon(1), 20).unwrap();
}

#[test]
fn the_permutation_checks_its_size() {
    for sequences in [0, MAX_SEQUENCES + 1, u32::MAX] {
        let refused = permutation(&key(), 1, sequences).unwrap_err();
        assert_eq!(refused, AssignmentError::SequencesOutOfRange { sequences });
    }
    assert_eq!(order(&key(), 1, MAX_SEQUENCES).len(), MAX_SEQUENCES as usize);
}
