//! The reference learning round, compared with other libraries that do it without a radio.
//!
//! Processor time is compared, because some peers use several processes. NumPy is always there; the others take part
//! if their packages are installed.

use anyhow::Result;

use super::Sides;
use super::race::{Bar, Clock, Race};

struct Peer {
    /// As `round.py` knows it.
    key: &'static str,
    name: &'static str,
    how: &'static str,
    bar: Bar,
    rounds: u32,
}

const THIRD: Bar = Bar::AtMost(1.0 / 3.0);

#[rustfmt::skip]
const PEERS: [Peer; 7] = [
    Peer { key: "numpy", name: "NumPy", how: "all clients at once, tuned", bar: THIRD, rounds: 200 },
    Peer { key: "numpy-plain", name: "NumPy", how: "all clients at once, as most would write it", bar: THIRD, rounds: 200 },
    Peer { key: "jax", name: "JAX", how: "compiled", bar: Bar::AtLeast(3.0), rounds: 200 },
    Peer { key: "torch", name: "PyTorch", how: "all clients at once, gradients by hand", bar: Bar::AtLeast(5.0), rounds: 200 },
    Peer { key: "torch-per-client", name: "PyTorch", how: "client by client", bar: Bar::AtLeast(25.0), rounds: 100 },
    Peer { key: "pfl", name: "pfl", how: "its simulator", bar: Bar::AtLeast(35.0), rounds: 100 },
    Peer { key: "flower", name: "Flower", how: "its simulator, on Ray", bar: Bar::AtLeast(140.0), rounds: 40 },
];

pub(super) const INSTALL: &str =
    "target/peers-venv/bin/python -m pip install -r xtask/peers/requirements-round.txt";

/// Measures and prints the table.
pub(super) fn run(sides: &Sides, turns: usize) -> Result<()> {
    println!(
        "one learning round, one thread, processor time: 20 clients × 4 steps of 50, 4010 parameters, test on 1,000; \
         median of {turns} turns"
    );
    for peer in PEERS {
        println!("{}, {}", peer.name, peer.how);
        if !race(sides, &peer).run(turns)? {
            println!("  not installed; to install: {INSTALL}");
        }
    }
    Ok(())
}

fn race(sides: &Sides, peer: &Peer) -> Race {
    let mut theirs = sides.theirs("round.py");
    theirs.args([peer.key, "--rounds", &peer.rounds.to_string()]);
    Race { peer: peer.name, ours: sides.ours("round"), theirs, clock: Clock::Processor, bar: peer.bar }
}
