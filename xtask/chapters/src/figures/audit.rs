//! Pictures of the chapter on the audit: what updates show, and which sequences are found.

use anyhow::{Context, Result};
use floras_audit::{Effort, pictures_from_updates, sequences_in_use};
use floras_report::plot::Plot;
use floras_sim::{Experiment, Federation, Preset};

use super::File;

/// One round with updates of norm 1.
const AUDIT: &str = "audit";
/// The paper's own scale, updates of norm √d.
const PAPER: &str = "fig5";
/// What the chapter shows of the search for sequences.
const PANELS: [&str; 2] = ["sequences-roc", "sequences-snr"];

/// Attacks both presets as `floras audit` does, and draws what it sees.
pub(super) fn all() -> Result<Vec<File>> {
    let (audit, paper) = (federation(AUDIT)?, federation(PAPER)?);
    let mut files = vec![
        reconstruction("audit-reconstruction", &audit)?,
        reconstruction("audit-reconstruction-fig5", &paper)?,
    ];
    let found = sequences_in_use(&audit, Effort::default())?.context("nothing hides the sequences")?;
    for name in PANELS {
        let panel = found.panels.iter().find(|panel| panel.name == name);
        let panel = panel.with_context(|| format!("the audit draws no {name}"))?;
        files.push(File { name: format!("audit-{name}"), svg: Plot::of_panel(panel).svg() });
    }
    Ok(files)
}

fn federation(preset: &str) -> Result<Federation> {
    let preset = Preset::find(preset).with_context(|| format!("there is no preset {preset}"))?;
    Ok(Federation::new(&Experiment::parse(preset.name, preset.text)?)?)
}

fn reconstruction(name: &str, federation: &Federation) -> Result<File> {
    let seen = pictures_from_updates(federation)?.context("the updates show no pictures")?;
    // The chapter quotes them.
    for row in &seen.rows {
        println!("{name}: {}: mean correlation {:.3}", row.name(), row.mean_correlation());
    }
    Ok(File { name: name.to_owned(), svg: Plot::of_reconstruction(&seen).svg() })
}
