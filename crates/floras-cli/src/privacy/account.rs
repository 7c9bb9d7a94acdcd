//! `floras account`: the privacy of a federation in every view.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use floras_core::{Rounding, View};
use floras_sim::inquiry::{
    AccountReport, CurveKind, CurveReport, ExperimentAccount, ExperimentReport, GroupReport, NO_FINITE,
    OneRound, epsilon_text,
};
use floras_sim::{Experiment, PrivacySettings, write_atomically};

use super::experiment::{ExperimentOptions, describe};
use super::federation::{FederationOptions, as_option};
use super::report;
use crate::command::{choice, integer, number};
use crate::failure::Failure;
use crate::text;

/// The federation, and what to print about it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras account --clip 1 --sequences 25 --per-round 20 --clients 20 --rounds 1
  floras account --clip 1 --sequences 30 --per-round 20 --clients 200 --length 32 --snr-db 20
  floras account --clip 1 --sequences 40 --per-round 20 --receiver clipped=1.0
  floras account --clip 1 --sequences 25 --per-round 20 --clients 200 --level item --batch 20 \\
    --samples 200 --alpha 8
  floras account quick
  floras account quick --statement
  floras account digits-iid --set uplink.scheme=gaussian --set privacy.normalise=clip
  floras account --clip 1 --sequences 40 --per-round 20 --rounds 100 --curve tradeoff --csv
  floras account --clip 1 --sequences 40 --per-round 20 --group 3 --view idealised
  floras account --clip 1 --sequences 40 --per-round 20 --statement --view any-channel
  floras account --clip 1 --sequences 40 --per-round 20 --rounds 100 --view idealised --export a.json

The smaller epsilon is, the less leaks; the bound may fail with probability delta. The published
numbers are those of the paper's theorems, which are not proven. `floras compose` composes exported
loss distributions.")]
pub(crate) struct Options {
    #[command(flatten)]
    experiment: ExperimentOptions,

    #[command(flatten)]
    federation: FederationOptions,

    /// Spreading sequences (N), at least K; N − K of them stay unused.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = integer::<u64>)]
    sequences: Option<u64>,

    /// Parameters of the model (d): adds the exact epsilon of one round of the paper's receiver.
    #[arg(long, value_name = "d", allow_negative_numbers = true, value_parser = integer::<u64>)]
    dim: Option<u64>,

    /// Order (α) of a Rényi divergence: adds the paper's ε(α), which is not proven.
    #[arg(long, value_name = "α", allow_negative_numbers = true, value_parser = number)]
    #[arg(conflicts_with_all = ["curve", "statement"])]
    alpha: Option<f64>,

    /// The view of --curve, --group, --statement and --export.
    #[arg(long, value_parser = choice::<View>())]
    view: Option<View>,

    /// Print a curve instead: delta(epsilon), the trade-off function, or the Rényi divergence by order.
    #[arg(long, value_parser = choice::<CurveKind>())]
    curve: Option<CurveKind>,

    /// Print the curve as CSV.
    #[arg(long, requires = "curve", conflicts_with = "json")]
    csv: bool,

    /// Add the epsilon of a group of this many clients.
    #[arg(long, value_name = "k", allow_negative_numbers = true, value_parser = integer::<u64>)]
    #[arg(conflicts_with = "curve")]
    group: Option<u64>,

    /// Print a paragraph for a paper instead, about --view; if absent, privacy.view of the experiment, or else any-channel, or
    /// raw-signal with masks.
    #[arg(long, conflicts_with_all = ["curve", "group"])]
    statement: bool,

    /// Write the loss distribution of one round of --view to a file, for `floras compose` and dp-accounting.
    #[arg(long, value_name = "FILE", requires = "view")]
    export: Option<PathBuf>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Accounts and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(builder) = options.experiment.builder()? {
        return options.account_experiment(&builder.build()?);
    }
    let inquiry = options.federation.inquiry()?;
    // `check_options` requires them.
    let (sequences, view) = (options.sequences.unwrap_or_default(), options.view);
    let curves = options
        .curve
        .map(|kind| inquiry.curves(sequences, kind, view, None))
        .transpose()
        .map_err(as_option)?;
    if let (Some(file), Some(view)) = (&options.export, view) {
        let losses = inquiry.losses(sequences, view).map_err(as_option)?;
        let text = serde_json::to_string(&losses)?;
        write_atomically(file, text.as_bytes())?;
    }
    let mut out = io::stdout().lock();
    if let (Some(curves), false) = (&curves, options.json) {
        if options.csv {
            csv(&mut out, curves)?;
        } else {
            table(&mut out, curves)?;
        }
        return Ok(());
    }
    if let Some(view) = view.filter(|_| options.statement) {
        inquiry.require_view(sequences, view).map_err(as_option)?;
    }
    let mut account = inquiry.account(sequences, options.dim).map_err(as_option)?;
    account.curves = curves;
    account.published_renyi = options
        .alpha
        .map(|alpha| inquiry.published_renyi(sequences, alpha))
        .transpose()
        .map_err(as_option)?;
    account.group =
        options.group.map(|size| inquiry.group(sequences, size, view)).transpose().map_err(as_option)?;
    let quoted = view.unwrap_or_else(|| PrivacySettings::default_view(inquiry.masks.is_some()));
    account.statement = options.statement.then(|| account.paragraph(quoted));
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&account)?)?;
    } else if let Some(statement) = &account.statement {
        text::paragraph(&mut out, statement)?;
    } else {
        print(&mut out, &account)?;
    }
    Ok(())
}

impl Options {
    /// The account of an experiment of any scheme.
    fn account_experiment(&self, experiment: &Experiment) -> Result<(), Failure> {
        let account = ExperimentAccount::new(experiment)?;
        let curves = self.curve.map(|kind| account.curves(kind, self.view, None)).transpose();
        let curves = curves.map_err(as_option)?;
        if let (Some(file), Some(view)) = (&self.export, self.view) {
            let losses = account.losses(view).map_err(as_option)?;
            write_atomically(file, serde_json::to_string(&losses)?.as_bytes())?;
        }
        let mut out = io::stdout().lock();
        match curves {
            Some(curves) if self.csv => csv(&mut out, &curves)?,
            Some(curves) if !self.json => table(&mut out, &curves)?,
            curves => {
                let published_renyi = self.alpha.map(|alpha| account.published_renyi(alpha)).transpose();
                let published_renyi = published_renyi.map_err(as_option)?;
                let group = self.group.map(|size| account.group(size, self.view)).transpose();
                let group = group.map_err(as_option)?;
                let mut report = ExperimentReport { curves, published_renyi, group, ..account.report()? };
                let quoted = self.view.unwrap_or(experiment.settings().privacy.view);
                report.statement = self.statement.then(|| account.paragraph(&report, quoted));
                if self.json {
                    writeln!(out, "{}", serde_json::to_string(&report)?)?;
                } else if let Some(statement) = &report.statement {
                    text::paragraph(&mut out, statement)?;
                } else {
                    let (clients, rounds) =
                        ((report.per_round, report.clients), (report.rounds, report.delta));
                    describe(&mut out, &report.name, clients, &report.uplink, rounds, report.level)?;
                    report::views(&mut out, &report.views, &report.adversaries, report::NOT_APPLICABLE)?;
                    report::published_renyi(&mut out, report.published_renyi)?;
                    if let Some(group) = &report.group {
                        print_group(&mut out, group)?;
                    }
                    report::notes(&mut out, &report.notes)?;
                }
            }
        }
        Ok(())
    }
}

fn print(out: &mut impl Write, account: &AccountReport) -> io::Result<()> {
    text::paragraph(out, &report::description(&account.setting, account.rounds))?;
    writeln!(out)?;
    report::views(out, &account.views, &BTreeMap::new(), report::NEEDS_RADIO)?;
    report::published_renyi(out, account.published_renyi)?;
    if let Some(group) = &account.group {
        print_group(out, group)?;
    }
    if let Some(OneRound { dim, epsilon, pure_epsilon }) = account.one_round_in_d {
        let (epsilon, pure) = (epsilon_text(epsilon), epsilon_text(pure_epsilon));
        writeln!(out, "\none round with {dim} parameters, idealised:")?;
        writeln!(out, "epsilon {epsilon} exactly, {pure} at delta = 0")?;
    }
    report::notes(out, &account.notes)
}

fn print_group(out: &mut impl Write, group: &GroupReport) -> io::Result<()> {
    writeln!(out, "\n{:<13}{:<12}bound", crate::table::count(group.size as usize, "client"), "epsilon")?;
    for (view, epsilon) in &group.views {
        let view = view.replace('_', "-");
        match epsilon {
            None => writeln!(out, "{view:<13}{:<12}at this delta", NO_FINITE)?,
            Some(found) => {
                let bound = match found.bound {
                    floras_privacy::GroupBound::Scaled => "sensitivity multiplied by the size of the group",
                    floras_privacy::GroupBound::Generic => "one client after another",
                };
                writeln!(out, "{view:<13}{:<12}{bound}", epsilon_text(found.epsilon))?;
            }
        }
    }
    Ok(())
}

/// One header, one line per point.
fn csv(out: &mut impl Write, curves: &[CurveReport]) -> io::Result<()> {
    let Some(first) = curves.first() else { return Ok(()) };
    let [x, y] = first.columns;
    let event = if first.event.is_some() { ",event" } else { "" };
    writeln!(out, "view,{x},{y}{event}")?;
    for curve in curves {
        for [x, y] in &curve.points {
            let event = curve.event.map_or(String::new(), |event| format!(",{event:e}"));
            writeln!(out, "{},{x},{y:e}{event}", curve.view)?;
        }
    }
    Ok(())
}

fn table(out: &mut impl Write, curves: &[CurveReport]) -> io::Result<()> {
    for (number, curve) in curves.iter().enumerate() {
        let line = if number == 0 { "" } else { "\n" };
        let guarantee = if curve.guarantee { "" } else { ", not proven" };
        let event = match curve.event {
            Some(event) if event > 0.0 => {
                format!(", outside an event of probability {}", Rounding::Up.scientific(event, 1))
            }
            _ => String::new(),
        };
        writeln!(out, "{line}{} view{guarantee}{event}", curve.view)?;
        let [x, y] = curve.columns;
        writeln!(out, "{x:<16}{y}")?;
        let [of_x, of_y] = outward(curve);
        for [x, y] in &curve.points {
            writeln!(out, "{:<16}{}", short(*x, of_x), short(*y, of_y))?;
        }
    }
    Ok(())
}

/// The directions in which the coordinates of a point are rounded, so that the printed point is still a bound: `δ(ε)` and the
/// trade-off function fall, the first from above and the second from below, and the Rényi divergence grows with its order.
fn outward(curve: &CurveReport) -> [Rounding; 2] {
    match curve.kind {
        "delta" => [Rounding::Up, Rounding::Up],
        "tradeoff" => [Rounding::Down, Rounding::Down],
        _ => [Rounding::Down, Rounding::Up],
    }
}

/// A number for a table.
fn short(number: f64, rounding: Rounding) -> String {
    match number {
        0.0 => "0".to_owned(),
        infinite if infinite.is_infinite() => "infinite".to_owned(),
        small if small < 1e-3 => rounding.scientific(small, 3),
        usual => rounding.fixed(usual, 4),
    }
}
