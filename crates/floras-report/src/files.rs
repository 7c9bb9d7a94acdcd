//! Writing what a report consists of.

use std::fs;
use std::path::{Path, PathBuf};

use floras_audit::ReconstructionAttack;
use floras_sim::figure::Panel;
use floras_sim::{SimError, write_atomically};

use crate::error::ReportError;
use crate::plot::{self, Holdings};

/// Refuses panels that would be written elsewhere than into the directory of the plots.
pub(crate) fn check_names<'p>(
    path: &Path,
    panels: impl IntoIterator<Item = &'p Panel>,
) -> Result<(), ReportError> {
    match panels.into_iter().find(|panel| !is_file_name(&panel.name)) {
        None => Ok(()),
        Some(panel) => {
            Err(ReportError::damaged(path, format!("\"{}\" is no name for a picture", panel.name)))
        }
    }
}

fn is_file_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=100).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

/// Where the page of a directory is.
pub(crate) fn page(directory: &Path) -> PathBuf {
    directory.join("report.html")
}

/// Writes pages and pictures into a directory.
pub(crate) struct Output {
    directory: PathBuf,
    plots: Vec<PathBuf>,
}

impl Output {
    pub(crate) fn new(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), plots: Vec::new() }
    }

    /// Writes a panel as `plots/NAME.svg` and `plots/NAME.png`.
    pub(crate) fn panel(&mut self, panel: &Panel) -> Result<(), ReportError> {
        let svg = plot::svg(panel);
        self.picture(&panel.name, &svg, &plot::png(panel)?)
    }

    /// Writes `plots/labels.svg` and `.png`.
    pub(crate) fn holdings(&mut self, holdings: &Holdings) -> Result<(), ReportError> {
        let svg = plot::holdings_svg(holdings);
        self.picture("labels", &svg, &plot::holdings_png(holdings)?)
    }

    /// Writes `plots/reconstruction.svg` and `.png`.
    pub(crate) fn reconstruction(&mut self, attack: &ReconstructionAttack) -> Result<(), ReportError> {
        let svg = plot::reconstruction_svg(attack);
        self.picture("reconstruction", &svg, &plot::reconstruction_png(attack)?)
    }

    /// Removes a picture that was drawn from other results.
    pub(crate) fn forget(&self, name: &str) {
        for ending in ["svg", "png"] {
            // Mostly there is none. One that cannot be removed is only stale.
            let _ = fs::remove_file(self.directory.join("plots").join(format!("{name}.{ending}")));
        }
    }

    fn picture(&mut self, name: &str, svg: &str, png: &[u8]) -> Result<(), ReportError> {
        let plots = self.directory.join("plots");
        fs::create_dir_all(&plots).map_err(|error| {
            ReportError::Write(SimError::File { action: "create", path: plots.clone(), error })
        })?;
        for (ending, bytes) in [("svg", svg.as_bytes()), ("png", png)] {
            let path = plots.join(format!("{name}.{ending}"));
            write_atomically(&path, bytes).map_err(ReportError::Write)?;
            self.plots.push(path);
        }
        Ok(())
    }

    /// Writes `report.html`, which comes last.
    pub(crate) fn page(self, text: &str) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
        let path = page(&self.directory);
        write_atomically(&path, text.as_bytes()).map_err(ReportError::Write)?;
        Ok((path, self.plots))
    }
}
