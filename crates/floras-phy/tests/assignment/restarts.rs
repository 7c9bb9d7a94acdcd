//! The state that a client keeps over new epochs and restarts.

use super::*;

#[test]
fn only_keys_of_later_epochs_are_installed() {
    let mut member = GroupMember::new(key());
    member.sequence_for(&beacon(7), 1).unwrap();
    for got in [Epoch(0), Epoch(4), EPOCH] {
        let refused = member.install(key_of(got));
        assert_eq!(refused, Err(AssignmentError::EpochRollback { got, reached: EPOCH }));
    }
    let foreign = GroupKey::from_secret_bytes(OTHER_GROUP, Epoch(6), &SECRET);
    assert_eq!(
        member.install(foreign),
        Err(AssignmentError::WrongGroup { subject: "key", got: OTHER_GROUP, expected: GROUP })
    );
    assert_eq!(
        member.state(),
        MemberState { group: GROUP, epoch: EPOCH, last_slot: Some(7), minimum_unused: 0, minimum_cohort: 2 }
    );
}

#[test]
fn a_new_epoch_resets_slots_but_keeps_minimums() {
    let mut member = GroupMember::new(key()).with_minimum_unused(5);
    member.sequence_for(&beacon(u64::MAX), 1).unwrap();
    member.install(key_of(Epoch(6))).unwrap();

    member.sequence_for(&beacon(8), 1).unwrap_err();
    let next = Beacon { epoch: Epoch(6), ..beacon(1) };
    member.sequence_for(&Beacon { sequences: 24, ..next }, 1).unwrap_err();
    member.sequence_for(&next, 1).unwrap();
}

#[test]
fn a_restart_keeps_last_slot_and_minimums() {
    let mut member = GroupMember::new(key()).with_minimum_unused(5);
    member.sequence_for(&beacon(7), 1).unwrap();
    let saved = member.state();
    drop(member);

    let mut member = GroupMember::resume(key(), saved).unwrap();
    member.sequence_for(&beacon(7), 1).unwrap_err();
    member.sequence_for(&Beacon { sequences: 24, ..beacon(8) }, 1).unwrap_err();
    member.sequence_for(&beacon(8), 1).unwrap();
}

#[test]
fn a_restart_keeps_group_and_epoch() {
    let state =
        MemberState { group: GROUP, epoch: EPOCH, last_slot: Some(7), minimum_unused: 0, minimum_cohort: 2 };
    let rollback = GroupMember::resume(key_of(Epoch(4)), state).unwrap_err();
    assert_eq!(rollback, AssignmentError::EpochRollback { got: Epoch(4), reached: EPOCH });

    let foreign = GroupKey::from_secret_bytes(OTHER_GROUP, EPOCH, &SECRET);
    GroupMember::resume(foreign, state).unwrap_err();

    let later = GroupMember::resume(key_of(Epoch(6)), state).unwrap();
    assert_eq!(
        later.state(),
        MemberState { group: GROUP, epoch: Epoch(6), last_slot: None, minimum_unused: 0, minimum_cohort: 2 }
    );
}
