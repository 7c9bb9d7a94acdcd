//! A small federation with masks, in which whole rounds are cheap enough for games.
//!
//! A game has `K' ≤ 10` clients for any `K`, because a round has `K'(K' − 1)/2` masks. Fewer clients have more noise each, so
//! that the noise of the sum and the power of a symbol are unchanged:
//!
//! ```text
//! σ_z'² = min(σ_z²·K/K', (σ_m² + σ_z²)/2),     σ_m'² = σ_m² + σ_z² − σ_z'²
//! ```
//!
//! Claims are computed for the small federation, so this choice affects the power of a game, not the claim it is compared with.
//!
//! A game has 8 parameters. Parameters are independent, so the 128 values of one group of cipher blocks make 16 games with the
//! same seeds: [`MaskedRound`].

use floras_core::Masks;
use floras_core::random::{Domain, Purpose, StreamName, TrialId};
use floras_phy::UplinkError;
use floras_phy::masks::{LocalNoise, MaskGrid, MaskSign, PairSeed, add_local_noise, add_mask};
use floras_privacy::{Composition, MaskBound, MuDistribution, PrivacyError, Sampling};
use floras_sim::SimError;
use rand::Rng;
use rayon::prelude::*;

use crate::bound::Scores;

/// Maximum number of clients in a game.
pub(super) const MAX_CLIENTS: u32 = 10;
/// Parameters of an update in a game. They are independent; more would add no information.
pub(super) const PARAMETERS: usize = 8;
/// The client that the adversary attacks.
pub(super) const VICTIM: usize = 0;
/// Number of games per round, each with its own parameters.
pub(super) const GAMES: usize = 16;
/// Number of values per client and round.
pub(super) const VALUES: usize = GAMES * PARAMETERS;
/// Number of rounds per unit of work of a thread.
const CHUNK: u32 = 32;

/// Values of a client in a round, on the masks' grid.
pub(super) type Steps = [i64; VALUES];
/// The transmission of a client in a round, in units of an update.
pub(super) type Symbols = [f64; VALUES];
/// One number per game of a round.
pub(super) type PerGame = [f64; GAMES];

/// A federation of a few clients with masks.
#[derive(Clone, Debug)]
pub(super) struct SmallFederation {
    masks: Masks,
    grid: MaskGrid,
    clip: f64,
    seed: u64,
}

impl SmallFederation {
    /// A federation that stands for rounds of `per_round = K ≥ 2` clients with these masks, above 0, and updates of norm at
    /// most `clip`.
    pub(super) fn new(masks: Masks, per_round: u32, clip: f64, seed: u64) -> Result<Self, SimError> {
        let clients = per_round.min(MAX_CLIENTS);
        let masks = if clients < per_round { scaled(masks, per_round, clients)? } else { masks };
        let grid = MaskGrid::new(clients, masks.mask_std(), masks.noise_std())?;
        Ok(Self { masks, grid, clip, seed })
    }

    /// A federation with local noise only: a client's transmission does not depend on the others.
    pub(super) fn without_masks(noise_std: f64, clip: f64, seed: u64) -> Result<Self, SimError> {
        // The transmission grid is that of the noise, for any masks.
        let grid = MaskGrid::new(2, noise_std, noise_std)?;
        Ok(Self { masks: Masks::new(0.0, noise_std, 0)?, grid, clip, seed })
    }

    /// Number of clients per game, `K'`.
    pub(super) fn clients(&self) -> usize {
        self.grid.clients() as usize
    }

    /// The masks of a game.
    pub(super) fn masks(&self) -> Masks {
        self.masks
    }

    pub(super) fn grid(&self) -> &MaskGrid {
        &self.grid
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Clip norm `C` of an update.
    pub(super) fn clip(&self) -> f64 {
        self.clip
    }

    /// Variances `σ_p²` of a pair's mask and `σ_z²` of a client's noise.
    pub(super) fn variances(&self) -> (f64, f64) {
        (self.grid.pair_std().powi(2), self.grid.noise_std().powi(2))
    }

    /// `ε` stated by the mask bound for `rounds` rounds, in all of which the victim takes part.
    pub(super) fn stated(&self, colluding: u32, rounds: u64, delta: f64) -> Result<f64, PrivacyError> {
        let masks = Masks::new(self.masks.mask_std(), self.masks.noise_std(), colluding)
            .expect("the standard deviations were in range before");
        let bound = MaskBound::new(masks, self.clients() as u64, 2.0 * self.clip)?;
        let curve = MuDistribution::Constant(bound.mu());
        Composition::new(&curve, Sampling::Everyone, rounds)?.epsilon_upper(delta)
    }

    /// The victim's update in the world with this sign: `±C·u` in every game. Others send 0.
    pub(super) fn update(&self, sign: f64) -> [f32; VALUES] {
        std::array::from_fn(|place| (sign * self.clip * direction(place)) as f32)
    }

    /// Scores of `games` in each world. `play` returns a round's scores for each of several adversaries, given the round and
    /// the sign of the victim's update; every few rounds it starts with a `fresh` state.
    pub(super) fn scores<const ADVERSARIES: usize, S>(
        &self,
        table: u8,
        games: u32,
        fresh: impl Fn(u16) -> S + Sync,
        play: impl Fn(&mut S, MaskedRound<'_>, f64) -> Result<[PerGame; ADVERSARIES], UplinkError> + Sync,
    ) -> Result<[Scores; ADVERSARIES], UplinkError> {
        let rounds = games.div_ceil(GAMES as u32);
        let world = |sign: f64, world: u16| -> Result<Vec<[PerGame; ADVERSARIES]>, UplinkError> {
            let trial = Domain::Tables.trial(2 * u16::from(table) + world);
            let chunk = |number: u32| {
                let mut state = fresh(world);
                let last = rounds.min((number + 1) * CHUNK);
                let round =
                    |number: u32| play(&mut state, MaskedRound { federation: self, trial, number }, sign);
                (number * CHUNK..last).map(round).collect::<Result<Vec<_>, UplinkError>>()
            };
            let chunks: Result<Vec<_>, UplinkError> =
                (0..rounds.div_ceil(CHUNK)).into_par_iter().map(chunk).collect();
            Ok(chunks?.concat())
        };
        let (with, without) = (world(1.0, 0)?, world(-1.0, 1)?);
        let of = |rounds: &[[PerGame; ADVERSARIES]], adversary: usize| -> Vec<f64> {
            rounds.iter().flat_map(|scores| scores[adversary]).take(games as usize).collect()
        };
        Ok(std::array::from_fn(|adversary| Scores {
            with: of(&with, adversary),
            without: of(&without, adversary),
        }))
    }
}

/// The masks of a smaller federation.
fn scaled(masks: Masks, per_round: u32, clients: u32) -> Result<Masks, SimError> {
    let (mask, noise) = (masks.mask_std().powi(2), masks.noise_std().powi(2));
    let total = mask + noise;
    let noise = (noise * f64::from(per_round) / f64::from(clients)).min(0.5 * total);
    Ok(Masks::new((total - noise).sqrt(), noise.sqrt(), masks.colluding().min(clients - 2))?)
}

/// One entry of the canary's direction, a unit vector in every game.
pub(super) fn direction(place: usize) -> f64 {
    let size = 1.0 / (PARAMETERS as f64).sqrt();
    if place.is_multiple_of(2) { size } else { -size }
}

/// The component of a client's values along the canary's direction, per game.
pub(super) fn along(symbols: &Symbols) -> PerGame {
    let of_game = |game: usize| {
        let places = game * PARAMETERS..(game + 1) * PARAMETERS;
        places.map(|place| symbols[place] * direction(place)).sum()
    };
    std::array::from_fn(of_game)
}

/// A round of several games: the source of their masks and noise.
#[derive(Clone, Copy)]
pub(super) struct MaskedRound<'a> {
    federation: &'a SmallFederation,
    /// Unique per world and table of scores.
    pub(super) trial: TrialId,
    /// Number of the round, from 0.
    pub(super) number: u32,
}

impl MaskedRound<'_> {
    fn name(&self, purpose: Purpose) -> StreamName {
        StreamName::new(self.federation.seed, purpose).trial(self.trial).round(self.number)
    }

    /// The seed that clients `one` and `other` share.
    pub(super) fn seed(&self, one: usize, other: usize) -> PairSeed {
        let pair = one.min(other) * self.federation.clients() + one.max(other);
        let mut secret = [0; 32];
        self.name(Purpose::MASKS).client(pair as u32).stream().fill_bytes(&mut secret);
        PairSeed::from_bytes(secret)
    }

    /// The mask of a pair as client `own` adds it: the first of the pair adds, the other subtracts.
    pub(super) fn pair_mask(&self, own: usize, other: usize) -> Result<Steps, UplinkError> {
        let sign = if own < other { MaskSign::Plus } else { MaskSign::Minus };
        let mut values = [0; VALUES];
        add_mask(&self.seed(own, other), sign, &self.federation.grid, &mut values)?;
        Ok(values)
    }

    /// A client's noise in its `transmission`, from 0.
    pub(super) fn noise(&self, client: usize, transmission: usize) -> LocalNoise {
        let stream = transmission * self.federation.clients() + client;
        LocalNoise::simulated(self.name(Purpose::LOCAL_NOISE).client(stream as u32))
    }

    /// The transmission of a client whose update and masks sum to `values`.
    pub(super) fn send(
        &self,
        client: usize,
        transmission: usize,
        mut values: Steps,
    ) -> Result<Symbols, UplinkError> {
        let grid = &self.federation.grid;
        add_local_noise(self.noise(client, transmission), grid, &mut values)?;
        Ok(values.map(|sent| grid.sent_value(sent)))
    }

    /// The victim's update in the world with this sign, or another client's, on the masks' grid.
    pub(super) fn steps(&self, client: usize, sign: f64) -> Result<Steps, UplinkError> {
        let mut values = [0; VALUES];
        if client == VICTIM {
            self.federation.grid.add_update(&self.federation.update(sign), &mut values)?;
        }
        Ok(values)
    }

    /// Values on the masks' grid, along the canary's direction.
    pub(super) fn fine_along(&self, values: &Steps) -> PerGame {
        along(&values.map(|value| value as f64 * self.federation.grid.fine_step()))
    }
}

/// Adds grid steps.
pub(super) fn add(sum: &mut Steps, term: &Steps) {
    for (sum, term) in sum.iter_mut().zip(term) {
        *sum = sum.wrapping_add(*term);
    }
}

#[cfg(test)]
mod tests {
    use floras_phy::masks::{SlotMasks, mask_update};

    use super::*;

    #[test]
    fn a_small_federation_keeps_power_and_noise() {
        let masks = Masks::new(8.0, 0.25, 100).unwrap();
        let small = SmallFederation::new(masks, 1000, 1.0, 1).unwrap();
        let (clients, played) = (small.clients() as f64, small.masks());
        assert_eq!((clients, played.colluding()), (10.0, 8));
        assert!((clients * played.noise_std().powi(2) - 1000.0 * 0.0625).abs() < 1e-9);
        let power = |masks: Masks| masks.mask_std().powi(2) + masks.noise_std().powi(2);
        assert!((power(played) - power(masks)).abs() < 1e-9);
        let as_it_is = SmallFederation::new(masks, 7, 1.0, 1).unwrap();
        assert_eq!((as_it_is.clients(), as_it_is.masks()), (7, masks));
    }

    /// Masks that are much weaker than the total noise cannot replace it.
    #[test]
    fn a_small_federation_of_weak_masks_has_masks() {
        let small = SmallFederation::new(Masks::new(0.1, 1.0, 0).unwrap(), 1000, 1.0, 1).unwrap();
        assert!((small.masks().mask_std() - small.masks().noise_std()).abs() < 1e-12);
    }

    /// The games' transmissions equal those of `mask_update` for the same seeds, to the last grid step.
    #[test]
    fn games_send_what_a_phone_sends() {
        let small = SmallFederation::new(Masks::new(6.0, 0.8, 0).unwrap(), 4, 1.5, 3).unwrap();
        let round = MaskedRound { federation: &small, trial: Domain::Tables.trial(5), number: 7 };
        for client in 0..4 {
            let mut values = round.steps(client, -1.0).unwrap();
            let others = (0..4).filter(|&other| other != client);
            others.clone().for_each(|other| add(&mut values, &round.pair_mask(client, other).unwrap()));
            let found = round.send(client, 0, values).unwrap();
            let sign = |other: usize| if client < other { MaskSign::Plus } else { MaskSign::Minus };
            let seeds = others.map(|other| (round.seed(client, other), sign(other))).collect();
            let update = if client == VICTIM { small.update(-1.0) } else { [0.0; VALUES] };
            let noise = round.noise(client, 0);
            let sent = mask_update(&update, SlotMasks::simulated(seeds), small.grid(), noise).unwrap();
            let sent: Vec<f64> = sent.into_iter().map(|sent| small.grid().sent_value(sent)).collect();
            assert_eq!(found.as_slice(), sent);
        }
    }
}
