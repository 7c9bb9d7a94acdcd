//! The command line.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Parser, Subcommand};
use floras_core::Choice;
use floras_sim::{ExperimentBuilder, ExperimentError};

use crate::{
    audit, bench, benchmark, compare, data, presets, privacy, report, reproduce, run, shell, sweep, theory,
    watch,
};

/// Private federated learning over the air.
///
/// Many phones train one model and keep their data: they send their updates at the same time over the same radio
/// channel, which adds them up. Begin with `floras run`.
#[derive(Debug, Parser)]
#[command(name = "floras", version, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model over the simulated air and write a run directory.
    Run(run::Options),
    /// Serve a local page that follows a run.
    Watch(watch::Options),
    /// Run an experiment for every point of a grid of settings.
    Sweep(sweep::Options),
    /// Compare runs: results, privacy, and the settings that differ.
    Compare(compare::Options),
    /// Write the report of a run, a sweep, a reproduction, a benchmark or an audit again, from its files alone.
    Report(report::Options),
    /// Print how private a federation is against each adversary.
    Account(privacy::account::Options),
    /// Find the sequences, the clip norm, the rounds, the noise or the masks that meet an epsilon.
    Calibrate(privacy::calibrate::Options),
    /// Print how private several trainings are together.
    Compose(privacy::compose::Options),
    /// Attack an experiment and measure what leaks.
    Audit(audit::Options),
    /// Reproduce the paper's figures and compare them with its claims.
    Reproduce(reproduce::Options),
    /// Compare the field's schemes under equal conditions.
    Benchmark(benchmark::Options),
    /// Evaluate the paper's convergence theorem for an experiment, and what holds instead.
    Theory(theory::Options),
    /// List the presets, the experiments that `run` knows by name, or print the file of one.
    Presets(presets::Options),
    /// Get data sets.
    Data {
        /// What to do.
        #[command(subcommand)]
        what: data::What,
    },
    /// Measure how fast this machine is.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: bench::What,
    },
    /// Print the completions of a shell.
    Completions(shell::Completions),
    /// Print the man page, or write the pages of all commands.
    Man(shell::ManPages),
}

/// Reads a choice; help and completions list its text forms.
#[derive(Clone, Copy)]
pub(crate) struct ChoiceParser<T>(PhantomData<fn() -> T>);

/// The parser of a choice.
pub(crate) fn choice<T: Choice>() -> ChoiceParser<T> {
    ChoiceParser(PhantomData)
}

impl<T: Choice + Send + Sync + 'static> TypedValueParser for ChoiceParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        let parse = |text: &str| text.parse::<T>().map_err(|_| format!("expected {}", T::allowed()));
        TypedValueParser::parse_ref(&parse, command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::FORMS.iter().map(PossibleValue::new)))
    }
}

/// An experiment with the command line's changes.
pub(crate) fn changed(
    mut builder: ExperimentBuilder,
    assignments: &[String],
    (trials, rounds, seed): (Option<u32>, Option<u32>, Option<u64>),
) -> Result<ExperimentBuilder, ExperimentError> {
    for assignment in assignments {
        builder = builder.assign(assignment)?;
    }
    if let Some(trials) = trials {
        builder = builder.trials(trials);
    }
    if let Some(rounds) = rounds {
        builder = builder.rounds(rounds);
    }
    if let Some(seed) = seed {
        builder = builder.seed(seed);
    }
    Ok(builder)
}

/// Parses a non-negative integer up to 2^63 − 1, the largest that a file can hold.
pub(crate) fn integer<N: TryFrom<i64>>(text: &str) -> Result<N, String> {
    let is_integer = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_integer {
        return Err("expected a non-negative integer, e.g. 20".to_owned());
    }
    let largest = if size_of::<N>() > size_of::<u32>() { i64::MAX } else { u32::MAX.into() };
    let number = text.parse::<i64>().ok().and_then(|number| number.try_into().ok());
    number.ok_or_else(|| format!("expected an integer up to {largest}"))
}

/// Parses a number.
pub(crate) fn number(text: &str) -> Result<f64, &'static str> {
    let number = text.parse().ok().filter(|value: &f64| !value.is_nan());
    number.ok_or("expected a number, e.g. 1.5 or 1e-5")
}

/// Parses a number of threads.
pub(crate) fn thread_count(text: &str) -> Result<usize, &'static str> {
    let threads = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    threads.ok_or("expected an integer between 1 and 1024")
}

/// The given number of threads, or the number of cores.
pub(crate) fn threads_or_all_cores(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
