//! The training of a convolutional network in a round, compared with PyTorch, client by client.
//!
//! On one thread each, processor time is compared, and on two threads each, wall time. The latter needs an idle machine: PyTorch's threads wait
//! for one another in loops.

use anyhow::Result;

use super::Sides;
use super::race::{Bar, Clock, Race};
use crate::shell;

/// Measures and prints the comparison.
pub(super) fn run(sides: &Sides, turns: usize) -> Result<()> {
    println!(
        "one round of a convolutional network: 50 clients × 5 steps of 10, 1,626,442 parameters; median of {turns} turns"
    );
    for (threads, clock, what) in
        [("1", Clock::Processor, "one thread, processor time"), ("2", Clock::Wall, "two threads, wall time")]
    {
        println!("{what}");
        let mut ours = shell::program(&sides.floras);
        ours.args([
            "bench",
            "round",
            "xtask/peers/cnn.toml",
            "--json",
            "--threads",
            threads,
            "--rounds",
            "2",
        ]);
        let mut theirs = shell::program(&sides.python);
        theirs.args(["xtask/peers/cnn.py", "--threads", threads, "--rounds", "2"]);
        let race = Race { peer: "PyTorch", ours, theirs, clock, bar: Bar::AtMost(1.0) };
        if !race.run(turns)? {
            println!("  not installed; to install: {}", super::round::INSTALL);
        }
    }
    Ok(())
}
