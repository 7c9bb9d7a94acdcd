//! What each attack came to.

use floras_sim::audit::{
    CollusionAttack, DespreadClient, DespreadingAttack, DetectorResult, MembershipGame, SequenceAttack,
};

use super::views::{claim, counted};
use crate::html::number::{count, epsilon, grouped, share, short};
use crate::html::{Cell, Html, figure};

/// More clients than this are not listed.
const MOST_CLIENTS: usize = 40;

/// Which sequences are in use?
pub(super) fn sequences(html: &mut Html, attack: &SequenceAttack) {
    html.paragraph(&format!(
        "The scheme's privacy hangs on a base station that does not know which {} of its {} are in use: those that nobody uses \
         make the noise. A detector gives every sequence a score, from the pilot, from the energy of the payload, or from both. \
         Over {}:",
        grouped(attack.in_use as u64),
        count(attack.sequences as u64, "sequence"),
        count(attack.rounds.into(), "round")
    ));
    let row = |result: &DetectorResult| {
        vec![
            Cell::text(result.detector.as_str()),
            Cell::text(if result.knows_fading { "yes" } else { "no" }),
            Cell::number(format!("{:.4}", result.area)),
            Cell::number(share(result.detections)),
            Cell::number(result.detections_in_theory.map_or_else(|| "–".to_owned(), share)),
            Cell::number(share(result.exact_set)),
        ]
    };
    let rows: Vec<Vec<Cell>> = attack.detectors.iter().map(row).collect();
    html.table(
        &[
            "detector",
            "knows the fading",
            "area",
            "found at 1 % false alarms",
            "in theory",
            "whole set found",
        ],
        &rows,
    );
    html.paragraph(
        "The area is that under the curve of detections over false alarms: 0.5 is a guess, and 1 is certainty. To know the fading \
         is to know its law. The whole set is found if the sequences with the highest scores are exactly those in use.",
    );
    html.around("div", "plots", |plots| {
        attack.panels.iter().for_each(|panel| figure(plots, panel, "Point at it for values."));
    });
}

/// The updates of single clients, despread.
pub(super) fn despreading(html: &mut Html, attack: &DespreadingAttack) {
    html.paragraph(&format!(
        "A base station that keeps its samples can despread every sequence by itself and has each client's update, with no noise \
         but its own. Shares are over {}.",
        count(attack.rounds.into(), "round")
    ));
    let row = |what: &str, found: f64, chance: Option<f64>| {
        vec![
            Cell::text(what),
            Cell::number(share(found)),
            Cell::number(chance.map_or_else(|| "–".to_owned(), share)),
        ]
    };
    let chance = Some(attack.by_chance);
    let rows = [
        row("held as one vector over the whole payload of a round", attack.linked_in_round, None),
        row(
            "put together again by strength alone, if sequences changed half-way",
            attack.linked_by_strength,
            chance,
        ),
        row("put together again from one round to the next", attack.linked_across_rounds, chance),
        row("called by name by someone who knows everybody's data", attack.named, chance),
    ];
    html.table(&["clients that are …", "share", "by chance"], &rows);
    if attack.clients.is_empty() {
        return;
    }
    let mut clients = attack.clients.clone();
    clients.sort_by(|a, b| b.amplitude.abs().total_cmp(&a.amplitude.abs()).then(a.client.cmp(&b.client)));
    html.paragraph(&listed(clients.len()));
    let row = |client: &DespreadClient| {
        vec![
            Cell::text(format!("client {}", client.client)),
            Cell::number(short(client.amplitude)),
            Cell::number(short(client.correlation)),
            Cell::number(short(client.relative_error)),
        ]
    };
    let rows: Vec<Vec<Cell>> = clients.iter().take(MOST_CLIENTS).map(row).collect();
    html.table(&["client", "amplitude |h|", "correlation with what was sent", "relative error"], &rows);
}

fn listed(clients: usize) -> String {
    let all = "One round, client by client, the strongest first.";
    if clients <= MOST_CLIENTS {
        return all.to_owned();
    }
    format!("{all} The first {MOST_CLIENTS} of {} are listed.", count(clients as u64, "client"))
}

/// The distinguishing games.
pub(super) fn membership(html: &mut Html, games: &[MembershipGame]) {
    html.paragraph(
        "In each game one client or one of its samples is replaced by a canary, or not, and the adversary says which. A \
         worst-case canary is chosen to be found, a natural one is like all other data. The measured ε holds with \
         the confidence beside it, for that game alone; “right” is how often the adversary is right at its best threshold.",
    );
    let row = |game: &MembershipGame| {
        vec![
            Cell::text(format!("{}, {}", game.level, game.canary)),
            Cell::text(format!("{}, {}", game.view, count(game.rounds.into(), "round"))),
            claim(game.published, game.verdict.published, ""),
            claim(game.rigorous, game.verdict.rigorous, ""),
            Cell::number(format!("{} ({})", epsilon(game.lower_bound), share(game.confidence))),
            Cell::number(share(game.accuracy)),
            Cell::text(counted(&game.measured)),
        ]
    };
    let rows: Vec<Vec<Cell>> = games.iter().map(row).collect();
    html.table(
        &["replaced, canary", "view", "published ε", "rigorous ε", "ε is at least", "right", "counted"],
        &rows,
    );
}

/// One client hands its group key to the base station.
pub(super) fn collusion(html: &mut Html, attack: &CollusionAttack) {
    html.paragraph(
        "Every client knows the key by which sequences are dealt. One that gives it to the base station tells it which sequences \
         nobody uses, and whose every other one is. The noise of the unused ones is then left out.",
    );
    let claimed = |value: Option<f64>| Cell::number(value.map_or_else(|| "none".to_owned(), epsilon));
    let rows = [
        vec![
            Cell::text("rigorous ε of the decoded sum"),
            claimed(attack.rigorous_without),
            claimed(attack.rigorous_with),
        ],
        vec![
            Cell::text("measured: ε is at least"),
            Cell::number(epsilon(attack.lower_bound_without)),
            Cell::number(epsilon(attack.lower_bound_with)),
        ],
        vec![
            Cell::text("noise of the decoded sum (standard deviation, median)"),
            Cell::number(short(attack.noise_std_without)),
            Cell::number(short(attack.noise_std_with)),
        ],
    ];
    html.table(&["what", "without the key", "with the key"], &rows);
    html.paragraph(&format!(
        "Both measured numbers hold with a confidence of {}. With the key, {} of the despread updates carry their owner's name.",
        share(attack.confidence),
        share(attack.named)
    ));
}
