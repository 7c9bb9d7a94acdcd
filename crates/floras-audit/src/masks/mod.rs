//! Rounds with masks: adversaries who see every transmitted symbol, or who have the raw samples.
//!
//! In a round with [masks](floras_core::Masks), client `k` sends `u_k = x_k + z_k + m_k`. The victim's update is `+C·u` or
//! `−C·u`, and all others send 0. The rounds are real: masks are expanded from the seeds of pairs, every client adds its own
//! noise, and for the adversary with raw samples every chip is sent. The adversary knows the covariance `Σ` of its observation;
//! its score is the best linear one, `vᵀΣ⁻¹y` ([`covariance`]).
//!
//! | module | attack |
//! |---|---|
//! | [`symbols`] | every symbol; with colluding clients; with a silent client |
//! | [`protocol`] | a slot that is announced twice, and lists that differ, to clients with the protocol of [`floras_phy::assignment`] |
//! | [`radio`] | the raw samples of every sequence |
//! | [`broken`] | masks of which one part is broken, which must be found |
//!
//! Each row is compared with the mask bound ([`floras_privacy::MaskBound`]) for one round of the simulated federation.

mod broken;
mod covariance;
mod federation;
mod protocol;
mod radio;
mod report;
mod symbols;

use floras_core::{Masks, View};
use floras_phy::Floras;
use floras_sim::{Settings, SimError};
pub use report::{MaskAttack, MaskRow};

use self::federation::SmallFederation;
use self::protocol::Replays;
use self::radio::Radio;
use super::bound::{LowerBound, Scores};
use super::report::AuditVerdict;
use super::{Bench, WorstCaseGame};

/// Number of games of a row in the audit's main table per game of a row here, in each world.
const SHARE: u32 = 10;
/// The same for rows that run the clients' protocol.
const SHARE_OF_PROTOCOL: u32 = 40;
/// Maximum number of chips of all games over the radio, in both worlds, unless [`MIN_GAMES`] games need more.
const MAX_CHIPS: u64 = 400_000_000;
/// Minimum number of games per row in each world.
const MIN_GAMES: u32 = 500;

/// Numbers of the tables of scores.
mod table {
    pub(super) const SYMBOLS: u8 = 230;
    pub(super) const LISTS: u8 = 231;
    pub(super) const PROTOCOL: u8 = 232;
    pub(super) const RADIO: u8 = 233;
    pub(super) const WITHOUT_NOISE: u8 = 234;
    pub(super) const REUSED_SLOT: u8 = 235;
    pub(super) const GROUP_KEY: u8 = 236;
    pub(super) const WITHOUT_MASKS: u8 = 237;
    pub(super) const UNMASKED: u8 = 238;
}

/// Numbers of games per row in each world.
#[derive(Clone, Copy, Debug)]
struct Games {
    /// Number of games for rows with symbols.
    symbols: u32,
    /// Number of games for rows that run the clients' protocol.
    protocol: u32,
    /// Number of games for the row with raw samples.
    radio: u32,
}

impl Games {
    /// A share of the games of a main-table row, for sequences of `chips` chips.
    fn of(games: u32, chips: usize) -> Self {
        let share = |of: u32| (games / of).max(MIN_GAMES);
        let chips = 2 * chips as u64 * federation::PARAMETERS as u64;
        let affordable = (MAX_CHIPS / chips.max(1)).max(MIN_GAMES.into());
        Self {
            symbols: share(SHARE),
            protocol: share(SHARE_OF_PROTOCOL),
            radio: u64::from(share(SHARE)).min(affordable) as u32,
        }
    }
}

/// A row with its scores.
struct Played {
    attack: String,
    stated: f64,
    scores: Scores,
}

impl Played {
    fn judge(self, delta: f64, error: f64) -> MaskRow {
        let LowerBound { epsilon: lower_bound, measured, .. } = self.scores.lower_bound(delta, error);
        let verdict = AuditVerdict::on(self.stated, lower_bound);
        MaskRow { attack: self.attack, stated: self.stated, lower_bound, verdict, measured }
    }
}

/// Attacks rounds with masks or local noise; `None` for experiments without.
pub(super) fn attack(bench: &Bench<'_>) -> Result<Option<MaskAttack>, SimError> {
    let Some(federation) = federation_of(bench.settings)? else { return Ok(None) };
    bench.begin("rounds with masks", 0);
    let has_masks = federation.masks().mask_std() > 0.0;
    let scene = Scene { bench, federation };
    let floras = scene.floras()?;
    let chips = floras.as_ref().map_or(1, |floras| floras.settings().sequences.length());
    let games = Games::of(bench.effort.games(), chips);
    let found = if has_masks {
        scene.play(floras.as_ref(), games)?
    } else {
        Found { adversaries: vec![scene.against_noise_alone(games)?], ..Found::default() }
    };
    Ok(Some(found.judge(&scene, bench.effort.confidence())))
}

/// Rejects masks that no public grid can represent.
pub(super) fn check(settings: &Settings) -> Result<(), SimError> {
    federation_of(settings).map(|_| ())
}

/// The simulated federation; `None` without masks and noise. Masks that no public grid can represent are an error.
fn federation_of(settings: &Settings) -> Result<Option<SmallFederation>, SimError> {
    let (Some(masks), Some(clip)) = (settings.masks, settings.privacy.clip) else { return Ok(None) };
    let per_round = settings.clients.per_round;
    let federation = match masks.mask_std() > 0.0 && per_round > 1 {
        true => SmallFederation::new(masks, per_round, clip, settings.seed)?,
        false => SmallFederation::without_masks(masks.noise_std(), clip, settings.seed)?,
    };
    federation.grid().add_update(&federation.update(1.0), &mut [0; federation::VALUES])?;
    Ok(Some(federation))
}

/// All rows, before the verdicts.
#[derive(Default)]
struct Found {
    adversaries: Vec<Played>,
    broken: Vec<Played>,
    replays: Replays,
}

impl Found {
    fn judge(self, scene: &Scene<'_>, confidence: f64) -> MaskAttack {
        let delta = scene.bench.settings.privacy.delta;
        let error = (1.0 - confidence) / (self.adversaries.len() + self.broken.len()) as f64;
        let judge = |rows: Vec<Played>| -> Vec<MaskRow> {
            rows.into_iter().map(|row| row.judge(delta, error)).collect()
        };
        let masks = scene.federation.masks();
        MaskAttack {
            clients: scene.federation.clients() as u32,
            per_round: scene.bench.settings.clients.per_round,
            parameters: federation::PARAMETERS,
            mask_std: masks.mask_std(),
            noise_std: masks.noise_std(),
            delta,
            confidence,
            replays_requested: self.replays.requested,
            replays_refused: self.replays.refused,
            adversaries: judge(self.adversaries),
            broken: judge(self.broken),
        }
    }
}

/// A small federation that replaces the experiment's.
struct Scene<'a> {
    bench: &'a Bench<'a>,
    federation: SmallFederation,
}

impl Scene<'_> {
    /// `ε` stated for `colluding` colluding clients after `rounds` rounds.
    fn stated(&self, colluding: u32, rounds: u64) -> Result<f64, SimError> {
        Ok(self.federation.stated(colluding, rounds, self.bench.settings.privacy.delta)?)
    }

    /// Number of clients that reveal their keys and noise: the experiment's share of the game's clients, at least one. At least two
    /// stay honest; 0 if there are too few clients.
    fn colluding(&self) -> u32 {
        let (clients, settings) = (self.federation.clients() as u32, self.bench.settings);
        let assumed = settings.masks.map_or(0, Masks::colluding);
        let share = f64::from(assumed) * f64::from(clients) / f64::from(settings.clients.per_round);
        (share.round() as u32).max(1).min(clients - 2)
    }

    /// Plays against all adversaries.
    fn play(&self, floras: Option<&Floras>, games: Games) -> Result<Found, SimError> {
        let (mut adversaries, replays) = self.against_symbols(games)?;
        let mut broken = self.against_broken_masks(games)?;
        if let Some(floras) = floras {
            adversaries.push(self.against_samples(floras, games)?);
            broken.extend(self.against_unmasked_rounds(floras, games)?);
        }
        Ok(Found { adversaries, broken, replays })
    }

    /// An adversary who sees symbols with noise and without masks.
    fn against_noise_alone(&self, games: Games) -> Result<Played, SimError> {
        let [scores] = broken::without_masks(&self.federation, games.symbols, table::WITHOUT_MASKS)?;
        let attack = "sees every transmitted symbol, with noise and without masks";
        Ok(Played { attack: attack.to_owned(), stated: self.stated(0, 1)?, scores })
    }

    /// Adversaries who see symbols, and the clients' answers to repeated announcements of slots.
    fn against_symbols(&self, games: Games) -> Result<(Vec<Played>, Replays), SimError> {
        let federation = &self.federation;
        let colluding = self.colluding();
        let [alone, colluders, dropout] =
            symbols::scores(federation, colluding as usize, games.symbols, table::SYMBOLS)?;
        let ([protocol], replays) = protocol::scores(federation, games.protocol, table::PROTOCOL)?;
        let [lists] = protocol::scores_of_lists(federation, games.protocol, table::LISTS)?;
        let one_round = self.stated(0, 1)?;
        let row = |attack: String, stated: f64, scores: Scores| Played { attack, stated, scores };
        let mut rows = vec![row("sees every transmitted symbol".to_owned(), one_round, alone)];
        if colluding > 0 {
            let reveal = if colluding == 1 {
                "client reveals its keys and its"
            } else {
                "clients reveal their keys and their"
            };
            let attack = format!("sees every symbol, and {colluding} {reveal} noise");
            rows.push(row(attack, self.stated(colluding, 1)?, colluders));
        }
        rows.push(row("sees every symbol, and one selected client is silent".to_owned(), one_round, dropout));
        let attack = format!(
            "sees every symbol, and announces each slot again with another list: the clients refuse {} of {} requests",
            replays.refused, replays.requested
        );
        rows.push(row(attack, one_round, protocol));
        let attack = "sees every symbol, and announces lists of two to all clients but the victim, so that their masks are larger";
        rows.push(row(attack.to_owned(), one_round, lists));
        Ok((rows, replays))
    }

    /// Adversaries against broken masks.
    fn against_broken_masks(&self, games: Games) -> Result<Vec<Played>, SimError> {
        let (federation, games) = (&self.federation, games.symbols);
        let one_round = self.stated(0, 1)?;
        let row = |attack: &str, stated: f64, [scores]: [Scores; 1]| Played {
            attack: attack.to_owned(),
            stated,
            scores,
        };
        let mut rows = vec![
            row(
                "no local noise: the sum of all symbols is exact",
                one_round,
                broken::without_noise(federation, games, table::WITHOUT_NOISE)?,
            ),
            row(
                "a slot is used twice: two opposite updates under the same masks, with fresh noise; stated for two rounds",
                self.stated(0, 2)?,
                broken::reused_slot(federation, games, table::REUSED_SLOT)?,
            ),
        ];
        if federation.clients() > 2 {
            rows.push(row(
                "one key of the group makes all masks, and one client reveals it; stated for one colluding client",
                self.stated(1, 1)?,
                broken::group_key(federation, games, table::GROUP_KEY)?,
            ));
        }
        rows.push(row(
            "no masks: each client adds its noise alone",
            one_round,
            broken::without_masks(federation, games, table::WITHOUT_MASKS)?,
        ));
        Ok(rows)
    }

    /// The uplink whose sequences an adversary despreads; `None` without sequences, without noise, or with channels of a trace.
    fn floras(&self) -> Result<Option<Floras>, SimError> {
        let settings = self.bench.settings;
        let radio = &settings.uplink.radio;
        let Some(scheme) = settings.uplink.scheme.floras() else { return Ok(None) };
        let has_noise = radio.snr()?.despread_noise_std(radio.length) > 0.0;
        if self.bench.game.is_traced || !has_noise || !scheme.is_orthonormal(radio.length)? {
            return Ok(None);
        }
        Ok(Some(scheme.over_radio(radio, settings.seed)?))
    }

    /// An adversary with the raw samples.
    fn against_samples(&self, floras: &Floras, games: Games) -> Result<Played, SimError> {
        let mut settings = self.bench.settings.clone();
        settings.masks = Some(self.federation.masks());
        let uplink = settings.at_power(Box::new(floras.clone()))?;
        let radio = Radio {
            uplink: uplink.as_ref(),
            sequences: &floras.settings().sequences,
            parameters: self.bench.game.parameters,
        };
        let [scores] = radio.scores(&self.federation, games.radio, table::RADIO)?;
        let attack =
            "keeps the raw samples and despreads every sequence; it knows all channels and the assignment";
        Ok(Played { attack: attack.to_owned(), stated: self.stated(0, 1)?, scores })
    }

    /// The raw samples of one round of the experiment without masks, compared with the paper's claim; `None` without a claim.
    fn against_unmasked_rounds(&self, floras: &Floras, games: Games) -> Result<Option<Played>, SimError> {
        let bench = self.bench;
        let published =
            bench.federation.views(1)?.get(View::Published).and_then(|statement| statement.epsilon);
        let Some(stated) = published else { return Ok(None) };
        let uplink = bench.settings.at_power(Box::new(floras.clone()))?;
        let game = WorstCaseGame { rounds: 1, ..bench.game.clone() };
        let scores = game.raw(uplink.as_ref(), games.symbols, table::UNMASKED, false)?;
        let attack = format!(
            "neither masks nor local noise, {} clients: raw samples, compared with the published ε",
            bench.settings.clients.per_round
        );
        Ok(Some(Played { attack, stated, scores }))
    }
}
