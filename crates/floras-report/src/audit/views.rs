//! The table of what is claimed against each adversary, and what was measured.

use floras_audit::{AuditReport, AuditVerdict, AuditedView, AuditedViews, Measured};

use super::number::epsilon;
use crate::html::number::{count, grouped, share};
use crate::html::{Cell, Html};

/// A lower bound above this share of its ceiling says more about the number of games than about what leaks.
const NEAR_THE_CEILING: f64 = 0.9;

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

/// What the rows are about. The adversary's own words say what it did.
fn in_short(name: &str) -> &'static str {
    match name {
        "released model" => "someone who only gets the models",
        "idealised" => "the base station, strong channels",
        "actual" => "the base station, this experiment's channels",
        "any channel" => "the base station, the client's worst channel",
        "raw signal" => "a base station that keeps its radio samples",
        _ => "",
    }
}

/// What came out, in a sentence.
fn found(views: &AuditedViews) -> String {
    let number = |of: fn(&AuditedView) -> Option<AuditVerdict>| {
        let verdicts: Vec<AuditVerdict> = views.iter().filter_map(|(_, view)| of(view)).collect();
        let violated = verdicts.iter().filter(|verdict| **verdict == AuditVerdict::Violated).count();
        (violated, verdicts.len())
    };
    let words = |(violated, all): (usize, usize), whose: &str| match (violated, all) {
        (_, 0) => format!("There is no {whose} ε to hold a measurement against"),
        (0, 1) => format!("The one {whose} ε is consistent with what was measured"),
        (1, 1) => format!("The one {whose} ε is violated"),
        (0, all) => format!("All {all} {whose} ε are consistent with what was measured"),
        (violated, all) if violated == all => format!("All {all} {whose} ε are violated"),
        (1, all) => format!("Of {all} {whose} ε, 1 is violated"),
        (violated, all) => format!("Of {all} {whose} ε, {violated} are violated"),
    };
    let claimed = words(number(published), "published");
    let proven = words(number(|view| view.verdict.rigorous), "rigorous");
    format!("{claimed}. {proven}.")
}

/// The verdict on what the paper claims; none where it claims nothing.
fn published(view: &AuditedView) -> Option<AuditVerdict> {
    view.verdict.published.filter(|_| view.published_claims_it)
}

/// Claims, measurements and verdicts.
pub(super) fn table(html: &mut Html, report: &AuditReport) {
    html.element("p", "lead", &found(&report.views));
    html.paragraph(&format!(
        "Each row is one adversary. In every game one client sends one of two opposite updates, the adversary says which, and \
         how often it is right gives a number below which the true ε cannot be, after {} and at δ = {:e}. All measured numbers \
         hold together with a confidence of {}. A claim below the measured number is violated. One above it is consistent, which \
         is no proof of it.",
        count(report.rounds.into(), "round"),
        report.delta,
        share(report.confidence),
    ));
    let rows: Vec<Vec<Cell>> = report.views.iter().map(|(name, view)| row(&name, view)).collect();
    if rows.is_empty() {
        html.paragraph("There is nothing to attack.");
        return;
    }
    html.table(&["who looks", "published ε", "rigorous ε", "measured: ε is at least"], &rows);
    html.around("details", "", |details| {
        details.element("summary", "", "Words used in this table");
        super::definitions(details, WORDS);
    });
    html.around("details", "", |details| {
        details.element("summary", "", "Who looks, how, and what was counted");
        let adversaries: Vec<(String, &AuditedView)> = report.views.iter().collect();
        super::definitions(
            details,
            adversaries.iter().map(|(name, view)| (name.as_str(), view.adversary.as_str())),
        );
        let rows = report.views.iter().map(|(name, view)| counted(vec![Cell::text(name)], &view.measured));
        let rows: Vec<Vec<Cell>> = rows.collect();
        details.table(&[&["who looks"], &COUNTED[..]].concat(), &rows);
    });
}

fn row(name: &str, view: &AuditedView) -> Vec<Cell> {
    vec![
        Cell::Judged { number: name.to_owned(), verdict: None, remark: in_short(name) },
        match view.published {
            Some(value) if !view.published_claims_it => Cell::Judged {
                number: epsilon(value),
                verdict: Some(("not claimed".to_owned(), None)),
                remark: "",
            },
            value => claim(value, published(view), "not claimed"),
        },
        rigorous(view.rigorous, view.is_guarantee, view.verdict.rigorous),
        lower_bound(view.lower_bound, &view.measured),
    ]
}

/// A claimed `ε` and what the measurement says about it, or a word if there is none.
pub(super) fn claim(claimed: Option<f64>, verdict: Option<AuditVerdict>, absent: &str) -> Cell {
    let Some(claimed) = claimed else { return Cell::Mark(absent.to_owned(), None) };
    let verdict = verdict.map(|verdict| match verdict {
        AuditVerdict::Consistent => (format!("✓ {}", verdict.words()), Some(true)),
        AuditVerdict::Violated => (format!("✗ {}", verdict.words()), Some(false)),
    });
    Cell::Judged { number: epsilon(claimed), verdict, remark: "" }
}

/// The accounting's `ε` and what the measurement says about it; an estimate is marked as one.
pub(super) fn rigorous(claimed: Option<f64>, is_guarantee: bool, verdict: Option<AuditVerdict>) -> Cell {
    match claim(claimed, verdict, "none") {
        Cell::Judged { number, verdict, .. } if !is_guarantee => {
            let verdict = verdict.or(Some(("exceeded".to_owned(), None)));
            Cell::Judged { number, verdict, remark: "no guarantee" }
        }
        cell => cell,
    }
}

/// What was measured, with a word where more games would show more.
pub(super) fn lower_bound(lower_bound: f64, measured: &Measured) -> Cell {
    let is_near = lower_bound > NEAR_THE_CEILING * measured.ceiling;
    let remark = if is_near { "near the ceiling" } else { "" };
    Cell::Judged { number: epsilon(lower_bound), verdict: None, remark }
}

/// Headings of the counts behind a lower bound.
pub(super) const COUNTED: [&str; 4] =
    ["games in each world", "rightly “it is there”", "wrongly “it is there”", "ceiling"];

/// The counts behind a lower bound.
pub(super) fn counted(mut row: Vec<Cell>, measured: &Measured) -> Vec<Cell> {
    let counts = [measured.games, measured.right, measured.wrong].map(|number| Cell::number(grouped(number)));
    row.extend(counts);
    row.push(Cell::number(epsilon(measured.ceiling)));
    row
}
