//! The content of figures without their style: numbers with their names and units.
//!
//! A [`Reproduction`] is written as `reproduction.json`. It contains all that is needed to draw the figures.

use floras_privacy::Views;
use serde::{Deserialize, Serialize};

/// The result of `floras reproduce`: figures, and their comparison with the paper's claims.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Reproduction {
    /// Version of the program.
    pub version: String,
    /// The command that reproduces it.
    pub command: String,
    /// Whether it is the small version.
    pub quick: bool,
    /// The seed of every experiment in it.
    pub seed: u64,
    /// The reproduced figures.
    pub figures: Vec<Figure>,
}

impl Reproduction {
    /// The name of its file.
    pub const FILE: &'static str = "reproduction.json";
}

/// One figure: panels side by side, with notes.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Figure {
    /// Name as on the command line, such as `fig4`.
    pub name: String,
    /// Title of the figure, in one line.
    pub title: String,
    /// A description of the figure, one string per paragraph.
    pub text: Vec<String>,
    /// The choices that the paper leaves open, as key and value.
    pub conventions: Vec<(String, String)>,
    /// The panels, drawn side by side.
    pub panels: Vec<Panel>,
    /// The claims of the paper, with our results.
    pub claims: Vec<Claim>,
    /// The privacy of each curve's setting.
    pub privacy: Vec<PrivacyRow>,
    /// Notes on the figure.
    pub notes: Vec<String>,
}

/// One system of axes with its curves.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Panel {
    /// File name of the panel, without extension.
    pub name: String,
    /// Title of the panel, in one line.
    pub title: String,
    /// The horizontal axis, from left to right.
    pub x: Axis,
    /// The vertical axis, from bottom to top.
    pub y: Axis,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// An axis of a panel.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Axis {
    /// Name of the quantity, with its unit.
    pub label: String,
    /// Whether the axis is logarithmic.
    pub logarithmic: bool,
    /// Lower and upper end; those of the curves if absent.
    pub range: Option<(f64, f64)>,
}

/// A curve with its confidence band.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Curve {
    /// Name in the legend.
    pub name: String,
    /// Index of the colour; curves that belong together have the same colour.
    pub colour: usize,
    /// Line style, which distinguishes curves of the same colour.
    pub style: Style,
    /// x coordinates of the points.
    pub x: Vec<f64>,
    /// y values of the points; `None` is a gap.
    pub y: Vec<Option<f64>>,
    /// Lower and upper end of the 95% interval around each value.
    pub band: Option<Vec<Option<(f64, f64)>>>,
}

/// The line style of a curve.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// A solid line.
    #[default]
    Solid,
    /// A dashed line, with long gaps.
    Dashed,
    /// A dotted line, with short gaps.
    Dotted,
    /// A line of alternating dashes and dots.
    DashDotted,
}

/// A claim of the paper, compared with our result.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Claim {
    /// The claim of the paper, as one sentence.
    pub claim: String,
    /// The number that the paper states; `None` if it states a direction only.
    pub published: Option<f64>,
    /// Our result; `None` if there is none.
    pub ours: Option<f64>,
    /// Half the width of the 95% interval of ours.
    pub ci95: Option<f64>,
    /// Unit of both numbers, such as `points`.
    pub unit: String,
    /// The verdict on the claim.
    pub verdict: Verdict,
    /// Reason for the verdict, in one line.
    pub reason: String,
}

/// The result of comparing a claim with our result.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// Our result agrees.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// More trials are needed: the interval is too wide to decide, or the paper's number is outside of it but within the
    /// simultaneous interval over all claims. Or the paper does not state what decides.
    #[serde(rename = "inconclusive")]
    Inconclusive,
    /// Our result differs, under the chosen conventions.
    #[serde(rename = "not reproduced")]
    NotReproduced,
    /// The claim is mathematically false under all conventions.
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

/// The privacy of the setting of one curve.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PrivacyRow {
    /// Name of the curve.
    pub curve: String,
    /// Number of rounds that the statements cover.
    pub rounds: u32,
    /// Privacy parameter `δ` at which all `ε` of the curve hold, between 0 and 1.
    pub delta: f64,
    /// The privacy statement of each view.
    pub views: Views,
}
