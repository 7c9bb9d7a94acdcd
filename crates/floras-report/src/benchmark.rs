//! The report of a benchmark: schemes under equal conditions, ranked, with their cost and their privacy.

use std::path::{Path, PathBuf};

use floras_core::View;
use floras_sim::benchmark::{Benchmark, CaptionedPanel, Table};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::{Cell, Html, figure, page};

const TITLE: &str = "Learning over the air: schemes under equal conditions";

/// Writes the report of a benchmark.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let path = directory.join(Benchmark::FILE);
    let made: Benchmark = read_json(&path)?;
    let mut output = Output::new(directory);
    files::check_names(&path, made.panels.iter().map(|one| &one.panel))?;
    for CaptionedPanel { panel, .. } in &made.panels {
        output.panel(panel)?;
    }
    let mut body = Html::default();
    body.element("p", "kicker", "Benchmark by floras");
    body.element("h1", "", TITLE);
    body.around("p", "lead", |paragraph| paragraph.prose(&made.reading));
    if made.quick {
        body.element(
            "p",
            "warning",
            "This is the quick version: one point with few trials and rounds, and wide intervals.",
        );
    }
    tables(&mut body, "Ranking", &[made.ranking(), vec![made.by_epsilon()]].concat());
    body.section("Plots", |section| {
        section.around("div", "plots", |plots| {
            for CaptionedPanel { panel, caption } in &made.panels {
                figure(plots, panel, caption);
            }
        });
    });
    tables(&mut body, "Privacy", &[made.views(), vec![made.assumptions()]].concat());
    body.section("Conditions", |section| {
        section.notes(&made.notes);
    });
    let adversary = |view: &View| format!("{view}: {}", view.adversary());
    body.section("Adversaries", |section| {
        section.paragraph("The adversary of each view, unless the page of a scheme names another:");
        section.notes(&View::BY_ADVERSARY.iter().map(adversary).collect::<Vec<_>>());
    });
    let accuracies = made.accuracies();
    if !accuracies.is_empty() {
        tables(&mut body, "All points", &accuracies);
    }
    tables(&mut body, "Settings", &[made.schemes()]);
    body.section("Repeat it", |section| {
        section.paragraph(&format!("With floras {}, seed {}:", made.version, made.seed));
        section.command(&made.command);
        section.around("p", "", |line| {
            line.text("All numbers: ").link(Benchmark::FILE, Benchmark::FILE).text(".");
        });
    });
    output.page(&page(&format!("{TITLE} – floras"), &body))
}

/// A section with tables.
fn tables(body: &mut Html, heading: &str, tables: &[Table]) {
    body.section(heading, |section| {
        for table in tables {
            section.element("h3", "", &table.title);
            let heading: Vec<&str> = table.heading.iter().map(String::as_str).collect();
            let rows: Vec<Vec<Cell>> =
                table.rows.iter().map(|row| row.iter().map(|text| cell(text)).collect()).collect();
            section.table(&heading, &rows);
            if !table.note.is_empty() {
                section.paragraph(&table.note);
            }
        }
    });
}

fn cell(text: &str) -> Cell {
    let is_number = text.starts_with(|first: char| first.is_ascii_digit() || "–>(".contains(first));
    if is_number { Cell::number(text) } else { Cell::text(text) }
}
