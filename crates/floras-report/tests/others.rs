//! Reports of sweeps and reproductions.

#![expect(clippy::unwrap_used, reason = "tests")]

#[expect(dead_code, reason = "each test file uses a part")]
mod common;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use common::{SMALL, report, words};
use floras_core::View;
use floras_privacy::{Statement, Views};
use floras_sim::figure::{Axis, Claim, Curve, Figure, Panel, PrivacyRow, Reproduction, Style, Verdict};
use floras_sim::{PreparedSweep, Sweep};

fn swept(directory: &Path, sequences: &str) {
    let private = "[privacy]\nclip = 1.0\n[uplink]\nreceiver = { clipped = 1.0 }\n";
    let text = format!("{SMALL}{private}[sweep]\nuplink.sequences = [{sequences}]\n");
    let sweep = Sweep::parse("a test", &text).unwrap();
    let mut prepared = PreparedSweep::new(sweep, directory, 2).unwrap();
    prepared.run(&|_| {}, &AtomicBool::new(false)).unwrap();
}

#[test]
fn sweeps_compare_their_points() {
    let directory = tempfile::tempdir().unwrap();
    swept(directory.path(), "20, 25");
    let page = report(directory.path());
    let text = words(&page);
    for word in [
        "uplink.sequences",
        "20 sequences",
        "25 sequences",
        "point 2",
        "verdict",
        "rounds done",
        "Final test accuracy against sequences N",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(page.contains("href=\"point-002/report.html\""));
    assert!(directory.path().join("point-002/report.html").exists());
    assert!(directory.path().join("plots/accuracy.png").exists());
    let point = fs::read_to_string(directory.path().join("point-002/report.html")).unwrap();
    assert!(point.contains("href=\"../report.html\""), "a point leads back to its sweep");
    let csv = fs::read_to_string(directory.path().join("plots/sweep-accuracy.csv")).unwrap();
    let places: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(places, ["20", "25"]);
    assert!(directory.path().join("plots/sweep-epsilon.svg").exists());
    assert!(!text.contains("Hollow"));
}

/// The paper's formula has no proof.
#[test]
fn unproven_points_of_sweeps_are_hollow() {
    let directory = tempfile::tempdir().unwrap();
    let private = "[privacy]\nclip = 1.0\nview = \"published\"\n";
    let text = format!("{SMALL}{private}[sweep]\nuplink.sequences = [25, 30]\n");
    let sweep = Sweep::parse("a test", &text).unwrap();
    PreparedSweep::new(sweep, directory.path(), 2).unwrap().run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let page = report(directory.path());
    assert!(words(&page).contains("Hollow points are not proven."));
    assert_eq!(page.matches("class=\"f i-paper\"").count(), 2);
}

#[test]
fn second_keys_get_a_line_each() {
    let directory = tempfile::tempdir().unwrap();
    let text = format!(
        "{SMALL}[sweep]\nuplink.receiver = [\"mmse\", {{ clipped = 2.0 }}]\nuplink.snr_db = [0.0, 10.0]\ndata.partition = [\"iid\"]\n"
    );
    let sweep = Sweep::parse("a test", &text).unwrap();
    PreparedSweep::new(sweep, directory.path(), 2).unwrap().run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let text = words(&report(directory.path()));
    assert!(text.contains("SNR 0 dB") && text.contains("clipped receiver c = 2"), "{text}");
    let csv = fs::read_to_string(directory.path().join("plots/sweep-accuracy.csv")).unwrap();
    let series: Vec<&str> = csv.lines().skip(1).filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(
        series,
        [
            "MMSE receiver, iid partition",
            "MMSE receiver, iid partition",
            "clipped receiver c = 2, iid partition",
            "clipped receiver c = 2, iid partition"
        ]
    );
}

#[test]
fn out_of_reach_epsilons_of_points_are_shown() {
    let directory = tempfile::tempdir().unwrap();
    let private = "[privacy]\nclip = 1.0\nview = \"raw-signal\"\n[uplink]\nsnr_db = 60.0\n";
    let text = format!("{SMALL}{private}[sweep]\nuplink.sequences = [20, 25]\n");
    let sweep = Sweep::parse("a test", &text).unwrap();
    PreparedSweep::new(sweep, directory.path(), 2).unwrap().run(&|_| {}, &AtomicBool::new(false)).unwrap();
    let text = words(&report(directory.path()));
    assert!(text.contains("> 10⁵") && text.contains("ε (raw-signal)"), "{text}");
    assert!(text.contains("The points 1, 2 have no finite ε and are not drawn."), "{text}");
    let point = fs::read_to_string(directory.path().join("point-001/report.html")).unwrap();
    assert!(words(&point).contains("ε > 10⁵") && !words(&point).contains("no finite ε holds"));
    let runs = floras_report::compare(&[directory.path().to_owned()]).unwrap().runs;
    assert!(runs.iter().all(|run| (run.epsilon, run.epsilon_above) == (None, Some(1e5))), "{runs:?}");
}

#[test]
fn twelve_points_are_drawn_and_all_listed() {
    let directory = tempfile::tempdir().unwrap();
    let sequences: Vec<String> = (20..33).map(|number| number.to_string()).collect();
    swept(directory.path(), &sequences.join(", "));
    let text = words(&report(directory.path()));
    assert!(text.contains("The first 12 of 13 points are drawn"), "{text}");
    assert!(text.contains("point 13"));
}

#[test]
fn damaged_sweep_tables_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("sweep.csv"), "a,b\n1,2\n").unwrap();
    let error = floras_report::write(directory.path()).unwrap_err();
    assert!(error.to_string().contains("sweep.csv is damaged"), "{error}");
}

fn reproduction(panel_name: &str) -> Reproduction {
    let curve = Curve {
        name: "FLORAS, γ = 5".to_owned(),
        colour: 1,
        style: Style::Dashed,
        x: vec![1.0, 10.0, 100.0],
        y: vec![Some(0.5), None, Some(5.0)],
        band: Some(vec![Some((0.4, 0.6)), None, Some((4.0, 6.0))]),
    };
    let axis = |label: &str| Axis { label: label.to_owned(), logarithmic: true, range: None };
    let panel = Panel {
        name: panel_name.to_owned(),
        title: "IID, 0 dB".to_owned(),
        x: axis("rounds"),
        y: axis("ε"),
        curves: vec![curve],
    };
    let claim = Claim {
        claim: "FLORAS gains <7.5> points".to_owned(),
        published: Some(7.5),
        ours: Some(3.25),
        ci95: Some(0.5),
        unit: "points".to_owned(),
        verdict: Verdict::NotReproduced,
        reason: "outside the interval".to_owned(),
    };
    let statement = |guarantee: bool| Statement {
        epsilon: Some(12.5),
        epsilon_lower: None,
        epsilon_above: None,
        assumptions: Vec::new(),
        guarantee,
        from_masks: false,
        covers_raw_samples: false,
        adversary: "someone".to_owned(),
        reason: None,
        details: Default::default(),
    };
    let views: Views =
        [(View::Published, statement(false)), (View::Actual, statement(true))].into_iter().collect();
    let figure = Figure {
        name: "fig4".to_owned(),
        title: "Figure 4".to_owned(),
        text: vec!["What is to be seen.".to_owned()],
        conventions: vec![("L".to_owned(), "32".to_owned())],
        panels: vec![panel],
        claims: vec![claim],
        privacy: vec![PrivacyRow { curve: "FLORAS".to_owned(), rounds: 300, delta: 1e-5, views }],
        notes: vec!["A note.".to_owned()],
    };
    Reproduction {
        version: "0.1.0".to_owned(),
        command: "floras reproduce fig4 --quick".to_owned(),
        quick: true,
        seed: 1,
        figures: vec![figure],
    }
}

#[test]
fn reproductions_show_figures_claims_and_conventions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("reproduction.json");
    fs::write(&file, serde_json::to_vec(&reproduction("fig4-iid")).unwrap()).unwrap();
    let text = words(&report(directory.path()));
    for word in [
        "Figure 4",
        "What is to be seen.",
        "FLORAS gains <7.5> points",
        "+7.5 points",
        "+3.25 ± 0.50 points",
        "not reproduced",
        "outside the interval",
        "(12.5)",
        "Verdicts on 1 published claim:",
        "A note.",
        "floras reproduce fig4 --quick",
        "quick version",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(directory.path().join("plots/fig4-iid.svg").exists());
}

#[test]
fn plots_stay_in_their_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("reproduction.json");
    for name in ["../away", "a/b", ".hidden", ""] {
        fs::write(&file, serde_json::to_vec(&reproduction(name)).unwrap()).unwrap();
        let error = floras_report::write(directory.path()).unwrap_err();
        assert!(error.to_string().contains("is not a valid name of a plot"), "{error}");
    }
}
