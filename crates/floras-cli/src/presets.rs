//! `floras presets`: the experiments that `run` knows by name.

use std::io::{self, Write};

use clap::Args;
use floras_sim::{PRESETS, Preset, SourceError};
use serde::Serialize;

use crate::failure::Failure;
use crate::text::labelled;

/// Options of `floras presets`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:

  floras presets quick > mine.toml    a file to start an experiment of your own from")]
pub(crate) struct Options {
    /// The preset whose file is printed; all presets are listed if absent.
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// A preset in JSON.
#[derive(Debug, Serialize)]
struct Listed {
    name: &'static str,
    summary: &'static str,
    /// Whether `run` takes it if no experiment is given.
    is_default: bool,
    /// The experiment file.
    file: &'static str,
}

impl Listed {
    fn of(preset: &Preset) -> Self {
        let Preset { name, summary, text } = *preset;
        Self { name, summary, is_default: name == PRESETS[0].name, file: text }
    }
}

/// Lists the presets, or prints the file of one.
pub(crate) fn run(Options { name, json }: &Options) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let chosen = match name {
        None => None,
        Some(name) => {
            Some(Preset::find(name).ok_or_else(|| SourceError::NoSuchPreset { name: name.clone() })?)
        }
    };
    match (chosen, json) {
        (Some(preset), false) => out.write_all(preset.text.as_bytes())?,
        (Some(preset), true) => writeln!(out, "{}", serde_json::to_string(&Listed::of(preset))?)?,
        (None, true) => {
            let presets: Vec<Listed> = PRESETS.iter().map(Listed::of).collect();
            writeln!(out, "{}", serde_json::json!({ "presets": presets }))?;
        }
        (None, false) => {
            for preset in PRESETS {
                let default = if preset.name == PRESETS[0].name { " (the default)" } else { "" };
                let summary = format!("{}{default}", preset.summary);
                writeln!(out, "{}", labelled(&format!("{:<16}", preset.name), &summary))?;
            }
            writeln!(out, "\nRun one with `floras run NAME`; `floras presets NAME` prints its file.")?;
        }
    }
    Ok(())
}
