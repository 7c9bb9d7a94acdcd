//! Calibration is tight: its result meets the target, and the next step does not.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::calibrate::{
    Target, fewest_sequences, fewest_sequences_near, largest_clip, least_noise, most_rounds,
};
use floras_privacy::{
    Account, Clipping, Coefficients, Neighbours, PrivacyError, PrivacyUnit, Receiver, Setting, View,
};

fn setting() -> Setting {
    Setting {
        clip: 1.0,
        sequences: 30,
        per_round: 20,
        clients: 20,
        delta: 1e-5,
        unit: PrivacyUnit::Client,
        neighbours: Neighbours::ReplaceOne,
        clipping: Clipping::Each,
        receiver: Receiver::Paper,
        channel: None,
        ..Setting::default()
    }
}

fn epsilon(setting: &Setting, view: View, rounds: u64) -> f64 {
    Account::of(setting).unwrap().epsilon(view, rounds).unwrap().unwrap()
}

#[test]
fn sequences_and_rounds_are_calibrated_exactly() {
    for view in [View::Idealised, View::Published] {
        let target = Target { view, epsilon: 3.0, rounds: 5 };
        let found = fewest_sequences(&setting(), target, 1000).unwrap();
        let less = Setting { sequences: found.setting.sequences - 1, ..found.setting.clone() };
        assert!(found.epsilon <= 3.0 && epsilon(&less, view, 5) > 3.0, "{view}");
        let found = most_rounds(&setting(), Target { rounds: 1000, ..target }).unwrap();
        assert!(epsilon(&setting(), view, found.rounds) <= 3.0, "{view}");
        assert!(epsilon(&setting(), view, found.rounds + 1) > 3.0, "{view}");
    }
}

#[test]
fn every_guess_finds_the_same_sequences() {
    let target = Target { view: View::Idealised, epsilon: 3.0, rounds: 5 };
    let found = fewest_sequences(&setting(), target, 1000).unwrap();
    for guess in [0, 1, 2, 11, 12, 13, 500, 10_000] {
        assert_eq!(fewest_sequences_near(&setting(), target, 1000, guess).unwrap(), found, "from {guess}");
    }
}

/// The result of a search is the upper bound of the statement.
#[test]
fn a_single_view_epsilon_equals_the_statement() {
    let channel = Some(Coefficients::normal(0.1 / 8.0, 0.5_f64.sqrt()).unwrap());
    for receiver in [Receiver::Paper, Receiver::clipped(1.0).unwrap()] {
        let account = Account::of(&Setting { receiver, channel: channel.clone(), ..setting() }).unwrap();
        for view in View::ALL {
            for rounds in [1, 7] {
                let stated = account.statement(view, rounds).unwrap().unwrap().epsilon;
                assert_eq!(account.epsilon(view, rounds).unwrap(), stated, "{receiver:?}, {view}");
            }
        }
    }
}

#[test]
fn one_percent_more_clip_norm_exceeds_epsilon() {
    let target = Target { view: View::Idealised, epsilon: 3.0, rounds: 5 };
    let found = largest_clip(&setting(), target).unwrap();
    let larger = Setting { clip: 1.01 * found.setting.clip, ..found.setting.clone() };
    assert!(found.epsilon <= 3.0 && epsilon(&larger, View::Idealised, 5) > 3.0);
}

/// The noise power of the calibrated level and sequences, compared with level 1 at the same `ε`.
#[test]
fn the_calibrated_level_has_less_noise_than_one() {
    let target = Target { view: View::Idealised, epsilon: 4.0, rounds: 1 };
    let found = least_noise(&setting(), target, 84).unwrap();
    let one = Setting { receiver: Receiver::clipped(1.0).unwrap(), ..setting() };
    let fixed = fewest_sequences(&one, target, 84).unwrap();
    assert!(found.epsilon <= 4.0 && found.setting.sequences <= 84);
    assert!(found.setting.noise_std().unwrap() < fixed.setting.noise_std().unwrap());
}

#[test]
fn unreachable_targets_state_the_reason() {
    let target = Target { view: View::Idealised, epsilon: 0.5, rounds: 1 };
    let why = |found: Result<_, PrivacyError>| {
        found.map(|_: floras_privacy::calibrate::Calibrated| ()).unwrap_err().to_string()
    };
    assert!(why(fewest_sequences(&setting(), target, 24)).contains("epsilon is still"));
    assert!(why(fewest_sequences(&setting(), target, 20)).contains("no unused sequences"));
    assert!(why(most_rounds(&setting(), target)).contains("one round alone has 1.7228"));
    let actual = Target { view: View::Actual, ..target };
    assert_eq!(
        why(most_rounds(&setting(), actual)),
        PrivacyError::NeedsChannel { view: View::Actual }.to_string()
    );
}
