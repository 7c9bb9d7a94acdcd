//! Reports of audits.

#![expect(clippy::unwrap_used, reason = "tests")]

mod common;

use std::fs;
use std::path::Path;

use common::{SMALL, report, run_into, words};
use floras_audit::{
    AssumptionAttack, Attacks, AuditReport, AuditVerdict, AuditedView, AuditedViews, CollusionAttack,
    DespreadClient, DespreadingAttack, DetectorResult, MaskAttack, MaskRow, Measured, MembershipGame,
    ReconstructionAttack, ReconstructionRow, SequenceAttack, Verdicts,
};
use floras_core::View;
use floras_report::Kind;
use floras_sim::figure::{Axis, Curve, Panel, Style};

fn view(published: Option<f64>, rigorous: Option<f64>, lower_bound: f64, claims_it: bool) -> AuditedView {
    let on = |claim: Option<f64>| claim.map(|claim| AuditVerdict::on(claim, lower_bound));
    AuditedView {
        published,
        rigorous,
        is_guarantee: true,
        lower_bound,
        confidence: 0.97,
        verdict: Verdicts { published: on(published), rigorous: on(rigorous) },
        adversary: "someone <curious>".to_owned(),
        published_claims_it: claims_it,
        measured: Measured { games: 54_321, right: 43_210, wrong: 17, ceiling: 9.375 },
    }
}

fn raw_signal() -> AuditedViews {
    let mut views = AuditedViews::default();
    views.insert(View::RawSignal, view(Some(1.986), None, 7.25, false));
    views
}

fn assumption(margin: Option<&str>, with_margin: Option<f64>) -> AssumptionAttack {
    AssumptionAttack {
        assumption: "pilots are quiet".to_owned(),
        attack: "a pilot is loud".to_owned(),
        delta: 1e-3,
        stated: Some(3.125),
        margin: margin.map(str::to_owned),
        with_margin,
        lower_bound: 5.625,
        confidence: 0.91,
        stated_is: Some(AuditVerdict::Violated),
        with_margin_is: with_margin.map(|claim| AuditVerdict::on(claim, 5.625)),
        measured: Measured { games: 300, right: 200, wrong: 1, ceiling: 9.5 },
    }
}

fn masks() -> MaskAttack {
    let row = |attack: &str, stated: f64| MaskRow {
        attack: attack.to_owned(),
        stated,
        lower_bound: 2.375,
        verdict: AuditVerdict::on(stated, 2.375),
        measured: Measured { games: 777, right: 444, wrong: 3, ceiling: 6.25 },
    };
    MaskAttack {
        clients: 10,
        per_round: 12_345,
        parameters: 8,
        mask_std: 7.875,
        noise_std: 0.6875,
        delta: 1e-5,
        confidence: 0.89,
        replays_requested: 20,
        replays_refused: 20,
        adversaries: vec![row("hears all <symbols>", 2.625)],
        broken: vec![row("noise is missing", 1.125)],
    }
}

fn panel(name: &str) -> Panel {
    let axis = |label: &str| Axis { label: label.to_owned(), logarithmic: false, range: None };
    let curve = Curve {
        name: "pilot and energy".to_owned(),
        colour: 0,
        style: Style::Solid,
        x: vec![0.0, 0.5, 1.0],
        y: vec![Some(0.0), Some(0.9), Some(1.0)],
        band: None,
    };
    Panel {
        name: name.to_owned(),
        title: "Detections over false alarms".to_owned(),
        x: axis("false alarms"),
        y: axis("detections"),
        curves: vec![curve],
    }
}

fn portraits() -> ReconstructionAttack {
    let image = |shift: usize| (0..36).map(|pixel| ((pixel * 37 + shift) % 256) as u8).collect::<Vec<u8>>();
    let row = |source: &str, snr_db: Option<f64>, correlations: [f64; 2]| ReconstructionRow {
        source: source.to_owned(),
        snr_db,
        images: vec![image(5), image(9)],
        correlations: correlations.to_vec(),
    };
    ReconstructionAttack {
        width: 6,
        height: 6,
        originals: vec![image(0), image(1)],
        rows: vec![row("despread update", Some(40.0), [0.98, 0.43]), row("decoded sum", None, [-0.12, 0.06])],
        settings: vec![
            ("clip norm C".to_owned(), "63.32".to_owned()),
            ("unused γ".to_owned(), "5".to_owned()),
        ],
    }
}

fn audit() -> AuditReport {
    let client = |client: u32, amplitude: f64| DespreadClient {
        client,
        amplitude,
        correlation: 0.8125,
        relative_error: 0.0625,
    };
    let game = MembershipGame {
        level: "item".to_owned(),
        canary: "natural".to_owned(),
        rounds: 300,
        view: "raw signal".to_owned(),
        published: Some(21.5),
        rigorous: None,
        is_guarantee: false,
        lower_bound: 0.625,
        confidence: 0.95,
        verdict: Verdicts { published: Some(AuditVerdict::Consistent), rigorous: None },
        accuracy: 0.715,
        measured: Measured { games: 1234, right: 1000, wrong: 55, ceiling: 5.125 },
    };
    let mut views = raw_signal();
    views.insert(View::Idealised, view(Some(1.986), Some(4.103), 2.875, true));
    AuditReport {
        version: "0.1.0".to_owned(),
        name: "made-up".to_owned(),
        command: Some("floras audit quick --games 4000".to_owned()),
        seed: 77,
        parameters: 4010,
        rounds: 3,
        delta: 1e-5,
        confidence: 0.97,
        settings: vec![("fading".to_owned(), "Rayleigh".to_owned())],
        views,
        attacks: Attacks {
            sequences: Some(SequenceAttack {
                rounds: 2000,
                sequences: 25,
                in_use: 20,
                detectors: vec![DetectorResult {
                    detector: "energy".to_owned(),
                    knows_fading: true,
                    area: 0.8765,
                    detections: 0.654,
                    detections_in_theory: Some(0.651),
                    exact_set: 0.0004,
                }],
                panels: vec![panel("roc")],
            }),
            despreading: Some(DespreadingAttack {
                clients: vec![client(3, 0.25), client(8, 1.75)],
                linked_in_round: 0.99,
                linked_by_strength: 0.41,
                linked_across_rounds: 0.17,
                named: 0.88,
                at_random: 0.05,
                rounds: 64,
            }),
            reconstruction: Some(portraits()),
            membership: vec![game],
            collusion: Some(CollusionAttack {
                rigorous_without: Some(4.103),
                rigorous_with: None,
                lower_bound_without: 2.5,
                lower_bound_with: 6.5,
                confidence: 0.93,
                noise_std_without: 12.5,
                noise_std_with: 0.875,
                named: 0.96,
            }),
            assumptions: vec![assumption(Some("a_margin = 2"), Some(9.625)), assumption(None, None)],
            masks: Some(masks()),
        },
        notes: vec!["A note & more.".to_owned()],
    }
}

fn put(directory: &Path, audit: &AuditReport) {
    fs::write(directory.join("audit.json"), serde_json::to_vec(audit).unwrap()).unwrap();
}

fn reported(audit: &AuditReport) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    put(directory.path(), audit);
    let page = report(directory.path());
    (directory, page)
}

#[test]
fn audits_show_claims_measurements_and_attacks() {
    let (directory, page) = reported(&audit());
    assert_eq!(Kind::of(directory.path()).unwrap(), Kind::Audit);
    let text = words(&page);
    for word in [
        "made-up",
        "pilots are quiet",
        "a pilot is loud",
        "3.125",
        "5.625",
        "a_margin = 2",
        "9.625",
        "no setting",
        "91 %",
        "4010",
        "3 rounds",
        "10⁻⁵",
        "97 %",
        "someone <curious>", // what
        "1.986",
        "4.103",
        "2.875",
        "7.250",
        "54\u{202f}321",
        "43\u{202f}210",
        "17",
        "9.375", // views
        "✗ violated",
        "✓ consistent",
        "not claimed",
        "none", // verdicts
        "Violated: 1 of 1 published and 0 of 1 rigorous claims.",
        "despread update, 40 dB",
        "decoded sum",
        "0.705",
        "−0.030",
        "0.98",
        "0.43",
        "−0.12",
        "0.06", // pictures
        "clip norm C: 63.32; unused γ: 5",
        "energy",
        "0.8765",
        "65.4 %",
        "65.1 %",
        "0.04 %",
        "2000 rounds",
        "25 sequences", // sequences
        "client 8",
        "1.750",
        "0.250",
        "0.812",
        "0.062",
        "99 %",
        "41 %",
        "17 %",
        "88 %",
        "5 %",
        "64 rounds",
        "item, natural canary",
        "300",
        "raw-signal",
        "21.5",
        "0.625",
        "71.5 %",
        "1234",
        "5.125",
        "2.500",
        "6.500",
        "93 %",
        "12.5",
        "0.875",
        "96 %", // collusion
        "10 clients, σ_m = 7.8750, σ_z = 0.6875, 8 parameters",
        "They represent 12\u{202f}345",
        "89 %",
        "hears all <symbols>",
        "2.625",
        "noise is missing",
        "1.125",
        "2.375",
        "777",
        "6.250", // masks
        "A note & more.",
        "seed 77",
        "floras 0.1.0",
        "Rayleigh",
    ] {
        assert!(text.contains(word), "no {word} in {text}");
    }
    let place = |heading: &str| text.find(heading).unwrap_or_else(|| panic!("no {heading}"));
    let parts = [
        "Over the air",
        "Claims and measurements",
        "Pictures from updates",
        "Which sequences",
        "The updates of single",
    ];
    let rest = ["Who, or what, took part?", "One client reveals", "Rounds with masks", "Notes"];
    let order: Vec<usize> = parts.iter().chain(&rest).map(|heading| place(heading)).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert!(place("client 8") < place("client 3"), "the strongest first");
}

/// The published ε of 1.986 is below the measured 7.25, but the paper does not claim it against this adversary; against the
/// decoder of the games it claims nothing at all.
#[test]
fn claims_that_do_not_exist_hold() {
    let mut harmless = audit();
    harmless.views = raw_signal();
    harmless.attacks.assumptions.clear();
    harmless.attacks.masks = None;
    harmless.attacks.membership[0].published = None;
    harmless.attacks.membership[0].verdict.published = None;
    let (_directory, page) = reported(&harmless);
    let text = words(&page);
    assert!(text.contains("Violated: 0 of 0 published and 0 of 0 rigorous claims."), "{text}");
    assert_eq!(text.matches("not claimed").count(), 2, "{text}");
    assert!(!text.contains("✗"), "{text}");
}

#[test]
fn pictures_are_files_and_in_the_page() {
    let (directory, page) = reported(&audit());
    let svg = fs::read_to_string(directory.path().join("plots/reconstruction.svg")).unwrap();
    for (text, what) in [(&svg, "the file"), (&page, "the page")] {
        let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
        let document = roxmltree::Document::parse_with_options(text, options).unwrap();
        let images = document.descendants().filter(|node| node.tag_name().name() == "image");
        assert_eq!(images.count(), 6, "{what}");
    }
    assert!(svg.contains("unused γ: 5") && svg.contains("despread update, 40 dB"));
    assert!(page.contains("aria-label=\"2 original pictures"));
    for name in ["reconstruction", "roc"] {
        assert!(
            fs::read(directory.path().join(format!("plots/{name}.png"))).unwrap().starts_with(b"\x89PNG")
        );
    }
    // Ten portraits of 32×32 pixels in seven rows, without two equal neighbours.
    let mut large = audit();
    let image: Vec<u8> = (0..1024_u32).map(|pixel| (pixel.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let row = ReconstructionRow {
        source: "despread update".to_owned(),
        snr_db: Some(0.0),
        images: vec![image.clone(); 10],
        correlations: vec![0.5; 10],
    };
    large.attacks.reconstruction = Some(ReconstructionAttack {
        width: 32,
        height: 32,
        originals: vec![image; 10],
        rows: vec![row; 6],
        settings: Vec::new(),
    });
    let (directory, _) = reported(&large);
    assert!(fs::metadata(directory.path().join("plots/reconstruction.svg")).unwrap().len() < 500_000);
}

#[test]
fn parts_that_are_absent_are_left_out() {
    let mut bare = audit();
    bare.attacks = Attacks::default();
    bare.notes.clear();
    let (directory, page) = reported(&bare);
    assert!(!words(&page).contains("Pictures from updates"));
    assert!(!directory.path().join("plots").exists());
    bare.views = AuditedViews::default();
    let (_directory, page) = reported(&bare);
    assert!(words(&page).contains("No adversary applies to this experiment."));
    // The brief form has no curves and no pictures, but their numbers.
    let (_directory, page) = reported(&audit().brief());
    let text = words(&page);
    assert!(text.contains("despread update, 40 dB") && text.contains("0.705"), "{text}");
}

#[test]
fn audits_of_runs_are_sections() {
    let directory = tempfile::tempdir().unwrap();
    run_into(directory.path(), SMALL);
    put(directory.path(), &audit());
    assert_eq!(Kind::of(directory.path()).unwrap(), Kind::Run);
    let text = words(&report(directory.path()));
    for word in
        ["handwritten digits", "Audit", "✗ violated", "despread update, 40 dB", "Labels of each client"]
    {
        assert!(text.contains(word), "no {word} in {text}");
    }
    assert!(directory.path().join("plots/reconstruction.png").exists());
    assert!(directory.path().join("plots/accuracy.png").exists());
}

#[test]
fn a_damaged_audit_is_refused() {
    let refusal = |text: &[u8]| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("audit.json"), text).unwrap();
        let error = floras_report::write(directory.path()).unwrap_err();
        assert!(error.is_input());
        assert!(error.to_string().contains("audit.json is damaged"), "{error}");
        error.to_string()
    };
    refusal(b"{");
    refusal(b"{\"name\":\"x\"}");
    let mut wrong = audit();
    wrong.attacks.sequences.as_mut().unwrap().panels = vec![panel("../away")];
    assert!(refusal(&serde_json::to_vec(&wrong).unwrap()).contains("is not a valid name of a plot"));
    let mut wrong = audit();
    wrong.attacks.reconstruction.as_mut().unwrap().rows[1].images[0].pop();
    assert!(refusal(&serde_json::to_vec(&wrong).unwrap()).contains("pictures"));
    let mut wrong = audit();
    wrong.attacks.reconstruction.as_mut().unwrap().rows[0].images.pop();
    refusal(&serde_json::to_vec(&wrong).unwrap());
    let mut wrong = audit();
    wrong.attacks.reconstruction.as_mut().unwrap().width = usize::MAX;
    refusal(&serde_json::to_vec(&wrong).unwrap());
}
