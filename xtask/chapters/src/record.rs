//! Recorded results of `floras reproduce` under `docs/reproduction`.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use floras_report::plot::Plot;
use floras_sim::figure::{Panel, Reproduction};

use crate::shell;

const DIRECTORY: &str = "docs/reproduction";

/// Where the numbers come from.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The directory of a finished `floras reproduce` or `floras benchmark` with this chapter's results; they are computed if absent.
    #[arg(long, value_name = "DIR")]
    pub(crate) from: Option<PathBuf>,

    /// Write the chapter and its pictures again from the recorded numbers, without running anything.
    #[arg(long, conflicts_with = "from")]
    pub(crate) recorded: bool,
}

/// The recorded results of some figures.
pub(crate) struct Record {
    /// The figures, as an argument of `floras reproduce`.
    pub(crate) figures: &'static str,
    /// The name of the file under `docs/reproduction`.
    pub(crate) file: &'static str,
}

impl Record {
    /// Replaces the recorded numbers, unless the options say otherwise.
    pub(crate) fn update(&self, options: &Options) -> Result<()> {
        let root = shell::root();
        if options.recorded {
            return Ok(());
        }
        let made = match &options.from {
            Some(directory) => directory.clone(),
            None => {
                let directory = root.join("target").join(format!("reproduction-{}", self.figures));
                let program = shell::release_program()?;
                shell::run(
                    shell::program(program).args(["reproduce", self.figures, "--out"]).arg(&directory),
                )?;
                directory
            }
        };
        let directory = root.join(DIRECTORY);
        fs::create_dir_all(&directory)?;
        fs::copy(made.join(Reproduction::FILE), directory.join(self.file))
            .with_context(|| format!("{} holds no reproduction", made.display()))?;
        Ok(())
    }

    /// The recorded numbers.
    pub(crate) fn read(&self) -> Result<Reproduction> {
        let path = shell::root().join(DIRECTORY).join(self.file);
        let text = fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("{}", path.display()))
    }
}

/// Draws the pictures of all panels.
pub(crate) fn draw(made: &Reproduction) -> Result<()> {
    for panel in made.figures.iter().flat_map(|figure| &figure.panels) {
        let path = picture(panel);
        fs::write(&path, Plot::of_panel(panel).svg())
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// The file of a panel's picture.
pub(crate) fn picture(panel: &Panel) -> PathBuf {
    shell::root().join(DIRECTORY).join(format!("{}.svg", panel.name))
}
