//! Corners in which a scheme's bound does not hold: the setting is refused, or the statement counts what the adversary sees.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use floras_core::View;
use floras_privacy::{Views, gaussian};
use floras_sim::ExperimentBuilder;
use floras_sim::inquiry::ExperimentAccount;

fn built(settings: &[&str]) -> ExperimentBuilder {
    settings.iter().fold(ExperimentBuilder::new(), |builder, assignment| builder.assign(assignment).unwrap())
}

fn views(settings: &[&str]) -> Views {
    let experiment = built(settings).build().unwrap();
    ExperimentAccount::new(&experiment).unwrap().report().unwrap().views
}

fn refusal(settings: &[&str]) -> String {
    built(settings).build().unwrap_err().to_string()
}

/// The least `ε` of a client that takes part in each of `rounds` rounds with the probability `p`, visibly, with `μ = 1` in each:
/// `δ(ε) = Σ_j Bin(T, p)(j)·δ_G(ε; √j)`.
fn visible_participation(rounds: u32, p: f64, delta: f64) -> f64 {
    let of_rounds = |epsilon: f64| {
        let mut probability = (1.0 - p).powi(rounds as i32);
        let mut sum = 0.0;
        for number in 1..=rounds {
            probability *= f64::from(rounds + 1 - number) / f64::from(number) * p / (1.0 - p);
            sum += probability * gaussian::delta(epsilon, f64::from(number).sqrt());
        }
        sum
    };
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if of_rounds(middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// Only client 0 is ever received, so that everyone sees when it takes part.
#[test]
fn traces_show_who_takes_part() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace.csv");
    let mut text = "round,client,real,imaginary\n".to_owned();
    for round in 0..10 {
        for client in 0..10 {
            let amplitude = if client == 0 { 2.0 } else { 0.1 };
            text.push_str(&format!("{round},{client},{amplitude},0\n"));
        }
    }
    fs::write(&trace, text).unwrap();
    let expected = visible_participation(10, 0.1, 1e-5);
    let shared = ["rounds=10", "trials=1", "privacy.clip=1", "clients.total=10", "clients.per_round=1"];
    let fading = format!("uplink.fading=trace={}", trace.display());
    for scheme in [
        &["uplink.scheme=digital", "uplink.central_noise_std=2", "uplink.rate=2", "uplink.snr_db=10"][..],
        &[
            "uplink.scheme=power-control",
            "uplink.min_noise_std=2",
            "uplink.admission=amplitude=0.5",
            "uplink.snr_db=0",
        ],
    ] {
        let views = views(&[&shared[..], scheme, &[&fading]].concat());
        let statement = views.get(View::Actual).unwrap();
        let epsilon = statement.epsilon.unwrap();
        assert!(
            statement.guarantee && epsilon >= expected * (1.0 - 1e-9),
            "{scheme:?}: {epsilon}, {expected}"
        );
        assert!(epsilon < 1.001 * expected, "{scheme:?}: {epsilon}, {expected}");
    }
}

#[test]
fn places_in_a_cell_show_who_takes_part() {
    let settings = [
        "rounds=10",
        "privacy.clip=1",
        "clients.total=20",
        "clients.per_round=2",
        "uplink.scheme=power-control",
        "uplink.min_noise_std=2",
        "uplink.snr_db=0",
    ];
    let equal = views(&settings);
    let placed = views(&[&settings[..], &["uplink.path_loss=exponent=3.7"]].concat());
    let epsilon = |views: &Views, view| views.get(view).unwrap().epsilon.unwrap();
    for view in [View::Actual, View::RawSignal] {
        assert!(epsilon(&equal, view) < epsilon(&equal, View::AnyChannel));
        assert_eq!(epsilon(&placed, view), epsilon(&placed, View::AnyChannel));
    }
}

#[test]
fn bits_are_sent_at_one_power() {
    let settings =
        ["uplink.scheme=digital", "uplink.levels=0", "uplink.central_noise_std=4", "privacy.clip=1"];
    let message = refusal(&[&settings[..], &["uplink.power=unit"]].concat());
    assert!(message.starts_with("uplink.power: "), "{message}");
}

/// Quantised sums of update and local noise are longer than `C`, so that noise of the base station has no bound of its own.
#[test]
fn quantised_local_noise_has_its_own_bound_only() {
    let settings = [
        "rounds=1",
        "privacy.clip=1",
        "clients.total=20",
        "clients.per_round=20",
        "uplink.scheme=digital",
        "uplink.central_noise_std=4",
        "masks.noise_std=0.5",
    ];
    let local = gaussian::epsilon(1e-5, 2.0 / 0.5).unwrap();
    let epsilon = |levels: &str| {
        let views = views(&[&settings[..], &[levels]].concat());
        views.get(View::Actual).unwrap().epsilon.unwrap()
    };
    assert!(epsilon("uplink.levels=1") >= local * (1.0 - 1e-9));
    assert!(epsilon("uplink.levels=0") < 0.2 * local);
}

#[test]
fn votes_need_independent_channels() {
    let vote = ["uplink.scheme=fsk-vote", "privacy.clip=1"];
    for (setting, key) in [
        ("uplink.ageing=correlation=0.9", "uplink.ageing: "),
        ("uplink.channel_error=0.1", "uplink.channel_error: "),
    ] {
        let message = refusal(&[&vote[..], &[setting]].concat());
        assert!(message.starts_with(key), "{message}");
    }
}

#[test]
fn weights_by_samples_are_an_assumption() {
    let settings = ["uplink.scheme=digital", "uplink.central_noise_std=4", "privacy.clip=1", "rounds=1"];
    let assumes = |weights: &str| {
        let views = views(&[&settings[..], &[weights]].concat());
        let assumptions = &views.get(View::Actual).unwrap().assumptions;
        assumptions.iter().any(|words| words.contains("numbers of samples are public"))
    };
    assert!(assumes("clients.weights=samples") && !assumes("clients.weights=equal"));
}

/// The list of participants, or a colluding client, shows who takes part. At this SNR the minimum noise decides: `μ = 2/2`.
#[test]
fn masks_show_who_takes_part() {
    let settings = [
        "rounds=1",
        "privacy.clip=1",
        "clients.total=40",
        "clients.per_round=4",
        "uplink.scheme=power-control",
        "uplink.min_noise_std=2",
        "uplink.snr_db=40",
        "masks.noise_std=1e-6",
    ];
    let expected = visible_participation(1, 0.1, 1e-5);
    let epsilon = |more: &[&str]| {
        let views = views(&[&settings[..], more].concat());
        View::RIGOROUS.map(|view| views.get(view).and_then(|statement| statement.epsilon))
    };
    assert!(epsilon(&[]).into_iter().flatten().any(|epsilon| epsilon < 0.9 * expected));
    for more in
        [&["masks.mask_std=1"][..], &["masks.colluding=2"], &["masks.mask_std=1", "masks.colluding=2"]]
    {
        let stated = epsilon(more);
        assert!(
            stated.iter().flatten().all(|&epsilon| epsilon >= expected * (1.0 - 1e-9)),
            "{more:?}: {stated:?}"
        );
    }
}

/// Strong clients add more noise than the bound counts, and short updates are closer to each other.
#[test]
fn loose_bounds_have_no_lower_bound() {
    for (scheme, view) in [
        (&["uplink.scheme=artificial-noise", "uplink.split=full"][..], View::RawSignal),
        (&["uplink.scheme=a-dsgd", "uplink.snr_db=-60"], View::Actual),
    ] {
        let views = views(&[&["rounds=1", "privacy.clip=1"][..], scheme].concat());
        let statement = views.get(view).unwrap();
        assert!(statement.guarantee && statement.epsilon_lower.is_none(), "{scheme:?}");
    }
}
