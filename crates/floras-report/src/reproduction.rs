//! The report of a reproduction: every figure of the paper beside what it claims.

use std::path::{Path, PathBuf};

use floras_core::View;
use floras_sim::figure::{Claim, Figure, PrivacyRow, Reproduction, Verdict};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::number::{count, epsilon, grouped};
use crate::html::{Cell, Html, figure, page};

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
    body.element("p", "kicker", "The paper on FLORAS, reproduced");
    body.element("h1", "", &title(&reproduction));
    body.element("p", "lead", &verdicts(&reproduction));
    if reproduction.quick {
        body.element(
            "p",
            "warning",
            "This is the quick version: fewer trials or rounds than the paper has, so that intervals are wide.",
        );
    }
    for figure in &reproduction.figures {
        one_figure(&mut body, figure);
    }
    body.section("Repeat it", |section| {
        section.paragraph(&format!("With floras {}, seed {}:", reproduction.version, reproduction.seed));
        section.command(&reproduction.command);
        section.paragraph("All numbers are in reproduction.json, the pictures in plots/ as SVG and PNG.");
    });
    output.page(&page(&format!("{} – floras", title(&reproduction)), &body))
}

fn title(reproduction: &Reproduction) -> String {
    match &reproduction.figures[..] {
        [one] => one.title.clone(),
        _ => "The figures of the paper, and what comes out".to_owned(),
    }
}

fn verdicts(reproduction: &Reproduction) -> String {
    let claims = || reproduction.figures.iter().flat_map(|figure| &figure.claims);
    let number = |verdict: Verdict| claims().filter(|claim| claim.verdict == verdict).count();
    match claims().count() {
        0 => "No claim of the paper is held against these figures.".to_owned(),
        all => format!(
            "Of {} of the paper, {} came out here, too; {} are inconclusive; {} did not under the conventions \
             that were chosen; {} contradict mathematics.",
            count(all as u64, "claim"),
            number(Verdict::Reproduced),
            number(Verdict::Inconclusive),
            number(Verdict::NotReproduced),
            number(Verdict::False)
        ),
    }
}

fn one_figure(body: &mut Html, shown: &Figure) {
    body.section(&shown.title, |section| {
        for paragraph in &shown.text {
            section.paragraph(paragraph);
        }
        section.around("div", "plots", |plots| {
            for panel in &shown.panels {
                let has_bands = panel.curves.iter().any(|curve| curve.band.is_some());
                figure(
                    plots,
                    panel,
                    if has_bands { "Bands are 95% intervals; point at it for values." } else { "" },
                );
            }
        });
        if !shown.claims.is_empty() {
            section.element("h3", "", "What the paper says, and what came out");
            let rows: Vec<Vec<Cell>> = shown.claims.iter().map(claim).collect();
            section.table(&["claim", "verdict", "published", "ours", "why"], &rows);
        }
        if !shown.privacy.is_empty() {
            privacy(section, &shown.privacy);
        }
        if !shown.conventions.is_empty() {
            let heading = if shown.claims.is_empty() {
                "The settings"
            } else {
                "Conventions: choices that the paper leaves open"
            };
            section.element("h3", "", heading);
            let row =
                |(key, value): &(String, String)| vec![Cell::text(key.as_str()), Cell::text(value.as_str())];
            let rows: Vec<Vec<Cell>> = shown.conventions.iter().map(row).collect();
            section.table(&["what", "chosen"], &rows);
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
    // The claim itself says that it is about ε.
    let unit = if claim.unit == "ε" { String::new() } else { format!(" {}", claim.unit) };
    let ours = match (claim.ours, claim.ci95) {
        (None, _) => "–".to_owned(),
        (Some(ours), None) => format!("{}{unit}", number(ours)),
        (Some(ours), Some(half)) => {
            format!("{} ± {}{unit}", number(ours), number(half).trim_start_matches('+'))
        }
    };
    let good = (claim.verdict != Verdict::Inconclusive).then_some(claim.verdict == Verdict::Reproduced);
    vec![
        Cell::text(claim.claim.as_str()),
        Cell::Mark(claim.verdict.words().to_owned(), good),
        Cell::number(
            claim.published.map_or_else(|| "–".to_owned(), |value| format!("{}{unit}", number(value))),
        ),
        Cell::number(ours),
        Cell::text(claim.reason.as_str()),
    ]
}

fn privacy(section: &mut Html, rows: &[PrivacyRow]) {
    section.element("h3", "", "What each curve's setting guarantees: ε of a client in every view");
    let heading: Vec<&str> = ["curve", "rounds"].into_iter().chain(View::ALL.map(View::name)).collect();
    let delta = rows.first().map_or(0.0, |row| row.delta);
    let cells = |row: &PrivacyRow| {
        let mut cells = vec![Cell::text(row.curve.as_str()), Cell::number(grouped(row.rounds.into()))];
        cells.extend(View::ALL.map(|view| match row.views.get(view) {
            None => Cell::number("–"),
            Some(statement) => {
                let value = statement.epsilon.map_or_else(|| "none".to_owned(), epsilon);
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
        "δ = {delta:e}. Numbers in parentheses are no guarantees; none means that no ε can be stated. ε up to about 1 is a strong \
         promise; from about 10 on nothing is promised that anyone would notice. Who looks, in each view:"
    ));
    let legend: Vec<String> = View::ALL.iter().map(|view| format!("{view}: {}", view.adversary())).collect();
    section.notes(&legend);
}
