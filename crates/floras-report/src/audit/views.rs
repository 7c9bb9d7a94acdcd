//! The table of what is claimed against each adversary, and what was measured.

use floras_sim::audit::{AuditReport, AuditVerdict, AuditedView, AuditedViews, Measured, Verdicts};

use crate::html::number::{count, epsilon, grouped, share};
use crate::html::{Cell, Html};

/// What came out, in a sentence.
fn found(views: &AuditedViews) -> String {
    let number = |of: fn(&Verdicts) -> Option<AuditVerdict>| {
        let verdicts: Vec<AuditVerdict> = views.iter().filter_map(|(_, view)| of(&view.verdict)).collect();
        let violated = verdicts.iter().filter(|verdict| **verdict == AuditVerdict::Violated).count();
        (violated, verdicts.len())
    };
    let words = |(violated, all): (usize, usize), whose: &str| match all {
        0 => format!("There is no {whose} ε to hold a measurement against"),
        _ => format!(
            "Of {all} {whose} ε, {} violated",
            if violated == 0 { "none is".to_owned() } else { are(violated) }
        ),
    };
    let published = words(number(|verdict| verdict.published), "published");
    let rigorous = words(number(|verdict| verdict.rigorous), "rigorous");
    format!("{published}. {rigorous}.")
}

fn are(number: usize) -> String {
    if number == 1 { "1 is".to_owned() } else { format!("{number} are") }
}

/// Claims, measurements and verdicts.
pub(super) fn table(html: &mut Html, report: &AuditReport) {
    html.element("p", "lead", &found(&report.views));
    html.paragraph(&format!(
        "Each row is one adversary. The published ε is the paper's, the rigorous one is \
         what this library's accounting proves, and the measured one comes from games in which the adversary guessed: no true ε \
         is smaller, with a confidence of {} for all rows together, at δ = {:e} after {}. A claim below the measured number is \
         violated. One above it is consistent, which is no proof of it.",
        share(report.confidence),
        report.delta,
        count(report.rounds.into(), "round")
    ));
    let rows: Vec<Vec<Cell>> = report.views.iter().map(|(name, view)| row(name, view)).collect();
    if rows.is_empty() {
        html.paragraph("There is nothing to attack.");
        return;
    }
    html.table(&["view", "published ε", "rigorous ε", "measured: ε is at least", "counted"], &rows);
    html.paragraph(
        "“none” means that there is no finite ε, and so nothing to violate. Counted are games in each of two worlds, one with \
         a canary and one without, and how often the adversary said “the canary” rightly and wrongly. So many games cannot show \
         more than the ceiling, however much leaks: a lower bound never exceeds it. Who looks, and how:",
    );
    let adversaries: Vec<String> =
        report.views.iter().map(|(name, view)| format!("{name}: {}", view.adversary)).collect();
    html.notes(&adversaries);
}

fn row(name: &str, view: &AuditedView) -> Vec<Cell> {
    let remark = if view.published.is_some() && !view.published_claims_it {
        "the paper does not claim it"
    } else {
        ""
    };
    vec![
        Cell::text(name),
        claim(view.published, view.verdict.published, remark),
        claim(view.rigorous, view.verdict.rigorous, ""),
        Cell::number(format!("{} ({})", epsilon(view.lower_bound), share(view.confidence))),
        Cell::text(counted(&view.measured)),
    ]
}

/// A claimed `ε` and what the measurement says about it.
pub(super) fn claim(claimed: Option<f64>, verdict: Option<AuditVerdict>, remark: &'static str) -> Cell {
    let number = claimed.map_or_else(|| "none".to_owned(), epsilon);
    let verdict = verdict.map(|verdict| match verdict {
        AuditVerdict::Consistent => (format!("✓ {}", verdict.words()), true),
        AuditVerdict::Violated => (format!("✗ {}", verdict.words()), false),
    });
    Cell::Judged { number, verdict, remark }
}

/// The counts behind a lower bound.
pub(super) fn counted(measured: &Measured) -> String {
    format!(
        "{}: {} rightly, {} wrongly; ceiling {}",
        count(measured.games, "game"),
        grouped(measured.right),
        grouped(measured.wrong),
        epsilon(measured.ceiling)
    )
}
