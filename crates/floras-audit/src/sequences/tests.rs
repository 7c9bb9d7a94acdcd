//! The attack as a whole.

use super::*;
use floras_sim::ExperimentBuilder;

fn federation(changes: &[&str]) -> Federation {
    let preset = ExperimentBuilder::preset("audit").unwrap();
    let changed = changes.iter().fold(preset, |builder, change| builder.assign(change).unwrap());
    Federation::new(&changed.build().unwrap()).unwrap()
}

fn attacked(changes: &[&str], rounds: u32) -> SequenceAttack {
    attack(&federation(changes), rounds).unwrap().unwrap()
}

fn row<'a>(attack: &'a SequenceAttack, detector: &str, knows_fading: bool) -> &'a DetectorResult {
    let wanted = |row: &&DetectorResult| row.detector == detector && row.knows_fading == knows_fading;
    attack.detectors.iter().find(wanted).unwrap()
}

const SETTINGS: [&[&str]; 4] = [
    &["uplink.snr_db=0"],
    &["uplink.snr_db=-10", "privacy.clip=3"],
    &["uplink.snr_db=0", "uplink.modulation=\"phase-corrected\"", "privacy.clip=10"],
    &["uplink.snr_db=-5", "uplink.fading={ rician = 5.0 }", "uplink.sequences=30"],
];

/// The likelihood ratio with full knowledge is the best of all detectors; on the same draws a worse one can be ahead by random
/// variation, by much less than 0.002 with 12,000 used and 3,000 unused sequences that all of them share.
#[test]
fn pilot_and_energy_together_beat_either_alone() {
    for changes in SETTINGS {
        let attack = attacked(changes, 600);
        let best = row(&attack, "both", true).area;
        for other in &attack.detectors {
            assert!(
                best > other.area - 0.002,
                "{changes:?}: {} reaches {}, and not {best}",
                other.detector,
                other.area
            );
        }
        let without = row(&attack, "both", false).area;
        let alone = row(&attack, "pilot", false).area.max(row(&attack, "energy", false).area);
        assert!(without > alone - 0.002, "{changes:?}: {without}, and {alone} alone");
    }
}

/// The threshold is measured from about 3,000 unused sequences, so the false-alarm rate has a relative standard error of a
/// fifth. Detections between the theory's at half and at twice the false alarms are within five of them.
#[test]
fn measured_detections_agree_with_theory() {
    for changes in SETTINGS {
        let federation = federation(changes);
        let attack = attack(&federation, 600).unwrap().unwrap();
        let uplink = &federation.experiment().settings().uplink;
        let scheme = uplink.scheme.floras().unwrap();
        let payload = Payload { dimensions: 4010.0, norm: norm(&federation).unwrap() };
        let floras = scheme.over_radio(&uplink.radio, 1).unwrap();
        let channels = floras.settings().channels.clone();
        let scene = Scene { floras, clients: vec![(0..20).collect()], payload, seed: 1 };
        let distribution =
            channels.fading().map(|fading| ChannelDistribution::new(fading, scheme.modulation));
        let mut compared = 0;
        for (detector, knows) in
            [(Detector::Pilot, false), (Detector::Pilot, true), (Detector::Energy, false)]
        {
            let found = row(&attack, detector.name(), knows);
            let theory = |alarms| theory_of(detector, knows, &scene, distribution.as_ref(), alarms).unwrap();
            assert_eq!(found.detections_in_theory, Some(theory(FALSE_ALARMS)));
            let (least, most) = (theory(0.5 * FALSE_ALARMS) - 0.01, theory(2.0 * FALSE_ALARMS) + 0.01);
            assert!((least..most).contains(&found.detections), "{changes:?} {found:?}: {least} to {most}");
            compared += 1;
        }
        assert_eq!(compared, 3);
    }
}

#[test]
fn rows_coincide_where_the_fading_is_uninformative() {
    let numbers = |row: &DetectorResult| (row.area, row.detections, row.exact_set);
    let symmetric = attacked(&["uplink.snr_db=0"], 200);
    let corrected = attacked(&["uplink.snr_db=0", "uplink.modulation=\"phase-corrected\""], 200);
    let both_of = |attack, name| (numbers(row(attack, name, false)), numbers(row(attack, name, true)));
    let (without, with) = both_of(&symmetric, "pilot");
    assert_eq!(without, with);
    // A known sign helps.
    let (without, with) = both_of(&corrected, "pilot");
    assert!(with.0 > without.0);
    for attack in [&symmetric, &corrected] {
        let (without, with) = both_of(attack, "energy");
        assert_eq!(without, with);
    }
}

#[test]
fn exact_recovery_grows_with_snr_and_norm() {
    let attack = attacked(&[], 600);
    let names: Vec<&str> = attack.panels.iter().map(|panel| panel.name.as_str()).collect();
    assert_eq!(names, ["sequences-roc", "sequences-snr", "sequences-d", "sequences-clip", "sequences-gamma"]);
    let ends = |panel: usize, curve: &str| {
        let curve = attack.panels[panel].curves.iter().find(|found| found.name == curve).unwrap();
        (curve.y[0].unwrap(), curve.y.last().unwrap().unwrap())
    };
    for detector in ["pilot", "energy", "both", "both, fading known"] {
        let ((bad, good), (small, large)) = (ends(1, detector), ends(2, detector));
        assert!(good > bad, "{detector}: {bad} at -10 dB, {good} at 40 dB");
        // A longer model hides the same norm in more noise.
        assert!(large <= small, "{detector}: {small} at d = 10, {large} at d = 10⁶");
        let (few, many) = ends(4, detector);
        assert!(many <= few, "{detector}: {few} at γ = 1, {many} at γ = 12");
    }
    assert!(ends(1, "both").1 > 0.9);
    // The pilot does not depend on the norm; the energy does.
    assert_eq!(ends(3, "pilot").0, ends(3, "pilot").1);
    assert!(ends(3, "energy").0 < 0.05 && ends(3, "energy").1 > 0.8);
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let federation = federation(&["uplink.snr_db=5"]);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| attack(&federation, 150).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn no_attack_without_hidden_sequences() {
    let cases: [&[&str]; 3] = [
        &["uplink.sequences=20"],
        &["uplink.scheme=\"ideal\""],
        &["uplink.family=\"gaussian\"", "uplink.receiver=\"mmse\""],
    ];
    for changes in cases {
        assert_eq!(attack(&federation(changes), 10).unwrap(), None, "{changes:?}");
    }
}

#[test]
fn unbounded_updates_have_their_mean_norm() {
    let federation = federation(&["privacy.clip=\"none\""]);
    let norm = norm(&federation).unwrap();
    // Ten steps of size 1 from the initial model exceed the clip norm of 1.
    assert!((1.0..100.0).contains(&norm), "{norm}");
    assert!(attack(&federation, 20).unwrap().is_some());
}

/// Twenty of 25 clients take part in a round, and only they have a coefficient in the file.
#[test]
fn a_trace_has_its_rounds_and_no_distribution() {
    let changes = ["clients.total=25", "rounds=12", "data.train=4000"];
    let without = federation(&changes);
    let recorded =
        (0..12).flat_map(|round| without.select(0, round + 1).into_iter().map(move |client| (round, client)));
    let line = |(round, client): (u32, u32)| format!("{round},{client},0.{}{client},-0.5\n", round % 10);
    let text = format!("round,client,real,imaginary\n{}", recorded.map(line).collect::<String>());
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.csv");
    std::fs::write(&path, text).unwrap();
    let trace = format!("uplink.fading={{ trace = \"{}\" }}", path.display());
    let federation = federation(&[&changes[..], &[trace.as_str(), "privacy.clip=\"none\""]].concat());
    let found = attack(&federation, 2000).unwrap().unwrap();
    assert_eq!((found.rounds, found.detectors.len()), (12, 3));
    assert!(found.detectors.iter().all(|row| !row.knows_fading && row.detections_in_theory.is_none()));
    let despread = crate::despreading::attack(&federation, 2000).unwrap().unwrap();
    assert_eq!((despread.rounds, despread.clients.len()), (12, 20));
}
