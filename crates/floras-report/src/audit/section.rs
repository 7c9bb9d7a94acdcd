//! The parts of an attack's results.

use floras_audit::{AuditVerdict, Cell as Found, Part, ReconstructionAttack, ReconstructionRow};

use crate::html::number::{epsilon, epsilon_lower, grouped, share, signed};
use crate::html::{Cell, Html, downloads, figure};
use crate::plot::{inline_svg, portraits};

/// Adds all parts.
pub(super) fn show(html: &mut Html, parts: &[Part<'_>]) {
    for part in parts {
        match part {
            Part::Explanation(text) | Part::Finding(text) => {
                html.around("p", "", |paragraph| paragraph.prose(text));
            }
            Part::Table { heading, rows } => {
                let mut heading = heading.clone();
                let mut rows: Vec<Vec<Cell>> =
                    rows.iter().map(|row| row.iter().map(cell).collect()).collect();
                // A phone shows the first columns: what was measured comes before what the paper claims.
                if heading.get(1) == Some(&"published ε") {
                    heading[1..].reverse();
                    rows.iter_mut().for_each(|row| row[1..].reverse());
                }
                html.table(&heading, &rows);
            }
            Part::List(words) => drop(html.around("dl", "", |list| {
                for (word, meaning) in words {
                    list.element("dt", "", word).around("dd", "", |item| item.prose(meaning));
                }
            })),
            Part::Folded { summary, parts, .. } => drop(html.around("details", "", |details| {
                details.element("summary", "", summary);
                show(details, parts);
            })),
            Part::Plots(panels) => drop(html.around("div", "plots", |plots| {
                panels.iter().for_each(|panel| figure(plots, panel, ""));
            })),
            Part::Pictures(found) if found.originals.is_empty() => {}
            Part::Pictures(found) => pictures(html, found),
        }
    }
}

fn cell(found: &Found) -> Cell {
    let judged = |number: String, verdict, remark| Cell::Judged { number, verdict, remark };
    match *found {
        Found::Text(ref text) => Cell::text(text.as_str()),
        Found::Count(count) => Cell::number(grouped(count)),
        Found::Number(number, digits) => Cell::number(signed(number, digits)),
        Found::Share(part, remark) => judged(share(part), None, remark),
        Found::Epsilon(claimed, verdict, remark) => {
            let verdict = verdict.map(|verdict| match verdict {
                AuditVerdict::Consistent => (format!("✓ {}", verdict.words()), Some(true)),
                AuditVerdict::Violated => (format!("✗ {}", verdict.words()), Some(false)),
            });
            judged(epsilon(claimed), verdict, remark)
        }
        Found::AtLeast(measured, remark) => judged(format!("≥ {}", epsilon_lower(measured)), None, remark),
    }
}

fn pictures(html: &mut Html, found: &ReconstructionAttack) {
    html.around("figure", "portraits", |figure| {
        figure.around("div", "wide", |wide| {
            wide.drawn(&inline_svg(&portraits::draw(found, false), &in_words(found)));
        });
        let below = format!(
            "Below each picture is its correlation with the original: 1 is the original, 0 is unrelated. {}.",
            portraits::settings_line(found)
        );
        figure.element("figcaption", "", &below);
        downloads(figure, "reconstruction");
    });
}

/// A description for screen readers.
fn in_words(found: &ReconstructionAttack) -> String {
    let row = |row: &ReconstructionRow| {
        format!("{}: mean correlation {}", row.name(), signed(row.mean_correlation(), 3))
    };
    let rows: Vec<String> = found.rows.iter().map(row).collect();
    format!(
        "{} original pictures, and below them what was reconstructed from the updates. {}",
        found.originals.len(),
        rows.join("; ")
    )
}
