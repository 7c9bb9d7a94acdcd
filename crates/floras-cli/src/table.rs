//! What a run was, and what it came to, in words and columns.

use std::io::{self, Write};

use floras_core::{Choice, Dropout, Level};
use floras_sim::{Cost, Estimate, Federation, Outcome, PrivacyReport};

use crate::privacy::{epsilon_text, print_views};

/// An experiment in a few words.
pub(crate) fn description(federation: &Federation) -> String {
    let settings = federation.experiment().settings();
    let clients = &settings.clients;
    format!(
        "{}: {} of {} clients a round{}, {} parameters, {}; {}, {}, seed {}",
        settings.name,
        clients.per_round,
        clients.total,
        dropout(&clients.dropout),
        federation.model().parameters(),
        settings.uplink_summary(),
        count(federation.rounds() as usize, "round"),
        count(settings.trials as usize, "trial"),
        settings.seed,
    )
}

/// Which of them are silent, in a few words.
fn dropout(dropout: &Dropout) -> String {
    if dropout.is_none() { String::new() } else { format!(" (dropout: {})", dropout.label()) }
}

/// The final table.
pub(crate) fn results(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let summary = &outcome.summary;
    let (trials, diverged) = (summary.trials.len(), summary.diverged());
    let finished = trials - diverged.len();
    let rounds = count(summary.rounds as usize, "round");
    writeln!(out, "{} after {rounds}, seed {}", summary.name, summary.seed)?;
    match summary.finals {
        None => writeln!(out, "no trial finished, so there is nothing to average")?,
        Some(finals) => {
            let heading = format!("mean of {}  ", count(finished, "trial"));
            writeln!(out, "                {heading}95% interval")?;
            row(out, "train loss", finals.train_loss, heading.len())?;
            row(out, "test loss", finals.test_loss, heading.len())?;
            row(out, "test accuracy", finals.test_accuracy, heading.len())?;
        }
    }
    if !diverged.is_empty() {
        let each: Vec<String> =
            diverged.iter().map(|(trial, round)| format!("trial {trial} in round {round}")).collect();
        writeln!(out, "diverged        {} of {trials}: {}", diverged.len(), shortened(&each))?;
    }
    if summary.broken > 0 {
        let updates = count(summary.broken as usize, "update");
        writeln!(out, "broken          {updates} of the last round not finite, and sent as zero")?;
    }
    if let Some(cost) = &summary.cost {
        print_cost(out, cost)?;
    }
    match outcome.rounds_per_second() {
        Some(speed) => writeln!(out, "speed           {speed:.0} rounds/s")?,
        None => writeln!(out, "the run was already complete")?,
    }
    Ok(())
}

/// What a trial cost on the air, on average.
fn print_cost(out: &mut impl Write, cost: &Cost) -> io::Result<()> {
    let Cost { payload_uses, pilot_uses, control_uses, energy, power_mean, power_peak, .. } = cost;
    let range = cost.dynamic_range_db.map_or(String::new(), |range| format!(", range {range:.1} dB"));
    writeln!(out, "channel uses    {payload_uses} payload, {pilot_uses} pilot, {control_uses} control")?;
    writeln!(out, "transmit power  mean {power_mean:.2e}, peak {power_peak:.2e}{range}")?;
    writeln!(out, "energy          {energy:.2e} channel uses at unit power")
}

/// What can be said about privacy.
pub(crate) fn privacy(out: &mut impl Write, report: &PrivacyReport) -> io::Result<()> {
    let rounds = count(report.rounds as usize, "round");
    let unit = if report.level == Level::Item.name() { "one item" } else { "a client" };
    writeln!(out, "\nprivacy of {unit} after {rounds}, delta = {:e}", report.delta)?;
    print_views(out, &report.views, "this scheme has nothing to see there")?;
    if let Some(worst) = report.worst_client {
        let epsilon = epsilon_text(worst.epsilon);
        writeln!(
            out,
            "given the gains and the noise of this run, client {} gave away most: epsilon {epsilon}",
            worst.client
        )?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out)
}

fn row(out: &mut impl Write, name: &str, estimate: Estimate, width: usize) -> io::Result<()> {
    let interval = match estimate.ci95 {
        Some(half) => format!("± {half:.4}"),
        None => "needs two trials".to_owned(),
    };
    writeln!(out, "{name:<16}{:<width$}{interval}", format!("{:.4}", estimate.mean))
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

/// At most ten of them.
fn shortened(items: &[String]) -> String {
    let shown = items.iter().take(10).cloned().collect::<Vec<_>>().join(", ");
    if items.len() > 10 { format!("{shown} and {} more", items.len() - 10) } else { shown }
}

/// `1 trial`, `2 trials`.
pub(crate) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
