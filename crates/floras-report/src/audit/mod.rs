//! The report of an audit: what is claimed, what was measured, and what the attacks show.

mod attacks;
mod number;
mod sequences;
mod views;

use std::path::{Path, PathBuf};

use floras_audit::{AuditReport, ReconstructionAttack, ReconstructionRow};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::number::{grouped, share};
use crate::html::{Cell, Html, page};
use crate::plot::{inline_svg, portraits};

/// Writes the page of a directory that holds an audit alone.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let report = read(directory)?;
    let mut output = Output::new(directory);
    pictures(&report, &mut output)?;
    let mut body = Html::default();
    body.element("p", "kicker", "Audit of an experiment of floras: private federated learning over the air");
    body.element("h1", "", &report.name);
    content(&mut body, &report, Place::Page);
    body.section("Repeat it", |section| {
        section.paragraph(&format!(
            "With floras {} and seed {}, the same audit gives the same numbers on any number of threads. All of them are in \
             audit.json, and the pictures in plots/ as SVG and PNG.",
            report.version, report.seed
        ));
    });
    output.page(&page(&format!("Audit of {} – floras", report.name), &body))
}

/// The audit of a directory, which must be there.
pub(crate) fn read(directory: &Path) -> Result<AuditReport, ReportError> {
    let path = directory.join(AuditReport::FILE);
    let report: AuditReport = read_json(&path)?;
    files::check_names(&path, report.attacks.sequences.iter().flat_map(|attack| &attack.panels))?;
    if report.attacks.reconstruction.as_ref().is_some_and(|attack| !is_whole(attack)) {
        return Err(ReportError::damaged(
            &path,
            "its reconstructed pictures are not as large as they should be",
        ));
    }
    Ok(report)
}

/// Pictures have as many pixels as it says; they may be left out altogether.
fn is_whole(attack: &ReconstructionAttack) -> bool {
    let pixels = attack.width.checked_mul(attack.height);
    let sound = |images: &[Vec<u8>]| images.iter().all(|image| Some(image.len()) == pixels);
    let rows = attack.rows.iter().all(|row| {
        let as_many = row.images.len() == attack.originals.len();
        sound(&row.images) && as_many && row.correlations.iter().all(|value| value.is_finite())
    });
    pixels.is_some_and(|pixels| pixels > 0) && sound(&attack.originals) && rows
}

/// The pictures that an audit may have.
const PICTURES: [&str; 6] =
    ["sequences-roc", "sequences-snr", "sequences-d", "sequences-clip", "sequences-gamma", "reconstruction"];

/// Draws what an audit has to show into `plots/`. What an earlier audit had to show, and this one has not, goes away.
pub(crate) fn pictures(report: &AuditReport, output: &mut Output) -> Result<(), ReportError> {
    PICTURES.iter().for_each(|name| output.forget(name));
    for panel in report.attacks.sequences.iter().flat_map(|attack| &attack.panels) {
        output.panel(panel)?;
    }
    match &report.attacks.reconstruction {
        Some(attack) if !attack.originals.is_empty() => output.reconstruction(attack),
        _ => Ok(()),
    }
}

/// Where an audit is told: on a page of its own, or in a section of a run's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Page,
    Section,
}

impl Place {
    /// A part with its heading.
    fn part(self, html: &mut Html, heading: &str, fill: impl FnOnce(&mut Html)) {
        match self {
            Self::Page => drop(html.section(heading, fill)),
            Self::Section => {
                html.element("h3", "part", heading);
                fill(html);
            }
        }
    }
}

/// Everything that an audit found.
pub(crate) fn content(html: &mut Html, report: &AuditReport, place: Place) {
    html.element(
        "p",
        "lead",
        "Clients train a model together and send what they learned over the air, so that a base station should get no more than \
         a noisy sum. This audit takes the side of someone who wants more: it listens to simulated rounds of this very \
         experiment, tries to tell who took part, and measures how often it is right.",
    );
    settings(html, report);
    place.part(html, "What is claimed, and what was measured", |part| views::table(part, report));
    if let Some(attack) = &report.attacks.reconstruction {
        place.part(html, "What the updates show", |part| reconstruction(part, attack));
    }
    if let Some(attack) = &report.attacks.sequences {
        place.part(html, "Which sequences are in use?", |part| sequences::tell(part, attack));
    }
    if let Some(attack) = &report.attacks.despreading {
        place.part(html, "The updates of single clients", |part| attacks::despreading(part, attack));
    }
    if !report.attacks.membership.is_empty() {
        place.part(html, "Who, or what, took part?", |part| {
            attacks::membership(part, &report.attacks.membership)
        });
    }
    if let Some(attack) = &report.attacks.collusion {
        place.part(html, "One client hands over its key", |part| attacks::collusion(part, attack));
    }
    if !report.attacks.assumptions.is_empty() {
        place.part(html, "What the any-channel view assumes", |part| {
            attacks::assumptions(part, &report.attacks.assumptions);
        });
    }
    if !report.notes.is_empty() {
        place.part(html, "What to know", |part| {
            part.notes(&report.notes);
        });
    }
}

/// Words and what they mean.
fn definitions<'w>(html: &mut Html, words: impl IntoIterator<Item = (&'w str, &'w str)>) {
    html.around("dl", "", |list| {
        for (word, meaning) in words {
            list.element("dt", "", word).element("dd", "", meaning);
        }
    });
}

fn settings(html: &mut Html, report: &AuditReport) {
    let mut rows = vec![
        ("parameters d", grouped(report.parameters as u64)),
        ("rounds", grouped(report.rounds.into())),
        ("δ", format!("{:e}", report.delta)),
        (
            "confidence",
            format!("{}, for all lower bounds of the first table together", share(report.confidence)),
        ),
    ];
    rows.extend(report.settings.iter().map(|(key, value)| (key.as_str(), value.clone())));
    let rows: Vec<Vec<Cell>> =
        rows.into_iter().map(|(key, value)| vec![Cell::text(key), Cell::text(value)]).collect();
    html.around("details", "", |details| {
        details.element("summary", "", "The settings that decide");
        details.table(&["what", "value"], &rows);
    });
}

fn reconstruction(html: &mut Html, attack: &ReconstructionAttack) {
    html.paragraph(&what_was_looked_at(attack));
    if attack.originals.is_empty() {
        let row = |row: &ReconstructionRow| {
            let mean = portraits::signed(row.mean_correlation(), 3);
            vec![Cell::text(portraits::row_name(row)), Cell::number(mean)]
        };
        let rows: Vec<Vec<Cell>> = attack.rows.iter().map(row).collect();
        html.table(&["what was looked at", "mean correlation with the original"], &rows);
        return;
    }
    html.around("figure", "portraits", |figure| {
        figure.around("div", "wide", |wide| {
            wide.drawn(&inline_svg(&portraits::draw(attack, false), &in_words(attack)));
        });
        figure.element(
            "figcaption",
            "",
            &format!(
                "Below each picture is its correlation with the original: 1 is the original, 0 has nothing to do with it. {}.",
                portraits::settings_line(attack)
            ),
        );
    });
}

fn what_was_looked_at(attack: &ReconstructionAttack) -> String {
    let is_despread = attack.rows.iter().any(|row| row.source == "despread update");
    let despread = if is_despread {
        " of the update on each client's own sequence, which a base station has that keeps its radio samples (clients in a deep \
         fade stay hidden), and"
    } else {
        ""
    };
    format!(
        "The gradient of one sample shows the sample. Each client took one step on one of its pictures and sent the change. The \
         first row has the pictures; below it is what was made{despread} of the decoded sum, which is all that the scheme means \
         to give out. A sum gives one picture of each class."
    )
}

/// For those who cannot see it.
fn in_words(attack: &ReconstructionAttack) -> String {
    let row = |row: &ReconstructionRow| {
        let mean = portraits::signed(row.mean_correlation(), 3);
        format!("{}: mean correlation {mean}", portraits::row_name(row))
    };
    let rows: Vec<String> = attack.rows.iter().map(row).collect();
    format!(
        "{} original pictures, and below them what was reconstructed from the updates. {}",
        attack.originals.len(),
        rows.join("; ")
    )
}
