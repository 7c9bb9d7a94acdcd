//! Extreme settings of every scheme that an experiment can name: each is refused with a message, or has rounds with finite costs.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_phy::{ClientMemory, Round};
use floras_sim::schemes::{SchemeEntry, all};
use floras_sim::{Experiment, ExperimentError};

/// Values that every key of a scheme is set to. Those that are not of its type, or out of its range, are refused.
const VALUES: [&str; 17] = [
    "0",
    "1",
    "2",
    "64",
    "4096",
    "65535",
    "1e-30",
    "1e-12",
    "1e-9",
    "1e-3",
    "0.999",
    "1.0",
    "1e12",
    "1e30",
    "\"amplitude=1e-9\"",
    "\"amplitude=3\"",
    "\"power=1e-18\"",
];
/// SNR in decibels, sequence length, fading and number of clients.
const RADIOS: [(&str, u32, &str, u32); 6] = [
    ("-100.0", 32, "rayleigh", 20),
    ("-100.0", 1 << 24, "nakagami=0.5", 3),
    ("100.0", 1 << 24, "rayleigh", 1),
    ("100.0", 32, "none", 20),
    ("inf", 32, "rayleigh", 3),
    ("10.0", 32, "rician=1e6", 20),
];

fn experiment(
    scheme: &SchemeEntry,
    setting: &str,
    (snr_db, length, fading, clients): (&str, u32, &str, u32),
) -> Result<Experiment, ExperimentError> {
    let name = scheme.name();
    let text = format!(
        "[clients]\ntotal = {clients}\nper_round = {clients}\n[privacy]\nclip = 1.0\n\
         [uplink]\nscheme = \"{name}\"\nsnr_db = {snr_db}\nlength = {length}\nfading = \"{fading}\"\n{setting}\n"
    );
    Experiment::parse(name, &text)
}

/// Whether a round has a result. If it has none, it has an error with a message.
fn has_finite_round(experiment: &Experiment) -> bool {
    let settings = experiment.settings();
    let clients: Vec<u32> = (0..settings.clients.per_round).collect();
    let update = |client: &u32| vec![0.5, -0.5, 0.1 * *client as f32, 0.0, 1e-20];
    let updates: Vec<Vec<f32>> = clients.iter().map(update).collect();
    let round = Round::new(1, 0, 1, &clients).unwrap();
    let Ok(uplink) = settings.build_uplink(1) else { return false };
    let (mut memory, sum) = (ClientMemory::default(), vec![0.0; 5]);
    let Ok(aggregate) =
        settings.aggregation().run_in(uplink.as_ref(), round, &updates, Some(&mut memory), sum)
    else {
        return false;
    };
    assert!(aggregate.sum.iter().all(|value| value.is_finite()));
    if let Some(cost) = aggregate.cost(uplink.as_ref(), &round).unwrap() {
        let numbers = [cost.power_mean, cost.power_peak, cost.energy, cost.dynamic_range_db.unwrap_or(0.0)];
        assert!(numbers.iter().all(|number| number.is_finite()), "{cost:?}");
        assert!(cost.channel_uses() < 1 << 60, "{cost:?}");
    }
    true
}

#[test]
fn extreme_settings_have_finite_costs() {
    for scheme in all() {
        let (mut allowed, mut finite) = (0, 0);
        let settings = scheme.keys().iter().flat_map(|key| VALUES.map(|value| format!("{key} = {value}")));
        for setting in settings.chain([String::new()]) {
            for radio in RADIOS {
                if let Ok(experiment) = experiment(&scheme, &setting, radio) {
                    allowed += 1;
                    finite += usize::from(has_finite_round(&experiment));
                }
            }
        }
        assert!(2 * finite > allowed && finite > 3, "{}: {finite} of {allowed}", scheme.name());
    }
}

#[test]
fn thresholds_that_no_client_reaches_are_refused() {
    let radio = ("10.0", 32, "rayleigh", 20);
    let mut refused = 0;
    for scheme in all().iter().filter(|scheme| scheme.keys().contains(&"admission")) {
        let setting = "admission = { amplitude = 1000.0 }";
        let error = experiment(scheme, setting, radio).unwrap_err().to_string();
        let expected = "uplink.admission: the admission threshold for |h| must be an amplitude that a client's channel reaches with a \
                        probability of at least 1e-6, not 1000";
        assert_eq!(error, expected, "{}", scheme.name());
        assert!(experiment(scheme, "admission = { amplitude = 3.0 }", radio).is_ok());
        refused += 1;
    }
    assert_eq!(refused, 7);
}

#[test]
fn rates_without_any_bits_are_refused() {
    let digital = all().into_iter().find(|scheme| scheme.name() == "digital").unwrap();
    let error =
        experiment(&digital, "outage = 1e-9", ("-100.0", 32, "rayleigh", 20)).unwrap_err().to_string();
    assert!(
        error.starts_with("uplink.outage: the rate by outage of a single client must be at least 1e-6 bits"),
        "{error}"
    );
    assert!(error.ends_with("; give more than 0.000000001 at -100 dB"), "{error}");
    assert!(experiment(&digital, "outage = 1e-3", ("10.0", 32, "rayleigh", 20)).is_ok());
}
