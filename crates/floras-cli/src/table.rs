//! The description and the results of a run, and tables in columns.

use std::collections::BTreeMap;
use std::io::{self, Write};

use floras_core::{Choice, Dropout, Level, View};
use floras_sim::number::{estimate, percentage};
use floras_sim::{Federation, Outcome, PrivacyReport};

use crate::privacy::{NOT_APPLICABLE, print_views};
use crate::text::{self, WIDTH};

/// The training, its privacy settings and its uplink in two paragraphs.
pub(crate) fn description(federation: &Federation) -> String {
    let settings = federation.experiment().settings();
    let (clients, privacy) = (&settings.clients, &settings.privacy);
    let clip = privacy.clip.map_or("updates not clipped".to_owned(), |clip| format!("clip norm {clip}"));
    let budget =
        privacy.budget.map_or(String::new(), |budget| format!(", budget ε ≤ {budget} ({})", privacy.view));
    let selected = match clients.per_round {
        all if all == clients.total && all > 1 => format!("all {all} clients"),
        some => format!("{some} of {}", count(clients.total as usize, "client")),
    };
    let task = format!(
        "{} with {} parameters on {}; {selected} per round{}, {}, {}, seed {}; {clip}{budget}",
        settings.model.description(),
        federation.model().parameters(),
        settings.data.set.description(),
        dropout(&clients.dropout),
        count(federation.rounds() as usize, "round"),
        count(settings.trials as usize, "trial"),
        settings.seed,
    );
    let name = format!("{}: ", settings.name);
    format!("{}\n{}", text::labelled(&name, &task), text::labelled("uplink: ", &settings.uplink_summary()))
}

/// The clients that drop out, in parentheses.
fn dropout(dropout: &Dropout) -> String {
    if dropout.is_none() { String::new() } else { format!(" (dropout: {})", dropout.label()) }
}

/// Prints the results of a run.
pub(crate) fn results(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let summary = &outcome.summary;
    let (trials, diverged) = (summary.trials.len(), summary.diverged());
    let finished = count(trials - diverged.len(), "trial");
    let mean = match &summary.finals {
        None => "no trial finished".to_owned(),
        Some(finals) if finals.test_accuracy.ci95.is_none() => finished,
        Some(_) => format!("mean of {finished} ± 95 % interval"),
    };
    let speed = match outcome.rounds_per_second() {
        Some(speed) => format!("{speed:.0} rounds/s"),
        None => "the run was already complete".to_owned(),
    };
    let rounds = count(summary.rounds as usize, "round");
    writeln!(out, "{} after {rounds}, seed {}: {mean}; {speed}", summary.name, summary.seed)?;
    if let Some(finals) = summary.finals {
        writeln!(out, "test accuracy   {}", percentage(finals.test_accuracy))?;
        let [test, train] = [finals.test_loss, finals.train_loss].map(estimate);
        writeln!(out, "loss            test {test}, train {train}")?;
    }
    if !diverged.is_empty() {
        let each: Vec<String> =
            diverged.iter().map(|(trial, round)| format!("trial {} in round {round}", trial + 1)).collect();
        writeln!(out, "diverged        {} of {trials}: {}", diverged.len(), shortened(&each))?;
    }
    if summary.broken > 0 {
        let updates = count(summary.broken as usize, "update");
        writeln!(out, "broken          {updates} of the last round were not finite and were sent as zero")?;
    }
    Ok(())
}

/// Prints the privacy table of a run.
pub(crate) fn privacy(
    out: &mut impl Write,
    report: &PrivacyReport,
    adversaries: &BTreeMap<View, &'static str>,
) -> io::Result<()> {
    let rounds = count(report.rounds as usize, "round");
    let unit = if report.level == Level::Item.name() { "one item" } else { "a client" };
    let notes = match report.notes.len() {
        0 => String::new(),
        several => format!(" ({} in the report)", count(several, "note")),
    };
    writeln!(out, "\nprivacy of {unit} after {rounds}, delta = {:e}{notes}", report.delta)?;
    print_views(out, &report.views, adversaries, NOT_APPLICABLE)
}

/// Width of [`columns`].
pub(crate) fn width(rows: &[Vec<String>]) -> usize {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    (0..columns).map(width).sum::<usize>() + 2 * columns.saturating_sub(1)
}

/// Rows of cells, in columns as wide as their widest cell.
pub(crate) fn columns(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}")).collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// Rows of cells as in [`columns`], in lines of at most [`WIDTH`] characters: the last column is wrapped.
pub(crate) fn wrapped_columns(out: &mut impl Write, rows: &[Vec<String>]) -> io::Result<()> {
    let last = rows.first().map_or(0, |row| row.len() - 1);
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let indent: usize = (0..last).map(|column| width(column) + 2).sum();
    let mut lines = Vec::new();
    for row in rows {
        for (number, part) in
            text::wrap(&row[last], WIDTH.saturating_sub(indent).max(16)).into_iter().enumerate()
        {
            let cells = row[..last].iter().map(|cell| if number == 0 { cell.clone() } else { String::new() });
            lines.push(cells.chain([part]).collect());
        }
    }
    columns(out, &lines)
}

/// The first ten items, and the number of the others.
fn shortened(items: &[String]) -> String {
    let shown = items.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > 10 { format!("{shown} and {} more", items.len() - 10) } else { shown }
}

/// A number with its noun: `1 trial`, `2 trials`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
