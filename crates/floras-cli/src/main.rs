//! The program `floras`.
//!
//! Exit codes: 0 done, 2 the input was wrong, 1 anything else.

mod audit;
mod bench;
mod command;
mod failure;
mod presets;
mod privacy;
mod progress;
mod report;
mod reproduce;
mod run;
mod sweep;
mod table;
mod theory;

use std::process::ExitCode;

use clap::Parser;

use crate::command::Command;

fn main() -> ExitCode {
    let outcome = match command::Arguments::parse().command {
        Command::Run(options) => run::run(&options),
        Command::Sweep(options) => sweep::run(&options),
        Command::Reproduce(options) => reproduce::run(&options),
        Command::Account(options) => privacy::account::run(&options),
        Command::Calibrate(options) => privacy::calibrate::run(&options),
        Command::Compose(options) => privacy::compose::run(&options),
        Command::Audit(options) => audit::run(&options),
        Command::Report(options) => report::run(&options),
        Command::Theory(options) => theory::run(&options),
        Command::Presets(options) => presets::run(&options),
        Command::Bench { what } => bench::run(&what),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
