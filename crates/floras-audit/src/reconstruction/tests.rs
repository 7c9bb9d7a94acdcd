use floras_core::{Fading, SnrConvention};
use floras_sim::{Experiment, Preset};

use super::*;

fn federation(text: &str) -> Federation {
    Federation::new(&Experiment::parse("a test", text).unwrap()).unwrap()
}

fn of(text: &str) -> ReconstructionAttack {
    attack(&federation(text), 10).unwrap().unwrap()
}

const ALONE: &str =
    "[data]\ntrain = 50\ntest = 10\n[clients]\ntotal = 1\nper_round = 1\n[uplink]\nscheme = \"ideal\"\n";

#[test]
fn a_single_client_without_noise_is_reconstructed() {
    let found = of(ALONE);
    assert_eq!((found.width, found.height, found.originals.len()), (20, 20, 1));
    let [row] = &found.rows[..] else { panic!("{:?}", found.rows) };
    assert_eq!((row.source.as_str(), row.snr_db), ("decoded sum", None));
    assert!(row.correlations[0] > 0.999_999, "{:?}", row.correlations);
    // The ends of the stretched picture are percentiles; the values between are unchanged.
    let apart = found.originals[0].iter().zip(&row.images[0]).map(|(a, b)| a.abs_diff(*b)).max().unwrap();
    assert!(apart < 26, "{apart}");
    // The same through the other code path, and under the paper's normalisation.
    let text = format!("{ALONE}[privacy]\nclip = 63.0\nnormalise = \"paper\"\n");
    let federation = federation(&text);
    let round = Round::new(1, 0, 1, &[0]).unwrap();
    let subjects = pick_samples(&federation, &round).unwrap();
    let sent = updates(&federation, &subjects).unwrap();
    let seen = Update { values: &sent[0], classes: 10 }.sample();
    let original: Vec<f64> = subjects[0].features().iter().map(|&value| value.into()).collect();
    assert!(correlation(&seen, &original) > 0.999_999);
}

/// Under the preset's fixed seed. Independent noise has correlations of standard deviation 1/√400 = 0.05, and the mean of
/// ten of 0.016, so that 0.1 is six of those.
#[test]
fn despreading_reveals_what_the_sum_hides() {
    let found = of(Preset::find("audit").unwrap().text);
    let mean = |source: &str, snr_db: f64| {
        let row = found.rows.iter().find(|row| row.source == source && row.snr_db == Some(snr_db)).unwrap();
        assert_eq!((row.images.len(), row.correlations.len()), (10, 10));
        row.mean_correlation()
    };
    assert!(mean("despread update", 40.0) > 0.6);
    assert!(mean("despread update", 40.0) > mean("despread update", 20.0));
    assert!(mean("despread update", 20.0) > mean("despread update", 0.0) + 0.2);
    for snr_db in [40.0, 20.0, 0.0] {
        assert!(mean("decoded sum", snr_db).abs() < 0.1);
    }
}

/// A strong sum shows a class as the mean of its samples; two of them correlate enough for any digit.
#[test]
fn a_sum_without_noise_shows_its_classes() {
    let found = of("[uplink]\nscheme = \"ideal\"\n");
    assert!(found.rows[0].mean_correlation() > 0.5, "{:?}", found.rows[0].correlations);
}

#[test]
fn pictures_depend_on_the_seed_alone() {
    let text = Preset::find("audit").unwrap().text;
    let first = of(text);
    assert_eq!(of(text), first);
    assert_ne!(of(&text.replace("seed = 1", "seed = 2")).originals, first.originals);
}

#[test]
fn ten_portraits_show_ten_different_digits() {
    for partition in ["iid", "one-label"] {
        let text = format!("[data]\npartition = \"{partition}\"\n");
        let federation = federation(&text);
        let clients = federation.select(0, 1);
        let subjects = pick_samples(&federation, &Round::new(1, 0, 1, &clients).unwrap()).unwrap();
        let shown = portraits_of(&subjects, 10);
        let labels: Vec<u16> = shown.iter().map(|&place| label(&subjects[place])).collect();
        assert_eq!(labels, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9], "{partition}");
        assert_eq!(portraits_of(&subjects, 1000).len(), 20);
    }
}

#[test]
fn samples_without_pictures_are_not_reconstructed() {
    for text in ["[model]\nkind = \"mlp\"\n", "[data]\nset = \"synthetic\"\ntrain = 40\n"] {
        assert!(attack(&federation(text), 10).unwrap().is_none());
    }
}

#[test]
fn schemes_without_spreading_have_the_decoded_sum_alone() {
    let rows = |scheme: &str| -> Vec<(String, Option<f64>)> {
        let found = of(&format!("[uplink]\nscheme = \"{scheme}\"\n"));
        found.rows.iter().map(|row| (row.source.clone(), row.snr_db)).collect()
    };
    let sum = |snr_db: Option<f64>| ("decoded sum".to_owned(), snr_db);
    assert_eq!(rows("gaussian"), [sum(None)]);
    for scheme in ["channel-inversion", "phase-corrected"] {
        assert_eq!(rows(scheme), [40.0, 20.0, 0.0].map(|snr_db| sum(Some(snr_db))));
    }
}

/// `a_jᵀ Σ_k a_k h_k x_k`, written out with whole sequences, at 100 dB where the noise is below 1e-4 of it.
#[test]
fn overlapping_sequences_carry_something_of_everyone() {
    let text = "[clients]\ntotal = 4\nper_round = 4\n[uplink]\nsequences = 5\nlength = 6\nfamily = \"gaussian\"\n\
                [privacy]\nclip = 63.0\nnormalise = \"paper\"\n";
    let federation = federation(text);
    let settings = federation.experiment().settings();
    let clients = [0, 1, 2, 3];
    let round = Round::new(settings.seed, 0, 1, &clients).unwrap();
    let subjects = pick_samples(&federation, &round).unwrap();
    let updates = updates(&federation, &subjects).unwrap();
    let canvas = Canvas::of(&settings.data.set).unwrap();
    let scene = Scene { federation: &federation, round, canvas, subjects, updates, portraits: vec![2] };
    let scheme = settings.uplink.scheme.floras().unwrap();
    let snr = floras_core::Snr::new(100.0, SnrConvention::Symbol).unwrap();
    let uplink =
        scheme.over(settings.uplink.radio.length, Fading::Rayleigh.into(), snr, settings.seed).unwrap();
    let despread = uplink.despread(&round).unwrap();
    let found = scene.on_sequence_of(2, &uplink.settings().sequences, &despread, 0.0).unwrap();
    let sequence = |client: usize| uplink.settings().sequences.sequence(despread.assigned[client]).unwrap();
    let overlap =
        |client: usize| -> f64 { sequence(2).iter().zip(sequence(client)).map(|(a, b)| a * b).sum() };
    assert!(overlap(0).abs() > 1e-3);
    for parameter in (0..4010).step_by(7) {
        let term = |client: usize| {
            overlap(client) * despread.amplitudes[client] * f64::from(scene.updates[client][parameter])
        };
        let expected: f64 = (0..4).map(term).sum();
        assert!((f64::from(found[parameter]) - expected).abs() < 1e-3);
    }
}
