//! Membership inference: did this client, or this sample, take part?
//!
//! The worst case of a client needs no training ([`WorstCaseGame`]). All other games do: the watched client trains on its
//! samples, with and without the canary, and sends its update. In games of one round all games start from the same model, and
//! only the watched client trains again; in games of whole runs every game is a separate training.

mod canary;
mod report;
mod trainers;
mod witness;

use canary::{Canary, WATCHED};
use floras_core::View;
use floras_core::random::{Domain, TrialId};
use floras_learn::{Samples, Workspace};
use floras_phy::precode::Precoding;
use floras_phy::{Round, Uplink, UplinkError};
use floras_privacy::Views;
use floras_privacy::published::{self, Participation, PublishedRound, Weight, batch_ratio};
use floras_sim::{RoundOutcome, SimError, Status, Trial, TrialOptions};
use rayon::prelude::*;
pub use report::MembershipGame;
pub(crate) use report::section;
use trainers::{FirstRound, Shadow};
use witness::{Hypotheses, Sent, Verdict, Witness};

use super::bound::{LowerBound, Scores};
use super::game::seed_of_game;
use super::report::Claims;
use super::views::{has_papers_receiver, known_to_take_part};
use super::{Bench, Stage, WorstCaseGame, branches, unless_diverged};

/// Maximum number of games of one round, in each world, for canaries that require training.
const MAX_ONE_ROUND_GAMES: u32 = 20_000;
/// Maximum number of values sent over the air in these games, in each world, unless 200 games need more.
const MAX_NUMBERS: u64 = 4_000_000_000;
/// Numbers of the tables of scores, after those of the main table.
const WORST_CASE_TABLES: [u8; 2] = [200, 201];
/// Name of the adversary with raw samples.
const RAW_SIGNAL: &str = "raw signal";

/// Plays every game; also returns the names of those that could not be played because training diverges.
pub(super) fn attack(bench: &Bench<'_>) -> Result<(Vec<MembershipGame>, Vec<String>), SimError> {
    let mean_size = bench.federation.holdings(0)?.mean_size();
    let players = Players { bench, spread: spread(bench)?, mean_size };
    let one_round = bench.federation.views(1)?;
    let mut played = players.worst_case_client(&one_round)?;
    let mut left_out = Vec::new();
    for canary in Canary::ALL {
        match unless_diverged(players.one_round(canary))? {
            Some(scores) => played.extend(players.compared(canary, 1, &one_round, scores)?),
            None => left_out.push(format!("{} {}, one round", canary.kind(), canary.level())),
        }
        let rounds = bench.game.rounds;
        if rounds == 1 || bench.effort.trainings() == 0 {
            continue;
        }
        match unless_diverged(players.whole_runs(canary))? {
            Some(scores) => {
                played.extend(players.compared(canary, rounds, &bench.federation.views(rounds)?, scores)?);
            }
            None => left_out.push(format!("{} {}, whole runs", canary.kind(), canary.level())),
        }
    }
    let error = (1.0 - bench.effort.confidence()) / played.len() as f64;
    let games = played.into_iter().map(|played| played.judge(bench, error)).collect();
    Ok((games, left_out))
}

/// The uplink without masks whose raw samples are attacked; `None` unless its sequences do not overlap and the receiver has one
/// branch. Raw samples of masked updates are attacked in [`crate::masks`].
fn spread(bench: &Bench<'_>) -> Result<Option<Box<dyn Uplink>>, SimError> {
    let uplink = &bench.settings.uplink;
    let is_open = bench.settings.masks.is_none() && branches(bench.settings) == 1;
    let Some(scheme) = uplink.scheme.floras().filter(|_| is_open) else {
        return Ok(None);
    };
    let floras = scheme.over_radio(&uplink.radio, bench.settings.seed)?;
    if !floras.settings().sequences.is_orthonormal() {
        return Ok(None);
    }
    Ok(Some(bench.settings.at_power(Box::new(floras))?))
}

/// A game with its scores.
struct Played {
    level: &'static str,
    canary: &'static str,
    rounds: u32,
    view: &'static str,
    claims: Claims,
    scores: Scores,
}

impl Played {
    fn judge(self, bench: &Bench<'_>, error: f64) -> MembershipGame {
        // The paper makes no claim about other receivers, nor about raw samples.
        let is_claimed = has_papers_receiver(bench.settings) && self.view != RAW_SIGNAL;
        let claims = Claims { published: self.claims.published.filter(|_| is_claimed), ..self.claims };
        let LowerBound { epsilon, accuracy, measured } =
            self.scores.lower_bound(bench.settings.privacy.delta, error);
        MembershipGame {
            level: self.level.to_owned(),
            canary: self.canary.to_owned(),
            rounds: self.rounds,
            view: self.view.to_owned(),
            published: claims.published,
            rigorous: claims.rigorous,
            is_guarantee: claims.is_guarantee,
            lower_bound: epsilon,
            confidence: bench.effort.confidence(),
            verdict: claims.judge(epsilon),
            accuracy,
            measured,
        }
    }
}

struct Players<'a> {
    bench: &'a Bench<'a>,
    /// The uplink, if its raw samples are attacked.
    spread: Option<Box<dyn Uplink>>,
    /// Mean number of samples per client.
    mean_size: f64,
}

/// The scores of all three adversaries.
type AllScores = [(View, &'static str, Scores); 3];

impl Players<'_> {
    /// One round of the game that the main table plays over all rounds.
    fn worst_case_client(&self, claims: &Views) -> Result<Vec<Played>, SimError> {
        let game = WorstCaseGame { rounds: 1, ..self.bench.game.clone() };
        let games = (self.bench.effort.games() / 8).max(200);
        self.bench.begin("worst-case client, one round", 2 * u64::from(games));
        let tick = |done: u64| (self.bench.watch)(Stage::Done(done));
        let uplink = self.bench.federation.uplink();
        let [decoded_table, raw_table] = WORST_CASE_TABLES;
        let decoded = game.decoded_with(uplink, games, decoded_table, &tick)?;
        let raw = match &self.spread {
            Some(uplink) => game.raw(uplink.as_ref(), games, raw_table, true)?,
            None => Scores::default(),
        };
        let scores = [
            (View::Actual, "released model", decoded.released_model),
            (View::Actual, "decoder", decoded.decoder),
            (View::RawSignal, RAW_SIGNAL, raw),
        ];
        let published = claims.get(View::Published).and_then(|statement| statement.epsilon);
        let played = |(view, name, scores): (View, &'static str, Scores)| {
            let claims = Claims::of(claims, view, published, |statement| statement.epsilon);
            Played { level: "client", canary: "worst-case", rounds: 1, view: name, claims, scores }
        };
        Ok(scores.into_iter().filter(|(.., scores)| !scores.with.is_empty()).map(played).collect())
    }

    /// One round from the first model: only the watched client trains in each game.
    fn one_round(&self, canary: Canary) -> Result<AllScores, SimError> {
        let bench = self.bench;
        let games = self.one_round_games();
        bench.begin(&format!("{} {}, one round", canary.kind(), canary.level()), 2 * u64::from(games));
        let worlds = canary.worlds(bench.federation)?;
        let start = FirstRound::new(self, &worlds)?;
        let mut scores = [Vec::new(), Vec::new()];
        for (world, scores) in scores.iter_mut().enumerate() {
            let trial = Domain::OneRound.trial(2 * canary as u16 + world as u16);
            let play = |(updates, workspace): &mut (Vec<Vec<f32>>, Workspace), game: u32| {
                let (seed, number) = match bench.game.is_traced {
                    true => (seed_of_game(bench.settings.seed, game), 0),
                    false => (bench.settings.seed, game),
                };
                let round = Round::new(seed, trial, number + 1, &start.clients)?
                    .with_parameters(bench.game.parameters);
                start.local(updates, &worlds[world], &round, workspace)?;
                let sent = Sent { updates, watched: 0 };
                self.witness().score(&round, &sent, &start.hypotheses)
            };
            let fresh = || (start.updates.clone(), Workspace::default());
            let played: Result<Vec<Verdict>, UplinkError> =
                (0..games).into_par_iter().map_init(fresh, play).collect();
            *scores = played?;
            (bench.watch)(Stage::Done(games.into()));
        }
        Ok(sorted_by_view(&scores))
    }

    /// The number of games in each world within the limit on sent numbers.
    fn one_round_games(&self) -> u32 {
        let bench = self.bench;
        let numbers = u64::from(bench.settings.clients.per_round) * bench.game.parameters as u64;
        let affordable = (MAX_NUMBERS / numbers.max(1)).min(MAX_ONE_ROUND_GAMES.into()) as u32;
        affordable.min(bench.effort.games() / 2).max(200)
    }

    /// Scores of whole trainings, equally many in each world.
    fn whole_runs(&self, canary: Canary) -> Result<AllScores, SimError> {
        let bench = self.bench;
        let each = (bench.effort.trainings() / 2).max(4);
        bench.begin(&format!("{} {}, whole runs", canary.kind(), canary.level()), 2 * u64::from(each));
        let worlds = canary.worlds(bench.federation)?;
        let mut scores = [Vec::new(), Vec::new()];
        for (world, scores) in scores.iter_mut().enumerate() {
            let first = ((2 * canary as u32 + world as u32) * each) as u16;
            let play = |game: u32| {
                let verdict = self.whole_run(&worlds, world, Domain::WholeRuns.trial(first + game as u16));
                (bench.watch)(Stage::Done(1));
                verdict
            };
            *scores = (0..each).into_par_iter().map(play).collect::<Result<Vec<Verdict>, SimError>>()?;
        }
        Ok(sorted_by_view(&scores))
    }

    /// Scores of one training, in one of both worlds.
    fn whole_run(&self, worlds: &[Samples; 2], world: usize, number: TrialId) -> Result<Verdict, SimError> {
        let federation = self.bench.federation;
        let options = TrialOptions {
            start_of: Some(0.into()),
            replaced: Some((WATCHED, &worlds[world])),
            scored: false,
            keep_sent: true,
        };
        let mut trial = Trial::begin_with(federation, number, options)?;
        let mut verdict = Verdict::default();
        let mut workspace = Workspace::default();
        while trial.status() == Status::Running {
            let before = trial.parameters().to_vec();
            let RoundOutcome { metrics, clients, aggregate, sent, .. } = trial.step()?;
            let watched = clients.iter().position(|&client| client == WATCHED);
            let (Some(watched), Some(aggregate)) = (watched, aggregate) else { continue };
            let at = metrics.round - 1;
            let shadow = Shadow { players: self, parameters: &before, rate: metrics.rate, round: at, number };
            let expected = worlds.each_ref().map(|world| shadow.update(world, 0, &mut workspace));
            let round = Round::new(self.bench.settings.seed, number, metrics.round, &clients)?
                .with_parameters(self.bench.game.parameters);
            let sent = Sent { updates: &sent, watched };
            let largest_norm = aggregate.normalisation.map(|normalisation| normalisation.largest_norm());
            match unless_diverged(self.score_round(&round, &sent, expected, largest_norm))? {
                Some(scores) => verdict = verdict.add(scores),
                // The adversary's prediction diverged; it uses the scores so far.
                None => break,
            }
        }
        Ok(verdict)
    }

    /// The scores of one round of a whole run, with the watched client's hypothetical updates in both worlds.
    fn score_round(
        &self,
        round: &Round<'_>,
        sent: &Sent<'_>,
        expected: [Vec<f32>; 2],
        largest_norm: Option<f64>,
    ) -> Result<Verdict, SimError> {
        let [with, without] = expected.map(|update| self.as_sent(update, largest_norm));
        Ok(self.witness().score(round, sent, &Hypotheses::new(&with?, &without?))?)
    }

    fn witness(&self) -> Witness<'_> {
        Witness {
            settings: self.bench.settings,
            uplink: self.bench.federation.uplink(),
            spread: self.spread.as_deref(),
        }
    }

    /// Clips or normalises a round's updates for sending.
    fn precode(&self, updates: &mut [Vec<f32>]) -> Result<Option<f64>, UplinkError> {
        let privacy = self.bench.settings.privacy;
        let precoding = Precoding::new(updates, privacy.clip, privacy.normalise)?;
        precoding.apply(updates);
        Ok(precoding.normalisation.map(|normalisation| normalisation.largest_norm()))
    }

    /// The same for one update in a round whose longest update is known.
    fn as_sent(&self, update: Vec<f32>, largest_norm: Option<f64>) -> Result<Vec<f32>, UplinkError> {
        let mut one = [update];
        match (self.bench.settings.privacy.clip, largest_norm) {
            (Some(_), Some(largest)) if largest > 0.0 => {
                let of_its_own = self.precode(&mut one)?.unwrap_or(0.0);
                let [mut update] = one;
                // A single update is scaled to the clip norm; among others it is at most as long.
                let factor = (of_its_own / largest).min(1.0) as f32;
                update.iter_mut().for_each(|value| *value *= factor);
                Ok(update)
            }
            _ => {
                self.precode(&mut one)?;
                let [update] = one;
                Ok(update)
            }
        }
    }

    /// Compares the scores of a canary with the claims. The watched client is known to take part in every round.
    fn compared(
        &self,
        canary: Canary,
        rounds: u32,
        claims: &Views,
        scores: AllScores,
    ) -> Result<Vec<Played>, SimError> {
        let everyone = self.bench.game.probability >= 1.0;
        let published = match canary.level() {
            _ if !everyone => None,
            "item" => self.published_for_items(rounds)?,
            _ => claims.get(View::Published).and_then(|statement| statement.epsilon),
        };
        let played = |(view, name, scores): (View, &'static str, Scores)| {
            let claims =
                Claims::of(claims, view, published, |statement| known_to_take_part(statement, everyone));
            Played { level: canary.level(), canary: canary.kind(), rounds, view: name, claims, scores }
        };
        let has_raw = self.spread.is_some();
        let seen = scores.into_iter().filter(|(view, ..)| has_raw || *view != View::RawSignal);
        Ok(seen.map(played).collect())
    }

    /// Theorem 2 of the paper, for one sample of a client.
    fn published_for_items(&self, rounds: u32) -> Result<Option<f64>, SimError> {
        let settings = self.bench.settings;
        let (Some(floras), Some(clip)) = (settings.uplink.scheme.floras(), self.bench.sent_clip()) else {
            return Ok(None);
        };
        let (per_round, clients) = (settings.clients.per_round, settings.clients.total);
        let samples = self.bench.federation.holdings(0)?.with_client(WATCHED, |data| data.rows.len());
        let samples = samples.map_err(SimError::learn("data"))?;
        let batch = settings.local.sgd.batch().min(samples);
        let epsilon = || {
            let p = Participation::PerClients.rate(per_round.into(), clients.into())?;
            let weight = Weight::item(batch_ratio(batch as u64, samples as u64)?, p)?;
            let gamma = floras.sequences.saturating_sub(per_round as usize) as f64;
            let round = PublishedRound::new(weight, clip, gamma)?;
            round.epsilon(published::PublishedComposition::Renyi, rounds.into(), settings.privacy.delta)
        };
        match epsilon() {
            Ok(bound) => Ok(Some(bound.as_printed())),
            Err(error) if error.is_no_guarantee() => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// Collects the scores of both worlds into one list per adversary.
fn sorted_by_view([with, without]: &[Vec<Verdict>; 2]) -> AllScores {
    let of = |score: fn(&Verdict) -> f64| Scores {
        with: with.iter().map(score).collect(),
        without: without.iter().map(score).collect(),
    };
    [
        (View::Actual, "released model", of(|verdict| verdict.released_model)),
        (View::Actual, "decoder", of(|verdict| verdict.decoder)),
        (View::RawSignal, RAW_SIGNAL, of(|verdict| verdict.raw_signal)),
    ]
}
