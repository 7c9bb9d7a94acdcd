//! Writes the files of a report.

use std::fs;
use std::path::{Path, PathBuf};

use floras_sim::figure::Panel;
use floras_sim::{SimError, write_atomically};

use crate::error::ReportError;
use crate::plot::Plot;

/// Rejects panels whose names would lead out of the directory of the plots.
pub(crate) fn check_names<'p>(
    path: &Path,
    panels: impl IntoIterator<Item = &'p Panel>,
) -> Result<(), ReportError> {
    match panels.into_iter().find(|panel| !is_file_name(&panel.name)) {
        None => Ok(()),
        Some(panel) => {
            Err(ReportError::damaged(path, format!("\"{}\" is not a valid name of a plot", panel.name)))
        }
    }
}

fn is_file_name(name: &str) -> bool {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    (1..=100).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

/// The page of a directory.
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

    /// Writes a plot as `plots/NAME` with every file extension.
    pub(crate) fn plot(&mut self, plot: &Plot) -> Result<(), ReportError> {
        let plots = self.directory.join("plots");
        fs::create_dir_all(&plots).map_err(|error| {
            ReportError::Write(SimError::File { action: "create", path: plots.clone(), error })
        })?;
        for (ending, bytes) in Plot::ENDINGS.iter().zip(plot.files()?) {
            let path = plots.join(format!("{}.{ending}", plot.name()));
            write_atomically(&path, &bytes).map_err(ReportError::Write)?;
            self.plots.push(path);
        }
        Ok(())
    }

    /// Writes the plot of a panel.
    pub(crate) fn panel(&mut self, panel: &Panel) -> Result<(), ReportError> {
        self.plot(&Plot::of_panel(panel))
    }

    /// Removes a plot that was drawn from other results.
    pub(crate) fn remove_plot(&self, name: &str) {
        for ending in Plot::ENDINGS {
            // The file usually does not exist. One that cannot be removed is only outdated.
            let _ = fs::remove_file(self.directory.join("plots").join(format!("{name}.{ending}")));
        }
    }

    /// The plots that were written.
    pub(crate) fn into_plots(self) -> Vec<PathBuf> {
        self.plots
    }

    /// Writes `report.html`; called last.
    pub(crate) fn page(self, text: &str) -> Result<(PathBuf, Vec<PathBuf>), ReportError> {
        let path = page(&self.directory);
        write_atomically(&path, text.as_bytes()).map_err(ReportError::Write)?;
        Ok((path, self.plots))
    }
}
