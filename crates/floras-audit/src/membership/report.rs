//! Results of the distinguishing games.

use floras_core::View;
use floras_sim::number::share;
use serde::{Deserialize, Serialize};

use super::RAW_SIGNAL;
use crate::presentation::{Cell, Part, Section};
use crate::report::{Measured, Verdicts};

/// Shares from fewer games in each world are marked: with this number, a share near one half is uncertain by
/// a tenth.
const FEW_GAMES: u64 = 50;

/// Terms of the games.
const WORDS: [(&str, &str); 7] = [
    ("client, item", "what is replaced: all data of one client, or one of its samples"),
    ("canary", "a replacement for a client's data, or for one of its samples, to test whether it is noticed"),
    ("worst-case canary", "a canary that is designed to be found; claims must hold for it, too"),
    ("natural canary", "a canary that resembles all other data"),
    ("raw-signal", "the adversary stores the radio samples and despreads every sequence"),
    ("decoder", "the adversary knows the decoded sums and how much noise is in them"),
    ("released model", "the adversary only gets the models that are sent back to everyone"),
];
/// Headings that describe a row.
const ROW_HEADINGS: [&str; 3] = ["replaced", "adversary", "rounds"];

/// One distinguishing game.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct MembershipGame {
    /// `client` or `item`: the replaced data.
    pub level: String,
    /// The kind of canary: `worst-case` (constructed to be noticed) or `natural` (resembles other data).
    pub canary: String,
    /// Number of rounds of the game, at least 1.
    pub rounds: u32,
    /// The adversary: `released model`, `decoder` or `raw signal`.
    pub view: String,
    /// The paper's `ε` at this level and for these rounds.
    pub published: Option<f64>,
    /// Upper bound on `ε` by the accounting, for the same data and rounds; `None` if there is no finite one.
    pub rigorous: Option<f64>,
    /// Whether `rigorous` is a proven bound, without estimates and caveats.
    pub is_guarantee: bool,
    /// Lower bound on the true `ε` at `confidence`.
    pub lower_bound: f64,
    /// Joint confidence of this game and all others.
    pub confidence: f64,
    /// Whether the measured lower bound contradicts the paper's `ε` or that of the accounting.
    pub verdict: Verdicts,
    /// The adversary's accuracy at its best threshold, with both worlds equally likely.
    pub accuracy: f64,
    /// The counts behind the lower bound.
    pub measured: Measured,
}

impl MembershipGame {
    fn row_description(&self) -> Vec<Cell> {
        vec![
            Cell::text(format!("{}, {} canary", self.level, self.canary)),
            Cell::text(if self.view == RAW_SIGNAL { View::RawSignal.name() } else { self.view.as_str() }),
            Cell::Count(self.rounds.into()),
        ]
    }

    fn row(&self) -> Vec<Cell> {
        let few = if self.measured.games < FEW_GAMES { "few games" } else { "" };
        let mut row = self.row_description();
        row.extend([
            Cell::Share(self.accuracy, few),
            Cell::claim(self.published, self.verdict.published, "not claimed"),
            Cell::rigorous(self.rigorous, self.is_guarantee, self.verdict.rigorous),
            Cell::lower_bound(self.lower_bound, &self.measured),
        ]);
        row
    }
}

/// The games of each canary from the strongest adversary to the weakest.
fn by_adversary(games: &[MembershipGame]) -> Vec<&MembershipGame> {
    let of_one_canary = games.chunk_by(|one, other| {
        (&one.level, &one.canary, one.rounds) == (&other.level, &other.canary, other.rounds)
    });
    // They are played from the weakest adversary to the strongest.
    of_one_canary.flat_map(|games| games.iter().rev()).collect()
}

pub(crate) fn section(games: &[MembershipGame]) -> Option<Section<'_>> {
    let confidence = games.first()?.confidence;
    let games = by_adversary(games);
    let explanation = "In each game the data of one client, or one of its samples, are replaced by a canary, or not, and the \
                       adversary guesses which. “Right” is the share of right answers if both are equally likely; random guessing \
                       reaches 50 %. The measured ε depends on the rare cases in which the adversary is certain. It can be large \
                       where the adversary is rarely right.";
    let finding = format!("All measured numbers hold together with a confidence of {}.", share(confidence));
    let heading = [&ROW_HEADINGS[..], &["right", "published ε", "rigorous ε", "measured ε"]].concat();
    let counts =
        Part::counts(&ROW_HEADINGS, games.iter().map(|game| (game.row_description(), &game.measured)));
    Some(Section {
        title: "Who, or what, took part?",
        parts: vec![
            Part::Explanation(explanation.to_owned()),
            Part::Finding(finding),
            Part::Table { heading, rows: games.iter().map(|game| game.row()).collect() },
            Part::glossary(&WORDS),
            Part::Folded { summary: "Counts", is_short: false, parts: vec![counts] },
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn games_begin_with_the_strongest_adversary() {
        let game = |canary: &str, view: &str| MembershipGame {
            level: "client".to_owned(),
            canary: canary.to_owned(),
            rounds: 1,
            view: view.to_owned(),
            published: None,
            rigorous: None,
            is_guarantee: false,
            lower_bound: 0.5,
            confidence: 0.95,
            verdict: Verdicts { published: None, rigorous: None },
            accuracy: 0.5,
            measured: Measured { games: 10, right: 5, wrong: 5, ceiling: 1.0 },
        };
        let played = [
            game("worst-case", "released model"),
            game("worst-case", "decoder"),
            game("worst-case", RAW_SIGNAL),
            game("natural", "released model"),
            game("natural", "decoder"),
        ];
        let adversaries: Vec<Cell> = by_adversary(&played)
            .into_iter()
            .filter_map(|game| game.row_description().into_iter().nth(1))
            .collect();
        let expected = ["raw-signal", "decoder", "released model", "decoder", "released model"];
        assert_eq!(adversaries, expected.map(Cell::text));
    }
}
