//! Chores of the workspace, as in `cargo xtask test`.

mod accounting;
mod book;
mod conventions;
mod figures;
mod peers;
mod python;
mod report;
mod reproduction;
mod shell;
mod tensorboard;
mod test;
mod wheel;

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
    /// Check everything: formatting, lints, tests, documentation, the book's links, and the Python package.
    Test(test::Options),
    /// Only Python's part of `test`: build the wheel and run its tests. It takes the program from `target/debug`.
    TestPython(test::Options),
    /// Measure our speed beside that of NumPy and others, in one run, and print the ratios.
    BenchPeers(peers::Options),
    /// Have TensorBoard read the event files of a short run, and compare.
    CheckTensorboard,
    /// Remake the reference values of the privacy accounting with independent programs, and compare; or compare
    /// `floras account` with one of them in random settings.
    CheckAccounting(accounting::Options),
    /// Rank what the paper leaves open by how near it comes to the paper's numbers.
    Conventions(conventions::Options),
    /// Reproduce the paper's figures and write the book's chapter on them.
    Reproduction(reproduction::Options),
    /// Open the reports of a short run, a short sweep and a short audit in a browser, and take pictures of them.
    CheckReport,
    /// Compute the book's pictures of the clipped projector and of the audit, and write them to `docs/figures`.
    BookFigures,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::TestPython(options) => test::run_python(&options),
        Chore::BenchPeers(options) => peers::run(&options),
        Chore::CheckTensorboard => tensorboard::run(),
        Chore::CheckAccounting(options) => accounting::run(&options),
        Chore::Conventions(options) => conventions::run(&options),
        Chore::Reproduction(options) => reproduction::run(&options),
        Chore::CheckReport => report::run(),
        Chore::BookFigures => figures::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
