//! The report of an audit: claims, measured lower bounds and results of the attacks.

mod section;

use std::path::{Path, PathBuf};

use floras_audit::{AuditReport, PLOTS, ReconstructionAttack, Section};
use floras_sim::read_json;

use crate::error::ReportError;
use crate::files::{self, Output};
use crate::html::{Html, page};
use crate::plot::Plot;

/// Writes the page of a directory that holds an audit alone.
pub(crate) fn write(directory: &Path) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
    let report = read(directory)?;
    let mut output = Output::new(directory);
    pictures(&report, &mut output)?;
    let mut body = Html::default();
    body.element("p", "kicker", "Audit by floras: private federated learning over the air");
    body.element("h1", "", &report.name);
    content(&mut body, &report, Place::Page);
    body.section("Repeat it", |section| {
        let seed = format!(
            "All random numbers derive from seed {}: the numbers are the same on any number of threads.",
            report.seed
        );
        let (where_to, command) = match &report.command {
            Some(command) => (format!("With floras {}:", report.version), command.as_str()),
            None => (
                format!(
                    "With floras {}. EXPERIMENT stands for the experiment file or preset that was audited ({}), with the options \
                     that were given:",
                    report.version, report.name
                ),
                "floras audit EXPERIMENT --out audit-again",
            ),
        };
        section.paragraph(&where_to);
        section.command(command);
        section.paragraph(&seed);
        section.around("p", "", |line| {
            line.text("All numbers: ").link(AuditReport::FILE, AuditReport::FILE).text(".");
        });
    });
    output.page(&page(&format!("Audit of {} – floras", report.name), &body))
}

/// Reads the audit of a directory.
pub(crate) fn read(directory: &Path) -> Result<AuditReport, ReportError> {
    let path = directory.join(AuditReport::FILE);
    let report: AuditReport = read_json(&path)?;
    files::check_names(&path, report.sections().iter().flat_map(Section::plots))?;
    if !report.sections().iter().flat_map(Section::pictures).all(ReconstructionAttack::is_whole) {
        return Err(ReportError::damaged(&path, "its reconstructed pictures do not have the stated size"));
    }
    Ok(report)
}

/// Draws the plots of an audit into `plots/`, and removes those of an earlier audit.
pub(crate) fn pictures(report: &AuditReport, output: &mut Output) -> Result<(), ReportError> {
    PLOTS.iter().for_each(|name| output.remove_plot(name));
    let sections = report.sections();
    sections.iter().flat_map(Section::plots).try_for_each(|panel| output.panel(panel))?;
    let pictures = sections.iter().flat_map(Section::pictures).filter(|found| !found.originals.is_empty());
    pictures.into_iter().try_for_each(|found| output.plot(&Plot::of_reconstruction(found)))
}

/// Whether an audit has its own page or is a section of a run's.
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

/// The results of an audit.
pub(crate) fn content(html: &mut Html, report: &AuditReport, place: Place) {
    html.element(
        "p",
        "lead",
        "Over the air, a base station should receive no more than a noisy sum of the clients' updates. This audit attacks simulated \
         rounds of the experiment: it guesses who took part, and compares its success with the claimed ε.",
    );
    for found in report.sections() {
        place.part(html, found.title, |part| section::show(part, &found.parts));
    }
    if !report.notes.is_empty() {
        place.part(html, "Notes", |part| {
            part.notes(&report.notes);
        });
    }
}
