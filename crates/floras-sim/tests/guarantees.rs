//! Corners in which a scheme's bound does not hold: the setting is refused, or the statement counts what the adversary sees.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;

use floras_core::View;
use floras_privacy::{Views, gaussian};
use floras_sim::ExperimentBuilder;
use floras_sim::inquiry::{ExperimentAccount, adversary_text};

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

/// Every scheme with a statement of its own, in a setting with numbers.
const SCHEMES: [&[&str]; 14] = [
    &["uplink.scheme=channel-inversion", "uplink.artificial_noise_std=4"],
    &["uplink.scheme=channel-inversion", "uplink.artificial_noise_std=4", "uplink.channel_error=0.1"],
    &["uplink.scheme=channel-inversion"],
    &["uplink.scheme=phase-corrected"],
    &["uplink.scheme=power-control", "uplink.min_noise_std=10"],
    &["uplink.scheme=power-control", "uplink.min_noise_std=10", "uplink.policy=water-filling"],
    &["uplink.scheme=broadband-inversion", "uplink.snr_db=-10"],
    &["uplink.scheme=one-bit", "uplink.snr_db=-60"],
    &["uplink.scheme=a-dsgd", "uplink.snr_db=-60"],
    &["uplink.scheme=cotaf", "uplink.snr_db=-60"],
    &["uplink.scheme=artificial-noise", "uplink.noise_ratio=10"],
    &["uplink.scheme=fsk-vote", "uplink.snr_db=-40"],
    &["uplink.scheme=blind", "uplink.antennas=4", "uplink.snr_db=-10"],
    &["uplink.scheme=digital", "uplink.central_noise_std=4"],
];

/// With a second antenna, over whose channels clients are not aligned, the base station separates updates from noise. The bounds of
/// `artificial-noise` and `channel-inversion` by a client's own noise, and those of `blind` and `digital`, hold for any number.
#[test]
fn one_antenna_is_an_assumption() {
    for (index, scheme) in SCHEMES.iter().enumerate() {
        let views = views(&[&["rounds=1", "privacy.clip=1"][..], scheme].concat());
        let assumes = |view| {
            let statement = views.get(view).filter(|statement| statement.epsilon.is_some())?;
            Some(statement.assumptions.iter().any(|words| words.contains("receives with one antenna")))
        };
        let expected = match index {
            0 | 4..=9 => [Some(true), Some(true)],
            1 => [Some(false), Some(true)],
            2 | 3 | 11 => [None, Some(true)],
            10 => [Some(false), Some(true)],
            12 => [None, Some(false)],
            _ => [Some(false), None],
        };
        assert_eq!([View::AnyChannel, View::RawSignal].map(assumes), expected, "{scheme:?}");
    }
}

#[test]
fn notes_state_what_bounds_assume() {
    for (scheme, part) in [
        (SCHEMES[0], "raw-signal, any-channel assume: "),
        (SCHEMES[4], "receives with one antenna"),
        (SCHEMES[0], "the number of admitted clients"),
        (SCHEMES[5], "clients refuse a level above"),
        (SCHEMES[11], "tones, parameters and rounds"),
    ] {
        let experiment = built(&[&["rounds=1", "privacy.clip=1"][..], scheme].concat()).build().unwrap();
        let notes = ExperimentAccount::new(&experiment).unwrap().report().unwrap().notes;
        assert!(notes.iter().any(|note| note.contains(part)), "{scheme:?}: {notes:?}");
    }
}

/// A client that is not admitted, or in outage, leaks nothing, and votes leak less than samples.
#[test]
fn truncated_clients_have_no_lower_bound() {
    let truncated = "uplink.admission=power=2";
    for (scheme, view) in [
        (&["uplink.scheme=power-control", truncated][..], View::Actual),
        (&["uplink.scheme=power-control", truncated], View::RawSignal),
        (&["uplink.scheme=power-control", "uplink.policy=water-filling"], View::RawSignal),
        (&["uplink.scheme=digital", "uplink.central_noise_std=1", "uplink.outage=0.999"], View::Actual),
        (&["uplink.scheme=one-bit", "uplink.snr_db=-40"], View::Actual),
        (&["uplink.scheme=one-bit", "uplink.snr_db=-40", "uplink.fading=none"], View::Actual),
        (&["uplink.scheme=one-bit", "uplink.snr_db=-40"], View::RawSignal),
        (&["uplink.scheme=artificial-noise", "uplink.channel_error=0.5"], View::RawSignal),
        (&["uplink.scheme=broadband-inversion", "uplink.snr_db=0"], View::Actual),
        (&["uplink.scheme=broadband-inversion", "uplink.snr_db=0"], View::RawSignal),
        (&["uplink.scheme=channel-inversion", "uplink.artificial_noise_std=4"], View::RawSignal),
    ] {
        let views = views(&[&["rounds=1", "privacy.clip=1"][..], scheme].concat());
        let statement = views.get(view).unwrap();
        assert!(statement.guarantee && statement.epsilon_lower.is_none(), "{scheme:?} {view}");
    }
    let constant = ["uplink.scheme=power-control", "uplink.fading=none", "rounds=1", "privacy.clip=1"];
    for view in [View::Actual, View::AnyChannel, View::RawSignal] {
        assert!(views(&constant).get(view).unwrap().epsilon_lower.is_some(), "{view}");
    }
}

/// Clients that are silent or misaligned add less noise than the idealised view counts.
#[test]
fn contradicted_ideals_are_no_guarantee() {
    let aligned = ["uplink.scheme=artificial-noise", "rounds=1", "privacy.clip=1", "uplink.fading=none"];
    let is_guarantee =
        |more: &[&str]| views(&[&aligned[..], more].concat()).get(View::Idealised).unwrap().guarantee;
    assert!(is_guarantee(&[]));
    for more in [
        &["uplink.channel_error=0.5"][..],
        &["uplink.fading=rayleigh", "uplink.ageing=correlation=0.9"],
        &["clients.dropout=0.1"],
        &["uplink.fading=rayleigh"],
    ] {
        assert!(!is_guarantee(more), "{more:?}");
    }
}

#[test]
fn adversaries_have_short_labels() {
    for scheme in SCHEMES.iter().chain([&&["uplink.scheme=gaussian"][..]]) {
        let experiment = built(&[&["rounds=1", "privacy.clip=1"][..], scheme].concat()).build().unwrap();
        let report = ExperimentAccount::new(&experiment).unwrap().report().unwrap();
        for (view, statement) in report.views.iter() {
            let words = adversary_text(view, statement, report.adversaries.get(&view).copied());
            assert!(words.chars().count() <= 22, "{scheme:?} {view}: {words}");
        }
    }
}

#[test]
fn full_participation_is_known_to_everyone() {
    for scheme in SCHEMES {
        for (total, is_secret) in [(5, false), (20, true)] {
            let clients = format!("clients.total={total}");
            let settings = ["rounds=1", "privacy.clip=1", "clients.per_round=5", &clients];
            let views = views(&[&settings[..], scheme].concat());
            let is_unaware =
                views.iter().any(|(_, statement)| statement.adversary.contains("does not know who"));
            assert!(!is_unaware || is_secret, "{scheme:?}");
            // These have a description of their own that is for a secret selection.
            if scheme.iter().any(|key| key.contains("power-control")) {
                assert_eq!(is_unaware, is_secret, "{scheme:?}");
            }
        }
    }
}

/// `T·d` is above 10⁹: rounds are those of the experiment.
#[test]
fn votes_of_many_rounds_are_accounted() {
    let settings = ["uplink.scheme=fsk-vote", "rounds=300000", "uplink.snr_db=-60", "privacy.clip=1"];
    let experiment = built(&settings).build().unwrap();
    let account = ExperimentAccount::new(&experiment).unwrap();
    assert!(account.epsilon(View::Actual).unwrap().is_some());
    let losses = account.losses(View::Actual).unwrap();
    assert_eq!(losses.rounds, 300_000);
    assert!(losses.parts > 1000);
}
