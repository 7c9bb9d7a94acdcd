//! A group member: it reads beacons, returns its column, and refuses beacons that would weaken its privacy.
//!
//! A slot is used once. A replayed slot would repeat its permutation: a client with the same index
//! would send on the same column again, which the base station could observe. So slots must
//! increase, and the last one used must survive a restart.

use super::{AssignmentError, Epoch, GroupId, GroupKey, MAX_SEQUENCES, PublicKey, permutation};
use crate::masks::{PairKeys, SlotMasks};

/// Default minimum number of other clients in a cohort.
const MINIMUM_COHORT: u32 = 2;

/// The announcement of a round by the base station. Each participant also gets an index in `1..=per_round`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// The group of the participants.
    pub group: GroupId,
    /// The epoch whose key is to be used.
    pub epoch: Epoch,
    /// The slot number, greater in every round of an epoch.
    pub slot: u64,
    /// Number of sequences `N`, at most [`MAX_SEQUENCES`].
    pub sequences: u32,
    /// Number of participants `K`, at most `N`.
    pub per_round: u32,
}

impl Beacon {
    fn check_sizes(&self) -> Result<(), AssignmentError> {
        let Self { sequences, per_round, .. } = *self;
        if per_round == 0 {
            return Err(AssignmentError::NoParticipants);
        }
        if sequences < per_round {
            return Err(AssignmentError::TooFewSequences { sequences, per_round });
        }
        if sequences > MAX_SEQUENCES {
            return Err(AssignmentError::SequencesOutOfRange { sequences });
        }
        Ok(())
    }
}

/// State that a client must keep across a restart. It is not secret.
///
/// Save it after [`GroupMember::sequence_for`] or [`GroupMember::masked_slot`] and before the radio sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberState {
    /// The group the client belongs to.
    pub group: GroupId,
    /// The epoch the client has reached.
    pub epoch: Epoch,
    /// The last slot used in that epoch, if any.
    pub last_slot: Option<u64>,
    /// Minimum number of sequences that a beacon must leave unused.
    pub minimum_unused: u32,
    /// Minimum number of other clients in the cohort of a masked slot.
    pub minimum_cohort: u32,
}

/// The column and the seeds with which a client sends in a masked slot.
#[derive(Debug)]
pub struct MaskedSlot {
    /// The column, counted from 0, on which the client sends.
    pub sequence: usize,
    /// The seeds of its masks, for one update.
    pub masks: SlotMasks,
}

/// A client with its group key and the last slot that it used.
///
/// ```
/// # use floras_phy::assignment::{AssignmentError, Beacon, Epoch, GroupId, GroupKey, GroupMember};
/// # let (group, epoch) = (GroupId([7; 16]), Epoch(1));
/// let mut member = GroupMember::new(GroupKey::generate(group, epoch)?);
/// let beacon = Beacon { group, epoch, slot: 40, sequences: 8, per_round: 5 };
/// let column = member.sequence_for(&beacon, 3)?;
/// assert!(column < 8);
///
/// let replayed = member.sequence_for(&beacon, 4);
/// assert_eq!(replayed, Err(AssignmentError::SlotNotNew { slot: 40, last: 40 }));
/// # Ok::<(), AssignmentError>(())
/// ```
#[derive(Debug)]
pub struct GroupMember {
    key: GroupKey,
    last_slot: Option<u64>,
    minimum_unused: u32,
    minimum_cohort: u32,
}

impl GroupMember {
    /// A client that has used no slot of this key's epoch yet. After a restart, use
    /// [`resume`](Self::resume).
    pub fn new(key: GroupKey) -> Self {
        Self { key, last_slot: None, minimum_unused: 0, minimum_cohort: MINIMUM_COHORT }
    }

    /// A client resumed from a saved state, with the key of that epoch or of a later one.
    ///
    /// The key is not part of the state: open the stored [`SealedKey`](super::SealedKey) again.
    pub fn resume(key: GroupKey, state: MemberState) -> Result<Self, AssignmentError> {
        check_group("key", key.group(), state.group)?;
        if key.epoch() < state.epoch {
            return Err(AssignmentError::EpochRollback { got: key.epoch(), reached: state.epoch });
        }
        let last_slot = state.last_slot.filter(|_| key.epoch() == state.epoch);
        let MemberState { minimum_unused, minimum_cohort, .. } = state;
        Ok(Self { key, last_slot, minimum_unused, minimum_cohort })
    }

    /// The same client, which from now on refuses a beacon that leaves fewer than `unused` sequences unused.
    ///
    /// The unused sequences provide the noise, so a round with `N = K` has no privacy.
    #[must_use]
    pub fn with_minimum_unused(self, unused: u32) -> Self {
        Self { minimum_unused: unused, ..self }
    }

    /// The same client, which from now on refuses a masked slot whose cohort has fewer than `others` other clients; 2 unless this
    /// is called.
    ///
    /// Masks protect a client only if some of the other clients do not collude with the base station.
    #[must_use]
    pub fn with_minimum_cohort(self, others: u32) -> Self {
        Self { minimum_cohort: others, ..self }
    }

    /// Replaces the key by one of a later epoch. Slots then start again, because
    /// the new key has used none.
    pub fn install(&mut self, key: GroupKey) -> Result<(), AssignmentError> {
        check_group("key", key.group(), self.key.group())?;
        if key.epoch() <= self.key.epoch() {
            return Err(AssignmentError::EpochRollback { got: key.epoch(), reached: self.key.epoch() });
        }
        self.key = key;
        self.last_slot = None;
        Ok(())
    }

    /// The column, counted from 0, on which the client with this `index` sends in the beacon's
    /// slot.
    ///
    /// Only a success uses up the slot: after an error it can still be used.
    pub fn sequence_for(&mut self, beacon: &Beacon, index: u32) -> Result<usize, AssignmentError> {
        self.check_beacon(beacon)?;
        if !(1..=beacon.per_round).contains(&index) {
            return Err(AssignmentError::IndexOutOfRange { index, per_round: beacon.per_round });
        }
        let order = permutation(&self.key, beacon.slot, beacon.sequences)?;
        self.last_slot = Some(beacon.slot);
        Ok(order[index as usize - 1] as usize)
    }

    /// The column and the masks of the client with this `index` in the beacon's slot.
    ///
    /// Only a success uses up the slot, as in [`sequence_for`](Self::sequence_for), and both functions share it: no seed masks
    /// two updates, whatever cohorts the base station announces.
    ///
    /// # Arguments
    /// * `pairs`: the keys that this client shares with the enrolled clients of the group.
    /// * `cohort`: the public keys of the `K` participants, in the order of their indices. They must be enrolled and distinct, and this
    ///   client must be at its own index.
    pub fn masked_slot(
        &mut self,
        beacon: &Beacon,
        index: u32,
        pairs: &PairKeys,
        cohort: &[PublicKey],
    ) -> Result<MaskedSlot, AssignmentError> {
        self.check_beacon(beacon)?;
        check_group("set of pair keys", pairs.group(), self.key.group())?;
        let masks = pairs.seeds(beacon, index, cohort, self.minimum_cohort)?;
        let sequence = self.sequence_for(beacon, index)?;
        Ok(MaskedSlot { sequence, masks })
    }

    /// The state to save, so that a restarted client neither uses a slot twice nor accepts an earlier key.
    pub fn state(&self) -> MemberState {
        MemberState {
            group: self.key.group(),
            epoch: self.key.epoch(),
            last_slot: self.last_slot,
            minimum_unused: self.minimum_unused,
            minimum_cohort: self.minimum_cohort,
        }
    }

    fn check_beacon(&self, beacon: &Beacon) -> Result<(), AssignmentError> {
        check_group("beacon", beacon.group, self.key.group())?;
        if beacon.epoch != self.key.epoch() {
            return Err(AssignmentError::WrongEpoch {
                subject: "beacon",
                got: beacon.epoch,
                expected: self.key.epoch(),
            });
        }
        beacon.check_sizes()?;
        let unused = beacon.sequences - beacon.per_round;
        if unused < self.minimum_unused {
            return Err(AssignmentError::TooFewUnused { unused, minimum: self.minimum_unused });
        }
        match self.last_slot {
            Some(last) if beacon.slot <= last => Err(AssignmentError::SlotNotNew { slot: beacon.slot, last }),
            _ => Ok(()),
        }
    }
}

fn check_group(subject: &'static str, got: GroupId, expected: GroupId) -> Result<(), AssignmentError> {
    if got == expected { Ok(()) } else { Err(AssignmentError::WrongGroup { subject, got, expected }) }
}
