//! Figures of the papers of other schemes: their claims, and the verdicts that the book prints.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use floras_paper::reproduce::{Stage, Target, Workbench, reproduce};
use floras_sim::figure::{Claim, Reproduction, Verdict};

fn recorded() -> Reproduction {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reproduction/peers.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn claims(made: &Reproduction) -> Vec<&Claim> {
    made.figures.iter().flat_map(|figure| &figure.claims).collect()
}

/// With few trials a verdict may be inconclusive, but it does not contradict that of the full version.
#[test]
fn quick_peers_do_not_contradict_the_book() {
    let directory = tempfile::tempdir().unwrap();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let bench = Workbench { quick: true, directory: directory.path(), threads, watch: &|_: Stage<'_>| {} };
    let (made, recorded) = (reproduce(&Target::PEERS, &bench).unwrap(), recorded());
    assert_eq!(made.command, "floras reproduce peers --quick");
    assert_eq!((recorded.command.as_str(), recorded.quick), ("floras reproduce peers", false));
    assert_eq!(claims(&made).len(), claims(&recorded).len());
    for (quick, recorded) in claims(&made).iter().zip(claims(&recorded)) {
        assert_eq!(quick.claim, recorded.claim);
        let differs = quick.verdict != recorded.verdict;
        let open = [quick.verdict, recorded.verdict].contains(&Verdict::Inconclusive);
        assert!(!differs || open, "{quick:?} contradicts {recorded:?}");
    }
    // Most claims have large effects: few trials decide them.
    let is_open = |claim: &&Claim| claim.verdict == Verdict::Inconclusive;
    let (made, recorded) = (claims(&made), claims(&recorded));
    let more = made.iter().filter(|claim| is_open(claim)).count()
        - recorded.iter().filter(|claim| is_open(claim)).count();
    assert!(more <= 2, "{more} claims are inconclusive with few trials only");
}

#[test]
fn every_peer_names_its_open_choices() {
    for figure in recorded().figures {
        assert!(!figure.claims.is_empty() && !figure.conventions.is_empty(), "{}", figure.name);
        let names_the_rest =
            |note: &String| note.contains("Not compared:") || note.contains("are not reproduced");
        assert!(figure.notes.iter().any(names_the_rest), "{}", figure.name);
        assert!(figure.claims.iter().all(|claim| claim.ours.is_some()), "{}", figure.name);
        assert!(figure.panels.iter().all(|panel| panel.name.starts_with(&figure.name)), "{}", figure.name);
    }
}
