//! The audit's table: claims and measurements for every adversary.

mod report;

use floras_core::{Fading, Receiver, Snr, SnrConvention, View};
use floras_phy::{Channels, Complex64, Floras, FlorasSettings, Uplink};
use floras_privacy::{Statement, Views};
use floras_sim::schemes::FlorasScheme;
use floras_sim::{Settings, SimError};
pub(crate) use report::section;
pub use report::{AuditedView, AuditedViews};

use super::bound::{LowerBound, Scores};
use super::report::Claims;
use super::{Bench, WorstCaseGame};

/// SNR in dB for the idealised view.
const STRONG_DB: f64 = 100.0;
/// Amplitudes `h/s` of the watched client that are searched for the worst channel.
const STRENGTHS: [f64; 12] = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 12.0, 20.0, 1000.0];
/// Amplitude of all other clients in units of `s`: their sequences add no noise.
const STRENGTH_OF_OTHERS: f64 = 1e4;
/// Number of rows of the table, which hold jointly.
const ROWS: f64 = 5.0;

/// Numbers of the tables of scores, each with independent randomness.
mod table {
    pub(super) const ACTUAL: u8 = 0;
    pub(super) const IDEALISED: u8 = 1;
    pub(super) const RAW_SIGNAL: u8 = 2;
    pub(super) const ANY_CHANNEL: u8 = 3;
    /// One per amplitude.
    pub(super) const SEARCH: u8 = 100;
}

/// `ε` of a client that is known to take part in every round.
pub(super) fn known_to_take_part(statement: &Statement, everyone_does: bool) -> Option<f64> {
    if everyone_does { statement.epsilon } else { statement.details.get("in_every_round").copied() }
}

/// Plays against every adversary.
pub(super) fn audit(bench: &Bench<'_>) -> Result<AuditedViews, SimError> {
    let claims = bench.federation.views(bench.game.rounds)?;
    let row = |view: View, scores: &Scores, adversary: String| row(bench, &claims, view, scores, adversary);
    let games = bench.games(1.0);
    bench.begin_games("decoded sums over the experiment's own channel", games);
    let decoded = bench.game.decoded_with(bench.federation.uplink(), games, table::ACTUAL, &bench.tick())?;
    let others = match bench.game.probability {
        probability if probability < 1.0 => "all other clients send 0; participation is unknown",
        _ => "all other clients send 0, which is known",
    };
    let mut views = AuditedViews::default();
    let adversary =
        format!("a recipient of the released models who knows neither channels nor noise; {others}");
    views.released_model = Some(row(View::Actual, &decoded.released_model, adversary));
    let adversary = format!("a base station that knows every decoded sum with its gain and noise; {others}");
    views.insert(View::Actual, row(View::Actual, &decoded.decoder, adversary));
    match bench.settings.uplink.scheme.floras() {
        Some(floras) => of_floras(bench, floras, &row, &mut views)?,
        None => {
            // Nothing is spread: raw samples equal decoded sums, and noise that clients add does not depend on the channel.
            let same = |view: View| {
                claims.get(view)?;
                let adversary = match view {
                    View::RawSignal => {
                        "a base station that stores its raw samples; without spreading they equal the decoded sums"
                    }
                    _ => {
                        "the same base station as in the row `actual`; the noise does not depend on the channel"
                    }
                };
                Some((view, row(view, &decoded.decoder, adversary.to_owned())))
            };
            let others = View::RIGOROUS.into_iter().filter(|&view| view != View::Actual);
            others.filter_map(same).for_each(|(view, row)| views.insert(view, row));
        }
    }
    Ok(views)
}

fn of_floras(
    bench: &Bench<'_>,
    floras: &FlorasScheme,
    row: &dyn Fn(View, &Scores, String) -> AuditedView,
    views: &mut AuditedViews,
) -> Result<(), SimError> {
    let (seed, games) = (bench.settings.seed, bench.games(1.0));
    let radio = &bench.settings.uplink.radio;
    let snr = radio.snr()?;
    let noise_std = snr.despread_noise_std(radio.length);
    let has_unused = floras.sequences > bench.settings.clients.per_round as usize;
    let has_masks = bench.settings.masks.is_some();
    let is_orthonormal = floras.is_orthonormal(radio.length)?;
    if (has_unused || has_masks) && noise_std > 0.0 && is_orthonormal {
        bench.begin_games("decoded sums over a strong channel", games);
        let strong = Snr::new(STRONG_DB, SnrConvention::Symbol)?;
        let strong = floras.over(radio.length, Fading::None.into(), strong, seed)?;
        let strong = with_antennas(bench, strong)?;
        let decoded = bench.game.decoded_with(strong.as_ref(), games, table::IDEALISED, &bench.tick())?;
        let noise = match has_masks {
            true => "only the clients' noise and that of unused sequences remain",
            false => "only the unused sequences' noise remains",
        };
        let adversary = format!(
            "a base station that knows every decoded sum and its noise, over a strong channel: no fading, {STRONG_DB} dB, \
             and {noise}"
        );
        views.insert(View::Idealised, row(View::Idealised, &decoded.decoder, adversary));
        let (strength, scores) = worst_channel(bench, floras, snr, noise_std)?;
        let sees = if bench.game.probability < 1.0 {
            ". All other channels are strong, so the pilot shows who takes part"
        } else {
            ""
        };
        let at = if radio.antennas > 1 { " at every antenna" } else { "" };
        let adversary = format!(
            "a base station that knows every decoded sum, its gain and its noise, over the worst channel found for the \
             client: h = {strength}·s{at}, with s the pilot noise{sees}"
        );
        views.insert(View::AnyChannel, row(View::AnyChannel, &scores, adversary));
    }
    if !is_orthonormal || bench.settings.masks.is_some() {
        return Ok(());
    }
    bench.begin_games("raw samples", games);
    let uplink = bench.settings.at_power(Box::new(floras.over_radio(radio, seed)?))?;
    let scores = bench.game.raw(uplink.as_ref(), games, table::RAW_SIGNAL, false)?;
    let adversary = "a base station that keeps its raw samples, despreads every sequence and does not know which is the \
                     client's";
    let found = row(View::RawSignal, &scores, adversary.to_owned());
    // Remark 5 of the paper: its guarantee is for its own receiver.
    views.insert(View::RawSignal, AuditedView { published_claims_it: false, ..found });
    Ok(())
}

/// An uplink with other parameters, but the experiment's antennas, power and masks.
fn with_antennas(bench: &Bench<'_>, floras: Floras) -> Result<Box<dyn Uplink>, SimError> {
    let antennas = bench.settings.uplink.radio.antennas;
    let floras = Floras::new(FlorasSettings { antennas, ..floras.settings().clone() });
    Ok(bench.settings.with_masks(Box::new(floras))?)
}

fn row(bench: &Bench<'_>, claims: &Views, view: View, scores: &Scores, adversary: String) -> AuditedView {
    let published = claims.get(View::Published).and_then(|statement| statement.epsilon);
    let claims = Claims::of(claims, view, published, |statement| statement.epsilon);
    let error = (1.0 - bench.effort.confidence()) / ROWS;
    let LowerBound { epsilon: lower_bound, measured, .. } =
        scores.lower_bound(bench.settings.privacy.delta, error);
    AuditedView {
        published: claims.published,
        rigorous: claims.rigorous,
        is_guarantee: claims.is_guarantee,
        lower_bound,
        confidence: bench.effort.confidence(),
        verdict: claims.judge(lower_bound),
        adversary,
        published_claims_it: claims.published.is_some() && has_papers_receiver(bench.settings),
        measured,
    }
}

/// The paper's claims apply to its own receiver.
pub(super) fn has_papers_receiver(settings: &Settings) -> bool {
    settings.uplink.scheme.floras().is_some_and(|floras| floras.receiver == Receiver::Paper)
}

/// Searches the worst channel with a part of the games, and plays the rest over it.
fn worst_channel(
    bench: &Bench<'_>,
    floras: &FlorasScheme,
    snr: Snr,
    noise_std: f64,
) -> Result<(f64, Scores), SimError> {
    let over = |strength: f64| -> Result<Box<dyn Uplink>, SimError> {
        let coefficient = |strength: f64| Complex64::new((strength * noise_std).min(1e6), 0.0);
        let channels = Channels::fixed(&[strength, STRENGTH_OF_OTHERS].map(coefficient))?;
        let uplink = floras.over(bench.settings.uplink.radio.length, channels, snr, bench.settings.seed)?;
        with_antennas(bench, uplink)
    };
    let (games, few) = (bench.games(1.0), bench.games(0.05));
    // A weak client among strong ones is visible in the pilot.
    let game = WorstCaseGame { participation_known: true, ..bench.game.clone() };
    bench.begin_games("search for the worst channel", few * STRENGTHS.len() as u32);
    let mut best = (STRENGTHS[0], (f64::NEG_INFINITY, 0.0));
    for (place, strength) in (table::SEARCH..).zip(STRENGTHS) {
        let uplink = over(strength)?;
        let scores = game.decoded_with(uplink.as_ref(), few, place, &bench.tick())?;
        // An error probability of one half shows small differences, and accuracy distinguishes channels with little leakage.
        let found = scores.decoder.lower_bound(bench.settings.privacy.delta, 0.5);
        let found = (found.epsilon, found.accuracy);
        if found > best.1 {
            best = (strength, found);
        }
    }
    let uplink = over(best.0)?;
    bench.begin_games("decoded sums over the worst channel", games);
    let scores = game.decoded_with(uplink.as_ref(), games, table::ANY_CHANNEL, &bench.tick())?;
    Ok((best.0, scores.decoder))
}
