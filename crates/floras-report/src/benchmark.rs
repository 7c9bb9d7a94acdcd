//! The report of a benchmark: schemes under equal conditions, ranked, with their cost and their privacy.

use std::path::{Path, PathBuf};

use floras_core::View;
use floras_sim::benchmark::{Benchmark, Table};
use floras_sim::figure::Panel;
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
    files::check_names(&path, made.panels.iter())?;
    for panel in &made.panels {
        output.panel(panel)?;
    }
    let mut body = Html::default();
    body.element("p", "kicker", "Benchmark by floras");
    body.element("h1", "", TITLE);
    let [lead, others @ ..] = &made.text[..] else {
        return Err(ReportError::NothingThere { directory: directory.to_path_buf() });
    };
    body.around("p", "lead", |paragraph| paragraph.prose(lead));
    if made.quick {
        body.element(
            "p",
            "warning",
            "This is the quick version: one point with few trials and rounds, and wide intervals.",
        );
    }
    for text in others {
        body.around("p", "", |paragraph| paragraph.prose(text));
    }
    tables(&mut body, "Ranking", &[made.ranking(), vec![made.by_epsilon()]].concat());
    body.section("Plots", |section| {
        section.around("div", "plots", |plots| {
            for panel in &made.panels {
                figure(plots, panel, &caption(&made, panel));
            }
        });
    });
    tables(&mut body, "Privacy", &made.views());
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

/// Names the entries that a plot against `ε` leaves out: it has guarantees only.
fn caption(made: &Benchmark, panel: &Panel) -> String {
    if !panel.name.starts_with("benchmark-epsilon-") {
        return String::new();
    }
    let is_shown = |name: &str| panel.curves.iter().any(|curve| curve.name == name);
    let is_private = |name: &str| {
        let mut rows = made.rows.iter().filter(|row| row.entry == name);
        rows.any(|row| row.point.epsilon.is_some() && row.accuracy.is_some())
    };
    let names = made.entries.iter().map(|entry| entry.name.as_str());
    let left_out: Vec<&str> = names.filter(|name| is_private(name) && !is_shown(name)).collect();
    match &left_out[..] {
        [] => String::new(),
        names => format!("Without a proven finite ε in this view, and so left out: {}.", names.join(", ")),
    }
}
