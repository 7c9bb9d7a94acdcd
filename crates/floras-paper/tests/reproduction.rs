//! The paper's figures: how they are stored, resumed and judged.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use floras_paper::reproduce::{Stage, Target, Workbench, claims, reproduce};
use floras_sim::figure::{Reproduction, Verdict};

fn make(directory: &std::path::Path, target: Target, threads: usize) -> Reproduction {
    let bench = Workbench { quick: true, directory, threads, watch: &|_: Stage<'_>| {} };
    reproduce(&[target], &bench).unwrap()
}

#[test]
fn figure_2_claims_that_fail_are_false() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path(), Target::Fig2, 1);
    let [figure] = &made.figures[..] else { panic!("one figure was asked for") };
    assert_eq!(figure.panels.len(), 3);
    let tightest: Vec<_> = figure.claims.iter().filter(|claim| claim.claim.contains("tightest")).collect();
    assert_eq!(tightest.len(), 3);
    assert!(tightest.iter().all(|claim| claim.verdict == Verdict::False && claim.ours == Some(24.0)));
    // Values of the idealised view, with sampling, from the accounting's own reference: above the published 0.110.
    let first = figure
        .claims
        .iter()
        .find(|claim| claim.claim == "q = 0.05, γ = 5: the formula's ε after T = 1 is a guarantee")
        .unwrap();
    assert_eq!(first.verdict, Verdict::False);
    assert!(first.ours.unwrap() > 4.0 * first.published.unwrap());
    for panel in &figure.panels {
        let names: Vec<&str> = panel.curves.iter().map(|curve| curve.name.as_str()).collect();
        assert!(
            names.contains(&"holds (idealised view)") && names.iter().any(|name| name.contains("optimal"))
        );
        // The optimal composition of a round is below every other one.
        let [sequential, advanced, renyi, optimal] = [0, 1, 2, 3].map(|number| &panel.curves[number].y);
        for (place, optimal) in optimal.iter().enumerate() {
            let others = [sequential[place], advanced[place], renyi[place]];
            assert!(others.iter().all(|other| optimal.unwrap() <= other.unwrap() * (1.0 + 1e-9)));
        }
    }
}

#[test]
fn the_written_result_equals_the_returned_one() {
    let directory = tempfile::tempdir().unwrap();
    let made = make(directory.path(), Target::Fig2, 1);
    let path = directory.path().join("reproduction.json");
    let bytes = fs::read(&path).unwrap();
    assert_eq!(serde_json::from_slice::<Reproduction>(&bytes).unwrap(), made);
    assert_eq!(make(directory.path(), Target::Fig2, 2), made);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn directories_with_other_files_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    make(directory.path(), Target::Fig2, 1);
    let bench =
        Workbench { quick: false, directory: directory.path(), threads: 1, watch: &|_: Stage<'_>| {} };
    let error = reproduce(&[Target::Fig2], &bench).unwrap_err().to_string();
    assert!(error.contains("holds the results of `floras reproduce fig2 --quick`"), "{error}");
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("experiment.toml"), "").unwrap();
    let bench = Workbench { directory: other.path(), ..bench };
    let error = reproduce(&[Target::Fig2], &bench).unwrap_err().to_string();
    assert!(error.contains("holds a run"), "{error}");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1, "nothing was written");
}

/// The verdicts that the book prints, by claim.
fn recorded() -> Reproduction {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction/reproduction.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// With three trials, some verdicts are inconclusive that are conclusive with twenty, but none contradicts them. The simultaneous
/// intervals of a quick run miss a number with probability at most 5% for any seed; the presets' seed is fixed.
#[test]
fn quick_runs_do_not_contradict_the_book() {
    let directory = tempfile::tempdir().unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Workbench { quick: true, directory: directory.path(), threads, watch: &|_: Stage<'_>| {} };
    let made = reproduce(&Target::ALL, &bench).unwrap();
    let verdicts = |made: &Reproduction| -> Vec<(String, Verdict)> {
        let claims = made.figures.iter().flat_map(|figure| &figure.claims);
        claims.map(|claim| (claim.claim.clone(), claim.verdict)).collect()
    };
    let (quick, recorded_verdicts) = (verdicts(&made), verdicts(&recorded()));
    assert_eq!(quick.len(), recorded_verdicts.len());
    let pairs = quick.iter().zip(&recorded_verdicts);
    assert!(pairs.clone().all(|((claim, _), (recorded, _))| claim == recorded));
    let contradicts = |(quick, recorded): (Verdict, Verdict)| {
        quick != recorded && quick != Verdict::Inconclusive && recorded != Verdict::Inconclusive
    };
    let contradictory: Vec<_> =
        pairs.filter(|((_, quick), (_, recorded))| contradicts((*quick, *recorded))).collect();
    assert!(contradictory.is_empty(), "{contradictory:?}");
    // Three trials have wide intervals. Claims that do not depend on them are decided: the formulas of figure 2 and the costs.
    let undecided = quick.iter().filter(|(_, verdict)| *verdict == Verdict::Inconclusive);
    let curves = claims::FIG4.iter().chain(&claims::FIG5);
    let names: Vec<&str> = curves.map(|claim| claim.claim).collect();
    for (claim, _) in undecided {
        assert!(names.contains(&claim.as_str()), "{claim}");
    }
    // Some of the narrowest intervals are conclusive even then.
    let decided = quick
        .iter()
        .filter(|(claim, verdict)| names.contains(&claim.as_str()) && *verdict != Verdict::Inconclusive);
    assert!(decided.count() >= 3, "{quick:?}");
    // Wherever the published view is printed, so is the condition of its theorems that these settings do not meet.
    for figure in &made.figures {
        let states = |note: &String| note.contains("require K < min{N, M}") && note.contains("K = M");
        assert!(figure.notes.iter().any(states), "{}", figure.name);
    }
    let names = |made: &Reproduction| -> Vec<String> {
        made.figures.iter().map(|figure| figure.name.clone()).collect()
    };
    assert_eq!(names(&made), names(&recorded()));
}
