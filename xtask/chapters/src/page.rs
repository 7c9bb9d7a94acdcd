//! Figures as text of the book.

use std::fmt::Write;

use floras_core::{Rounding, View};
use floras_sim::figure::{Claim, Figure, Panel, PrivacyRow, Verdict};
use floras_sim::number::decimal;

/// Curves with more points than this are drawn, but not listed.
const MAX_COLUMNS: usize = 8;

/// A figure with its pictures, claims, choices, guarantees and notes.
///
/// `choices` is the heading of the choices if there are claims.
pub(crate) fn write_figure(out: &mut String, figure: &Figure, choices: &str) {
    let _ = write!(out, "## {}\n\n", figure.title);
    for paragraph in &figure.text {
        let _ = write!(out, "{paragraph}\n\n");
    }
    for panel in &figure.panels {
        let title = panel.title.replace(['[', ']'], "");
        let _ = write!(out, "![{title}](../reproduction/{}.svg)\n\n", panel.name);
        if panel.curves.iter().all(|curve| curve.x.len() <= MAX_COLUMNS) {
            write_values(out, panel);
        }
    }
    if !figure.claims.is_empty() {
        out.push_str("| the paper's claim | published | ours | verdict | why |\n|---|---:|---:|---|---|\n");
        for claim in &figure.claims {
            out.push_str(&claim_row(claim));
        }
        out.push('\n');
    }
    if !figure.conventions.is_empty() {
        let heading = if figure.claims.is_empty() { "The settings" } else { choices };
        let _ = write!(out, "{heading}:\n\n| quantity | value |\n|---|---|\n");
        for (key, value) in &figure.conventions {
            let _ = writeln!(out, "| {key} | {value} |");
        }
        out.push('\n');
    }
    write_privacy(out, &figure.privacy);
    for note in &figure.notes {
        let _ = write!(out, "{note}\n\n");
    }
}

/// The values of a panel with few points, one row per curve.
fn write_values(out: &mut String, panel: &Panel) {
    let Some(first) = panel.curves.first() else { return };
    let places: Vec<String> = first.x.iter().map(|&place| decimal(place)).collect();
    let _ = writeln!(out, "| {}, by {} | {} |", panel.y.label, panel.x.label, places.join(" | "));
    let _ = writeln!(out, "|---|{}", "---:|".repeat(places.len()));
    for curve in &panel.curves {
        let cell = |place: usize| {
            let Some(value) = curve.y[place] else { return "–".to_owned() };
            let band = curve.band.as_ref().and_then(|band| band[place]);
            band.map_or_else(
                || number(value),
                |(low, high)| with_half_width(value, (high - value).max(value - low)),
            )
        };
        let cells: Vec<String> = (0..curve.y.len()).map(cell).collect();
        let _ = writeln!(out, "| {} | {} |", curve.name, cells.join(" | "));
    }
    out.push('\n');
}

fn claim_row(claim: &Claim) -> String {
    let digits = match claim.unit.as_str() {
        "ε" => 3,
        "" => 2,
        _ => 1,
    };
    let interval = claim.ci95.map_or(String::new(), |half| format!(" ± {half:.digits$}"));
    let ours = claim.ours.map_or("–".to_owned(), |ours| {
        let rounded = format!("{ours:.digits$}");
        let is_zero = rounded.parse() == Ok(0.0);
        format!("{}{interval}", if is_zero { rounded.trim_start_matches('-') } else { &rounded })
    });
    let verdict = match claim.verdict {
        Verdict::Reproduced | Verdict::Inconclusive => claim.verdict.words().to_owned(),
        Verdict::NotReproduced | Verdict::False => format!("**{}**", claim.verdict.words()),
    };
    let published = claim.published.map_or("–".to_owned(), |published| format!("{published:.digits$}"));
    format!("| {} | {published} | {ours} | {verdict} | {} |\n", claim.claim, claim.reason)
}

fn write_privacy(out: &mut String, rows: &[PrivacyRow]) {
    let Some(first) = rows.first() else { return };
    let _ = write!(
        out,
        "Privacy of a client under each curve's setting: ε at δ = {:e}, in [every view](../concepts/privacy-views.md). A number in \
         brackets is not a guarantee; *none* means that there is no finite ε, and – that the view does not apply to the scheme.\n\n\
         | curve | rounds | published | idealised | actual | any channel | raw signal |\n|---|---:|---:|---:|---:|---:|---:|\n",
        first.delta
    );
    for row in rows {
        let cell = |view: View| {
            let Some(statement) = row.views.get(view) else { return "–".to_owned() };
            match (statement.epsilon, statement.guarantee) {
                (None, _) => "none".to_owned(),
                (Some(epsilon), true) => upper(epsilon),
                (Some(epsilon), false) => format!("({})", upper(epsilon)),
            }
        };
        let cells = View::ALL.map(cell);
        let _ = writeln!(out, "| {} | {} | {} |", row.curve, row.rounds, cells.join(" | "));
    }
    out.push('\n');
}

/// A value with the half width of its interval: one decimal, and powers of ten for small positive values.
fn with_half_width(value: f64, half: f64) -> String {
    // A small negative number would be printed as -0.0.
    let value = if value < 0.0 && value > -0.05 { 0.0 } else { value };
    match value {
        value if 0.0 < value && value < 0.01 => format!("{value:.1e} ± {half:.0e}"),
        value => format!("{value:.1} ± {half:.1}"),
    }
}

/// Three digits, and powers of ten where there are too many.
fn number(value: f64) -> String {
    match value {
        value if value >= 1e5 => format!("{value:.1e}"),
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// An upper bound with as many digits as by [`number`], rounded up.
fn upper(value: f64) -> String {
    match value {
        value if value >= 1e5 => Rounding::Up.scientific(value, 1),
        value if value >= 100.0 => Rounding::Up.fixed(value, 0),
        value if value >= 10.0 => Rounding::Up.fixed(value, 1),
        value => Rounding::Up.fixed(value, 2),
    }
}

/// Paragraphs and items of lists in lines of at most 120 characters; tables and pictures are not wrapped.
pub(crate) fn wrap(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.starts_with(['|', '!', '#']) || line.chars().count() <= 120 {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let indentation = if line.starts_with("- ") { "  " } else { "" };
        let mut width = 0;
        for word in line.split(' ') {
            let length = word.chars().count();
            if width > 0 && width + 1 + length > 120 {
                out.push('\n');
                out.push_str(indentation);
                width = indentation.len();
            } else if width > 0 {
                out.push(' ');
                width += 1;
            }
            out.push_str(word);
            width += length;
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_wrapped_between_words() {
        let text = wrap(&format!("{}\n| {} |\n", "word ".repeat(40).trim_end(), "cell ".repeat(40)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].len() <= 120 && lines[0].ends_with("word") && lines[1].starts_with("word"));
        let item = wrap(&format!("- {}\n", "word ".repeat(40).trim_end()));
        assert!(item.lines().nth(1).unwrap().starts_with("  word"));
    }
}
