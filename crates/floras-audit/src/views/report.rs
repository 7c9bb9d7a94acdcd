//! What is claimed about each adversary, and what it reached.

use std::collections::BTreeMap;

use floras_core::View;
use floras_sim::number::{count, share};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::presentation::{Cell, Part, Section};
use crate::report::{AuditReport, AuditVerdict, Measured, Verdicts};

/// A row of the audit's table for each adversary that there is something to attack for. In JSON, each has a field.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditedViews {
    /// An adversary who receives the models that are sent back, and knows no channel and no noise level. It is compared with
    /// the actual view.
    pub released_model: Option<AuditedView>,
    rows: BTreeMap<View, AuditedView>,
}

/// The field of the released model in JSON.
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

    /// All rows with the names of their adversaries.
    pub fn iter(&self) -> impl Iterator<Item = (String, &AuditedView)> {
        self.fields().map(|(field, row)| (field.replace('_', " "), row))
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

/// What is claimed about one adversary, and what it did.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AuditedView {
    /// The paper's `ε`; `None` if it has none for the scheme.
    pub published: Option<f64>,
    /// The accounting's `ε`; `None` if there is no finite one.
    pub rigorous: Option<f64>,
    /// Whether that is a bound that was proved, and not an estimate or a number with a caveat.
    pub is_guarantee: bool,
    /// No true `ε` is smaller than this, with the stated confidence.
    pub lower_bound: f64,
    /// The probability with which this and all other rows hold.
    pub confidence: f64,
    /// What follows.
    pub verdict: Verdicts,
    /// Who the adversary is, and what it did.
    pub adversary: String,
    /// Whether the paper claims its `ε` for this adversary.
    pub published_claims_it: bool,
    /// How the number was measured.
    pub measured: Measured,
}

/// Words of the table, for someone who has not read the paper.
const WORDS: [(&str, &str); 6] = [
    (
        "ε (epsilon)",
        "how much one client's data can change what an adversary sees: no outcome becomes more than e^ε times as likely, but \
         for a probability of δ. 0 is nothing, 1 is little, and 10 is next to no protection.",
    ),
    ("published ε", "what the paper that describes the scheme claims"),
    (
        "rigorous ε",
        "what the accounting of this library says; a proved bound, unless “no guarantee” stands beside it: then it is an \
         estimate, or holds under a caveat",
    ),
    (
        "measured ε",
        "what the adversary's guesses show: the true ε is at least this large, with the stated confidence",
    ),
    ("violated", "the measured ε is larger than the claimed one, so that the claim is wrong"),
    (
        "ceiling",
        "the largest ε that so many games can show, however much leaks; a measured ε just below it may be far from the true one",
    ),
];

/// What came out, in a sentence.
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
    let explanation = "Each row is one adversary. In every game one client sends one of two opposite updates, the adversary says which, \
                       and how often it is right gives a number below which the true ε cannot be. A claim below the measured number \
                       is violated. One above it is consistent, which is no proof of it.";
    let together = format!(
        "ε of a client after {} of training {} at δ = {:e}. All measured numbers hold together with a confidence of {}.",
        count(report.rounds.into(), "round"),
        count(report.parameters as u64, "parameter"),
        report.delta,
        share(report.confidence),
    );
    let rows: Vec<Vec<Cell>> = report.views.iter().map(|(name, view)| view.cells(&name)).collect();
    let settings = vec![Part::List(report.settings.clone())];
    let settings = Part::Folded { summary: "The settings that decide", is_short: false, parts: settings };
    let mut parts =
        vec![settings, Part::Finding(found(&report.views)), Part::Explanation(explanation.to_owned())];
    if rows.is_empty() {
        parts.push(Part::Finding("There is nothing to attack.".to_owned()));
    } else {
        let adversaries = report.views.iter().map(|(name, view)| (name, view.adversary.clone()));
        let counts = report.views.iter().map(|(name, view)| (vec![Cell::Text(name)], &view.measured));
        let details = vec![Part::List(adversaries.collect()), Part::counts(&["adversary"], counts)];
        let heading = vec!["adversary", "published ε", "rigorous ε", "measured ε"];
        parts.extend([
            Part::Finding(together),
            Part::Table { heading, rows },
            Part::glossary(&WORDS),
            Part::Folded {
                summary: "What each adversary does, and what was counted",
                is_short: true,
                parts: details,
            },
        ]);
    }
    Section { title: "What is claimed, and what was measured", parts }
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
