//! `floras calibrate`: the setting that meets an epsilon, or the statement that none does and why.

use std::io::{self, Write};
use std::time::Duration;

use clap::{Args, ValueEnum};
use floras_privacy::calibrate::{self, Calibrated, Target};
use floras_privacy::{Account, PrivacyError, Receiver, View, Views};
use indicatif::ProgressBar;
use serde::Serialize;

use super::federation::{FederationOptions, ReceiverChoice};
use super::report;
use crate::command::{number, whole_number};
use crate::failure::Failure;

/// Without a length, no more sequences are looked at; fewer if the clipped projector's level is to be found too.
const MOST_SEQUENCES: u64 = 1_000_000;
const MOST_SEQUENCES_FOR_LEVEL: u64 = 1024;

/// Without a number of rounds, no more are looked at.
const MOST_ROUNDS: u64 = 1_000_000;

/// What to meet, and what to find.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras calibrate --epsilon 4 --clip 1 --per-round 20 --clients 200 --rounds 100
  floras calibrate --epsilon 4 --clip 1 --per-round 20 --receiver clipped --view any-channel
  floras calibrate --epsilon 8 --find rounds --clip 1 --per-round 20 --sequences 30

The second finds the level of the clipped projector too, the last one the most rounds.")]
pub(crate) struct Options {
    /// The epsilon to meet.
    #[arg(long, value_name = "ε", allow_negative_numbers = true, value_parser = number)]
    epsilon: f64,

    /// The view in which to meet it.
    #[arg(long, value_enum, default_value_t = ViewName::Idealised)]
    view: ViewName,

    /// What to find: the fewest sequences, the largest clip norm, or the most rounds.
    #[arg(long, value_enum, default_value_t = Find::Sequences)]
    find: Find,

    #[command(flatten)]
    federation: FederationOptions,

    /// Spreading sequences (N), if something else is to be found.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    sequences: Option<u64>,

    /// The most sequences that there may be; --length if absent.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    most_sequences: Option<u64>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ViewName {
    Idealised,
    Actual,
    AnyChannel,
    Published,
    RawSignal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Find {
    Sequences,
    Clip,
    Rounds,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    /// `null` if nothing meets the epsilon.
    sequences: Option<u64>,
    gamma: Option<u64>,
    view: &'static str,
    /// What the found setting has.
    epsilon: Option<f64>,
    /// What was asked for.
    epsilon_asked: f64,
    clip: Option<f64>,
    rounds: Option<u64>,
    receiver: Option<String>,
    /// Standard deviation of the noise in every parameter of the sum, around which it concentrates, for the clipped projector.
    noise_std: Option<f64>,
    delta: f64,
    level: &'static str,
    views: Option<Views>,
    notes: Vec<String>,
    /// Why nothing meets it.
    reason: Option<String>,
}

/// Calibrates and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let spinner = ProgressBar::new_spinner().with_message("looking for a setting");
    spinner.enable_steady_tick(Duration::from_millis(200));
    let found = options.find();
    spinner.finish_and_clear();
    match found? {
        Ok(found) => options.print(&found),
        Err(reason) => options.print_none(reason),
    }
}

impl Options {
    fn view(&self) -> View {
        match self.view {
            ViewName::Idealised => View::Idealised,
            ViewName::Actual => View::Actual,
            ViewName::AnyChannel => View::AnyChannel,
            ViewName::Published => View::Published,
            ViewName::RawSignal => View::RawSignal,
        }
    }

    /// What meets the epsilon, or why nothing does.
    fn find(&self) -> Result<Result<Calibrated, String>, Failure> {
        match self.search() {
            Ok(found) => Ok(Ok(found)),
            Err(Failure::Privacy(error @ PrivacyError::NothingMeets { .. })) => Ok(Err(error.to_string())),
            Err(other) => Err(other),
        }
    }

    fn search(&self) -> Result<Calibrated, Failure> {
        let federation = &self.federation;
        let most_rounds = if self.find == Find::Rounds { MOST_ROUNDS } else { 1 };
        let rounds = federation.rounds.unwrap_or(most_rounds);
        let target = Target { view: self.view(), epsilon: self.epsilon, rounds };
        if self.find == Find::Sequences {
            if let Some(sequences) = self.sequences {
                let allowed = "left out, or --find clip or rounds";
                return Err(Failure::Option { option: "--sequences", allowed, value: sequences.to_string() });
            }
            let most = |otherwise: u64| self.most_sequences.or(federation.length).unwrap_or(otherwise);
            let smallest = federation.per_round;
            return Ok(match federation.receiver {
                ReceiverChoice::Given(receiver) => {
                    let setting = federation.setting(smallest, receiver)?;
                    calibrate::fewest_sequences(&setting, target, most(MOST_SEQUENCES))?
                }
                ReceiverChoice::ClippedSomehow => {
                    let setting = federation.setting(smallest, Receiver::Clipped(1.0))?;
                    let most = most(smallest.saturating_add(MOST_SEQUENCES_FOR_LEVEL));
                    calibrate::least_noise(&setting, target, most)?
                }
            });
        }
        let ReceiverChoice::Given(receiver) = federation.receiver else {
            let allowed = "paper, mmse or clipped=c with a number c, unless sequences are to be found";
            return Err(Failure::Option { option: "--receiver", allowed, value: "clipped".to_owned() });
        };
        let Some(sequences) = self.sequences else {
            let allowed = "given, unless the sequences are what is to be found";
            return Err(Failure::Option { option: "--sequences", allowed, value: "absent".to_owned() });
        };
        let setting = federation.setting(sequences, receiver)?;
        Ok(match self.find {
            Find::Clip => calibrate::largest_clip(&setting, target)?,
            Find::Sequences | Find::Rounds => calibrate::most_rounds(&setting, target)?,
        })
    }

    fn print(&self, found: &Calibrated) -> Result<(), Failure> {
        let Calibrated { setting, rounds, epsilon } = found;
        let views = Account::of(setting)?.views(*rounds)?;
        let notes = report::notes(setting, &views);
        let noise_std = setting.noise_std();
        let mut out = io::stdout().lock();
        if self.json {
            let report = Report {
                sequences: Some(setting.sequences),
                gamma: Some(setting.gamma()),
                view: self.view().name(),
                epsilon: Some(*epsilon),
                epsilon_asked: self.epsilon,
                clip: Some(setting.clip),
                rounds: Some(*rounds),
                receiver: Some(report::receiver(setting.receiver)),
                noise_std,
                delta: setting.delta,
                level: self.federation.level_name(),
                views: Some(views),
                notes,
                reason: None,
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
            return Ok(());
        }
        let what = match (self.find, setting.receiver) {
            (Find::Sequences, Receiver::Clipped(c)) => {
                format!(
                    "{} sequences, {} of them unused, with c = {c:.4}",
                    setting.sequences,
                    setting.gamma()
                )
            }
            (Find::Sequences, _) => {
                format!("{} sequences, {} of them unused", setting.sequences, setting.gamma())
            }
            (Find::Clip, _) => format!("a clip norm of {:.6}", setting.clip),
            (Find::Rounds, _) => crate::table::count(*rounds as usize, "round"),
        };
        writeln!(
            out,
            "found: {what}: epsilon {} in the {} view, {} asked for",
            report::epsilon_text(*epsilon),
            self.view(),
            self.epsilon
        )?;
        if let Some(noise_std) = noise_std {
            writeln!(
                out,
                "noise in every parameter of the sum: a standard deviation of about {noise_std:.3}"
            )?;
        }
        writeln!(out, "\n{}\n", report::description(setting, *rounds))?;
        report::views(&mut out, &views, report::NEEDS_RADIO)?;
        for (number, note) in notes.iter().enumerate() {
            let line = if number == 0 { "\n" } else { "" };
            writeln!(out, "{line}note: {note}")?;
        }
        Ok(())
    }

    /// That nothing meets the epsilon is an answer too.
    fn print_none(&self, reason: String) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if !self.json {
            writeln!(out, "{reason}")?;
            return Ok(());
        }
        let setting = self.federation.setting(self.federation.per_round, Receiver::Paper)?;
        let report = Report {
            sequences: None,
            gamma: None,
            view: self.view().name(),
            epsilon: None,
            epsilon_asked: self.epsilon,
            clip: None,
            rounds: None,
            receiver: None,
            noise_std: None,
            delta: setting.delta,
            level: self.federation.level_name(),
            views: None,
            notes: Vec::new(),
            reason: Some(reason),
        };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        Ok(())
    }
}
