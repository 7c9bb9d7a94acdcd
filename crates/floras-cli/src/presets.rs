//! `floras presets`: the experiments that `run` knows by name.

use std::io::{self, Write};

use floras_sim::PRESETS;

use crate::failure::Failure;

/// Lists the presets.
pub(crate) fn run() -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    for (number, preset) in PRESETS.iter().enumerate() {
        let default = if number == 0 { " (the default)" } else { "" };
        writeln!(out, "{:15} {}{default}", preset.name, preset.summary)?;
    }
    writeln!(out, "\nRun one with `floras run NAME`; its settings are in experiments/NAME.toml.")?;
    Ok(())
}
