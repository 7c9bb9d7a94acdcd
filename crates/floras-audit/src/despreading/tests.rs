//! The attack as a whole, and its parts.

use super::*;
use floras_sim::ExperimentBuilder;

fn federation(preset: &str, changes: &[&str]) -> Federation {
    let preset = ExperimentBuilder::preset(preset).unwrap();
    let changed = changes.iter().fold(preset, |builder, change| builder.assign(change).unwrap());
    Federation::new(&changed.build().unwrap()).unwrap()
}

fn attacked(preset: &str, changes: &[&str], rounds: u32) -> DespreadingAttack {
    attack(&federation(preset, changes), rounds).unwrap().unwrap()
}

/// `x̂` is `x` with noise of norm `s√d/|ĥ|`, so the correlation is `|h|C/√(h²C² + s²d)` up to about `1/√d = 0.016`; 4.5 of
/// those are exceeded once in 7,000 cases with 20 clients. Without its noise the first client's value would be 0.2 too high.
#[test]
fn correlations_follow_from_signal_and_noise() {
    let attack = attacked("audit", &[], 2);
    let noise = 4010.0 * 0.01 / 32.0;
    assert_eq!(attack.clients.len(), 20);
    for client in &attack.clients {
        let h = client.amplitude;
        let expected = h / (h * h + noise).sqrt();
        assert!(
            (client.correlation - expected).abs() < 4.5 / 4010.0_f64.sqrt(),
            "{client:?} and not {expected}"
        );
    }
}

#[test]
fn without_noise_updates_are_recovered_exactly() {
    let attack = attacked("audit", &["uplink.snr_db=inf", "uplink.sequences=20"], 2);
    assert!(attack.clients.iter().all(|client| client.correlation > 0.9999 && client.relative_error < 1e-5));
    let shares =
        [attack.linked_in_round, attack.linked_by_strength, attack.linked_across_rounds, attack.named];
    assert_eq!(shares, [1.0; 4]);
}

/// 400 identifications and 380 links; a share of 0.05 has a standard error of 0.011, and five of them are 0.055. The detected
/// sequences are then in use with probability 0.8, with a standard error of at most 0.02.
#[test]
fn in_deep_noise_every_guess_is_random() {
    let attack = attacked("digits-iid", &["uplink.snr_db=-60"], 20);
    assert_eq!((attack.rounds, attack.at_random), (20, 0.05));
    for share in [attack.linked_by_strength, attack.linked_across_rounds, attack.named] {
        assert!(share < 0.105, "{attack:?}");
    }
    assert!((attack.linked_in_round - 0.8).abs() < 0.1, "{attack:?}");
}

/// An epoch's update identifies its data; at 20 dB nearly all clients are identified.
#[test]
fn clients_are_identified_by_their_data() {
    for (preset, settings) in [("digits-iid", &[][..]), ("digits-noniid", &[]), ("fig5", &["local.epochs=1"])]
    {
        let attack = attacked(preset, settings, 4);
        assert!(attack.named > 0.9 && attack.linked_in_round > 0.9, "{preset}: {attack:?}");
        assert!(attack.linked_across_rounds > 0.4 && attack.linked_by_strength > 0.5, "{preset}: {attack:?}");
    }
}

#[test]
fn one_round_gets_a_second_for_linking() {
    let federation = federation("audit", &["uplink.snr_db=40"]);
    assert_eq!(federation.rounds(), 1);
    let attack = attack(&federation, 1).unwrap().unwrap();
    assert_eq!(attack.rounds, 2);
    assert!(attack.linked_across_rounds > 0.9);
}

#[test]
fn only_clients_of_both_rounds_can_be_linked() {
    let attack = attacked("quick", &[], 3);
    assert!((0.0..=1.0).contains(&attack.linked_across_rounds) && attack.named > attack.at_random);
    let recovered = |owners: &[Option<u32>], present: &[u32]| Recovered {
        owners: owners.to_vec(),
        updates: vec![vec![1.0, 0.0], vec![0.0, 1.0]],
        present: present.to_vec(),
    };
    let before = recovered(&[Some(3), Some(8)], &[3, 8]);
    assert_eq!(link(&before, &recovered(&[Some(3), Some(9)], &[]), &[3, 9]), (1, 1));
    // An unused sequence belongs to no client, in both rounds.
    let unused = recovered(&[None, Some(8)], &[3, 8]);
    assert_eq!(link(&unused, &recovered(&[None, Some(8)], &[]), &[3, 8]), (1, 2));
}

#[test]
fn the_same_order_gives_the_same_update() {
    let federation = federation("digits-noniid", &["privacy.clip=\"none\""]);
    let options = TrialOptions { keep_sent: true, ..TrialOptions::default() };
    let mut trial = Trial::begin_with(&federation, Domain::Despreading.trial(0), options).unwrap();
    trial.step().unwrap();
    let (same, other) = (
        trial.expected_updates(Domain::Despreading.trial(0)).unwrap(),
        trial.expected_updates(Domain::Naming.trial(0)).unwrap(),
    );
    let sent = trial.step().unwrap().sent;
    assert_eq!(sent, same);
    assert_ne!(sent, other);
}

#[test]
fn nothing_depends_on_the_number_of_threads() {
    let federation = federation("digits-iid", &[]);
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| attack(&federation, 3).unwrap())
    };
    assert_eq!(with(1), with(3));
}

#[test]
fn only_spreading_without_overlap_is_attacked() {
    for changes in
        [&["uplink.scheme=\"ideal\""][..], &["uplink.family=\"gaussian\"", "uplink.receiver=\"mmse\""]]
    {
        assert_eq!(attack(&federation("audit", changes), 2).unwrap(), None);
    }
}
