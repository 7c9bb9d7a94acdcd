//! One round from NumPy through our Python package, beside the program's own time for the same round.

use std::path::Path;

use anyhow::Result;

use super::race::{Bar, Clock, Race};
use crate::{shell, wheel};

/// The package may take this many times as long as the program.
const BAR: f64 = 1.3;

/// Measures and prints the table.
pub(super) fn run(floras: &Path, turns: usize) -> Result<()> {
    let python = wheel::optimised()?;
    let size = ["--per-round", "100", "--sequences", "128", "--length", "128", "--dim", "1000000"];
    println!(
        "one round of FLORAS from NumPy, all cores: K = 100, N = L = 128, d = 1000000; median of {turns} turns"
    );
    for (name, clip) in [("as they are", None), ("clipped, all of them", Some("1"))] {
        println!("updates {name}");
        let mut program = shell::program(floras);
        program.args(["bench", "uplink", "--json", "--repeat", "15"]).args(size);
        let mut package = shell::program(&python);
        package.arg("xtask/peers/package.py").args(size);
        for command in [&mut program, &mut package] {
            command.args(clip.map(|clip| ["--clip", clip]).into_iter().flatten());
        }
        let (ours, theirs) = (package, program);
        Race { peer: "program", ours, theirs, clock: Clock::Wall, bar: Bar::AtMost(BAR) }.run(turns)?;
    }
    Ok(())
}
