//! Compares `capped-inversion` with schemes of floras under the conditions of the benchmark, in its quick form. Everything is recorded
//! in the directory that is given, or in a temporary one.

use std::error::Error;
use std::path::PathBuf;

use custom_scheme::CappedInversion;
use floras::paper::benchmark::{Candidate, benchmark};
use floras::paper::reproduce::Workbench;
use floras::sim::{ExperimentBuilder, schemes};

/// A copy of a file of the benchmark with another name and another `[uplink]`.
const FILE: &str = include_str!("../../benchmark.toml");

fn main() -> Result<(), Box<dyn Error>> {
    schemes::register::<CappedInversion>()?;
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    let mut candidates = vec![Candidate::new(ExperimentBuilder::parse("benchmark.toml", FILE)?)?];
    for name in ["floras", "channel-inversion"] {
        candidates.extend(Candidate::named(name).transpose()?);
    }
    let bench = Workbench { quick: true, directory: &directory, threads: 2, watch: &|_| {} };
    let made = benchmark(&candidates, "the benchmark of custom-scheme", &bench)?;
    for table in made.ranking() {
        println!("{}\n{}", table.title, table.heading.join(" | "));
        for row in table.rows {
            println!("{}", row.join(" | "));
        }
        println!();
    }
    Ok(())
}
