//! Development commands of the workspace, as in `cargo xtask test`.

mod accounting;
mod book;
mod language;
mod live;
mod packages;
mod parts;
mod peers;
mod performance;
mod python;
mod report;
mod shell;
mod tensorboard;
mod test;
mod wheel;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

/// Development commands of the workspace.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check everything: formatting, lints, tests, documentation, the book's links, packages, and the Python package.
    Test(test::Options),
    /// Only Python's part of `test`: build the library and run its tests.
    TestPython(test::Options),
    /// Compare our speed with NumPy and other libraries in one run, and print the ratios.
    BenchPeers(peers::Options),
    /// Write the tables of the book's page on performance from the recorded measurements.
    Performance,
    /// Have TensorBoard read the event files of a short run, and compare.
    CheckTensorboard,
    /// Compute the reference values of the privacy accounting again with independent programs, and compare; or compare
    /// `floras account` with one of them in random settings.
    CheckAccounting(accounting::Options),
    /// Rank readings of what the paper does not specify by their distance from the paper's numbers.
    #[command(disable_help_flag = true)]
    Conventions(Forwarded),
    /// Run settings of that search on seeds that it did not use.
    Confirmations,
    /// Reproduce the paper's figures and write the book's chapter on them.
    #[command(disable_help_flag = true)]
    Reproduction(Forwarded),
    /// Run the benchmark of schemes and write the book's leaderboard.
    #[command(disable_help_flag = true)]
    Leaderboard(Forwarded),
    /// Compute figures of the papers of other schemes and write the book's chapter on them.
    #[command(disable_help_flag = true)]
    PeerFigures(Forwarded),
    /// Check that text and identifiers use the words of the glossary, and that tests have short names.
    CheckLanguage(language::Options),
    /// Open the reports of a short run, a short sweep and a short audit in a browser, and take pictures of them.
    CheckReport,
    /// Follow a training by its live view in a browser, and take screenshots.
    CheckLive,
    /// Build the book as HTML in `target/book`, with rendered formulas.
    Book,
    /// Build the book and open every page in a browser: links, images, formulas and the console must be without errors.
    CheckBook,
    /// Compute the book's pictures of the clipped projector and of the audit, and write them to `docs/figures`.
    BookFigures,
}

/// Arguments of the program `chapters`.
#[derive(Debug, Args)]
struct Forwarded {
    /// Arguments of the chapter; `--help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the program that computes what the book shows.
fn compute(chapter: &str, Forwarded { arguments }: &Forwarded) -> Result<()> {
    let build = ["run", "--quiet", "--package", "chapters", "--", chapter];
    shell::run(shell::cargo().args(build).args(arguments))
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().chore {
        Chore::Test(options) => test::run(&options),
        Chore::TestPython(options) => test::run_python(&options),
        Chore::BenchPeers(options) => peers::run(&options),
        Chore::Performance => performance::run(),
        Chore::CheckTensorboard => tensorboard::run(),
        Chore::CheckAccounting(options) => accounting::run(&options),
        Chore::Conventions(options) => compute("conventions", &options),
        Chore::Confirmations => compute("confirmations", &Forwarded { arguments: Vec::new() }),
        Chore::Reproduction(options) => compute("reproduction", &options),
        Chore::Leaderboard(options) => compute("leaderboard", &options),
        Chore::PeerFigures(options) => compute("peer-figures", &options),
        Chore::CheckLanguage(options) => language::check(&options),
        Chore::CheckReport => report::run(),
        Chore::CheckLive => live::run(),
        Chore::Book => book::build(),
        Chore::CheckBook => book::check(),
        Chore::BookFigures => compute("book-figures", &Forwarded { arguments: Vec::new() }),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
