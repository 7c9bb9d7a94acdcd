//! The options that take an experiment in place of a described federation.

use std::io::{self, Write};

use clap::Args;
use floras_core::Level;
use floras_sim::ExperimentBuilder;

use super::report::unit;
use crate::command::changed;
use crate::failure::Failure;
use crate::table::count;
use crate::text;

/// An experiment of any scheme.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentOptions {
    /// An experiment file, or the name of a preset, instead of options that describe a federation.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Change a setting of the experiment, as in uplink.scheme=gaussian; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,
}

impl ExperimentOptions {
    /// The experiment, if one was given. Changes without an experiment are changes of the default preset.
    pub(crate) fn builder(&self) -> Result<Option<ExperimentBuilder>, Failure> {
        if self.experiment.is_none() && self.settings.is_empty() {
            return Ok(None);
        }
        let builder = ExperimentBuilder::open(self.experiment.as_deref())?;
        Ok(Some(changed(builder, &self.settings, (None, None, None))?))
    }
}

/// An experiment in one sentence.
pub(crate) fn describe(
    out: &mut impl Write,
    name: &str,
    (per_round, clients): (u64, u64),
    uplink: &str,
    (rounds, delta): (u64, f64),
    level: Level,
) -> io::Result<()> {
    let rounds = count(rounds as usize, "round");
    let unit = unit(level);
    let description = format!(
        "{name}: {per_round} of {clients} clients per round, {uplink}, {rounds}; delta = {delta:e}, {unit} replaced"
    );
    text::paragraph(out, &description)?;
    writeln!(out)
}
