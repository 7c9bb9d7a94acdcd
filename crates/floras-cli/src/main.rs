//! The program `floras`.
//!
//! Exit codes: 0 done, 2 the input was wrong, 130 interrupted, 1 anything else.

mod audit;
mod bench;
mod benchmark;
mod command;
mod compare;
mod data;
mod failure;
mod interrupt;
mod presets;
mod privacy;
mod progress;
mod report;
mod reproduce;
mod run;
mod shell;
mod sweep;
mod table;
mod text;
mod theory;
mod watch;
mod watcher;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches};

use crate::command::{Arguments, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let matches = Arguments::command().get_matches();
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match privacy::check_options(&matches).and_then(|()| run_command(arguments.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run_command(command: Command) -> Result<(), Failure> {
    match command {
        Command::Run(options) => run::run(&options),
        Command::Sweep(options) => sweep::run(&options),
        Command::Reproduce(options) => reproduce::run(&options),
        Command::Benchmark(options) => benchmark::run(&options),
        Command::Account(options) => privacy::account::run(&options),
        Command::Calibrate(options) => privacy::calibrate::run(&options),
        Command::Compose(options) => privacy::compose::run(&options),
        Command::Audit(options) => audit::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Watch(options) => watch::run(&options),
        Command::Theory(options) => theory::run(&options),
        Command::Presets(options) => presets::run(&options),
        Command::Completions(options) => shell::completions(&options),
        Command::Man(options) => shell::man_pages(&options),
        Command::Data { what } => data::run(&what),
        Command::Bench { what } => bench::run(&what),
    }
}
