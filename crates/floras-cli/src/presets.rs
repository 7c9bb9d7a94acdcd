//! `floras presets`: the experiments that `run` knows by name.

use std::io::{self, Write};

use clap::Args;
use floras_core::list;
use floras_sim::{PRESETS, Preset};

use crate::failure::Failure;

/// Which preset.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:

  floras presets quick > mine.toml    a file to start an experiment of your own from")]
pub(crate) struct Options {
    /// The preset whose file is printed; all presets are listed if absent.
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

/// Lists the presets, or prints the file of one.
pub(crate) fn run(Options { name }: &Options) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    if let Some(name) = name {
        let unknown = || Failure::option("the preset", list(&PRESETS.map(|preset| preset.name)), name);
        out.write_all(Preset::find(name).ok_or_else(unknown)?.text.as_bytes())?;
        return Ok(());
    }
    for (number, preset) in PRESETS.iter().enumerate() {
        let default = if number == 0 { " (the default)" } else { "" };
        writeln!(out, "{:15} {}{default}", preset.name, preset.summary)?;
    }
    writeln!(out, "\nRun one with `floras run NAME`; `floras presets NAME` prints its file.")?;
    Ok(())
}
