//! `floras calibrate`: the setting that meets an epsilon, or why no setting does.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use floras_core::{Choice, Receiver, View};
use floras_sim::PrivacySettings;
use floras_sim::inquiry::{
    CalibrationReport, ExperimentCalibration, Find, Found, Goal, calibrate_experiment, epsilon_text,
};
use indicatif::{ProgressBar, ProgressStyle};

use super::experiment::ExperimentOptions;
use super::federation::{FederationOptions, as_option};
use super::report;
use crate::command::{choice, integer, number};
use crate::failure::Failure;
use crate::text;

/// The epsilon to meet, and what to find.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras calibrate private --epsilon 4 --find masks
  floras calibrate --epsilon 4 --clip 1 --per-round 20 --receiver clipped --toml > mine.toml
  floras calibrate --epsilon 4 --clip 1 --per-round 20 --clients 200 --rounds 100 --view idealised
  floras calibrate --epsilon 20 --find rounds --clip 1 --per-round 20 --sequences 64 \\
    --receiver clipped=2
  floras calibrate digits-iid --epsilon 8 --find noise --set uplink.scheme=gaussian \\
    --set privacy.normalise=clip

The first finds masks that hide clients from a base station that keeps its raw samples, the second
the level of the clipped projector too, the fourth the number of rounds, and the last one the noise
of another scheme. --toml prints a file for `floras run` and `floras account`. The exit code is 1 if
no setting meets epsilon.")]
pub(crate) struct Options {
    /// The epsilon to meet.
    #[arg(long, value_name = "ε", allow_negative_numbers = true, value_parser = number)]
    epsilon: f64,

    /// The view in which to meet it; if absent, privacy.view of the experiment, or else any-channel, or raw-signal with masks.
    #[arg(long, value_parser = choice::<View>())]
    view: Option<View>,

    /// What to find: the minimum number of sequences, the largest clip norm, the maximum number of rounds, the least noise of an
    /// experiment's scheme or, if it has none, of each client, or the masks of an experiment with the least noise in the decoded sum.
    #[arg(long, value_parser = choice::<Find>(), default_value_t)]
    find: Find,

    #[command(flatten)]
    experiment: ExperimentOptions,

    #[command(flatten)]
    federation: FederationOptions,

    /// Spreading sequences (N), if something else is to be found.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = integer::<u64>)]
    sequences: Option<u64>,

    /// Maximum number of sequences; --length if absent.
    #[arg(long, alias = "most-sequences", value_name = "N", allow_negative_numbers = true, value_parser = integer::<u64>)]
    max_sequences: Option<u64>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,

    /// Print the found experiment as a file for `floras run` and `floras account`, and nothing else.
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

/// Calibrates and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    if let Some(builder) = options.experiment.builder()? {
        let view = options.view(builder.quoted_view());
        let spinner = options.spinner(view);
        let name = builder.get("name").map_or_else(|| "experiment".to_owned(), |name| name.replace('"', ""));
        let found = calibrate_experiment(&builder, options.epsilon, view, options.find);
        spinner.finish_and_clear();
        return options.print_experiment(&name, found.map_err(as_option)?);
    }
    let inquiry = options.federation.inquiry()?;
    let goal = options.goal(PrivacySettings::default_view(inquiry.masks.is_some()));
    let spinner = options.spinner(goal.view);
    let report = inquiry.calibrate(&goal);
    spinner.finish_and_clear();
    let report = report.map_err(as_option)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else if let (Some(fragment), true) = (&report.fragment, options.toml) {
        write!(out, "{fragment}")?;
    } else if let Some(found) = &report.found {
        options.print(&mut out, &report, found)?;
    }
    report.reason.map_or(Ok(()), |reason| Err(Failure::NothingMeets(reason)))
}

impl Options {
    /// The view to meet; masks are searched against an adversary who sees every symbol.
    fn view(&self, quoted: View) -> View {
        self.view.unwrap_or(match self.find {
            Find::Masks => View::RawSignal,
            Find::Sequences | Find::Clip | Find::Rounds | Find::Noise => quoted,
        })
    }

    /// Shows on a terminal that the search is running.
    fn spinner(&self, view: View) -> ProgressBar {
        let what = format!("searching {}: ε ≤ {} in the {view} view", self.find.label(), self.epsilon);
        let style = ProgressStyle::with_template("{spinner} {msg}, {elapsed}");
        let spinner = ProgressBar::new_spinner().with_message(what);
        spinner.set_style(style.expect("the template is well-formed"));
        spinner.enable_steady_tick(Duration::from_millis(200));
        spinner
    }

    fn goal(&self, quoted: View) -> Goal {
        Goal {
            epsilon: self.epsilon,
            view: self.view(quoted),
            find: self.find,
            sequences: self.sequences,
            max_sequences: self.max_sequences,
        }
    }

    fn print_experiment(&self, name: &str, found: ExperimentCalibration) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&found)?)?;
        } else if let (Some(file), true) = (&found.file, self.toml) {
            write!(out, "{file}")?;
        } else if let (Some(fragment), Some(epsilon), Some(report)) =
            (&found.fragment, found.epsilon, &found.report)
        {
            let (spent, asked) = (epsilon_text(epsilon), self.epsilon);
            let view = found.view;
            writeln!(
                out,
                "found: epsilon {spent} in the {view} view, {asked} asked for, with\n\n{fragment}"
            )?;
            if let Some(masks) = &found.masks {
                let (decoded, central) = (masks.decoded_noise_std, masks.central_noise_std);
                let noise = format!(
                    "noise in every parameter of the sum: standard deviation {decoded:.3} in a typical round, {:.2} times \
                     that of a trusted server",
                    decoded / central
                );
                text::paragraph(&mut out, &noise)?;
                writeln!(out)?;
            }
            let rounds = crate::table::count(report.rounds as usize, "round");
            text::paragraph(&mut out, &format!("{name}: {}, {rounds}", report.uplink))?;
            writeln!(out)?;
            report::views(&mut out, &report.views, &report.adversaries, report::NOT_APPLICABLE)?;
            report::notes(&mut out, &report.notes)?;
        }
        found.reason.map_or(Ok(()), |reason| Err(Failure::NothingMeets(reason)))
    }

    fn print(&self, out: &mut impl Write, report: &CalibrationReport, found: &Found) -> io::Result<()> {
        let Found { setting, rounds, epsilon } = found;
        let what = match (self.find, setting.receiver) {
            (Find::Sequences, Receiver::Clipped(c)) => {
                let (sequences, unused) = (setting.sequences, setting.gamma());
                let sequences = crate::table::count(sequences as usize, "sequence");
                format!("{sequences}, {unused} of them unused, with c = {:.4}", c.get())
            }
            (Find::Sequences, _) => {
                let sequences = crate::table::count(setting.sequences as usize, "sequence");
                format!("{sequences}, {} of them unused", setting.gamma())
            }
            (Find::Clip, _) => format!("a clip norm of {:.6}", setting.clip),
            (Find::Rounds | Find::Noise | Find::Masks, _) => crate::table::count(*rounds as usize, "round"),
        };
        let (spent, asked) = (epsilon_text(*epsilon), self.epsilon);
        let (view, fragment) = (report.view, report.fragment.as_deref().unwrap_or_default());
        let line = format!("found: {what}; epsilon {spent} in the {view} view, {asked} asked for");
        text::paragraph(out, &line)?;
        if let Some(noise_std) = report.noise_std {
            writeln!(out, "noise in every parameter of the sum: standard deviation {noise_std:.3}")?;
        }
        writeln!(out, "\n{fragment}")?;
        text::paragraph(out, &report::description(setting, *rounds))?;
        writeln!(out)?;
        if let Some(views) = &report.views {
            report::views(out, views, &BTreeMap::new(), report::NEEDS_RADIO)?;
        }
        report::notes(out, &report.notes)
    }
}
