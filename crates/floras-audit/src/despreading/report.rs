//! Results of despreading single clients.

use floras_sim::number::{count, signed};
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};

/// Maximum number of listed clients.
const MAX_CLIENTS: usize = 40;

/// The updates of single clients, despread.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadingAttack {
    /// Every client of one examined round.
    pub clients: Vec<DespreadClient>,
    /// Share of clients whose whole payload the base station recovers as one vector, because it detected their sequence.
    pub linked_in_round: f64,
    /// Share of clients whose payload halves would be matched by channel strength alone, if sequences changed half-way.
    pub linked_by_strength: f64,
    /// Share of clients that are linked from one round to the next by their updates.
    pub linked_across_rounds: f64,
    /// Share of clients identified by an adversary who knows all data.
    pub named: f64,
    /// The share that random guessing reaches in the last three.
    #[serde(rename = "by_chance")]
    pub at_random: f64,
    /// Number of rounds behind the shares.
    pub rounds: u32,
}

/// Results for one client.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct DespreadClient {
    /// Client number, from 0.
    pub client: u32,
    /// Channel amplitude `|h_k|`.
    pub amplitude: f64,
    /// Correlation of the recovered with the sent update.
    pub correlation: f64,
    /// Relative error `‖x̂ − x‖/‖x‖`.
    pub relative_error: f64,
}

impl DespreadingAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "A base station that stores its samples can despread every sequence separately. It recovers each client's update, \
                           with the noise of the channel only.";
        let at_random = Cell::Share(self.at_random, "");
        let row = |what: &str, found: f64, at_random: Cell| {
            vec![Cell::text(what), Cell::Share(found, ""), at_random]
        };
        let rows = vec![
            row(
                "recovered as one vector over a round's whole payload",
                self.linked_in_round,
                Cell::text("–"),
            ),
            row(
                "matched by channel strength, if sequences changed half-way",
                self.linked_by_strength,
                at_random.clone(),
            ),
            row("linked from one round to the next", self.linked_across_rounds, at_random.clone()),
            row("identified by an adversary who knows all data", self.named, at_random),
        ];
        let mut parts = vec![
            Part::Explanation(explanation.to_owned()),
            Part::Finding(format!("Shares are averages over {}.", count(self.rounds.into(), "round"))),
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

/// The mean, the maximum, and the values of the strongest and the weakest client.
fn in_one_round(clients: &[DespreadClient]) -> String {
    let correlations = || clients.iter().map(|client| client.correlation);
    let mean = correlations().sum::<f64>() / clients.len().max(1) as f64;
    let end = |client: Option<&DespreadClient>| {
        client.map_or_else(|| "–".to_owned(), |client| signed(client.correlation, 2))
    };
    format!(
        "In one examined round, the correlation of a despread update with the sent one is {} on average and {} at best, \
         {} for the client with the strongest channel and {} for the one with the weakest. 1 is an exact copy, 0 is unrelated.",
        signed(mean, 2),
        signed(correlations().fold(f64::NEG_INFINITY, f64::max), 2),
        end(clients.first()),
        end(clients.last())
    )
}

fn listed(clients: &[DespreadClient]) -> Part<'static> {
    let all = "The strongest channel is first. The relative error is the norm of the error over the norm of the sent update.";
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
    let heading = vec!["client", "amplitude |h|", "correlation with sent update", "relative error"];
    let parts = vec![Part::Finding(words), Part::Table { heading, rows }];
    Part::Folded { summary: "This round, client by client", is_short: false, parts }
}
