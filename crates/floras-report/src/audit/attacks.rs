//! What each attack came to.

use floras_audit::{AssumptionAttack, CollusionAttack, DespreadClient, DespreadingAttack, MembershipGame};

use super::number::epsilon;
use super::views::{COUNTED, claim, counted, lower_bound, rigorous};
use crate::html::number::{count, grouped, share};
use crate::html::{Cell, Html};
use crate::plot::portraits::signed;

/// More clients than this are not listed.
const MAX_CLIENTS: usize = 40;
/// Shares of fewer games, in each world, say little: of so many, one half is uncertain by a tenth.
const FEW_GAMES: u64 = 50;

/// The updates of single clients, despread.
pub(super) fn despreading(html: &mut Html, attack: &DespreadingAttack) {
    html.paragraph(&format!(
        "A base station that keeps its samples can despread every sequence by itself and has each client's update, with no noise \
         but its own. Shares are over {}.",
        count(attack.rounds.into(), "round")
    ));
    let row = |what: &str, found: f64, probability: Option<f64>| {
        vec![
            Cell::text(what),
            Cell::number(share(found)),
            Cell::number(probability.map_or_else(|| "–".to_owned(), share)),
        ]
    };
    let probability = Some(attack.by_chance);
    let rows = [
        row("held as one vector over the whole payload of a round", attack.linked_in_round, None),
        row(
            "put together again by strength alone, if sequences changed half-way",
            attack.linked_by_strength,
            probability,
        ),
        row("put together again from one round to the next", attack.linked_across_rounds, probability),
        row("called by name by someone who knows everybody's data", attack.named, probability),
    ];
    html.table(&["clients that are …", "share", "at random"], &rows);
    if attack.clients.is_empty() {
        return;
    }
    let mut clients = attack.clients.clone();
    clients.sort_by(|a, b| b.amplitude.abs().total_cmp(&a.amplitude.abs()).then(a.client.cmp(&b.client)));
    html.paragraph(&in_one_round(&clients));
    html.around("details", "", |details| {
        details.element("summary", "", "This round, client by client");
        details.paragraph(&listed(clients.len()));
        let rows: Vec<Vec<Cell>> = clients.iter().take(MAX_CLIENTS).map(client).collect();
        details
            .table(&["client", "amplitude |h|", "correlation with what was sent", "relative error"], &rows);
    });
}

fn client(client: &DespreadClient) -> Vec<Cell> {
    let numbers = [client.amplitude, client.correlation, client.relative_error];
    let cells = numbers.map(|number| Cell::number(signed(number, 3)));
    [Cell::number(format!("client {}", client.client))].into_iter().chain(cells).collect()
}

/// The mean and both ends, of clients in the order of their strength.
fn in_one_round(clients: &[DespreadClient]) -> String {
    let mean = clients.iter().map(|client| client.correlation).sum::<f64>() / clients.len().max(1) as f64;
    let end = |client: Option<&DespreadClient>| {
        client.map_or_else(|| "–".to_owned(), |client| signed(client.correlation, 2))
    };
    format!(
        "In one round that was looked at more closely, the correlation of a despread update with what the client sent is {} on \
         average, {} for the client with the strongest channel and {} for the one with the weakest. 1 is the very update, and 0 \
         has nothing to do with it.",
        signed(mean, 2),
        end(clients.first()),
        end(clients.last())
    )
}

fn listed(clients: usize) -> String {
    let all = "The strongest channel first. The relative error is the length of what is wrong over that of what was sent.";
    if clients <= MAX_CLIENTS {
        return all.to_owned();
    }
    format!("{all} The first {MAX_CLIENTS} of {} are listed.", count(clients as u64, "client"))
}

/// Words of the games.
const WORDS: [(&str, &str); 7] = [
    ("client, item", "what is replaced: all data of one client, or one of its samples"),
    (
        "canary",
        "what is put in the place of a client's data, or of one of its samples, to see whether it is noticed",
    ),
    ("worst-case canary", "one that is made to be found; claims must hold for it, too"),
    ("natural canary", "one that is like all other data"),
    ("released model", "the adversary only gets the models that are sent back to everyone"),
    ("decoder", "the adversary also knows the decoded sums and how much noise is in them"),
    ("raw signal", "the adversary keeps the radio samples, and despreads every sequence"),
];

/// The distinguishing games.
pub(super) fn membership(html: &mut Html, games: &[MembershipGame]) {
    let confidence = games.first().map_or(0.0, |game| game.confidence);
    html.paragraph(&format!(
        "In each game the data of one client, or one of its samples, are replaced by a canary, or not, and the adversary says \
         which. “Right” is how often it is right if both are equally likely: a guess is right in 50 % of games. The measured ε \
         looks at the rare cases in which the adversary is sure, and can be large where it is seldom right. All of them \
         hold together with a confidence of {}.",
        share(confidence)
    ));
    let what = |game: &MembershipGame| {
        vec![
            Cell::text(format!("{}, {} canary", game.level, game.canary)),
            Cell::text(game.view.as_str()),
            Cell::number(grouped(game.rounds.into())),
        ]
    };
    let row = |game: &MembershipGame| {
        let mut row = what(game);
        row.extend([
            accuracy(game),
            claim(game.published, game.verdict.published, "not claimed"),
            rigorous(game.rigorous, game.is_guarantee, game.verdict.rigorous),
            lower_bound(game.lower_bound, &game.measured),
        ]);
        row
    };
    let rows: Vec<Vec<Cell>> = games.iter().map(row).collect();
    let whose = ["replaced", "who looks", "rounds"];
    let heading = [&whose[..], &["right", "published ε", "rigorous ε", "ε is at least"]].concat();
    html.table(&heading, &rows);
    html.around("details", "", |details| {
        details.element("summary", "", "Words used in this table, and what was counted");
        super::definitions(details, WORDS);
        let rows: Vec<Vec<Cell>> = games.iter().map(|game| counted(what(game), &game.measured)).collect();
        details.table(&[&whose[..], &COUNTED].concat(), &rows);
    });
}

/// How often the adversary is right, with a word where that was counted in a few games only.
fn accuracy(game: &MembershipGame) -> Cell {
    let is_few = game.measured.games < FEW_GAMES;
    Cell::Judged {
        number: share(game.accuracy),
        verdict: None,
        remark: if is_few { "few games" } else { "" },
    }
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
            Cell::number(signed(attack.noise_std_without, 3)),
            Cell::number(signed(attack.noise_std_with, 3)),
        ],
    ];
    html.table(&["what", "without the key", "with the key"], &rows);
    html.paragraph(&format!(
        "Both measured numbers hold with a confidence of {}. With the key, {} of the despread updates carry their owner's name.",
        share(attack.confidence),
        share(attack.named)
    ));
}

/// What the any-channel view assumes, broken.
pub(super) fn assumptions(html: &mut Html, attacks: &[AssumptionAttack]) {
    let Some(AssumptionAttack { delta, confidence, .. }) = attacks.first() else { return };
    html.paragraph(&format!(
        "The any-channel ε holds for every channel, but not for every radio. Here each of its assumptions is broken in a small \
         federation: 20 clients, 40 sequences, the clipped projector with c = 1, C = 1, one round, δ = {delta:e}. The stated ε \
         ignores the attack. Where the account has a setting that allows for it, its ε stands beside it. All measured numbers \
         hold together with a confidence of {}.",
        share(*confidence)
    ));
    let row = |attack: &AssumptionAttack| {
        let with_margin = match &attack.margin {
            None => Cell::text("no setting"),
            Some(_) => claim(attack.with_margin, attack.with_margin_is, "no finite ε"),
        };
        vec![
            Cell::text(attack.assumption.as_str()),
            Cell::text(attack.attack.as_str()),
            claim(attack.stated, attack.stated_is, "none"),
            lower_bound(attack.lower_bound, &attack.measured),
            Cell::text(attack.margin.as_deref().unwrap_or("–")),
            with_margin,
        ]
    };
    let rows: Vec<Vec<Cell>> = attacks.iter().map(row).collect();
    let heading = ["assumed", "instead", "stated ε", "ε is at least", "allowed for by", "ε with it"];
    html.table(&heading, &rows);
}
