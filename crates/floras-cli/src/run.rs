//! `floras run`: train a model over the simulated air.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use floras_core::{Choice, RoundSet, View};
use floras_sim::inquiry::NO_FINITE;
use floras_sim::{
    Cost, Entry, Experiment, ExperimentBuilder, Finals, Outcome, PRESETS, PreparedRun, PrivacyReport,
    RunDirectory, SimError, VERSION,
};
use serde::Serialize;

use crate::command::{changed, integer, thread_count, threads_or_all_cores};
use crate::failure::Failure;
use crate::interrupt::Training;
use crate::privacy::epsilon_or_above;
use crate::progress::Progress;
use crate::text::quoted;
use crate::watch::LiveOptions;
use crate::{report, table, watch};

/// The experiment, and where to record it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras run                                            a private model, the preset private
  floras run --live                                     follow it in a browser
  floras run quick --set uplink.snr_db=0                a preset with one setting changed
  floras run my.toml --trials 10 --out runs/mine        an experiment of your own
  floras run --resume --out runs/mine                   resume after an interruption
  floras run quick --record-signal 1,5,10-20            keep the signals of some rounds as .npz

All keys of an experiment file are in docs/reference/experiments.md, and written out in full in the run directory.")]
pub(crate) struct Options {
    /// An experiment file, or the name of a preset; `private` if absent.
    #[arg(value_name = "FILE|PRESET")]
    experiment: Option<String>,

    /// Change a setting, as in uplink.snr_db=10; may be given several times.
    #[arg(long = "set", value_name = "key=value")]
    settings: Vec<String>,

    /// Independent repetitions of the training.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>)]
    trials: Option<u32>,

    /// Learning rounds in a trial.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u32>)]
    rounds: Option<u32>,

    /// Seed of all random numbers.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = integer::<u64>)]
    seed: Option<u64>,

    /// Threads; all cores if absent. Results do not depend on it.
    #[arg(long, value_name = "n", allow_negative_numbers = true, value_parser = thread_count)]
    threads: Option<usize>,

    /// The run directory; runs/NAME if absent, with a number if that is taken.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Resume an interrupted run: the one in --out, or the latest in runs/ of that name.
    #[arg(long)]
    resume: bool,

    /// Record decoded sum, gains, channels, estimates and assignment of these rounds, as in 1,5,10-20, as .npz files in signals/
    /// of the run directory; of every round if no rounds are given. The files are not private.
    #[arg(long, value_name = "ROUNDS", num_args = 0..=1, default_missing_value = "all", value_parser = round_set)]
    record_signal: Option<RoundSet>,

    #[command(flatten)]
    live: LiveOptions,

    /// Print one JSON object on standard output.
    #[arg(long)]
    json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    name: &'a str,
    version: &'a str,
    seed: u64,
    rounds: u32,
    trials: usize,
    /// Trials that diverged, counted from 0, each with its round.
    diverged: Vec<(u32, u32)>,
    #[serde(rename = "final")]
    finals: Option<Finals>,
    /// Cost of a trial on the air; `null` for schemes without a radio.
    cost: Option<Cost>,
    /// `null` if a resumed run was already complete.
    rounds_per_second: Option<f64>,
    /// The privacy statements.
    privacy: &'a PrivacyReport,
    out: String,
}

/// Runs and reports.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let builder = options.builder()?;
    let experiment = builder.build()?;
    for note in builder.notes(&experiment) {
        print_status(&format!("note: {note}"));
    }
    let directory = options.directory(&experiment);
    let port = options.live.listen()?;
    let entry = if options.resume { Entry::Resume } else { Entry::New };
    let run = PreparedRun::new(&experiment, &directory, entry, threads_or_all_cores(options.threads))?;
    print_status(&table::description(run.federation()));
    for note in run.notes() {
        print_status(&format!("note: {note}"));
    }
    let live = watch::start(port, &directory)?;
    let progress = Progress::of_run(run.federation());
    let training = Training::begin();
    let outcome = run.run(&|event| progress.watch(event), training.stop());
    let rounds = progress.rounds();
    progress.clear();
    if let Err(SimError::Stopped { .. }) = outcome {
        drop(training);
        return Err(interrupted(&run, rounds));
    }
    let outcome = outcome?;
    let writing = training.completed();
    let page = report::at_the_end(&directory, "the report", outcome.rounds_done > 0);
    let adversaries = experiment.settings().uplink.scheme.adversaries();
    options.report(&directory, &outcome, page.as_deref(), &adversaries)?;
    writing.written();
    watch::finish(live);
    Ok(())
}

/// Reports what an interrupted run has recorded so far.
fn interrupted(run: &PreparedRun, (done, all): (u64, u64)) -> Failure {
    let directory = run.directory().path();
    if let Ok(Some(spent)) = run.privacy_so_far() {
        let view = run.federation().experiment().settings().privacy.view;
        let epsilon = spent.views.get(view).map_or_else(
            || epsilon_or_above(None, None),
            |statement| epsilon_or_above(statement.epsilon, statement.epsilon_above),
        );
        let epsilon = if epsilon == NO_FINITE { epsilon } else { format!("epsilon {epsilon}") };
        let rounds = table::count(spent.rounds as usize, "round");
        print_status(&format!("spent so far    {epsilon} in the {view} view after {rounds} of a trial"));
    }
    if let Some(page) = report::at_the_end(directory, "the report", true) {
        print_status(&format!("report so far   {}", page.display()));
    }
    Failure::Interrupted(format!(
        "interrupted after {done} of {}; resume with `floras run --resume --out {}`",
        table::count(all as usize, "round"),
        quoted(directory)
    ))
}

impl Options {
    /// The experiment with the command line's changes.
    fn builder(&self) -> Result<ExperimentBuilder, Failure> {
        let builder = match (&self.experiment, self.resume) {
            (None, true) => self.resumed()?,
            (source, _) => ExperimentBuilder::open(source.as_deref())?,
        };
        let builder = changed(builder, &self.settings, (self.trials, self.rounds, self.seed))?;
        Ok(match &self.record_signal {
            Some(rounds) => builder.set_to("record.signal", rounds)?,
            None => builder,
        })
    }

    /// The experiment of the run to resume.
    fn resumed(&self) -> Result<ExperimentBuilder, Failure> {
        let directory = match &self.out {
            Some(directory) => directory.clone(),
            None => latest_directory(PRESETS[0].name),
        };
        let text = RunDirectory::read_experiment(&directory)?.to_toml();
        Ok(ExperimentBuilder::parse(&directory.display().to_string(), &text)?)
    }

    fn directory(&self, experiment: &Experiment) -> PathBuf {
        let name = &experiment.settings().name;
        match &self.out {
            Some(directory) => directory.clone(),
            None if self.resume => latest_directory(name),
            None => free_directory(name),
        }
    }

    fn report(
        &self,
        directory: &Path,
        outcome: &Outcome,
        page: Option<&Path>,
        adversaries: &BTreeMap<View, &'static str>,
    ) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        if self.json {
            let summary = &outcome.summary;
            let report = Report {
                name: &summary.name,
                version: VERSION,
                seed: summary.seed,
                rounds: summary.rounds,
                trials: summary.trials.len(),
                diverged: summary.diverged(),
                finals: summary.finals,
                cost: summary.cost,
                rounds_per_second: outcome.rounds_per_second(),
                privacy: &summary.privacy,
                out: directory.display().to_string(),
            };
            writeln!(out, "{}", serde_json::to_string(&report)?)?;
        } else {
            table::results(&mut out, outcome)?;
            table::privacy(&mut out, &outcome.summary.privacy, adversaries)?;
            match page {
                Some(page) => writeln!(out, "report          {}", page.display())?,
                None => writeln!(out, "run directory   {}", directory.display())?,
            }
        }
        Ok(())
    }
}

/// Reads a set of rounds; the error describes what is allowed.
fn round_set(text: &str) -> Result<RoundSet, String> {
    text.parse().map_err(|_| format!("it must be {}", RoundSet::allowed()))
}

/// `runs/NAME`, then `runs/NAME-2` and so on: the next that is free.
pub(crate) fn free_directory(name: &str) -> PathBuf {
    numbered_directory(name, highest_number(name) + 1)
}

/// The last of `runs/NAME`, `runs/NAME-2` and so on; the first if there is none.
fn latest_directory(name: &str) -> PathBuf {
    numbered_directory(name, highest_number(name).max(1))
}

pub(crate) fn numbered_directory(name: &str, number: u32) -> PathBuf {
    let runs = Path::new("runs");
    if number == 1 { runs.join(name) } else { runs.join(format!("{name}-{number}")) }
}

/// The highest number of a directory of this name in `runs/`; 0 if there is none.
pub(crate) fn highest_number(name: &str) -> u32 {
    let number = |directory: String| match directory.strip_prefix(name)? {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse().ok().filter(|&number| number > 1),
    };
    let directories = fs::read_dir("runs").into_iter().flatten().filter_map(Result::ok);
    directories.filter_map(|entry| number(entry.file_name().into_string().ok()?)).max().unwrap_or(0)
}

/// Prints a message on standard error. A closed pipe does not stop the program.
pub(crate) fn print_status(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
