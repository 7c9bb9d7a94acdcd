//! The content of a benchmark without its style: schemes under equal conditions, with their cost and their privacy.
//!
//! A [`Benchmark`] is written as `benchmark.json`. It contains all that is needed to draw its page.

mod tables;

use floras_core::View;
use floras_privacy::Views;
use serde::{Deserialize, Serialize};

use crate::figure::Panel;
use crate::schemes::{ChannelKnowledge, Trust};
use crate::summary::Estimate;

pub use self::tables::Table;

/// The result of `floras benchmark`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Benchmark {
    /// Version of the program.
    pub version: String,
    /// The command that reproduces it.
    pub command: String,
    /// Whether it is the small version.
    pub quick: bool,
    /// The seed of every experiment in it.
    pub seed: u64,
    /// The conditions that all schemes share.
    pub conditions: Conditions,
    /// The schemes, in the order of the tables.
    pub entries: Vec<Entry>,
    /// All results, by entry and then by point.
    pub rows: Vec<Row>,
    /// What the results show, in one paragraph.
    pub reading: String,
    /// What is equal and what is not, one statement per string.
    pub notes: Vec<String>,
    /// The plots, in the order of the page.
    pub panels: Vec<CaptionedPanel>,
}

impl Benchmark {
    /// The name of its file.
    pub const FILE: &'static str = "benchmark.json";

    /// The row of an entry at a point.
    pub fn row(&self, entry: &str, point: &Point) -> Option<&Row> {
        self.rows.iter().find(|row| row.entry == entry && row.point == *point)
    }

    /// All `ε` of private points in ascending order.
    pub fn epsilons(&self) -> Vec<f64> {
        let mut epsilons: Vec<f64> = self.rows.iter().filter_map(|row| row.point.epsilon).collect();
        epsilons.sort_by(f64::total_cmp);
        epsilons.dedup();
        epsilons
    }

    /// All points, each once, in the order of the rows.
    pub fn points(&self) -> Vec<&Point> {
        let mut points: Vec<&Point> = Vec::new();
        for row in &self.rows {
            if !points.contains(&&row.point) {
                points.push(&row.point);
            }
        }
        points
    }
}

/// The conditions that all schemes of a benchmark share, besides those of a [`Point`].
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Conditions {
    /// Number of independent trials of every point.
    pub trials: u32,
    /// Number of learning rounds of every trial.
    pub rounds: u32,
    /// Number of parameters `d` of the model.
    pub parameters: usize,
    /// Clip norm `C` of an update.
    pub clip: f64,
    /// Privacy parameter `δ` of all statements.
    pub delta: f64,
    /// The `ε` of the ranking, which is met after all rounds.
    pub epsilon: f64,
    /// The airtime at which schemes are also compared, in channel uses per parameter over the whole training.
    pub airtime: f64,
    /// Maximum number of rounds of that comparison, which bounds its computing time.
    pub max_rounds: u32,
    /// Standard deviation of a client's estimate of its channel from one pilot of unit power at the reference point, relative to the
    /// mean power 1 of channels.
    pub channel_error: f64,
    /// The point of the learning curves and of the ranking, without protection.
    pub reference: Point,
}

impl Row {
    /// The bound in a view; `None` if the view does not apply.
    pub fn bound(&self, view: View) -> Option<&ViewBound> {
        self.privacy.iter().find(|bound| bound.view == view)
    }
}

impl RowCost {
    /// The larger one of the mean powers with and without pilots, which a comparison at equal power limits.
    pub fn power(&self) -> f64 {
        self.power_mean.max(self.power_with_pilots)
    }
}

impl Conditions {
    /// The point of the private ranking.
    pub fn private(&self) -> Point {
        Point { epsilon: Some(self.epsilon), ..self.reference.clone() }
    }
}

/// A scheme with its settings.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Entry {
    /// Name of the entry, which is also the name of its file.
    pub name: String,
    /// Name of its scheme.
    pub scheme: String,
    /// The scheme and its settings, for one line of text.
    pub summary: String,
    /// Number of receive antennas.
    pub antennas: usize,
    /// What clients must know about their channels.
    pub channel_knowledge: ChannelKnowledge,
    /// The view in which private points meet the benchmark's `ε`.
    pub view: View,
    /// What a comparison must state about the scheme.
    pub remarks: Vec<String>,
}

/// A plot with what it leaves out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct CaptionedPanel {
    /// The title, axes and curves of the plot.
    pub panel: Panel,
    /// The entries that the plot leaves out, and why; empty if it has all.
    pub caption: String,
}

/// The conditions of a comparison.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Point {
    /// The `ε` that every client has after all rounds; `None` without protection.
    pub epsilon: Option<f64>,
    /// How samples are distributed among clients, as in an experiment file.
    pub partition: String,
    /// Signal-to-noise ratio of a channel use at unit power, in decibels.
    pub snr_db: f64,
    /// Number of clients `K`, all of which take part in every round.
    pub clients: u32,
}

/// An entry at a point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Row {
    /// Name of the entry.
    pub entry: String,
    /// The SNR, number of clients, partition and `ε` of the run.
    pub point: Point,
    /// What protects clients; `None` without protection, and if nothing meets the `ε`.
    pub protected_by: Option<ProtectedBy>,
    /// Final test accuracy, from 0 to 1; a trial that diverged counts as guessing. `None` if nothing meets the `ε`.
    pub accuracy: Option<Estimate>,
    /// Number of trials that diverged.
    pub diverged: u32,
    /// The cost on the air; `None` without a radio.
    pub cost: Option<RowCost>,
    /// The result at the benchmark's airtime. `None` but at the reference point, without a radio, and if not even one round fits.
    pub at_airtime: Option<AtAirtime>,
    /// Final test accuracy if clients estimate their channels from one pilot of unit power. `None` but at the reference point, and for
    /// schemes whose clients need no channels or know them without error by definition.
    pub with_estimates: Option<Estimate>,
    /// `ε` in each view after all rounds.
    pub privacy: Vec<ViewBound>,
}

/// The result of training for a given airtime.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct AtAirtime {
    /// Number of rounds that the scheme trained for.
    pub rounds: u32,
    /// Whether more rounds would fit, but the maximum number was reached.
    pub is_capped: bool,
    /// Test accuracy after them, from 0 to 1.
    pub accuracy: Estimate,
}

/// What protects clients at a private point.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ProtectedBy {
    /// The noise or the masks, in words.
    pub noise: String,
    /// Whom clients trust.
    pub trust: Trust,
}

/// Cost of a round on the air, per parameter.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct RowCost {
    /// Channel uses per parameter, with pilots and control.
    pub uses: f64,
    /// Energy of a client, in channel uses at unit power per parameter.
    pub energy: f64,
    /// Mean transmit power of a client over the payload, in units of the power of a symbol of amplitude 1.
    pub power_mean: f64,
    /// Mean transmit power of a client over payload and pilots, in the same unit.
    pub power_with_pilots: f64,
    /// Largest mean power of a client over the payload of a round, in the same unit.
    pub power_peak: f64,
}

/// `ε` of a client in a view.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ViewBound {
    /// The adversary against whom the bound holds.
    pub view: View,
    /// An upper bound; `None` if no finite `ε` is established.
    pub epsilon: Option<f64>,
    /// No `ε` up to this value is established.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon_above: Option<f64>,
    /// Whether the bound is a guarantee.
    pub guarantee: bool,
    /// The assumptions of the bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assumptions: Vec<String>,
}

impl ViewBound {
    /// The bounds of all views that apply, the strongest adversary first.
    pub fn of(views: &Views) -> Vec<Self> {
        let bound = |view| {
            let statement = views.get(view)?;
            let (epsilon, epsilon_above) = (statement.epsilon, statement.epsilon_above);
            let (guarantee, assumptions) = (statement.guarantee, statement.assumptions.clone());
            Some(Self { view, epsilon, epsilon_above, guarantee, assumptions })
        };
        View::BY_ADVERSARY.into_iter().filter_map(bound).collect()
    }
}
