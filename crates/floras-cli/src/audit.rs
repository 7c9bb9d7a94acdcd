//! `floras audit`: attack an experiment and measure what leaks.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use floras_audit::{AuditReport, Cell, Effort, Part, Stage, audit};
use floras_core::Rounding;
use floras_sim::number::{share, signed};
use floras_sim::{Experiment, ExperimentBuilder, Federation};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::command::{changed, integer, number, thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::privacy::epsilon_text;
use crate::report;
use crate::run::print_status;
use crate::table::{columns, count, description};
use crate::text;

/// The preset that is attacked if no experiment is given.
const DEFAULT: &str = "audit";

/// The experiment and the effort.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras audit                                  one round of the paper's scheme, in about a minute
  floras audit quick --set uplink.snr_db=0      a preset with one setting changed
  floras audit runs/quick/experiment.toml --out runs/quick
                                                an existing run; its report gets a section
  floras audit my.toml --games 10000000 --json  closer bounds, as JSON

Every lower bound is measured: the true epsilon is not smaller, with the stated confidence.
A lower bound above a claimed epsilon refutes the claim; a lower bound below it proves nothing.")]
pub(crate) struct Options {
    /// An experiment file, or the name of a preset; the preset `audit` if absent.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Change a setting, as in uplink.sequences=30; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,

    /// Learning rounds that the adversaries observe.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>)]
    rounds: Option<u32>,

    /// The seed of all randomness.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u64>)]
    seed: Option<u64>,

    /// Games for each row of the table; more give closer lower bounds.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>, default_value_t = Effort::default().games())]
    games: u32,

    /// Complete trainings for each canary that needs them, if there is more than one round; 0 for none.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>, default_value_t = Effort::default().trainings())]
    trainings: u32,

    /// The confidence with which all lower bounds of the table hold together.
    #[arg(long, value_name = "p", allow_negative_numbers = true, value_parser = number, default_value_t = Effort::default().confidence())]
    confidence: f64,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// The directory: a new one, that of an earlier audit, or that of a run of the same experiment; runs/audit-NAME if absent.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    audit: AuditReport,
    out: String,
}

/// Attacks and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let Options { games, trainings, confidence, .. } = *options;
    let effort = Effort::new(games, trainings, confidence)?;
    let experiment = options.experiment()?;
    let federation = Federation::new(&experiment)?;
    let directory = options.directory(&experiment);
    AuditReport::enter(&directory, &experiment)?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads_or_all_cores(options.threads)).build()?;
    print_status(&description(&federation));
    let watcher = Watcher::default();
    let found = pool.install(|| audit(&federation, effort, &|stage| watcher.update(stage)));
    watcher.clear();
    let found = found.inspect_err(|_| AuditReport::leave(&directory))?;
    let found = AuditReport { command: Some(options.command()), ..found };
    found.write(&directory)?;
    let page = report::at_the_end(&directory, "the report", true);
    let mut out = io::stdout().lock();
    if options.json {
        let report = Report { audit: found.brief(), out: directory.display().to_string() };
        writeln!(out, "{}", serde_json::to_string(&report)?)?;
        return Ok(());
    }
    print(&mut out, &found)?;
    if let Some(page) = page {
        writeln!(out, "report          {}", page.display())?;
    }
    writeln!(out, "directory       {}", directory.display())?;
    Ok(())
}

impl Options {
    fn experiment(&self) -> Result<Experiment, Failure> {
        let builder = ExperimentBuilder::open(Some(self.experiment.as_deref().unwrap_or(DEFAULT)))?;
        Ok(changed(builder, &self.settings, (None, self.rounds, self.seed))?.build()?)
    }

    /// The command line, without the options that do not change the numbers.
    fn command(&self) -> String {
        let mut words = vec!["floras".to_owned(), "audit".to_owned()];
        words.extend(self.experiment.clone());
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        self.settings.iter().for_each(|setting| option("--set", Some(setting.clone())));
        option("--rounds", self.rounds.map(|rounds| rounds.to_string()));
        option("--seed", self.seed.map(|seed| seed.to_string()));
        let default = Effort::default();
        option("--games", (self.games != default.games()).then(|| self.games.to_string()));
        option("--trainings", (self.trainings != default.trainings()).then(|| self.trainings.to_string()));
        option(
            "--confidence",
            (self.confidence != default.confidence()).then(|| self.confidence.to_string()),
        );
        option("--out", self.out.as_ref().map(|out| out.display().to_string()));
        words.iter().map(text::quoted).collect::<Vec<_>>().join(" ")
    }

    fn directory(&self, experiment: &Experiment) -> PathBuf {
        let name = &experiment.settings().name;
        let default = if name == DEFAULT { DEFAULT.to_owned() } else { format!("audit-{name}") };
        self.out.clone().unwrap_or_else(|| Path::new("runs").join(default))
    }
}

fn print(out: &mut impl Write, found: &AuditReport) -> io::Result<()> {
    let rounds = count(found.rounds as usize, "round");
    writeln!(out, "{}: what leaks in {rounds}, delta = {:e}\n", found.name, found.delta)?;
    for section in found.sections() {
        writeln!(out, "{}", section.title)?;
        show(out, &section.parts)?;
        writeln!(out)?;
    }
    for note in &found.notes {
        writeln!(out, "{}", text::note(note))?;
    }
    writeln!(out)
}

/// Prints the parts of a section that fit a terminal.
fn show(out: &mut impl Write, parts: &[Part<'_>]) -> io::Result<()> {
    for part in parts {
        match part {
            Part::Finding(text) => writeln!(out, "{text}")?,
            Part::Table { heading, rows } => {
                let heading = heading.iter().map(|&name| name.to_owned()).collect();
                let rows = rows.iter().map(|row| row.iter().map(cell).collect());
                columns(out, &[heading].into_iter().chain(rows).collect::<Vec<Vec<String>>>())?;
            }
            Part::List(words) => {
                for (word, meaning) in words {
                    writeln!(out, "  {word}: {meaning}")?;
                }
            }
            Part::Folded { is_short: true, parts, .. } => show(out, parts)?,
            Part::Folded { .. } | Part::Explanation(_) | Part::Plots(_) | Part::Pictures(_) => {}
        }
    }
    Ok(())
}

fn cell(cell: &Cell) -> String {
    let (text, remark) = match *cell {
        Cell::Text(ref text) => (text.clone(), ""),
        Cell::Count(count) => (count.to_string(), ""),
        Cell::Number(number, digits) => (signed(number, digits), ""),
        Cell::Share(part, remark) => (share(part), remark),
        Cell::Epsilon(epsilon, None, remark) => (epsilon_text(epsilon), remark),
        Cell::Epsilon(epsilon, Some(verdict), remark) => {
            (format!("{} {}", epsilon_text(epsilon), verdict.words()), remark)
        }
        Cell::AtLeast(epsilon, remark) => (format!("≥ {}", Rounding::Down.fixed(epsilon, 3)), remark),
    };
    if remark.is_empty() { text } else { format!("{text} ({remark})") }
}

/// Shows the progress of the current attack: a bar on a terminal, a line per attack in a pipe.
#[derive(Default)]
struct Watcher(Mutex<Option<ProgressBar>>);

impl Watcher {
    fn update(&self, stage: Stage<'_>) {
        let mut bar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match stage {
            Stage::Begins { what, units } => {
                if let Some(bar) = bar.take() {
                    bar.finish_and_clear();
                }
                let next = ProgressBar::with_draw_target(Some(units), ProgressDrawTarget::stderr_with_hz(10));
                let template = if units > 0 { "{msg} {wide_bar} {percent}%, {eta} left" } else { "{msg}" };
                next.set_style(ProgressStyle::with_template(template).expect("the template is well-formed"));
                next.set_message(what.to_owned());
                if next.is_hidden() {
                    print_status(&format!("attacking: {what}"));
                }
                *bar = Some(next);
            }
            Stage::Done(units) => {
                if let Some(bar) = &*bar {
                    bar.inc(units);
                }
            }
        }
    }

    fn clear(&self) {
        if let Some(bar) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn the_command_keeps_options_that_matter() {
        let command = |line: &str| Line::parse_from(line.split('|')).options.command();
        assert_eq!(command("floras|--json|--threads|2"), "floras audit");
        assert_eq!(
            command("floras|quick|--set|uplink.receiver={ clipped = 1 }|--games|4000|--trainings|8|--out|a"),
            "floras audit quick --set 'uplink.receiver={ clipped = 1 }' --games 4000 --trainings 8 --out a"
        );
    }
}
