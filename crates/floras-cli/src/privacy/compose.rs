//! `floras compose`: the epsilon of several trainings together.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_privacy::LossFile;
use floras_sim::inquiry::{self, epsilon_text};

use super::federation::as_option;
use crate::command::number;
use crate::failure::Failure;

/// Options of `floras compose`.
#[derive(Debug, Args)]
#[command(after_help = "\
Example:

  floras account --clip 1 --sequences 40 --per-round 20 --rounds 100 --view idealised --export a.json
  floras account --clip 1 --sequences 60 --per-round 20 --rounds 50 --view idealised --export b.json
  floras compose a.json b.json --delta 1e-5

All trainings must be about the same neighbours and the same level.")]
pub(crate) struct Options {
    /// Loss distributions that `floras account --export` wrote; a file that is given twice counts twice.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Probability with which the bound may fail (δ).
    #[arg(long, value_name = "δ", allow_negative_numbers = true, value_parser = number, default_value = "1e-5")]
    delta: f64,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Composes and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let files = options.files.iter().map(|file| read(file)).collect::<Result<Vec<LossFile>, Failure>>()?;
    let joint = inquiry::compose(&files, options.delta).map_err(as_option)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&joint)?)?;
        return Ok(());
    }
    let trainings = crate::table::count(files.len(), "training");
    let rounds = crate::table::count(joint.rounds as usize, "round");
    match joint.epsilon {
        Some(epsilon) => {
            let guarantee = if joint.guarantee { "" } else { " (not proven)" };
            writeln!(
                out,
                "{trainings}, {rounds}: epsilon {} at delta = {:e}{guarantee}",
                epsilon_text(epsilon),
                joint.delta
            )?;
        }
        None => writeln!(out, "{trainings}, {rounds}: {}", joint.reason.unwrap_or_default())?,
    }
    let mut views = joint.views;
    views.dedup();
    writeln!(out, "view: {}", views.join(", "))?;
    if !joint.assumptions.is_empty() {
        let assumptions = format!("it assumes: {}", joint.assumptions.join("; "));
        writeln!(out, "{}", crate::text::note(&assumptions))?;
    }
    Ok(())
}

fn read(file: &Path) -> Result<LossFile, Failure> {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => inquiry::read_losses(&name, &text).map_err(as_option),
        Err(error) => Err(Failure::Usage(format!("cannot read {name}: {error}"))),
    }
}
