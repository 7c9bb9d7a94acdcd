//! The command line.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Parser, Subcommand};
use floras_core::Choice;
use floras_sim::{ExperimentBuilder, ExperimentError};

use crate::{audit, bench, presets, privacy, report, reproduce, run, sweep, theory};

/// Private federated learning over the air.
///
/// Many phones train one model without handing over their data: they send their updates at the same moment over the
/// same radio channel, and the air adds them up.
#[derive(Debug, Parser)]
#[command(name = "floras", version, arg_required_else_help = true, term_width = 100)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What the program can do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a model over the simulated air and leave a run directory.
    Run(run::Options),
    /// Run an experiment for every point of a grid of settings.
    Sweep(sweep::Options),
    /// Make the paper's figures again, next to what the paper claims about them.
    Reproduce(reproduce::Options),
    /// Make the report of a run, a sweep, a reproduction or an audit again, from its files alone.
    Report(report::Options),
    /// Say how private a federation is, and against whom.
    Account(privacy::account::Options),
    /// Find the sequences, the clip norm or the rounds that meet an epsilon.
    Calibrate(privacy::calibrate::Options),
    /// Say how private several trainings are together.
    Compose(privacy::compose::Options),
    /// Attack an experiment, and say what leaks.
    Audit(audit::Options),
    /// Say what the paper's convergence theorem makes of an experiment, and what holds.
    Theory(theory::Options),
    /// List the experiments that `run` knows by name, or print the file of one.
    Presets(presets::Options),
    /// Measure how fast this machine is.
    Bench {
        /// What to measure.
        #[command(subcommand)]
        what: bench::What,
    },
}

/// Reads a choice; help and completions list its text forms.
#[derive(Clone, Copy)]
pub(crate) struct ChoiceParser<T>(PhantomData<fn() -> T>);

/// A parser of some choice.
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
        let parse = |text: &str| text.parse::<T>().map_err(|_| format!("it must be {}", T::allowed()));
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

/// Reads a whole number up to 2^63 − 1, the largest that a file can hold, and says in words what one is if the text is none.
pub(crate) fn whole_number<N: TryFrom<i64>>(text: &str) -> Result<N, String> {
    let largest = if size_of::<N>() > size_of::<u32>() { i64::MAX } else { u32::MAX.into() };
    let number = text.parse().ok().and_then(|number: i64| number.try_into().ok());
    number.ok_or_else(|| format!("it must be a whole number between 0 and {largest}, such as 20"))
}

/// Reads a number, and says in words what one is if the text is none.
pub(crate) fn number(text: &str) -> Result<f64, &'static str> {
    text.parse().ok().filter(|value: &f64| !value.is_nan()).ok_or("it must be a number, such as 1.5 or 1e-5")
}

/// Reads a number of threads.
pub(crate) fn thread_count(text: &str) -> Result<usize, &'static str> {
    let threads = text.parse().ok().filter(|threads| (1..=1024).contains(threads));
    threads.ok_or("it must be a whole number between 1 and 1024")
}

/// All cores, unless a number was given.
pub(crate) fn threads_or_all_cores(threads: Option<usize>) -> usize {
    threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
}
