//! Deliberately broken masks, which the attack must detect.
//!
//! | broken part | the adversary's computation | its `μ` |
//! |---|---|---|
//! | no local noise | `Σ_k u_k`, in which the masks cancel exactly | ∞ |
//! | a slot is used twice | `u − u'` of the victim, in which its masks cancel | `√2·Δ/σ_z` |
//! | a group-wide key, and one client reveals it | `u` of the victim without its masks | `Δ/σ_z` |
//! | no masks | `u` of the victim | `Δ/σ_z` |

use floras_phy::UplinkError;

use super::federation::{MaskedRound, SmallFederation, Steps, VALUES, VICTIM, add, along};
use super::symbols::minus;
use crate::bound::Scores;

/// The sum of the victim's masks.
fn masks_of_victim(round: MaskedRound<'_>, clients: usize) -> Result<Steps, UplinkError> {
    let mut sum = [0; VALUES];
    for other in (0..clients).filter(|&other| other != VICTIM) {
        add(&mut sum, &round.pair_mask(VICTIM, other)?);
    }
    Ok(sum)
}

/// Scores against clients without local noise.
pub(super) fn without_noise(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<[Scores; 1], UplinkError> {
    let clients = federation.clients();
    federation.scores(
        table,
        games,
        |_| (),
        |(), round, sign| {
            let mut sum = [0; VALUES];
            for client in 0..clients {
                let mut sent = round.steps(client, sign)?;
                for other in (0..clients).filter(|&other| other != client) {
                    add(&mut sent, &round.pair_mask(client, other)?);
                }
                add(&mut sum, &sent);
            }
            Ok([round.fine_along(&sum)])
        },
    )
}

/// Scores against clients that use a slot twice, for two opposite updates with fresh noise.
pub(super) fn reused_slot(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<[Scores; 1], UplinkError> {
    let clients = federation.clients();
    federation.scores(
        table,
        games,
        |_| (),
        |(), round, sign| {
            let masks = masks_of_victim(round, clients)?;
            let sent = |transmission: usize, sign: f64| {
                let mut values = round.steps(VICTIM, sign)?;
                add(&mut values, &masks);
                round.send(VICTIM, transmission, values)
            };
            Ok([minus(along(&sent(0, sign)?), along(&sent(1, -sign)?))])
        },
    )
}

/// Scores against clients whose masks come from one key that all of them hold; one client reveals it.
pub(super) fn group_key(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<[Scores; 1], UplinkError> {
    let clients = federation.clients();
    federation.scores(
        table,
        games,
        |_| (),
        |(), round, sign| {
            let masks = masks_of_victim(round, clients)?;
            let mut values = round.steps(VICTIM, sign)?;
            add(&mut values, &masks);
            Ok([minus(along(&round.send(VICTIM, 0, values)?), round.fine_along(&masks))])
        },
    )
}

/// Scores against clients that add only noise.
pub(super) fn without_masks(
    federation: &SmallFederation,
    games: u32,
    table: u8,
) -> Result<[Scores; 1], UplinkError> {
    federation.scores(
        table,
        games,
        |_| (),
        |(), round, sign| Ok([along(&round.send(VICTIM, 0, round.steps(VICTIM, sign)?)?)]),
    )
}
