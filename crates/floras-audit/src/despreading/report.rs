//! What despreading shows of single clients.

use floras_sim::number::{count, signed};
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};

/// More clients than this are not listed.
const MAX_CLIENTS: usize = 40;

/// The updates of single clients, despread.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadingAttack {
    /// Every client of the round that was looked at.
    pub clients: Vec<DespreadClient>,
    /// Share of clients whose whole payload the base station holds as one vector, because it found their sequence.
    pub linked_in_round: f64,
    /// Share of clients whose two halves of a payload would be put together again by their strength alone, were the sequences
    /// dealt anew half-way.
    pub linked_by_strength: f64,
    /// Share of clients that are put together again from one round to the next by what their updates look like.
    pub linked_across_rounds: f64,
    /// Share of clients that are called by name by someone who knows everybody's data.
    pub named: f64,
    /// What a guess would reach in the last three.
    pub by_chance: f64,
    /// Rounds that the shares are over.
    pub rounds: u32,
}

/// What despreading shows of one client.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadClient {
    /// The client.
    pub client: u32,
    /// `|h_k|`.
    pub amplitude: f64,
    /// Between the update that was sent and the one that was recovered.
    pub correlation: f64,
    /// `‖x̂ − x‖/‖x‖`.
    pub relative_error: f64,
}

impl DespreadingAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "A base station that keeps its samples can despread every sequence by itself and has each client's update, \
                           with no noise but its own.";
        let at_random = Cell::Share(self.by_chance, "");
        let row = |what: &str, found: f64, at_random: Cell| {
            vec![Cell::text(what), Cell::Share(found, ""), at_random]
        };
        let rows = vec![
            row(
                "held as one vector over the whole payload of a round",
                self.linked_in_round,
                Cell::text("–"),
            ),
            row(
                "put together again by strength alone, if sequences changed half-way",
                self.linked_by_strength,
                at_random.clone(),
            ),
            row(
                "put together again from one round to the next",
                self.linked_across_rounds,
                at_random.clone(),
            ),
            row("called by name by someone who knows everybody's data", self.named, at_random),
        ];
        let mut parts = vec![
            Part::Explanation(explanation.to_owned()),
            Part::Finding(format!("Shares are over {}.", count(self.rounds.into(), "round"))),
            Part::Table { heading: vec!["clients that are …", "share", "at random"], rows },
        ];
        if !self.clients.is_empty() {
            let mut clients = self.clients.clone();
            clients.sort_by(|a, b| {
                b.amplitude.abs().total_cmp(&a.amplitude.abs()).then(a.client.cmp(&b.client))
            });
            parts.extend([Part::Finding(in_one_round(&clients)), listed(&clients)]);
        }
        Section { title: "The updates of single clients", parts }
    }
}

/// The mean, the maximum and both ends, of clients in the order of their strength.
fn in_one_round(clients: &[DespreadClient]) -> String {
    let correlations = || clients.iter().map(|client| client.correlation);
    let mean = correlations().sum::<f64>() / clients.len().max(1) as f64;
    let end = |client: Option<&DespreadClient>| {
        client.map_or_else(|| "–".to_owned(), |client| signed(client.correlation, 2))
    };
    format!(
        "In one round that was looked at more closely, the correlation of a despread update with what the client sent is {} on \
         average and {} at best, {} for the client with the strongest channel and {} for the one with the weakest. 1 is the very \
         update, and 0 has nothing to do with it.",
        signed(mean, 2),
        signed(correlations().fold(f64::NEG_INFINITY, f64::max), 2),
        end(clients.first()),
        end(clients.last())
    )
}

fn listed(clients: &[DespreadClient]) -> Part<'static> {
    let all = "The strongest channel first. The relative error is the length of what is wrong over that of what was sent.";
    let words = match clients.len() {
        few if few <= MAX_CLIENTS => all.to_owned(),
        many => format!("{all} The first {MAX_CLIENTS} of {} are listed.", count(many as u64, "client")),
    };
    let row = |client: &DespreadClient| {
        let numbers = [client.amplitude, client.correlation, client.relative_error];
        let name = Cell::text(format!("client {}", client.client));
        [name].into_iter().chain(numbers.map(|number| Cell::Number(number, 3))).collect()
    };
    let rows = clients.iter().take(MAX_CLIENTS).map(row).collect();
    let heading = vec!["client", "amplitude |h|", "correlation with what was sent", "relative error"];
    let parts = vec![Part::Finding(words), Part::Table { heading, rows }];
    Part::Folded { summary: "This round, client by client", is_short: false, parts }
}
