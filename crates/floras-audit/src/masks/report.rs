//! What the attack on masked rounds found.

use floras_sim::number::{count, grouped, share};
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};
use crate::report::{AuditVerdict, Measured};

/// What an adversary finds out in rounds with masks.
///
/// Games are played in a small federation that stands for the experiment's: one round, and the stated `ε` is that of the small
/// federation.
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
    /// `δ` of all numbers.
    pub delta: f64,
    /// The probability with which all measured bounds hold together.
    pub confidence: f64,
    /// Requests for masks of a slot that had been used.
    pub replays_requested: u64,
    /// Those of them that the clients' protocol refused.
    pub replays_refused: u64,
    /// Adversaries against masks as they are.
    pub adversaries: Vec<MaskRow>,
    /// Adversaries against masks of which one part is broken on purpose. A violated number shows that the attack has power.
    pub broken: Vec<MaskRow>,
}

/// One adversary, or one broken part.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MaskRow {
    /// What the adversary sees and does, or what is broken.
    pub attack: String,
    /// `ε` that is stated for masks as they are.
    pub stated: f64,
    /// No true `ε` is smaller than this, with the stated confidence.
    pub lower_bound: f64,
    /// What follows for the stated number.
    pub verdict: AuditVerdict,
    /// How the number was measured.
    pub measured: Measured,
}

impl MaskAttack {
    pub(crate) fn section(&self) -> Section<'_> {
        let explanation = "Clients add masks that cancel in the sum, and noise of their own. Each row is one adversary, who has to find out \
                           which of two opposite updates one client sent, by the best linear distinguisher. The stated ε must not be below \
                           the measured one. Below, one part of the masks is broken on purpose: a stated ε that is violated there shows \
                           that the attack would find such an error.";
        let federation = match self.mask_std > 0.0 {
            true => format!("{}, σ_m = {:.4}", count(self.clients.into(), "client"), self.mask_std),
            false => "a client without masks".to_owned(),
        };
        let stand_for = match self.mask_std > 0.0 && self.clients < self.per_round {
            true => format!(
                " They stand for {}: the noise of the sum and the power of a symbol are the same.",
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
            parts.push(Part::Finding("If a part of the masks were broken:".to_owned()));
            parts.push(table(&self.broken, 1 + self.adversaries.len() as u64));
        }
        parts.push(Part::List(words));
        parts.push(Part::Folded { summary: "What was counted", is_short: false, parts: vec![counts] });
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
