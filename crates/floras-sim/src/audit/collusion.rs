//! A colluding client: one member of the group hands its key to the base station.
//!
//! One key orders all sequences, so that the base station then knows which `K` of them are in use and whose each is. It leaves
//! the unused ones out of its projector,
//!
//! ```text
//! v = Σ_{used} w(ĥ_k) a_k     instead of     v = Σ_{k≤N} w(ĥ_k) a_k
//! ```
//!
//! and what hid the clients, the noise of the `γ` unused sequences, is gone: the decoded sum is that of a federation with
//! `N = K`. Every despread update has a name.

use floras_phy::assignment::{AssignmentError, Beacon, Epoch, GroupId, GroupKey, GroupMember, permutation};
use floras_phy::{Family, Round, Uplink};

use super::Bench;
use super::report::CollusionAttack;
use crate::accounting::Accounting;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Scheme, Settings};

/// Tables of scores of its own.
const WITHOUT_KEY: u16 = 210;
const WITH_KEY: u16 = 211;
/// Rounds that the median of the noise is taken over.
const ROUNDS: u32 = 2001;
/// They come from a trial of their own.
const TRIAL: u16 = 0x8FFE;
/// Both bounds hold together.
const BOUNDS: f64 = 2.0;

/// What the key changes; `None` where there are no sequences to hide.
pub(super) fn attack(bench: &Bench<'_>) -> Result<Option<CollusionAttack>, SimError> {
    let Scheme::Floras(floras) = &bench.settings.uplink.scheme else { return Ok(None) };
    let used = bench.settings.clients.per_round as usize;
    let (fading, snr) = floras.air.channel()?;
    let has_noise = snr.despread_noise_std(floras.air.length) > 0.0;
    if floras.sequences == used || floras.family == Family::Gaussian || !has_noise {
        return Ok(None);
    }
    let mut known = floras.clone();
    known.sequences = used;
    let with_key = known.over(fading, snr, bench.settings.seed)?;
    let mut settings = bench.settings.clone();
    settings.uplink.scheme = Scheme::Floras(known);
    let uplink = bench.federation.uplink();
    let games = bench.games(0.25);
    bench.begin_games("a colluding client", 2 * games);
    let lower_bound = |uplink: &dyn Uplink, table: u16| -> Result<f64, SimError> {
        let scores = bench.game.decoded_with(uplink, games, table, &bench.tick())?;
        let error = (1.0 - bench.effort.confidence) / BOUNDS;
        Ok(scores.decoder.lower_bound(bench.settings.privacy.delta, error).epsilon)
    };
    let claimed = bench.federation.accounting()?.views(bench.game.rounds)?;
    Ok(Some(CollusionAttack {
        rigorous_without: claimed.actual.and_then(|statement| statement.epsilon),
        rigorous_with: rigorous(bench, &settings, &with_key)?,
        lower_bound_without: lower_bound(uplink, WITHOUT_KEY)?,
        lower_bound_with: lower_bound(&with_key, WITH_KEY)?,
        confidence: bench.effort.confidence,
        noise_std_without: median_noise(bench, uplink)?,
        noise_std_with: median_noise(bench, &with_key)?,
        named: named(bench, floras.sequences as u32)?,
    }))
}

/// `ε` of the decoded sum once nothing is unused.
fn rigorous(bench: &Bench<'_>, settings: &Settings, uplink: &dyn Uplink) -> Result<Option<f64>, SimError> {
    let select = |trial: u16, round: u32| bench.federation.select(trial, round);
    let views = Accounting::new(settings, uplink, &select)?.views(bench.game.rounds)?;
    Ok(views.actual.and_then(|statement| statement.epsilon))
}

fn median_noise(bench: &Bench<'_>, uplink: &dyn Uplink) -> Result<f64, SimError> {
    let rounds = bench.game.rounds_of_trace.unwrap_or(ROUNDS).min(ROUNDS);
    let clients: Vec<u32> = (0..bench.settings.clients.per_round).collect();
    let mut noise = Vec::new();
    for number in 0..rounds {
        let round = Round::new(bench.settings.seed, TRIAL, number, &clients)?;
        noise.push(uplink.realise(&round)?.noise_std());
    }
    noise.sort_by(f64::total_cmp);
    Ok(noise[noise.len() / 2])
}

/// The share of clients whose sequence the colluding one's key tells. All members hold the same key; here it is no secret.
fn named(bench: &Bench<'_>, sequences: u32) -> Result<f64, SimError> {
    let refused =
        |error: AssignmentError| SimError::from(ExperimentError::refused("uplink.sequences", error));
    let (group, epoch, slot) = (GroupId([0; 16]), Epoch(1), 1);
    let per_round = bench.settings.clients.per_round;
    let beacon = Beacon { group, epoch, slot, sequences, per_round };
    let dealt = || GroupKey::from_secret_bytes(group, epoch, &[7; 32]);
    let told = permutation(&dealt(), slot, sequences).map_err(refused)?;
    let mut named = 0;
    for (index, &sequence) in (1..=per_round).zip(told.iter()) {
        let own = GroupMember::new(dealt()).sequence_for(&beacon, index).map_err(refused)?;
        named += u32::from(own == sequence as usize);
    }
    Ok(f64::from(named) / f64::from(per_round))
}
