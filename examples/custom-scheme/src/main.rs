//! Registers `capped-inversion`, runs an experiment with it, accounts for it, calibrates it, and sweeps it beside a built-in
//! scheme. Everything is recorded in the directory that is given, or in a temporary one.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use custom_scheme::CappedInversion;
use floras::core::View;
use floras::sim::inquiry::{self, ExperimentAccount, Find};
use floras::sim::{Entry, ExperimentBuilder, PreparedRun, PreparedSweep, SweepTable, schemes};

const EXPERIMENT: &str = r#"
name = "capped-inversion"
trials = 2
rounds = 20

[data]
train = 2000
test = 500

[clients]
total = 100
per_round = 100

[local]
batch = 20
rate = 1.0

[uplink]
scheme = "capped-inversion"
max_gain = 2.0
client_noise_std = 0.5

[privacy]
clip = 1.0
"#;

const GRID: &str = r#"
[sweep]
uplink.scheme = ["capped-inversion", "phase-corrected"]
uplink.max_gain = [0.25, 1.0, 4.0]
"#;

/// Threads of a run. Results do not depend on their number.
const THREADS: usize = 2;

fn main() -> Result<(), Box<dyn Error>> {
    schemes::register::<CappedInversion>()?;
    let temporary = tempfile::tempdir()?;
    let directory = std::env::args_os().nth(1).map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    run(&directory.join("run"))?;
    account()?;
    calibrate()?;
    sweep(&directory.join("sweep"))
}

/// All trials into a run directory. A second call resumes it.
fn run(directory: &Path) -> Result<(), Box<dyn Error>> {
    let experiment = ExperimentBuilder::parse("the example", EXPERIMENT)?.build()?;
    let run = PreparedRun::new(&experiment, directory, Entry::ResumeOrNew, THREADS)?;
    let outcome = run.run(&|_| {}, &AtomicBool::new(false))?;
    let settings = experiment.settings();
    println!("{}", settings.uplink.description(settings.clients.per_round));
    if let Some(finals) = outcome.summary.finals {
        println!("test accuracy after {} rounds: {:.3}", settings.rounds, finals.test_accuracy.mean);
    }
    Ok(())
}

/// What the experiment reveals in each view.
fn account() -> Result<(), Box<dyn Error>> {
    let experiment = ExperimentBuilder::parse("the example", EXPERIMENT)?.build()?;
    let report = ExperimentAccount::new(&experiment)?.report()?;
    println!("\n{:<12} {:>10}  verdict", "view", "ε");
    for view in View::ALL {
        let Some(statement) = report.views.get(view) else {
            println!("{:<12} {:>10}  not applicable to this scheme", view.name(), "");
            continue;
        };
        let epsilon = statement.epsilon.map_or("none".to_owned(), inquiry::epsilon_text);
        println!("{:<12} {epsilon:>10}  {}", view.name(), inquiry::verdict_text(view, statement));
        if let Some(reason) = &statement.reason {
            println!("{:<12} {:>10}  {reason}", "", "");
        }
    }
    Ok(())
}

/// The least client noise that meets an ε over every channel.
fn calibrate() -> Result<(), Box<dyn Error>> {
    let builder = ExperimentBuilder::parse("the example", EXPERIMENT)?;
    let found = inquiry::calibrate_experiment(&builder, 50.0, View::AnyChannel, Find::Noise)?;
    if let (Some(value), Some(epsilon)) = (found.value, found.epsilon) {
        println!("\n{} = {value:.4} meets ε ≤ 50 over every channel: ε = {epsilon:.3}", found.key);
    }
    Ok(())
}

/// A grid over a key of the scheme, beside a built-in scheme to which the key does not apply.
fn sweep(directory: &Path) -> Result<(), Box<dyn Error>> {
    let grid = ExperimentBuilder::parse("the example", &format!("{EXPERIMENT}{GRID}"))?.build_sweep()?;
    PreparedSweep::new(grid, directory, THREADS)?.run(&|_| {}, &AtomicBool::new(false))?;
    let table = SweepTable::read(directory)?;
    println!("\n{:<18} {:>16}  {:<10} {:>13}", table.keys[0], table.keys[1], "run", "test accuracy");
    for row in table.rows {
        let accuracy =
            row.finals.map_or("diverged".to_owned(), |finals| format!("{:.3}", finals.test_accuracy.mean));
        println!("{:<18} {:>16}  {:<10} {accuracy:>13}", row.values[0], row.values[1], row.run);
    }
    println!("note: phase-corrected has no client noise; the rows are not at equal privacy");
    Ok(())
}
