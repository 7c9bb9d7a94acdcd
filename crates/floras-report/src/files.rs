//! Reading what a run has left, and writing what a report consists of.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use floras_sim::audit::ReconstructionAttack;
use floras_sim::figure::Panel;
use floras_sim::{RoundMetrics, write_atomically};
use serde::de::DeserializeOwned;

use crate::error::ReportError;
use crate::plot::{self, Holdings};

/// The text of a file that must be there.
pub(crate) fn text(path: &Path) -> Result<String, ReportError> {
    let bytes = fs::read(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => ReportError::Missing { path: path.to_path_buf() },
        _ => ReportError::Unreadable { path: path.to_path_buf(), error },
    })?;
    String::from_utf8(bytes).map_err(|_| ReportError::damaged(path, "it is not text"))
}

/// The content of a JSON file that must be there.
pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ReportError> {
    serde_json::from_str(&text(path)?).map_err(|error| ReportError::damaged(path, error))
}

/// The content of a JSON file, if it is there.
pub(crate) fn json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, ReportError> {
    match json(path) {
        Err(ReportError::Missing { .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// The lines of `metrics.jsonl`. In a run that is not complete, the last one may be torn.
pub(crate) fn metrics(path: &Path, may_be_torn: bool) -> Result<Vec<RoundMetrics>, ReportError> {
    let text = text(path)?;
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(line) => lines.push(line),
            Err(_) if may_be_torn && !text.ends_with('\n') && number + 1 == text.lines().count() => {}
            Err(error) => return Err(ReportError::damaged(path, format!("line {}: {error}", number + 1))),
        }
    }
    Ok(lines)
}

/// Refuses panels that would be written elsewhere than into the folder of the plots.
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

/// Writes pages and pictures into a directory.
pub(crate) struct Output {
    folder: PathBuf,
    plots: Vec<PathBuf>,
}

impl Output {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf(), plots: Vec::new() }
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
            let _ = fs::remove_file(self.folder.join("plots").join(format!("{name}.{ending}")));
        }
    }

    fn picture(&mut self, name: &str, svg: &str, png: &[u8]) -> Result<(), ReportError> {
        let plots = self.folder.join("plots");
        fs::create_dir_all(&plots).map_err(|error| ReportError::Folder { path: plots.clone(), error })?;
        for (ending, bytes) in [("svg", svg.as_bytes()), ("png", png)] {
            let path = plots.join(format!("{name}.{ending}"));
            write_atomically(&path, bytes).map_err(ReportError::Write)?;
            self.plots.push(path);
        }
        Ok(())
    }

    /// Writes `report.html`, which comes last.
    pub(crate) fn page(self, text: &str) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
        let path = self.folder.join("report.html");
        write_atomically(&path, text.as_bytes()).map_err(ReportError::Write)?;
        Ok((path, self.plots))
    }
}
