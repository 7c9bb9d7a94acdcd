//! The protocol inside a simulation: the clients of a trial with their identities, their group key and their last slots.
//!
//! Every trial has a group of its own. Client 0 deals the group key. A client gets its identity and its sealed key when it is first
//! selected, so that the cost depends on the clients that take part and not on all that exist. The beacon of round `t` has slot `t`,
//! and calls the selected clients in the order of their list: the first has index 1.
//!
//! All secrets come from named random streams of the experiment's seed: the same seed yields the same assignments, and a resumed
//! trial needs no saved key. Streams of a seed are not secret. Clients that transmit real data take
//! [`ClientIdentity::generate`] and [`GroupKey::generate`] instead.
//!
//! A simulation may draw a round again, for example before the first round or in an audit. The same round yields the same
//! assignment. Drawing an earlier round resets all members, as if the trial were repeated from its first round.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use floras_core::random::{Purpose, StreamName};
use rand::Rng;
use rayon::prelude::*;
use zeroize::Zeroizing;

use super::entropy::SeededRng;
use super::{AssignmentError, Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember};
use crate::round::Round;

/// The client that deals the group key.
const DEALER: u32 = 0;
/// The epoch of all keys: there is one key per trial.
const EPOCH: Epoch = Epoch(1);
/// Maximum number of groups in the cache.
const MAX_GROUPS: usize = 256;
/// Maximum number of members in the cache, over all groups; one group may be larger.
const MAX_MEMBERS: usize = 1 << 18;

/// A cache of the groups of the latest trials. A removed group is formed again when its trial continues.
#[derive(Default)]
pub(crate) struct SimulatedGroups(Mutex<Vec<Group>>);

impl SimulatedGroups {
    /// The sequence of each client of a round, counted from 0, of `sequences` in all.
    pub(crate) fn assign(&self, round: &Round<'_>, sequences: u32) -> Result<Vec<usize>, AssignmentError> {
        let name = round.stream_name(Purpose::GROUP_KEY).round(0);
        // The lock is released while members work: a waiting thread may execute another round, which needs the lock.
        let kept = self.take(name);
        let mut group = kept.unwrap_or_else(|| Group::new(name, group_id(round)));
        let assigned = group.assign(round, sequences);
        self.keep(group);
        assigned
    }

    fn take(&self, name: StreamName) -> Option<Group> {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = groups.iter().position(|group| group.name == name)?;
        Some(groups.remove(place))
    }

    fn keep(&self, group: Group) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|other| other.name != group.name);
        groups.push(group);
        let members = |groups: &[Group]| groups.iter().map(|group| group.members.len()).sum::<usize>();
        while groups.len() > MAX_GROUPS || (groups.len() > 1 && members(&groups) > MAX_MEMBERS) {
            groups.remove(0);
        }
    }
}

/// The groups are a cache and not part of an uplink's value.
impl Clone for SimulatedGroups {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for SimulatedGroups {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for SimulatedGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulatedGroups").finish_non_exhaustive()
    }
}

/// The name of a trial's group: public, and different for every trial.
fn group_id(round: &Round<'_>) -> GroupId {
    let [high, low] = round.trial().number().to_be_bytes();
    let mut id = *b"simulation\0\0\0\0\0\0";
    id[13..].copy_from_slice(&[round.trial().domain() as u8, high, low]);
    GroupId(id)
}

/// The clients of one trial.
struct Group {
    /// The stream of the group key.
    name: StreamName,
    dealer: ClientIdentity,
    /// The dealer's copy.
    key: GroupKey,
    /// The clients that have received their key.
    members: HashMap<u32, GroupMember>,
    last: Option<Drawing>,
}

/// The assignment of the round that was drawn last.
struct Drawing {
    slot: u64,
    sequences: u32,
    selected: Vec<u32>,
    assigned: Zeroizing<Vec<usize>>,
}

impl Group {
    fn new(name: StreamName, id: GroupId) -> Self {
        let dealer = identity(name, DEALER);
        let key = GroupKey::from_secret_bytes(id, EPOCH, &secret(name));
        Self { name, dealer, key, members: HashMap::new(), last: None }
    }

    fn assign(&mut self, round: &Round<'_>, sequences: u32) -> Result<Vec<usize>, AssignmentError> {
        let (slot, selected) = (u64::from(round.number()), round.selected());
        let is_known = |last: &Drawing| {
            last.slot == slot && last.sequences == sequences && last.selected.as_slice() == selected
        };
        if !self.last.as_ref().is_some_and(is_known) {
            if self.last.as_ref().is_some_and(|last| slot <= last.slot) {
                self.members.clear();
            }
            let assigned = self.draw(slot, selected, sequences)?;
            self.last = Some(Drawing { slot, sequences, selected: selected.to_vec(), assigned });
        }
        let assigned = self.last.as_ref().map_or(&[][..], |last| last.assigned.as_slice());
        if round.clients() == selected {
            return Ok(assigned.to_vec());
        }
        let sequence_of: HashMap<u32, usize> =
            selected.iter().copied().zip(assigned.iter().copied()).collect();
        Ok(round.clients().iter().map(|client| sequence_of[client]).collect())
    }

    /// Every selected client reads the beacon and returns its sequence.
    fn draw(
        &mut self,
        slot: u64,
        selected: &[u32],
        sequences: u32,
    ) -> Result<Zeroizing<Vec<usize>>, AssignmentError> {
        let per_round = u32::try_from(selected.len()).unwrap_or(u32::MAX);
        let (group, epoch) = (self.key.group(), self.key.epoch());
        let beacon = Beacon { group, epoch, slot, sequences, per_round };
        let mut called: Vec<(u32, u32, Option<GroupMember>)> = (1..=per_round)
            .zip(selected)
            .map(|(index, client)| (index, *client, self.members.remove(client)))
            .collect();
        let answer = |(index, client, member): &mut (u32, u32, Option<GroupMember>)| {
            let member = match member {
                Some(member) => member,
                None => member.insert(self.join(*client)?),
            };
            member.sequence_for(&beacon, *index)
        };
        let assigned: Result<Vec<usize>, AssignmentError> = called.par_iter_mut().map(answer).collect();
        let members = called.into_iter().filter_map(|(_, client, member)| Some((client, member?)));
        self.members.extend(members);
        assigned.map(Zeroizing::new)
    }

    /// A client receives the group key: sealed by the dealer, relayed as bytes, and opened.
    fn join(&self, client: u32) -> Result<GroupMember, AssignmentError> {
        let (group, epoch) = (self.key.group(), self.key.epoch());
        if client == DEALER {
            return Ok(GroupMember::new(GroupKey::from_secret_bytes(group, epoch, &secret(self.name))));
        }
        let identity = identity(self.name, client);
        let mut ephemeral = SeededRng::from_seed(&secret(self.name.purpose(Purpose::SEALING).client(client)));
        let relayed = self.dealer.deal_with(&self.key, &identity.public_key(), &mut ephemeral)?.to_bytes();
        let sealed = super::SealedKey::from_bytes(&relayed)?;
        Ok(GroupMember::new(identity.open(&sealed, &self.dealer.public_key(), group, epoch)?))
    }
}

fn identity(name: StreamName, client: u32) -> ClientIdentity {
    ClientIdentity::from_secret_bytes(&secret(name.purpose(Purpose::IDENTITY).client(client)))
}

/// The first 32 bytes of a stream.
fn secret(name: StreamName) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    name.stream().fill_bytes(bytes.as_mut_slice());
    bytes
}

#[cfg(test)]
mod tests {
    use floras_core::random::Domain;

    use super::*;
    use crate::assignment::permutation;

    fn assign(groups: &SimulatedGroups, trial: u16, number: u32, clients: &[u32]) -> Vec<usize> {
        groups.assign(&Round::new(7, trial, number, clients).unwrap(), 25).unwrap()
    }

    #[test]
    fn sequences_are_those_of_the_permutation() {
        let groups = SimulatedGroups::default();
        let round = Round::new(7, 3, 5, &[4, 0, 9]).unwrap();
        let key = GroupKey::from_secret_bytes(
            group_id(&round),
            EPOCH,
            &secret(StreamName::new(7, Purpose::GROUP_KEY).trial(3)),
        );
        let order = permutation(&key, 5, 25).unwrap();
        let expected: Vec<usize> = order.iter().take(3).map(|&column| column as usize).collect();
        assert_eq!(groups.assign(&round, 25).unwrap(), expected);
    }

    #[test]
    fn a_round_drawn_again_has_the_same_assignment() {
        let (groups, fresh) = (SimulatedGroups::default(), SimulatedGroups::default());
        let first: Vec<Vec<usize>> = (1..=4).map(|number| assign(&groups, 0, number, &[1, 2, 3])).collect();
        assert_eq!(assign(&groups, 0, 4, &[1, 2, 3]), first[3]);
        assert_eq!(assign(&groups, 0, 2, &[1, 2, 3]), first[1]);
        assert_eq!(assign(&fresh, 0, 3, &[1, 2, 3]), first[2], "as after a resume");
        assert_ne!(assign(&groups, 1, 4, &[1, 2, 3]), first[3], "trials have keys of their own");
    }

    #[test]
    fn members_remember_their_slot_until_a_rewind() {
        let groups = SimulatedGroups::default();
        assign(&groups, 0, 1, &[5, 6]);
        assign(&groups, 0, 8, &[6, 7]);
        let last_slots = || {
            let group = &groups.0.lock().unwrap()[0];
            [5, 6, 7].map(|client| group.members.get(&client).and_then(|member| member.state().last_slot))
        };
        assert_eq!(last_slots(), [Some(1), Some(8), Some(8)]);
        assign(&groups, 0, 3, &[7]);
        assert_eq!(last_slots(), [None, None, Some(3)]);
    }

    #[test]
    fn a_silent_client_keeps_its_index() {
        let groups = SimulatedGroups::default();
        let whole = assign(&groups, 0, 1, &[3, 5, 8]);
        let round = Round::new(7, 0, 1, &[3, 8]).unwrap().with_selected(&[3, 5, 8]).unwrap();
        assert_eq!(SimulatedGroups::default().assign(&round, 25).unwrap(), [whole[0], whole[2]]);
    }

    #[test]
    fn every_trial_of_every_domain_has_a_group() {
        let id = |domain: Domain, number| group_id(&Round::new(1, domain.trial(number), 1, &[0]).unwrap());
        assert_ne!(id(Domain::Run, 1), id(Domain::Estimate, 1));
        assert_ne!(id(Domain::Run, 1), id(Domain::Run, 256));
    }

    #[test]
    fn errors_of_the_protocol_are_returned() {
        let groups = SimulatedGroups::default();
        let round = Round::new(7, 0, 1, &[1, 2, 3]).unwrap();
        let expected = AssignmentError::TooFewSequences { sequences: 2, per_round: 3 };
        assert_eq!(groups.assign(&round, 2), Err(expected));
        assert_eq!(groups.assign(&round, 3).unwrap().len(), 3, "a refused slot can still be used");
    }

    #[test]
    fn groups_that_are_kept_are_bounded() {
        let groups = SimulatedGroups::default();
        let first = assign(&groups, 0, 1, &[1]);
        for trial in 1..=MAX_GROUPS as u16 {
            assign(&groups, trial, 1, &[1]);
        }
        assert_eq!(groups.0.lock().unwrap().len(), MAX_GROUPS);
        assert_eq!(assign(&groups, 0, 1, &[1]), first);
    }

    #[test]
    fn nothing_secret_is_printed() {
        let groups = SimulatedGroups::default();
        assign(&groups, 0, 1, &[1]);
        assert_eq!(format!("{groups:?}"), "SimulatedGroups { .. }");
    }
}
