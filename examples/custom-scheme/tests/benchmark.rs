//! The scheme in the common benchmark.

use custom_scheme::CappedInversion;
use floras::paper::benchmark::{Candidate, benchmark};
use floras::paper::reproduce::Workbench;
use floras::sim::schemes::Trust;
use floras::sim::{ExperimentBuilder, schemes};

#[test]
fn the_scheme_is_a_candidate_of_the_benchmark() -> Result<(), Box<dyn std::error::Error>> {
    schemes::register::<CappedInversion>()?;
    let directory = tempfile::tempdir()?;
    let file = ExperimentBuilder::parse("benchmark.toml", include_str!("../benchmark.toml"))?;
    let bench = Workbench { quick: true, directory: directory.path(), threads: 1, watch: &|_| {} };
    let made = benchmark(&[Candidate::new(file)?], "test", &bench)?;
    let open = made.row("capped-inversion", &made.conditions.reference).ok_or("no row")?;
    // Guessing has 10%.
    assert!(open.accuracy.ok_or("no accuracy")?.mean > 0.7, "{open:?}");
    let private = made.row("capped-inversion", &made.conditions.private()).ok_or("no row")?;
    assert_eq!(private.protected_by.as_ref().map(|by| by.trust), Some(Trust::NoOne));
    assert!(private.privacy.iter().any(|bound| bound.guarantee && bound.epsilon.is_some_and(|it| it <= 8.0)));
    Ok(())
}
