//! The report of an audit: what is claimed, what was measured, and what the attacks show.

mod number;
mod plots;
mod section;

use std::path::{Path, PathBuf};

use floras_audit::{AuditReport, PLOTS, ReconstructionAttack, Section};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::{Html, page};

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
    files::check_names(&path, report.sections().iter().flat_map(Section::plots))?;
    if !report.sections().iter().flat_map(Section::pictures).all(ReconstructionAttack::is_whole) {
        return Err(ReportError::damaged(
            &path,
            "its reconstructed pictures are not as large as they should be",
        ));
    }
    Ok(report)
}

/// Draws what an audit has to show into `plots/`. What an earlier audit had to show, and this one has not, goes away.
pub(crate) fn pictures(report: &AuditReport, output: &mut Output) -> Result<(), ReportError> {
    PLOTS.iter().for_each(|name| output.forget(name));
    let sections = report.sections();
    sections.iter().flat_map(Section::plots).try_for_each(|panel| output.panel(panel))?;
    let pictures = sections.iter().flat_map(Section::pictures).filter(|found| !found.originals.is_empty());
    pictures.into_iter().try_for_each(|found| output.reconstruction(found))
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
    for found in report.sections() {
        place.part(html, found.title, |part| section::show(part, &found.parts));
    }
    if !report.notes.is_empty() {
        place.part(html, "What to know", |part| {
            part.notes(&report.notes);
        });
    }
}
