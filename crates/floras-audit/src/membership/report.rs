//! What the distinguishing games showed.

use floras_sim::number::share;
use serde::{Deserialize, Serialize};

use crate::presentation::{Cell, Part, Section};
use crate::report::{Measured, Verdicts};

/// Shares of fewer games, in each world, say little: of so many, one half is uncertain by a tenth.
const FEW_GAMES: u64 = 50;

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
/// What a row is about.
const WHOSE: [&str; 3] = ["replaced", "adversary", "rounds"];

/// One distinguishing game.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MembershipGame {
    /// `client` or `item`: what is replaced.
    pub level: String,
    /// `worst-case` or `natural`.
    pub canary: String,
    /// The rounds that the adversary looked at.
    pub rounds: u32,
    /// Whose eyes.
    pub view: String,
    /// The paper's `ε` at this level and for these rounds.
    pub published: Option<f64>,
    /// What holds.
    pub rigorous: Option<f64>,
    /// Whether that is a bound that was proved, and not an estimate or a number with a caveat.
    pub is_guarantee: bool,
    /// No true `ε` is smaller, with `confidence`.
    pub lower_bound: f64,
    /// The probability with which this and all other games hold.
    pub confidence: f64,
    /// What follows.
    pub verdict: Verdicts,
    /// How often the adversary is right at its best threshold, with worlds equally likely.
    pub accuracy: f64,
    /// How the number was measured.
    pub measured: Measured,
}

impl MembershipGame {
    fn whose(&self) -> Vec<Cell> {
        vec![
            Cell::text(format!("{}, {} canary", self.level, self.canary)),
            Cell::text(self.view.as_str()),
            Cell::Count(self.rounds.into()),
        ]
    }

    fn row(&self) -> Vec<Cell> {
        let few = if self.measured.games < FEW_GAMES { "few games" } else { "" };
        let mut row = self.whose();
        row.extend([
            Cell::Share(self.accuracy, few),
            Cell::claim(self.published, self.verdict.published, "not claimed"),
            Cell::rigorous(self.rigorous, self.is_guarantee, self.verdict.rigorous),
            Cell::lower_bound(self.lower_bound, &self.measured),
        ]);
        row
    }
}

pub(crate) fn section(games: &[MembershipGame]) -> Option<Section<'_>> {
    let confidence = games.first()?.confidence;
    let explanation = "In each game the data of one client, or one of its samples, are replaced by a canary, or not, and the \
                       adversary says which. “Right” is how often it is right if both are equally likely: a guess is right in 50 % \
                       of games. The measured ε is about the rare cases in which the adversary is sure, and can be large where it \
                       is seldom right.";
    let finding = format!("All measured numbers hold together with a confidence of {}.", share(confidence));
    let heading = [&WHOSE[..], &["right", "published ε", "rigorous ε", "measured ε"]].concat();
    let counts = Part::counts(&WHOSE, games.iter().map(|game| (game.whose(), &game.measured)));
    Some(Section {
        title: "Who, or what, took part?",
        parts: vec![
            Part::Explanation(explanation.to_owned()),
            Part::Finding(finding),
            Part::Table { heading, rows: games.iter().map(MembershipGame::row).collect() },
            Part::glossary(&WORDS),
            Part::Folded { summary: "What was counted", is_short: false, parts: vec![counts] },
        ],
    })
}
