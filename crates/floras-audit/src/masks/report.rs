//! Results of the attack on masked rounds.

use floras_sim::number::{count, grouped, share};
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};
use crate::report::{AuditVerdict, Measured};

/// Results of the adversaries in rounds with masks.
///
/// Games use a small federation in place of the experiment's: one round, and `ε` stated for the small federation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MaskAttack {
    /// Clients in a game, at most 10.
    pub clients: u32,
    /// Clients in a round of the experiment.
    pub per_round: u32,
    /// Parameters of an update in a game.
    pub parameters: usize,
    /// `σ_m` of a game, in units of an update.
    pub mask_std: f64,
    /// `σ_z` of a game, in units of an update.
    pub noise_std: f64,
    /// Privacy parameter `δ` at which all `ε` of this attack hold, between 0 and 1.
    pub delta: f64,
    /// Joint confidence of all measured bounds.
    pub confidence: f64,
    /// Repeated requests for the masks of a used slot.
    pub replays_requested: u64,
    /// Repeated requests that the clients' protocol refused.
    pub replays_refused: u64,
    /// Adversaries against intact masks.
    pub adversaries: Vec<MaskRow>,
    /// Adversaries against masks with one part deliberately broken. A violated number shows that the attack has power.
    pub broken: Vec<MaskRow>,
}

/// One adversary, or one broken part.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MaskRow {
    /// The adversary's knowledge and actions, or the broken part.
    pub attack: String,
    /// `ε` stated for intact masks.
    pub stated: f64,
    /// Lower bound on the true `ε` at the stated confidence.
    pub lower_bound: f64,
    /// Verdict on the stated `ε`.
    pub verdict: AuditVerdict,
    /// The counts behind the lower bound.
    pub measured: Measured,
}

impl MaskAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "Clients add masks that cancel in the sum, and local noise. Each row is one adversary, who guesses which of two \
                           opposite updates one client sent, by the best linear distinguisher. The measured ε must not exceed the \
                           stated one. In the second table one part of the masks is deliberately broken: a violated ε there shows \
                           that the attack would find such an error.";
        let federation = match self.mask_std > 0.0 {
            true => format!("{}, σ_m = {:.4}", count(self.clients.into(), "client"), self.mask_std),
            false => "a client without masks".to_owned(),
        };
        let stand_for = match self.mask_std > 0.0 && self.clients < self.per_round {
            true => format!(
                " They represent {}: the noise of the sum and the power of a symbol are the same.",
                grouped(self.per_round.into())
            ),
            false => String::new(),
        };
        let finding = format!(
            "One round of {federation}, σ_z = {:.4}, {} parameters, δ = {:e}.{stand_for} The stated ε are those of this round. All \
             measured numbers hold together with a confidence of {}.",
            self.noise_std,
            self.parameters,
            self.delta,
            share(self.confidence),
        );
        let numbered = (1..).zip(self.adversaries.iter().chain(&self.broken));
        let words =
            numbered.clone().map(|(number, row): (u64, &MaskRow)| (number.to_string(), row.attack.clone()));
        let counts =
            numbered.map(|(number, row): (u64, &MaskRow)| (vec![Cell::Count(number)], &row.measured));
        let (words, counts) = (words.collect(), Part::counts(&["attack"], counts));
        let mut parts = vec![
            Part::Explanation(explanation.to_owned()),
            Part::Finding(finding),
            table(&self.adversaries, 1),
        ];
        if !self.broken.is_empty() {
            parts.push(Part::Finding("With one part of the masks broken:".to_owned()));
            parts.push(table(&self.broken, 1 + self.adversaries.len() as u64));
        }
        parts.push(Part::List(words));
        parts.push(Part::Folded { summary: "Counts", is_short: false, parts: vec![counts] });
        Section { title: "Rounds with masks", parts }
    }
}

fn table(rows: &[MaskRow], first: u64) -> Part<'static> {
    let row = |(number, row): (u64, &MaskRow)| {
        vec![
            Cell::Count(number),
            Cell::claim(Some(row.stated), Some(row.verdict), "none"),
            Cell::lower_bound(row.lower_bound, &row.measured),
        ]
    };
    Part::Table {
        heading: vec!["attack", "stated ε", "measured ε"],
        rows: (first..).zip(rows).map(row).collect(),
    }
}
