//! `floras account`: every view of a federation, side by side.

use std::io::{self, Write};

use clap::Args;
use floras_sim::inquiry::{OneRound, epsilon_text};

use super::federation::{FederationOptions, as_option};
use super::report;
use crate::command::whole_number;
use crate::failure::Failure;

/// Whose privacy, with how many sequences.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras account --clip 1 --sequences 25 --per-round 20 --clients 20 --rounds 1
  floras account --clip 1 --sequences 30 --per-round 20 --clients 200 --length 32 --snr-db 20
  floras account --clip 1 --sequences 40 --per-round 20 --receiver clipped=1.0

The smaller an epsilon, the less is given away; it holds but for a chance of delta. The published
numbers are those of the paper's theorems; docs/accounting.md says why they do not hold as printed.")]
pub(crate) struct Options {
    #[command(flatten)]
    federation: FederationOptions,

    /// Spreading sequences (N), at least as many as clients a round; N − K of them stay unused.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    sequences: u64,

    /// Parameters of the model (d): adds what one round of the paper's receiver shows exactly.
    #[arg(long, value_name = "d", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    dim: Option<u64>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Accounts and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let inquiry = options.federation.inquiry();
    let account = inquiry.account(options.sequences, options.dim).map_err(as_option)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&account)?)?;
        return Ok(());
    }
    writeln!(out, "{}\n", report::description(&account.setting, account.rounds))?;
    report::views(&mut out, &account.views, report::NEEDS_RADIO)?;
    if let Some(OneRound { dim, epsilon, pure_epsilon }) = account.one_round_in_d {
        writeln!(
            out,
            "\none round with {dim} parameters, idealised: epsilon {} exactly, {} without any delta",
            epsilon_text(epsilon),
            epsilon_text(pure_epsilon)
        )?;
    }
    report::notes(&mut out, &account.notes)?;
    Ok(())
}
