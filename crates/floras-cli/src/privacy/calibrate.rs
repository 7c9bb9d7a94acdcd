//! `floras calibrate`: the setting that meets an epsilon, or the statement that none does and why.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use floras_core::{Receiver, View};
use floras_sim::inquiry::{
    CalibrationReport, ExperimentCalibration, Find, Found, Goal, calibrate_experiment, epsilon_text,
};
use indicatif::ProgressBar;

use super::experiment::ExperimentOptions;
use super::federation::{FederationOptions, as_option};
use super::report;
use crate::command::{choice, number, whole_number};
use crate::failure::Failure;

/// What to meet, and what to find.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras calibrate --epsilon 4 --clip 1 --per-round 20 --clients 200 --rounds 100
  floras calibrate --epsilon 4 --clip 1 --per-round 20 --receiver clipped --view any-channel
  floras calibrate --epsilon 8 --find rounds --clip 1 --per-round 20 --sequences 30
  floras calibrate digits-iid --epsilon 8 --find noise --view actual \\
    --set uplink.scheme=gaussian --set privacy.normalise=clip
  floras calibrate quick --epsilon 8 --find masks --set uplink.power=unit

The second finds the level of the clipped projector too, the third the most rounds, the fourth
the noise of an experiment with another scheme, and the last one the masks that hide clients from
a base station that keeps its raw samples.")]
pub(crate) struct Options {
    /// The epsilon to meet.
    #[arg(long, value_name = "ε", allow_negative_numbers = true, value_parser = number)]
    epsilon: f64,

    /// The view in which to meet it; idealised if absent, raw-signal for masks.
    #[arg(long, value_parser = choice::<View>())]
    view: Option<View>,

    /// What to find: the fewest sequences, the largest clip norm, the most rounds, the least noise of an experiment's scheme, or
    /// the masks of an experiment that leave the least noise.
    #[arg(long, value_parser = choice::<Find>(), default_value_t)]
    find: Find,

    #[command(flatten)]
    experiment: ExperimentOptions,

    #[command(flatten)]
    federation: FederationOptions,

    /// Spreading sequences (N), if something else is to be found.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    #[arg(conflicts_with_all = ["experiment", "settings"])]
    sequences: Option<u64>,

    /// The most sequences that there may be; --length if absent.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    #[arg(conflicts_with_all = ["experiment", "settings"])]
    most_sequences: Option<u64>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// Calibrates and prints.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let spinner = ProgressBar::new_spinner().with_message("looking for a setting");
    spinner.enable_steady_tick(Duration::from_millis(200));
    if let Some(builder) = options.experiment.builder()? {
        let found = calibrate_experiment(&builder, options.epsilon, options.view(), options.find);
        spinner.finish_and_clear();
        return options.print_experiment(found.map_err(as_option)?);
    }
    let report = options.federation.inquiry()?.calibrate(&options.goal());
    spinner.finish_and_clear();
    let report = report.map_err(as_option)?;
    let mut out = io::stdout().lock();
    if options.json {
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
    } else if let Some(found) = &report.found {
        options.print(&mut out, &report, found)?;
    }
    report.reason.map_or(Ok(()), |reason| Err(Failure::NothingMeets(reason)))
}

impl Options {
    fn view(&self) -> View {
        self.view.unwrap_or(match self.find {
            Find::Masks => View::RawSignal,
            Find::Sequences | Find::Clip | Find::Rounds | Find::Noise => View::Idealised,
        })
    }

    fn goal(&self) -> Goal {
        Goal {
            epsilon: self.epsilon,
            view: self.view(),
            find: self.find,
            sequences: self.sequences,
            most_sequences: self.most_sequences,
        }
    }

    fn print_experiment(&self, found: ExperimentCalibration) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            writeln!(out, "{}", serde_json::to_string(&found)?)?;
        } else if let (Some(fragment), Some(epsilon), Some(report)) =
            (&found.fragment, found.epsilon, &found.report)
        {
            let (spent, asked) = (epsilon_text(epsilon), self.epsilon);
            writeln!(
                out,
                "found: epsilon {spent} in the {} view, {asked} asked for, with\n\n{fragment}",
                found.view
            )?;
            if let Some(masks) = &found.masks {
                let (decoded, central) = (masks.decoded_noise_std, masks.central_noise_std);
                writeln!(
                    out,
                    "noise in every parameter of the sum: a standard deviation of {decoded:.3} in the median round, {:.2} times \
                     that of a trusted server\n",
                    decoded / central
                )?;
            }
            writeln!(out, "{}, {}\n", report.uplink, crate::table::count(report.rounds as usize, "round"))?;
            report::views(&mut out, &report.views, "the scheme has no statement of this kind")?;
            report::notes(&mut out, &report.notes)?;
        }
        found.reason.map_or(Ok(()), |reason| Err(Failure::NothingMeets(reason)))
    }

    fn print(&self, out: &mut impl Write, report: &CalibrationReport, found: &Found) -> io::Result<()> {
        let Found { setting, rounds, epsilon } = found;
        let what = match (self.find, setting.receiver) {
            (Find::Sequences, Receiver::Clipped(c)) => {
                let (sequences, unused) = (setting.sequences, setting.gamma());
                format!("{sequences} sequences, {unused} of them unused, with c = {:.4}", c.get())
            }
            (Find::Sequences, _) => {
                format!("{} sequences, {} of them unused", setting.sequences, setting.gamma())
            }
            (Find::Clip, _) => format!("a clip norm of {:.6}", setting.clip),
            (Find::Rounds | Find::Noise | Find::Masks, _) => crate::table::count(*rounds as usize, "round"),
        };
        let (spent, asked) = (epsilon_text(*epsilon), self.epsilon);
        writeln!(out, "found: {what}: epsilon {spent} in the {} view, {asked} asked for", report.view)?;
        if let Some(noise_std) = report.noise_std {
            writeln!(
                out,
                "noise in every parameter of the sum: a standard deviation of about {noise_std:.3}"
            )?;
        }
        writeln!(out, "\n{}\n", report::description(setting, *rounds))?;
        if let Some(views) = &report.views {
            report::views(out, views, report::NEEDS_RADIO)?;
        }
        report::notes(out, &report.notes)
    }
}
