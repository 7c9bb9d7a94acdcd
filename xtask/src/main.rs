//! Chores of the workspace: `cargo xtask test` and `cargo xtask bench-peers`.

mod book;
mod peers;
mod shell;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the workspace.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check everything: formatting, lints, tests, documentation, the book's links.
    Test,
    /// Measure our speed beside NumPy's, in one run, and print the ratios.
    BenchPeers(peers::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Test => test::run(),
        Chore::BenchPeers(options) => peers::run(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
