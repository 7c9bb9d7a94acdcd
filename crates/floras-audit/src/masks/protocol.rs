//! The clients' protocol in a game: a base station that violates it with its announcements.
//!
//! Keys are agreed between the clients' identities, and each client obtains the masks of a slot from its [`GroupMember`].
//!
//! - **A repeated slot** with a different list: the same clients in reverse order. A member that answered twice would send two
//!   updates under the same masks.
//! - **Inconsistent lists**: the victim receives the list of all clients, and each other client a list of two, the victim and
//!   itself. If seeds did not depend on the list, the others would send the victim's masks at scale `σ_m/√2`, with little
//!   noise. The adversary assumes that.

use std::sync::atomic::{AtomicU64, Ordering};

use floras_core::random::{Domain, Purpose, StreamName};
use floras_phy::UplinkError;
use floras_phy::assignment::{Beacon, ClientIdentity, Epoch, GroupId, GroupKey, GroupMember, PublicKey};
use floras_phy::masks::{MaskGrid, PairKeys, SlotMasks, mask_update};
use rand::Rng;

use super::covariance::Covariance;
use super::federation::{MaskedRound, PerGame, SmallFederation, Symbols, VALUES, VICTIM, along};
use super::symbols::{minus, score_all};
use crate::bound::Scores;

const GROUP: GroupId = GroupId(*b"floras/audit/mas");

/// The keys of all clients. They follow from the audit's seed, so they are not secret.
struct Clients {
    pairs: Vec<PairKeys>,
    cohort: Vec<PublicKey>,
    group_secret: [u8; 32],
}

impl Clients {
    fn new(federation: &SmallFederation, table: u8) -> Result<Self, UplinkError> {
        let secret = |purpose: Purpose, client: usize| {
            let trial = Domain::Tables.trial(2 * u16::from(table));
            let name = StreamName::new(federation.seed(), purpose).trial(trial).client(client as u32);
            let mut secret = [0; 32];
            name.stream().fill_bytes(&mut secret);
            secret
        };
        let identity = |client| ClientIdentity::from_secret_bytes(&secret(Purpose::IDENTITY, client));
        let identities: Vec<ClientIdentity> = (0..federation.clients()).map(identity).collect();
        let cohort: Vec<PublicKey> = identities.iter().map(ClientIdentity::public_key).collect();
        let agree = |identity: &ClientIdentity| PairKeys::agree(identity, GROUP, &cohort);
        let pairs = identities.iter().map(agree).collect::<Result<Vec<PairKeys>, _>>()?;
        Ok(Self { pairs, cohort, group_secret: secret(Purpose::GROUP_KEY, 0) })
    }

    /// Members that have used no slot of the epoch.
    fn members(&self, epoch: Epoch) -> Vec<GroupMember> {
        let key = || GroupKey::from_secret_bytes(GROUP, epoch, &self.group_secret);
        // A federation of two is also simulated.
        self.pairs.iter().map(|_| GroupMember::new(key()).with_minimum_cohort(1)).collect()
    }
}

/// The members' answers to the second announcement of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Replays {
    /// Number of second requests for masks of a slot, one per client and slot.
    pub(super) requested: u64,
    /// Number of second requests that the clients refused.
    pub(super) refused: u64,
}

/// Scores of an adversary who announces each slot twice, and the answers to the second announcements.
pub(super) fn scores(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<([Scores; 1], Replays), UplinkError> {
    let clients = Clients::new(federation, table)?;
    let (pair_variance, noise_variance) = federation.variances();
    let count = federation.clients();
    let weights = Covariance::of_masks(count, count, pair_variance, noise_variance).weights();
    let (requested, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    // Each world has its own epoch, so that no two games share a seed.
    let fresh = |world: u16| {
        let epoch = Epoch(u32::from(world) + 1);
        (epoch, clients.members(epoch))
    };
    let scores = federation.scores(table, games, fresh, |(epoch, members), round, sign| {
        let game = Game { federation, clients: &clients, round, epoch: *epoch, sign };
        let first = game.first(members)?;
        let second = game.second(members)?;
        requested.fetch_add(count as u64, Ordering::Relaxed);
        refused.fetch_add((count - second.len()) as u64, Ordering::Relaxed);
        Ok([match second.iter().find(|(client, _)| *client == VICTIM) {
            None => {
                let seen: Vec<PerGame> = first.iter().map(along).collect();
                score_all(&weights, &seen, federation.clip())
            }
            // The difference is ±2C with noise of variance 2σ_z².
            Some((_, again)) => minus(along(&first[VICTIM]), along(again))
                .map(|difference| 2.0 * federation.clip() * difference / noise_variance),
        }])
    })?;
    Ok((scores, Replays { requested: requested.into_inner(), refused: refused.into_inner() }))
}

/// Scores of an adversary who announces all clients to the victim, and a list of two to each other client.
pub(super) fn scores_of_lists(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<[Scores; 1], UplinkError> {
    let clients = Clients::new(federation, table)?;
    let weights = lists_of_two(federation).weights();
    let masks = federation.masks();
    let small_grid = MaskGrid::new(2, masks.mask_std(), masks.noise_std())?;
    let fresh = |world: u16| {
        let epoch = Epoch(u32::from(world) + 1);
        (epoch, clients.members(epoch))
    };
    federation.scores(table, games, fresh, |(epoch, members), round, sign| {
        let game = Game { federation, clients: &clients, round, epoch: *epoch, sign };
        let seen = game.with_lists_of_two(members, &small_grid)?;
        Ok([score_all(&weights, &seen.iter().map(along).collect::<Vec<PerGame>>(), federation.clip())])
    })
}

/// One slot of the clients' protocol, in one world.
struct Game<'a> {
    federation: &'a SmallFederation,
    clients: &'a Clients,
    round: MaskedRound<'a>,
    epoch: Epoch,
    sign: f64,
}

impl Game<'_> {
    fn beacon(&self) -> Beacon {
        let per_round = self.clients.cohort.len() as u32;
        let slot = u64::from(self.round.number) + 1;
        Beacon { group: GROUP, epoch: self.epoch, slot, sequences: per_round, per_round }
    }

    /// The transmissions of all clients in the slot.
    fn first(&self, members: &mut [GroupMember]) -> Result<Vec<Symbols>, UplinkError> {
        let clients = members.iter_mut().zip(&self.clients.pairs).enumerate();
        let send = |(client, (member, pairs)): (usize, (&mut GroupMember, &PairKeys))| {
            let slot = member.masked_slot(&self.beacon(), client as u32 + 1, pairs, &self.clients.cohort)?;
            self.send(client, 0, self.sign, slot.masks)
        };
        clients.map(send).collect()
    }

    /// The transmissions of clients that answer the second announcement: the opposite update.
    fn second(&self, members: &mut [GroupMember]) -> Result<Vec<(usize, Symbols)>, UplinkError> {
        let reversed: Vec<PublicKey> = self.clients.cohort.iter().rev().copied().collect();
        let mut sent = Vec::new();
        for (client, (member, pairs)) in members.iter_mut().zip(&self.clients.pairs).enumerate() {
            let index = (reversed.len() - client) as u32;
            if let Ok(slot) = member.masked_slot(&self.beacon(), index, pairs, &reversed) {
                sent.push((client, self.send(client, 1, -self.sign, slot.masks)?));
            }
        }
        Ok(sent)
    }

    /// The transmissions of all clients if only the victim receives the full list.
    fn with_lists_of_two(
        &self,
        members: &mut [GroupMember],
        small_grid: &MaskGrid,
    ) -> Result<Vec<Symbols>, UplinkError> {
        let cohort = &self.clients.cohort;
        let clients = members.iter_mut().zip(&self.clients.pairs).enumerate();
        let send = |(client, (member, pairs)): (usize, (&mut GroupMember, &PairKeys))| {
            if client == VICTIM {
                let slot = member.masked_slot(&self.beacon(), client as u32 + 1, pairs, cohort)?;
                return self.send(client, 0, self.sign, slot.masks);
            }
            let beacon = Beacon { per_round: 2, ..self.beacon() };
            let slot = member.masked_slot(&beacon, 2, pairs, &[cohort[VICTIM], cohort[client]])?;
            let sent = mask_update(&[0.0; VALUES], slot.masks, small_grid, self.round.noise(client, 0))?;
            Ok(std::array::from_fn(|place| small_grid.sent_value(sent[place])))
        };
        clients.map(send).collect()
    }

    fn send(
        &self,
        client: usize,
        transmission: usize,
        sign: f64,
        masks: SlotMasks,
    ) -> Result<Symbols, UplinkError> {
        let update = if client == VICTIM { self.federation.update(sign) } else { [0.0; VALUES] };
        let (grid, noise) = (self.federation.grid(), self.round.noise(client, transmission));
        let sent = mask_update(&update, masks, grid, noise)?;
        Ok(std::array::from_fn(|place| grid.sent_value(sent[place])))
    }
}

/// The covariance that an adversary assumes for clients with lists of two and a victim with the full list.
fn lists_of_two(federation: &SmallFederation) -> Covariance {
    let (pair_std, noise_std) = (federation.grid().pair_std(), federation.grid().noise_std());
    let clients = federation.clients();
    Covariance::of_star(clients, pair_std, pair_std * (clients as f64 / 2.0).sqrt(), noise_std * noise_std)
}

#[cfg(test)]
mod tests {
    use floras_core::Masks;

    use super::super::federation::add;
    use super::*;

    /// Ten clients with ε ≤ 1.8426 for one round at δ = 10⁻³.
    fn federation(seed: u64) -> SmallFederation {
        SmallFederation::new(Masks::new(8.0, 1.05, 0).unwrap(), 10, 1.0, seed).unwrap()
    }

    /// Scores of the adversary of [`scores_of_lists`] against clients whose masks ignore the announced list.
    fn unbound_scores(federation: &SmallFederation, games: u32) -> Scores {
        let (clients, weights) = (federation.clients(), lists_of_two(federation).weights());
        let scale = (clients as f64 / 2.0).sqrt();
        let fresh = |_| ();
        let [scores] = federation
            .scores(0, games, fresh, |(), round, sign| {
                let mut of_victim = round.steps(VICTIM, sign)?;
                let mut seen = vec![PerGame::default(); clients];
                for client in (0..clients).filter(|&client| client != VICTIM) {
                    add(&mut of_victim, &round.pair_mask(VICTIM, client)?);
                    let larger = round.pair_mask(client, VICTIM)?.map(|value| (value as f64 * scale) as i64);
                    seen[client] = along(&round.send(client, 0, larger)?);
                }
                seen[VICTIM] = along(&round.send(VICTIM, 0, of_victim)?);
                Ok([score_all(&weights, &seen, federation.clip())])
            })
            .unwrap();
        scores
    }

    /// The bound is wrong once in 10⁴ seeds. With 40,000 games, the bounds of eight seeds were from 1.98 to 2.60, all above the stated `ε`.
    #[test]
    fn masks_that_ignore_the_list_are_caught() {
        let federation = federation(1);
        let stated = federation.stated(0, 1, 1e-3).unwrap();
        let found = unbound_scores(&federation, 100_000).lower_bound(1e-3, 1e-4).epsilon;
        assert!(found > stated, "{found} does not exceed {stated}");
        let [bound] = scores_of_lists(&federation, 20_000, 1).unwrap();
        let found = bound.lower_bound(1e-3, 1e-4).epsilon;
        assert!(found < 0.5 * stated, "{found} of {stated}");
    }

    #[test]
    fn every_second_request_for_a_slot_is_refused() {
        let (_, replays) = scores(&federation(2), 100, 2).unwrap();
        // Seven rounds of 16 games, in two worlds, with ten clients.
        assert_eq!(replays, Replays { requested: 140, refused: 140 });
    }
}
