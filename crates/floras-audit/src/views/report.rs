//! Claims and measurements per adversary.

use std::collections::BTreeMap;

use floras_core::View;
use floras_sim::number::{count, share};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::presentation::{Cell, Part, Section};
use crate::report::{AuditReport, AuditVerdict, Measured, Verdicts};

/// One row of the audit's table per adversary, where one exists. In JSON, each is a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditedViews {
    /// An adversary who receives the released models, and knows neither channels nor noise. It is compared with the actual
    /// view.
    pub released_model: Option<AuditedView>,
    rows: BTreeMap<View, AuditedView>,
}

/// The JSON field of the released model.
const RELEASED_MODEL: &str = "released_model";

impl AuditedViews {
    /// The row of a view.
    pub fn get(&self, view: View) -> Option<&AuditedView> {
        self.rows.get(&view)
    }

    /// Sets the row of a view.
    pub fn insert(&mut self, view: View, row: AuditedView) {
        self.rows.insert(view, row);
    }

    /// All rows with the names of their adversaries, the strongest adversary first.
    pub fn iter(&self) -> impl Iterator<Item = (String, &AuditedView)> {
        let of_views =
            View::BY_ADVERSARY.into_iter().filter_map(|view| Some((view.to_string(), self.rows.get(&view)?)));
        of_views.chain(self.released_model.iter().map(|row| ("released model".to_owned(), row)))
    }

    fn fields(&self) -> impl Iterator<Item = (String, &AuditedView)> {
        let released = self.released_model.iter().map(|row| (RELEASED_MODEL.to_owned(), row));
        released.chain(self.rows.iter().map(|(view, row)| (view.field(), row)))
    }
}

impl Serialize for AuditedViews {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.fields())
    }
}

impl<'de> Deserialize<'de> for AuditedViews {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut rows = BTreeMap::<String, Option<AuditedView>>::deserialize(deserializer)?;
        let mut row = |field: &str| rows.remove(field).flatten();
        let released_model = row(RELEASED_MODEL);
        let of_view = |view: View| Some((view, row(&view.field())?));
        Ok(Self { released_model, rows: View::ALL.into_iter().filter_map(of_view).collect() })
    }
}

/// Claims and measurements for one adversary.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditedView {
    /// The paper's `ε`; `None` if it has none for the scheme.
    pub published: Option<f64>,
    /// The accountant's `ε`; `None` if no finite `ε` is established.
    pub rigorous: Option<f64>,
    /// Whether `rigorous` is a proven bound, without estimates and caveats.
    pub is_guarantee: bool,
    /// Lower bound on the true `ε` at the stated confidence.
    pub lower_bound: f64,
    /// Joint confidence of this row and all others.
    pub confidence: f64,
    /// Whether the measured lower bound contradicts the paper's `ε` or that of the accounting.
    pub verdict: Verdicts,
    /// The adversary and its method, in words.
    pub adversary: String,
    /// Whether the paper claims its `ε` for this adversary.
    pub published_claims_it: bool,
    /// The counts behind the lower bound.
    pub measured: Measured,
}

/// Terms of the table, for readers who have not read the paper.
const WORDS: [(&str, &str); 6] = [
    (
        "ε (epsilon)",
        "how much one client's data can change the adversary's observation: no outcome becomes more than e^ε times as likely, \
         except with probability δ. At 1 the protection is strong, above 10 there is practically none.",
    ),
    ("published ε", "the claim of the paper that describes the scheme"),
    (
        "rigorous ε",
        "the accountant's result: a proven bound, unless marked “no guarantee”; then it is an estimate, or holds under a caveat",
    ),
    ("measured ε", "a lower bound on the true ε from the adversary's guesses, at the stated confidence"),
    ("violated", "the measured ε exceeds the claimed one: the claim is wrong"),
    (
        "ceiling",
        "the largest ε that this number of games can show; a measured ε close to it may be far below the true one",
    ),
];

/// The result in one sentence.
fn found(views: &AuditedViews) -> String {
    let violated = |of: fn(&AuditedView) -> Option<AuditVerdict>| {
        let verdicts: Vec<AuditVerdict> = views.iter().filter_map(|(_, view)| of(view)).collect();
        let violated = verdicts.iter().filter(|verdict| **verdict == AuditVerdict::Violated).count();
        format!("{violated} of {}", verdicts.len())
    };
    let published = violated(|view| view.verdict.published.filter(|_| view.published_claims_it));
    let rigorous = violated(|view| view.verdict.rigorous);
    format!("Violated: {published} published and {rigorous} rigorous claims.")
}

/// Claims, measurements and verdicts.
pub(crate) fn section(report: &AuditReport) -> Section<'_> {
    let explanation = "Each row is one adversary. In every game one client sends one of two opposite updates, the adversary guesses \
                       which, and its success rate yields a lower bound on the true ε, the measured ε. A claim below the measured \
                       ε is violated. A claim above it is consistent, which does not prove it.";
    let together = format!(
        "ε of a client after {} of training {} at δ = {:e}. All measured numbers hold together with a confidence of {}.",
        count(report.rounds.into(), "round"),
        count(report.parameters as u64, "parameter"),
        report.delta,
        share(report.confidence),
    );
    let rows: Vec<Vec<Cell>> = report.views.iter().map(|(name, view)| view.cells(&name)).collect();
    let settings = vec![Part::List(report.settings.clone())];
    let settings = Part::Folded { summary: "Relevant settings", is_short: false, parts: settings };
    let mut parts =
        vec![settings, Part::Finding(found(&report.views)), Part::Explanation(explanation.to_owned())];
    if rows.is_empty() {
        parts.push(Part::Finding("No adversary applies to this experiment.".to_owned()));
    } else {
        let adversaries = report.views.iter().map(|(name, view)| (name, view.adversary.clone()));
        let counts = report.views.iter().map(|(name, view)| (vec![Cell::Text(name)], &view.measured));
        let details = vec![Part::List(adversaries.collect()), Part::counts(&["adversary"], counts)];
        let heading = vec!["adversary", "published ε", "rigorous ε", "measured ε"];
        parts.extend([
            Part::Finding(together),
            Part::Table { heading, rows },
            Part::glossary(&WORDS),
            Part::Folded { summary: "Adversaries and counts", is_short: true, parts: details },
        ]);
    }
    Section { title: "Claims and measurements", parts }
}

impl AuditedView {
    fn cells(&self, name: &str) -> Vec<Cell> {
        vec![
            Cell::text(name),
            match self.published {
                Some(value) if self.published_claims_it => Cell::Epsilon(value, self.verdict.published, ""),
                Some(value) => Cell::Epsilon(value, None, "not claimed"),
                None => Cell::text("not claimed"),
            },
            Cell::rigorous(self.rigorous, self.is_guarantee, self.verdict.rigorous),
            Cell::lower_bound(self.lower_bound, &self.measured),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view() -> AuditedView {
        AuditedView {
            published: None,
            rigorous: None,
            is_guarantee: false,
            lower_bound: 0.5,
            confidence: 0.95,
            verdict: Verdicts { published: None, rigorous: None },
            adversary: "someone".to_owned(),
            published_claims_it: false,
            measured: Measured { games: 10, right: 5, wrong: 5, ceiling: 1.0 },
        }
    }

    #[test]
    fn rows_begin_with_the_strongest_adversary() {
        let mut views = AuditedViews { released_model: Some(view()), ..AuditedViews::default() };
        for of in View::RIGOROUS {
            views.insert(of, view());
        }
        let names: Vec<String> = views.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["raw-signal", "any-channel", "actual", "idealised", "released model"]);
        let json = serde_json::to_value(&views).unwrap();
        let fields = ["released_model", "idealised", "actual", "any_channel", "raw_signal"];
        assert!(fields.iter().all(|field| json.get(field).is_some()), "{json}");
    }
}
