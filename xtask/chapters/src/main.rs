//! Computes what the book shows: `cargo xtask conventions`, `confirmations`, `reproduction`, `peer-figures`, `leaderboard` and
//! `book-figures`.
//!
//! A program of its own, so that `cargo xtask` alone builds without the libraries.

mod confirmations;
mod conventions;
mod figures;
mod leaderboard;
mod page;
mod peer_figures;
mod record;
mod reproduction;
#[expect(dead_code, reason = "xtask uses the rest")]
#[path = "../../src/shell.rs"]
mod shell;

use std::process::ExitCode;

use clap::Parser;

/// Computes the chapters and the pictures of the book.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
enum Chapter {
    /// Rank readings of what the paper does not specify by their distance from the paper's numbers.
    Conventions(conventions::Options),
    /// Run settings of that search on seeds that it did not use.
    Confirmations,
    /// Reproduce the paper's figures and write the book's chapter on them.
    Reproduction(record::Options),
    /// Compute figures of the papers of other schemes and write the book's chapter on them.
    PeerFigures(record::Options),
    /// Run the benchmark and write the book's leaderboard.
    Leaderboard(record::Options),
    /// Compute the book's pictures of the clipped projector and of the audit, and write them to `docs/figures`.
    BookFigures,
}

fn main() -> ExitCode {
    let outcome = match Chapter::parse() {
        Chapter::Conventions(options) => conventions::run(&options),
        Chapter::Confirmations => confirmations::run(),
        Chapter::Reproduction(options) => reproduction::run(&options),
        Chapter::Leaderboard(options) => leaderboard::run(&options),
        Chapter::PeerFigures(options) => peer_figures::run(&options),
        Chapter::BookFigures => figures::run(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
