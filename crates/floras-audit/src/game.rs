//! The worst-case game: one client sends `+C·u` or `−C·u` in every round, all others send 0, and an adversary guesses the sign.
//!
//! Updates of neighbours differ by at most `2C`, and an adversary who knows the others' updates can subtract them. So no other
//! pair is easier to distinguish, and the rounds need no training. Given the round's gain `g` and noise `ν`, a round reduces to
//! one number along `u`,
//!
//! ```text
//! y = ±g·C + ν·N(0, 1),     ln p₊(y)/p₋(y) = 2·g·C·y/ν²
//! ```
//!
//! and rounds add up. If the client takes part at random, each round is a mixture. The adversaries differ in their knowledge:
//!
//! | adversary | observes | values used for `g` and `ν` |
//! |---|---|---|
//! | released model | the sum after truncation, all `d` numbers | 1, and the spread of the other `d − 1` directions |
//! | decoder | the sum, and the round's `(g, ν)` | the true values |
//! | raw signal | every despread sequence and the pilot | `ĥ_j` and `s` of each sequence, any of which may be the client's |
//!
//! Raw samples are despread with orthonormal sequences: each has the noise `s`, and no part of the others.

use std::ops::Range;

use floras_core::Fidelity;
use floras_core::random::{Domain, Purpose, StreamName, TrialId};
use floras_phy::{EffectiveChannel, Round, Signal, Uplink, UplinkError, precode};
use floras_sim::purpose;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use rayon::prelude::*;

use super::bound::Scores;
use super::inner::dot;

/// The parameters of the game, without the uplink.
#[derive(Clone, Debug, PartialEq)]
pub struct WorstCaseGame {
    /// `K` clients, of which the first is watched.
    pub per_round: u32,
    /// The probability that the watched client takes part in a round.
    pub probability: f64,
    /// Whether the adversary knows in which rounds the watched client takes part.
    pub participation_known: bool,
    /// Number of rounds `T`.
    pub rounds: u32,
    /// Clip norm `C`.
    pub clip: f64,
    /// Number of model parameters, `d`.
    pub parameters: usize,
    /// Truncation bound `B` of the sum before a model is released; `None` without truncation.
    pub truncate: Option<f64>,
    /// Whether the channels of round `t` are the same in every game, as in a trace. The noise always differs.
    pub is_traced: bool,
    /// The seed of all randomness.
    pub seed: u64,
}

/// The scores of the two adversaries that see the decoded sum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DecodedScores {
    /// Scores from the released models alone.
    pub released_model: Scores,
    /// Scores with the round's gain and noise.
    pub decoder: Scores,
}

/// The evidence of a round: log-likelihood ratios of both worlds relative to an absent client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Evidence {
    plus: f64,
    minus: f64,
}

impl Evidence {
    /// `y` along the canary's direction, with expected value `amplitude` and noise of this standard deviation.
    pub(super) fn of(y: f64, amplitude: f64, noise_std: f64) -> Self {
        let exponent = |amplitude: f64| {
            if amplitude == 0.0 {
                0.0
            } else if noise_std == 0.0 {
                // Without noise the outcome is certain.
                if y * amplitude > 0.0 { f64::INFINITY } else { f64::NEG_INFINITY }
            } else {
                amplitude * (y - 0.5 * amplitude) / (noise_std * noise_std)
            }
        };
        Self { plus: exponent(amplitude), minus: exponent(-amplitude) }
    }

    /// `ln p₊/p₋` for a client that takes part with this probability.
    pub(super) fn score(self, probability: f64) -> f64 {
        let mixed = |exponent: f64| {
            if probability >= 1.0 {
                exponent
            } else {
                log_sum((1.0 - probability).ln(), probability.ln() + exponent)
            }
        };
        mixed(self.plus) - mixed(self.minus)
    }
}

/// `ln(e^a + e^b)`.
fn log_sum(a: f64, b: f64) -> f64 {
    let (small, large) = if a < b { (a, b) } else { (b, a) };
    if small == f64::NEG_INFINITY || large == f64::INFINITY {
        return large;
    }
    large + (small - large).exp().ln_1p()
}

impl WorstCaseGame {
    /// Plays `games` in each world over an uplink, with the sum in all `d` dimensions. Games with different `table` numbers are
    /// independent.
    pub fn decoded(&self, uplink: &dyn Uplink, games: u32, table: u8) -> Result<DecodedScores, UplinkError> {
        self.decoded_with(uplink, games, table, &|_| {})
    }

    /// The same; `tick` receives the number of games played since its last call.
    pub(crate) fn decoded_with(
        &self,
        uplink: &dyn Uplink,
        games: u32,
        table: u8,
        tick: &(dyn Fn(u64) + Sync),
    ) -> Result<DecodedScores, UplinkError> {
        let canary = Canary::new(self);
        let clients: Vec<u32> = (0..self.per_round).collect();
        let play = |sign: f64, world: u16| -> Result<Vec<(f64, f64)>, UplinkError> {
            let one = |received: &mut Vec<f32>, game: u32| {
                let mut scores = (0.0, 0.0);
                for round in 0..self.rounds {
                    let (name, number) = self.name(table, world, game, round);
                    let round =
                        Round::new(name.0, name.1, number, &clients)?.with_parameters(self.parameters);
                    let of_round = self.score_decoded(uplink, &round, &canary, sign, received)?;
                    scores = (scores.0 + of_round.0, scores.1 + of_round.1);
                }
                Ok(scores)
            };
            in_chunks(games, tick, |games| {
                games.into_par_iter().map_init(|| vec![0.0; self.parameters], one).collect()
            })
        };
        let (with, without) = (play(1.0, 0)?, play(-1.0, 1)?);
        let scores = |of: fn(&(f64, f64)) -> f64| Scores {
            with: with.iter().map(of).collect(),
            without: without.iter().map(of).collect(),
        };
        Ok(DecodedScores { released_model: scores(|pair| pair.0), decoder: scores(|pair| pair.1) })
    }

    /// Scores of both adversaries for one round over the air.
    fn score_decoded(
        &self,
        uplink: &dyn Uplink,
        round: &Round<'_>,
        canary: &Canary,
        sign: f64,
        received: &mut [f32],
    ) -> Result<(f64, f64), UplinkError> {
        let channel = uplink.realise(round)?;
        // Cross-talk rotates pairs of parameters. An adversary who knows the gains rotates them back, and the noise stays the
        // same.
        let gain = match channel.blocks() {
            [block] if !block.cross_gains.is_empty() => block.magnitude(0),
            _ => channel.gains()[0],
        };
        let noise_std = channel.noise_std();
        let takes_part = self.takes_part(round);
        if self.participation_known && !takes_part {
            // The received noise does not depend on the world.
            return Ok((0.0, 0.0));
        }
        let probability = if self.participation_known { 1.0 } else { self.probability };
        let update = if takes_part { canary.update(sign) } else { &canary.absent };
        // The others send 0, so the kernel may omit them.
        let noise = round.stream_name(Purpose::PAYLOAD_NOISE);
        EffectiveChannel::new(vec![gain], noise_std)?.apply_into(&[update], noise, received)?;
        let (mut along, mut square) = canary.measure(received);
        let decoder = Evidence::of(along, gain * self.clip, noise_std).score(probability);
        if let Some(bound) = self.truncate {
            precode::truncate(received, bound)?;
            (along, square) = canary.measure(received);
        }
        let others = (self.parameters.max(2) - 1) as f64;
        let spread = ((square - along * along).max(0.0) / others).sqrt();
        Ok((Evidence::of(along, self.clip, spread).score(probability), decoder))
    }

    /// Plays against a base station that despreads every sequence of the uplink. With the group key it knows the client's
    /// sequence.
    pub fn raw(
        &self,
        uplink: &dyn Uplink,
        games: u32,
        table: u8,
        has_key: bool,
    ) -> Result<Scores, UplinkError> {
        let clients: Vec<u32> = (0..self.per_round).collect();
        let play = |sign: f64, world: u16| -> Result<Vec<f64>, UplinkError> {
            let one = |game: u32| {
                let mut score = 0.0;
                for round in 0..self.rounds {
                    let (name, number) = self.name(table, world, game, round);
                    let round =
                        Round::new(name.0, name.1, number, &clients)?.with_parameters(self.parameters);
                    let seen = despread(uplink, &round)?;
                    let evidence = self.score_raw(&seen, &round, sign, has_key);
                    score += evidence.score(self.probability);
                }
                Ok(score)
            };
            (0..games).into_par_iter().map(one).collect()
        };
        Ok(Scores { with: play(1.0, 0)?, without: play(-1.0, 1)? })
    }

    /// Evidence of one round of raw samples: one number per sequence and branch, along the canary's direction. One of the `N`
    /// sequences carries the canary.
    fn score_raw(&self, seen: &Signal, round: &Round<'_>, sign: f64, has_key: bool) -> Evidence {
        let own = seen.assigned[0];
        let present = if self.takes_part(round) { sign * self.clip } else { 0.0 };
        let mut noise = round.stream(purpose::DESPREAD_NOISE);
        let mut evidence = Evidence { plus: f64::NEG_INFINITY, minus: f64::NEG_INFINITY };
        let mut candidates = 0.0_f64;
        for (sequence, estimates) in seen.estimates.chunks(seen.branches).enumerate() {
            let mut of_sequence = Evidence { plus: 0.0, minus: 0.0 };
            for (estimate, amplitude) in estimates.iter().zip(&seen.amplitudes) {
                let normal: f64 = StandardNormal.sample(&mut noise);
                let present = if sequence == own { present * amplitude } else { 0.0 };
                let y = seen.symbol_noise_std * normal + present;
                let of_branch = Evidence::of(y, estimate * self.clip, seen.symbol_noise_std);
                of_sequence.plus += of_branch.plus;
                of_sequence.minus += of_branch.minus;
            }
            if has_key && sequence != own {
                continue;
            }
            evidence.plus = log_sum(evidence.plus, of_sequence.plus);
            evidence.minus = log_sum(evidence.minus, of_sequence.minus);
            candidates += 1.0;
        }
        Evidence { plus: evidence.plus - candidates.ln(), minus: evidence.minus - candidates.ln() }
    }

    fn takes_part(&self, round: &Round<'_>) -> bool {
        self.probability >= 1.0 || round.stream(purpose::GAME).random::<f64>() < self.probability
    }

    /// Seed, trial and number of a round, from 1.
    fn name(&self, table: u8, world: u16, game: u32, round: u32) -> ((u64, TrialId), u32) {
        let trial = Domain::Tables.trial(2 * u16::from(table) + world);
        if self.is_traced {
            return ((seed_of_game(self.seed, game), trial), round + 1);
        }
        let number = u64::from(game) * u64::from(self.rounds) + u64::from(round);
        // The upper bits of the number select the seed, the lower 31 bits the round.
        ((seed_of_game(self.seed, (number >> 31) as u32), trial), (number as u32 & u32::MAX >> 1) + 1)
    }
}

/// The raw samples of a base station in one round, in units of an update.
pub(super) fn despread(uplink: &dyn Uplink, round: &Round<'_>) -> Result<Signal, UplinkError> {
    let signal = uplink.signal(round, Fidelity::Symbol)?.filter(|signal| !signal.assigned.is_empty());
    signal.ok_or(UplinkError::NoChipLevel { scheme: uplink.name() })
}

/// The seed of a game whose rounds have the experiment's numbers. Every game has its own; game 0 has the experiment's seed.
pub(super) fn seed_of_game(seed: u64, game: u32) -> u64 {
    seed.wrapping_add(u64::from(game).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Plays games in a few chunks, and reports the progress after each.
fn in_chunks<S>(
    games: u32,
    tick: &(dyn Fn(u64) + Sync),
    play: impl Fn(Range<u32>) -> Result<Vec<S>, UplinkError>,
) -> Result<Vec<S>, UplinkError> {
    let size = games.div_ceil(16).max(1);
    let mut scores = Vec::with_capacity(games as usize);
    for from in (0..games).step_by(size as usize) {
        let chunk = from..games.min(from.saturating_add(size));
        let played = u64::from(chunk.end - chunk.start);
        scores.extend(play(chunk)?);
        tick(played);
    }
    Ok(scores)
}

/// The two updates, and their direction.
struct Canary {
    direction: Vec<f32>,
    plus: Vec<f32>,
    minus: Vec<f32>,
    absent: Vec<f32>,
}

impl Canary {
    /// All coordinates have the same size and random signs, so that truncation affects them alike.
    fn new(game: &WorstCaseGame) -> Self {
        let mut signs = StreamName::new(game.seed, purpose::CANARY).stream();
        let size = 1.0 / (game.parameters as f64).sqrt();
        let direction: Vec<f32> = (0..game.parameters)
            .map(|_| if signs.random::<bool>() { size as f32 } else { -size as f32 })
            .collect();
        let scaled = |by: f64| direction.iter().map(|&value| value * by as f32).collect();
        let (plus, minus) = (scaled(game.clip), scaled(-game.clip));
        Self { plus, minus, absent: vec![0.0; game.parameters], direction }
    }

    fn update(&self, sign: f64) -> &[f32] {
        if sign > 0.0 { &self.plus } else { &self.minus }
    }

    /// The component along the direction, and the squared norm.
    fn measure(&self, vector: &[f32]) -> (f64, f64) {
        (dot(vector, &self.direction), dot(vector, vector))
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Fading, Modulation, Receiver, Snr, SnrConvention};
    use floras_phy::{CentralGaussian, Floras, FlorasSettings, SequenceSet, transmit};

    use super::*;

    fn floras() -> Floras {
        Floras::new(FlorasSettings {
            sequences: SequenceSet::walsh(8, 8).unwrap(),
            modulation: Modulation::Real,
            receiver: Receiver::Paper,
            channels: Fading::Rayleigh.into(),
            snr: Snr::new(10.0, SnrConvention::Symbol).unwrap(),
            ..FlorasSettings::default()
        })
    }

    fn game(parameters: usize) -> WorstCaseGame {
        WorstCaseGame {
            per_round: 5,
            probability: 1.0,
            participation_known: false,
            rounds: 1,
            clip: 1.0,
            parameters,
            truncate: None,
            is_traced: false,
            seed: 3,
        }
    }

    /// Omitting the silent clients gives exactly the numbers of a whole round in which they send 0.
    #[test]
    fn omitting_silent_clients_changes_no_score() {
        let (uplink, game) = (floras(), game(300));
        let canary = Canary::new(&game);
        let clients = [0, 1, 2, 3, 4];
        let round = Round::new(game.seed, 7, 10, &clients).unwrap();
        let mut updates = vec![canary.absent.clone(); 5];
        updates[0].clone_from(&canary.plus);
        let whole = transmit(&uplink, &round, &updates, Fidelity::Symbol).unwrap();
        let mut received = vec![0.0; 300];
        let (_, decoder) = game.score_decoded(&uplink, &round, &canary, 1.0, &mut received).unwrap();
        assert_eq!(received, whole.sum);
        let (gain, noise_std) = (whole.channel.gains()[0], whole.channel.noise_std());
        let along: f64 =
            whole.sum.iter().zip(&canary.direction).map(|(y, u)| f64::from(*y) * f64::from(*u)).sum();
        let expected = 2.0 * gain * along / (noise_std * noise_std);
        assert!((decoder - expected).abs() < 1e-4 * (1.0 + expected.abs()), "{decoder}, {expected}");
    }

    /// `μ = 2C/ν = 1`: scores are `N(±½, 1)`. 40,000 games have standard errors of 0.005 in the mean and 0.007 in the
    /// variance; both stay within four of them.
    #[test]
    fn scores_of_central_noise_are_gaussian() {
        let scores = game(50).decoded(&CentralGaussian::new(2.0).unwrap(), 40_000, 0).unwrap().decoder;
        for (scores, expected) in [(&scores.with, 0.5), (&scores.without, -0.5)] {
            let mean = scores.iter().sum::<f64>() / 40_000.0;
            let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 40_000.0;
            assert!((mean - expected).abs() < 0.02, "{mean}");
            assert!((variance - 1.0).abs() < 0.03, "{variance}");
        }
    }

    #[test]
    fn without_noise_the_worlds_are_distinguished() {
        let scores = game(10).decoded(&floras_phy::Ideal, 300, 0).unwrap();
        assert!(scores.decoder.with.iter().all(|&score| score == f64::INFINITY));
        assert!(scores.decoder.without.iter().all(|&score| score == f64::NEG_INFINITY));
        let sampled = WorstCaseGame { probability: 0.5, ..game(10) };
        let scores = sampled.decoded(&floras_phy::Ideal, 300, 0).unwrap().decoder.with;
        let certain = scores.iter().filter(|score| **score == f64::INFINITY).count();
        assert!((100..200).contains(&certain), "{certain}");
        assert!(scores.iter().all(|&score| score == f64::INFINITY || score == 0.0));
    }

    /// A score is a log-likelihood ratio: `E[e^{−score}]` is 1 where the canary is there. Its terms are at most about `1/(1−p)`,
    /// so that 60,000 games know their mean to within 0.01.
    #[test]
    fn scores_under_sampling_are_likelihood_ratios() {
        let game = WorstCaseGame { probability: 0.6, rounds: 2, ..game(40) };
        let noise = CentralGaussian::new(1.0).unwrap();
        let scores = game.decoded(&noise, 60_000, 4).unwrap().decoder.with;
        let mean = scores.iter().map(|score| (-score).exp()).sum::<f64>() / 60_000.0;
        assert!((mean - 1.0).abs() < 0.03, "{mean}");
    }

    /// A round without the client scores 0, and one with it follows a Gaussian mechanism with `μ = 2`: in a third of 3000
    /// games, within six standard deviations of 26.
    #[test]
    fn known_absence_scores_zero() {
        let game = WorstCaseGame { probability: 1.0 / 3.0, participation_known: true, ..game(10) };
        let scores = game.decoded(&CentralGaussian::new(1.0).unwrap(), 3000, 4).unwrap().decoder;
        let present = scores.with.iter().filter(|&&score| score != 0.0).count();
        assert!((845..1155).contains(&present), "{present}");
    }

    /// No fading and a pilot that is 50 times its noise; `μ = 2·C·h/s = 1`, so that scores are nearly `N(±½, 1)`. Standard errors of
    /// 40,000 games are 0.005 and 0.007; half the noise would have a variance of 4 with a mean of 2.
    #[test]
    fn scores_of_raw_samples_follow_channel_noise() {
        let settings = FlorasSettings {
            channels: Fading::None.into(),
            snr: Snr::new(20.0 * 50_f64.log10(), SnrConvention::Despread).unwrap(),
            ..floras().settings().clone()
        };
        let game = WorstCaseGame { clip: 0.01, ..game(10) };
        let scores = game.raw(&Floras::new(settings), 40_000, 0, true).unwrap();
        for (scores, expected) in [(&scores.with, 0.5), (&scores.without, -0.5)] {
            let mean = scores.iter().sum::<f64>() / 40_000.0;
            let variance = scores.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 40_000.0;
            assert!((mean - expected).abs() < 0.025, "{mean}");
            assert!((variance - 1.0).abs() < 0.04, "{variance}");
        }
    }

    #[test]
    fn the_key_helps_and_tables_are_independent() {
        let game = game(10);
        let accuracy = |table, has_key| {
            game.raw(&floras(), 8000, table, has_key).unwrap().lower_bound(1e-3, 0.05).accuracy
        };
        let (with_key, without) = (accuracy(0, true), accuracy(0, false));
        assert!(with_key > without + 0.02, "{with_key}, {without}");
        assert_ne!(game.raw(&floras(), 10, 0, true).unwrap(), game.raw(&floras(), 10, 1, true).unwrap());
    }

    #[test]
    fn games_over_a_trace_share_channels_only() {
        let game = WorstCaseGame { rounds: 3, is_traced: true, ..game(10) };
        let ((first_seed, first_trial), first) = game.name(0, 0, 1, 2);
        let ((second_seed, second_trial), second) = game.name(0, 0, 4, 2);
        assert_eq!((first, first_trial), (second, second_trial));
        assert_ne!(first_seed, second_seed);
        let free = WorstCaseGame { is_traced: false, ..game };
        assert_ne!(free.name(0, 0, 1, 2).1, free.name(0, 0, 4, 2).1);
    }
}
