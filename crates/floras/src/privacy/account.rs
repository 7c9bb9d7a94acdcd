//! `floras account`: every view of a federation, side by side.

use std::io::{self, Write};

use clap::Args;
use floras_privacy::cauchy::CauchyRound;
use floras_privacy::{Account, Receiver, Setting, Views};
use serde::Serialize;

use super::federation::{FederationOptions, ReceiverChoice};
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

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    gamma: u64,
    rounds: u64,
    delta: f64,
    level: &'static str,
    clip: f64,
    sequences: u64,
    per_round: u64,
    clients: u64,
    receiver: String,
    views: Views,
    /// One round exactly in `d` dimensions.
    one_round_in_d: Option<OneRound>,
    notes: Vec<String>,
}

/// One round of the paper's receiver at high SNR, exactly in `d` dimensions.
#[derive(Debug, Serialize)]
struct OneRound {
    dim: u64,
    epsilon: f64,
    /// Without any δ.
    pure_epsilon: f64,
}

/// Accounts and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let ReceiverChoice::Given(receiver) = options.federation.receiver else {
        let allowed = "paper, mmse or clipped=c with a number c";
        return Err(Failure::Option { option: "--receiver", allowed, value: "clipped".to_owned() });
    };
    options.federation.check_radio()?;
    let setting = options.federation.setting(options.sequences, receiver)?;
    let rounds = options.federation.rounds.unwrap_or(1);
    let views = Account::of(&setting)?.views(rounds)?;
    let notes = report::notes(&setting, &views);
    let one_round = options.one_round(&setting)?;
    let mut out = io::stdout().lock();
    if options.json {
        let report = Report {
            gamma: setting.gamma(),
            rounds,
            delta: setting.delta,
            level: options.federation.level_name(),
            clip: setting.clip,
            sequences: setting.sequences,
            per_round: setting.per_round,
            clients: setting.clients,
            receiver: report::receiver(setting.receiver),
            views,
            one_round_in_d: one_round,
            notes,
        };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    writeln!(out, "{}\n", report::description(&setting, rounds))?;
    report::views(&mut out, &views, report::NEEDS_RADIO)?;
    if let Some(OneRound { dim, epsilon, pure_epsilon }) = one_round {
        writeln!(
            out,
            "\none round with {dim} parameters, idealised: epsilon {} exactly, {} without any delta",
            report::epsilon_text(epsilon),
            report::epsilon_text(pure_epsilon)
        )?;
    }
    for (number, note) in notes.iter().enumerate() {
        let line = if number == 0 { "\n" } else { "" };
        writeln!(out, "{line}note: {note}")?;
    }
    Ok(())
}

impl Options {
    fn one_round(&self, setting: &Setting) -> Result<Option<OneRound>, Failure> {
        let Some(dim) = self.dim else { return Ok(None) };
        if setting.receiver != Receiver::Paper || setting.gamma() == 0 {
            let allowed = "given with the paper's receiver and at least one unused sequence";
            return Err(Failure::Option { option: "--dim", allowed, value: dim.to_string() });
        }
        let round = CauchyRound::new(setting.sensitivity() / 2.0, setting.gamma() as f64, dim)?;
        let epsilon = round.epsilon(setting.delta)?;
        Ok(Some(OneRound { dim, epsilon, pure_epsilon: round.pure_epsilon() }))
    }
}
