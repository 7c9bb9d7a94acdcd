//! One round of FLORAS over the air, compared with NumPy.

use anyhow::Result;
use clap::Args;

use super::Sides;
use super::race::{Bar, Clock, Race};

/// How large the round is.
#[derive(Debug, Args)]
pub(super) struct Sizes {
    /// Clients per round (K), for the uplink.
    #[arg(long, default_value_t = 20)]
    per_round: usize,

    /// Sequences and chips (N = L), a power of two, for the uplink.
    #[arg(long, default_value_t = 32)]
    length: usize,

    /// Parameters (d), for the uplink.
    #[arg(long, default_value_t = 1_000_000)]
    dim: usize,
}

const RACES: [(&str, Bar); 2] = [("symbol", Bar::AtMost(0.4)), ("chip", Bar::AtMost(1.0 / 6.0))];

/// Measures and prints the table.
pub(super) fn run(sides: &Sides, turns: usize, sizes: &Sizes) -> Result<()> {
    let Sizes { per_round, length, dim } = sizes;
    println!(
        "one round of FLORAS, one thread: K = {per_round}, N = L = {length}, d = {dim}; median of {turns} turns"
    );
    for (fidelity, bar) in RACES {
        println!("{fidelity} level");
        race(sides, sizes, fidelity, bar).run(turns)?;
    }
    Ok(())
}

fn race(sides: &Sides, sizes: &Sizes, fidelity: &str, bar: Bar) -> Race {
    let mut ours = sides.ours("uplink");
    ours.args(["--repeat", "15", "--fidelity", fidelity, "--sequences", &sizes.length.to_string()]);
    let mut theirs = sides.theirs("uplink.py");
    theirs.arg(fidelity);
    for command in [&mut ours, &mut theirs] {
        command.args(["--per-round", &sizes.per_round.to_string()]);
        command.args(["--length", &sizes.length.to_string()]);
        command.args(["--dim", &sizes.dim.to_string()]);
    }
    Race { peer: "NumPy", ours, theirs, clock: Clock::Wall, bar }
}
