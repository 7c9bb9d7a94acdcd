//! The content of a picture without its style: numbers with their names and units.
//!
//! A [`Reproduction`] is written as `reproduction.json`. It holds all that is needed to draw it.

use floras_privacy::Views;
use serde::{Deserialize, Serialize};

/// What `floras reproduce` leaves behind: some figures, and what they say about the paper's claims.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Reproduction {
    /// Version of the program.
    pub version: String,
    /// The command that makes it again.
    pub command: String,
    /// Whether it is the small version.
    pub quick: bool,
    /// The seed of every experiment in it.
    pub seed: u64,
    /// The figures.
    pub figures: Vec<Figure>,
}

impl Reproduction {
    /// The name of its file.
    pub const FILE: &'static str = "reproduction.json";
}

/// One figure: panels side by side, with notes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Figure {
    /// As on the command line, such as `fig4`.
    pub name: String,
    /// A line.
    pub title: String,
    /// What is to be seen, in paragraphs.
    pub text: Vec<String>,
    /// The choices that the paper leaves open, as key and value.
    pub conventions: Vec<(String, String)>,
    /// The pictures.
    pub panels: Vec<Panel>,
    /// The claims of the paper, with our results.
    pub claims: Vec<Claim>,
    /// What each curve's setting guarantees.
    pub privacy: Vec<PrivacyRow>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One system of axes with its curves.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Panel {
    /// The name of its file, without an ending.
    pub name: String,
    /// A line.
    pub title: String,
    /// From left to right.
    pub x: Axis,
    /// From below.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// What is on an axis.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Axis {
    /// What it is, with its unit.
    pub label: String,
    /// Whether its steps are powers of ten.
    pub logarithmic: bool,
    /// Its ends; those of the curves if absent.
    pub range: Option<(f64, f64)>,
}

/// A curve with its band. A value that is not there is a gap.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Curve {
    /// As in the legend.
    pub name: String,
    /// Curves that belong together have the same colour,
    pub colour: usize,
    /// and differ in the way they are drawn.
    pub style: Style,
    /// Where.
    pub x: Vec<f64>,
    /// How much.
    pub y: Vec<Option<f64>>,
    /// The 95% interval around each value.
    pub band: Option<Vec<Option<(f64, f64)>>>,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Without gaps.
    #[default]
    Solid,
    /// With long gaps.
    Dashed,
    /// With short ones.
    Dotted,
    /// Dashes and dots in turn.
    DashDotted,
}

/// A sentence of the paper, with its number if it has one, and ours.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Claim {
    /// The sentence.
    pub claim: String,
    /// Its number; `None` if it states a direction only.
    pub published: Option<f64>,
    /// Our result; `None` if there is none.
    pub ours: Option<f64>,
    /// Half the width of the 95% interval of ours.
    pub ci95: Option<f64>,
    /// What both are in, such as `points`.
    pub unit: String,
    /// What follows.
    pub verdict: Verdict,
    /// How the verdict was reached, in a line.
    pub reason: String,
}

/// What a comparison says about a claim.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Our result agrees.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// The interval is too wide to distinguish the paper's number from another, or misses it by less than all claims together may:
    /// more trials are needed.
    #[serde(rename = "inconclusive")]
    Inconclusive,
    /// Our result differs, under the chosen conventions.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// It contradicts mathematics, whatever the conventions.
    #[serde(rename = "false")]
    False,
}

impl Verdict {
    /// The verdict in words, as in `reproduction.json`.
    pub fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Inconclusive => "inconclusive",
            Self::NotReproduced => "not reproduced",
            Self::False => "false",
        }
    }
}

/// What the setting of one curve guarantees.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PrivacyRow {
    /// The curve.
    pub curve: String,
    /// The number of rounds after which it holds.
    pub rounds: u32,
    /// `δ` of all statements.
    pub delta: f64,
    /// Every view.
    pub views: Views,
}
