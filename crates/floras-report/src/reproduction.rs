//! The report of a reproduction: published figures with the claims of their papers and our results.

use std::path::{Path, PathBuf};

use floras_core::{View, verdict as privacy_verdict};
use floras_sim::figure::{Claim, Figure, PrivacyRow, Reproduction, Verdict};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::number::{bound, count, grouped, with_uncertainty};
use crate::html::{Cell, Html, figure, page};
use crate::plot::scale::number_text;

/// The heading of the page; the figures have headings of their own.
const TITLE: &str = "Published figures, reproduced";

/// Writes the report of a reproduction.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let path = directory.join(Reproduction::FILE);
    let reproduction: Reproduction = read_json(&path)?;
    let mut output = Output::new(directory);
    let panels = || reproduction.figures.iter().flat_map(|figure| &figure.panels);
    files::check_names(&path, panels())?;
    for panel in panels() {
        output.panel(panel)?;
    }
    let mut body = Html::default();
    body.element("p", "kicker", "Reproduction by floras");
    body.element("h1", "", TITLE);
    body.element("p", "lead", &verdicts(&reproduction));
    let has_trials = panels().flat_map(|panel| &panel.curves).any(|curve| curve.band.is_some());
    if reproduction.quick && has_trials {
        body.element(
            "p",
            "warning",
            "This is the quick version: it has fewer trials or rounds than the full one, and wide intervals.",
        );
    }
    for figure in &reproduction.figures {
        one_figure(&mut body, figure);
    }
    body.section("Repeat it", |section| {
        section.paragraph(&format!("With floras {}, seed {}:", reproduction.version, reproduction.seed));
        section.command(&reproduction.command);
        section.around("p", "", |line| {
            line.text("All numbers: ").link(Reproduction::FILE, Reproduction::FILE).text(".");
        });
    });
    output.page(&page(&format!("{} – floras", title(&reproduction)), &body))
}

fn title(reproduction: &Reproduction) -> String {
    match &reproduction.figures[..] {
        [one] => one.title.clone(),
        _ => TITLE.to_owned(),
    }
}

fn verdicts(reproduction: &Reproduction) -> String {
    let claims = || reproduction.figures.iter().flat_map(|figure| &figure.claims);
    let number = |verdict: Verdict| claims().filter(|claim| claim.verdict == verdict).count();
    match claims().count() {
        0 => "These figures have no counterpart among the paper's claims.".to_owned(),
        all => format!(
            "Verdicts on {}: {} reproduced, {} inconclusive, {} not reproduced under the chosen conventions, {} false \
             (contradicts mathematics).",
            count(all as u64, "published claim"),
            number(Verdict::Reproduced),
            number(Verdict::Inconclusive),
            number(Verdict::NotReproduced),
            number(Verdict::False)
        ),
    }
}

fn one_figure(body: &mut Html, shown: &Figure) {
    body.section(&shown.title, |section| {
        for text in &shown.text {
            section.around("p", "", |paragraph| paragraph.prose(text));
        }
        section.around("div", "plots", |plots| {
            for panel in &shown.panels {
                let has_bands = panel.curves.iter().any(|curve| curve.band.is_some());
                figure(plots, panel, if has_bands { "Bands are 95 % intervals." } else { "" });
            }
        });
        if !shown.claims.is_empty() {
            section.element("h3", "", "Claims of the paper and results");
            let rows: Vec<Vec<Cell>> = shown.claims.iter().map(claim).collect();
            section.table(&["verdict", "claim", "published", "ours", "reason"], &rows);
        }
        if !shown.privacy.is_empty() {
            privacy(section, &shown.privacy);
        }
        if !shown.conventions.is_empty() {
            let heading = if shown.claims.is_empty() {
                "Settings"
            } else {
                "Conventions for choices that the paper leaves open"
            };
            section.element("h3", "", heading);
            let row =
                |(key, value): &(String, String)| vec![Cell::text(key.as_str()), Cell::text(value.as_str())];
            let rows: Vec<Vec<Cell>> = shown.conventions.iter().map(row).collect();
            section.table(&["choice", "value"], &rows);
        }
        section.notes(&shown.notes);
    });
}

fn claim(claim: &Claim) -> Vec<Cell> {
    let number = |value: f64| {
        if ["points", "%"].contains(&claim.unit.as_str()) {
            let sign = if value > 0.0 { "+" } else { "" };
            return format!("{sign}{value:.1}").replace('-', "−");
        }
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').replace('-', "−")
    };
    // The claim names ε itself.
    let unit = if claim.unit == "ε" { String::new() } else { format!(" {}", claim.unit) };
    let counted = |value: f64| if value == 1.0 { unit.trim_end_matches('s') } else { unit.as_str() };
    let ours = match (claim.ours, claim.ci95) {
        (None, _) => "–".to_owned(),
        (Some(ours), None) => format!("{}{}", number(ours), counted(ours)),
        (Some(ours), half @ Some(_)) => {
            let sign = if unit.contains("points") && ours > 0.0 { "+" } else { "" };
            format!("{sign}{}{unit}", with_uncertainty(ours, half).replace('-', "−"))
        }
    };
    let good = (claim.verdict != Verdict::Inconclusive).then_some(claim.verdict == Verdict::Reproduced);
    vec![
        Cell::Mark(claim.verdict.words().to_owned(), good),
        Cell::text(claim.claim.as_str()),
        Cell::number(
            claim
                .published
                .map_or_else(|| "–".to_owned(), |value| format!("{}{}", number(value), counted(value))),
        ),
        Cell::number(ours),
        Cell::text(claim.reason.as_str()),
    ]
}

fn privacy(section: &mut Html, rows: &[PrivacyRow]) {
    section.element("h3", "", "ε of a client in every view");
    let heading: Vec<&str> =
        ["curve", "rounds"].into_iter().chain(View::BY_ADVERSARY.map(View::name)).collect();
    let delta = rows.first().map_or(0.0, |row| row.delta);
    let cells = |row: &PrivacyRow| {
        let mut cells = vec![Cell::text(row.curve.as_str()), Cell::number(grouped(row.rounds.into()))];
        cells.extend(View::BY_ADVERSARY.map(|view| match row.views.get(view) {
            None => Cell::number("–"),
            Some(statement) => {
                let value = bound(statement.epsilon, statement.epsilon_above);
                Cell::number(if statement.guarantee || statement.epsilon.is_none() {
                    value
                } else {
                    format!("({value})")
                })
            }
        }));
        cells
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cells).collect();
    section.table(&heading, &rows);
    section.paragraph(&format!(
        "δ = {}. Numbers in parentheses are not proven; \"none\" means that no finite ε is established. {} The adversary of each view:",
        number_text(delta),
        privacy_verdict::Verdict::scale()
    ));
    let legend: Vec<String> =
        View::BY_ADVERSARY.iter().map(|view| format!("{view}: {}", view.adversary())).collect();
    section.notes(&legend);
}
