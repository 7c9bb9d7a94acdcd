//! Properties of the account for every setting in range: the order of views, monotonicity, mixed rounds and calibration.
//!
//! Settings are drawn log-uniformly over the allowed range. `PROPTEST_CASES` sets their number, `PROPTEST_RNG_SEED` the seed.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::calibrate::{Target, fewest_sequences, largest_clip};
use floras_privacy::mixed::Mixed;
use floras_privacy::{
    Account, Clipping, Coefficients, Neighbours, PrivacyError, PrivacyUnit, Receiver, Sampling, Setting, View,
};
use proptest::prelude::*;

/// Relative tolerance: a stated `ε` is an upper bound from its own grid, so two of them may be in the wrong order.
const SLACK: f64 = 0.02;

fn config(cases: u32) -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(cases);
    ProptestConfig { cases, failure_persistence: None, max_shrink_iters: 60, ..ProptestConfig::default() }
}

fn ten_to(range: std::ops::Range<f64>) -> impl Strategy<Value = f64> {
    range.prop_map(|power| 10_f64.powf(power))
}

fn whole(range: std::ops::Range<f64>) -> impl Strategy<Value = u64> {
    ten_to(range).prop_map(|number| number.round() as u64)
}

fn receivers() -> impl Strategy<Value = Receiver> {
    prop_oneof![
        1 => Just(Receiver::Paper),
        1 => Just(Receiver::Mmse),
        3 => ten_to(-2.0..3.0).prop_map(|c| Receiver::clipped(c).unwrap()),
    ]
}

/// A setting and its rounds.
fn settings() -> impl Strategy<Value = (Setting, u64)> {
    let counts = (whole(0.0..3.0), whole(0.0..5.0), prop_oneof![Just(1.0), ten_to(0.0..4.0)]);
    let numbers = (ten_to(-2.0..2.0), ten_to(-30.0..-1.0), whole(0.0..4.0), 0..2);
    let radio = (any::<bool>(), ten_to(-4.0..1.0));
    (counts, numbers, receivers(), radio).prop_map(
        |((per_round, unused, crowd), (clip, delta, rounds, kind), receiver, (has_radio, noise_std))| {
            let channel = has_radio.then(|| Coefficients::normal(noise_std, 0.5_f64.sqrt()).unwrap());
            let setting = Setting {
                clip,
                sequences: per_round + unused,
                per_round,
                clients: (per_round as f64 * crowd).round() as u64,
                delta,
                unit: PrivacyUnit::Client,
                neighbours: if kind == 0 { Neighbours::ReplaceOne } else { Neighbours::AddRemove },
                clipping: Clipping::Each,
                receiver,
                channel,
                ..Setting::default()
            };
            (setting, rounds)
        },
    )
}

/// The stated bounds of a view; `None` if there is no number.
fn bounds(setting: &Setting, view: View, rounds: u64) -> Option<(f64, f64)> {
    let statement = Account::of(setting).unwrap().statement(view, rounds).unwrap()?;
    Some((statement.epsilon_lower?, statement.epsilon?))
}

/// Asserts that the number of one account is not above that of another. If a bound is out of reach, the larger one must be,
/// too.
fn is_below(small: Option<(f64, f64)>, large: Option<(f64, f64)>, what: &str) -> Result<(), TestCaseError> {
    let Some((large_lower, large)) = large else { return Ok(()) };
    // Above this value, a bound may be out of reach on one grid and not on another.
    let Some((lower, upper)) = small else {
        prop_assert!(large > 3e4, "{what}: nothing stated, but {large} for more");
        return Ok(());
    };
    prop_assert!(
        lower <= large * (1.0 + 1e-6) + 1e-9,
        "{what}: {lower}..{upper}, more: {large_lower}..{large}"
    );
    let gap = (upper - lower).max(large - large_lower);
    prop_assert!(upper <= large * (1.0 + SLACK) + gap + 1e-6, "{what}: {upper}, more: {large}");
    Ok(())
}

proptest! {
    #![proptest_config(config(12))]

    /// `idealised ≤ any-channel ≤ simple bound`, for one adversary: in statements, `epsilon`, `delta_at` and for mixed rounds.
    #[test]
    fn any_channel_lies_between_its_neighbours((setting, rounds) in settings(), epsilon in ten_to(-6.0..4.0)) {
        let account = Account::of(&setting).unwrap();
        let probability = account.sampling().probability();
        let known = account.with_sampling(Sampling::Known(probability)).unwrap();
        let mixed = Mixed::new(&[(&known, rounds), (&known, 1)]).unwrap();
        for (rounds, name) in [(rounds, "rounds"), (rounds + 1, "mixed rounds")] {
            let statement = |view| match name {
                "rounds" => known.statement(view, rounds).unwrap().unwrap(),
                _ => mixed.statement(view).unwrap().unwrap(),
            };
            let (ideal, any) = (statement(View::Idealised), statement(View::AnyChannel));
            if let Some(any_epsilon) = any.epsilon {
                prop_assert!(ideal.epsilon.is_some_and(|ideal| ideal <= any_epsilon), "{name}: {ideal:?} {any:?}");
                if let Some(simple) = any.details.get("simple_bound") {
                    prop_assert!(any_epsilon <= *simple, "{name}: {any:?}");
                }
                prop_assert!(any.epsilon_lower <= any.epsilon);
            } else {
                prop_assert!(!any.details.contains_key("simple_bound"), "{name}: {any:?}");
            }
            let asked = if name == "rounds" { known.epsilon(View::AnyChannel, rounds) } else { mixed.epsilon(View::AnyChannel) };
            prop_assert_eq!(asked.unwrap(), any.epsilon);
        }
        let deltas = [View::Idealised, View::AnyChannel].map(|view| known.delta_at(view, rounds, epsilon).unwrap().unwrap());
        prop_assert!(deltas[0] <= deltas[1], "{deltas:?}");
    }

    /// `ε` is larger with a smaller `δ`, fewer unused sequences, a larger clip norm, more rounds and fewer clients to choose
    /// from.
    #[test]
    fn epsilon_is_monotone_in_the_setting((setting, rounds) in settings(), which in 0..5, factor in 1.05_f64..3.0) {
        let (mut more, mut more_rounds) = (setting.clone(), rounds);
        match which {
            0 => more.delta = (setting.delta / factor).max(1e-30),
            1 => more.sequences = setting.per_round + (setting.gamma() as f64 / factor).ceil() as u64,
            2 => more.clip *= factor,
            3 => more_rounds = (rounds as f64 * factor).ceil() as u64,
            _ => more.clients = ((setting.clients as f64 / factor).ceil() as u64).max(setting.per_round),
        }
        for view in [View::Idealised, View::Actual, View::AnyChannel, View::RawSignal] {
            // Used sequences also add noise: with fewer unused sequences, the used ones stay.
            is_below(bounds(&setting, view, rounds), bounds(&more, view, more_rounds), &format!("{view}, {which}"))?;
        }
    }

    /// Rounds of two equal kinds give the same result as rounds of one kind.
    #[test]
    fn equal_rounds_mixed_are_rounds_composed((setting, rounds) in settings(), others in whole(0.0..3.0)) {
        let [one, other] = [(); 2].map(|()| Account::of(&setting).unwrap());
        let mixed = Mixed::new(&[(&one, rounds), (&other, others)]).unwrap();
        for view in [View::Idealised, View::Actual, View::AnyChannel] {
            let [composed, mixed] = [one.epsilon(view, rounds + others), mixed.epsilon(view)].map(Result::unwrap);
            match (composed, mixed) {
                (Some(composed), Some(mixed)) => {
                    let off = (mixed / composed - 1.0).abs();
                    prop_assert!(off < 0.01 || (mixed - composed).abs() < 1e-4, "{view}: {composed}, mixed {mixed}");
                }
                (None, None) => {}
                (one, other) => prop_assert!(one.or(other).unwrap() > 3e4, "{view}: {one:?}, mixed {other:?}"),
            }
        }
    }
}

proptest! {
    #![proptest_config(config(5))]

    /// The account confirms the result of calibration: for a clip norm at most 1% of `ε` is unused, and one sequence less is
    /// too few.
    #[test]
    fn calibration_meets_its_target((setting, rounds) in settings(), epsilon in ten_to(-2.0..1.7), which in 0..3_usize) {
        let view = [View::Idealised, View::Actual, View::AnyChannel][which];
        if view == View::Actual && setting.channel.is_none() {
            return Ok(());
        }
        let setting = Setting { delta: setting.delta.max(1e-12), ..setting };
        let rounds = rounds.min(300);
        let target = Target { view, epsilon, rounds };
        let stated = |setting: &Setting| Account::of(setting).unwrap().epsilon(view, rounds).unwrap();
        match largest_clip(&setting, target) {
            Ok(found) => {
                let stated = stated(&found.setting).unwrap();
                prop_assert!(stated <= epsilon && stated >= 0.99 * epsilon, "{view}: {stated} for {epsilon}");
            }
            Err(error) => prop_assert!(matches!(error, PrivacyError::NothingMeets { .. }), "{error}"),
        }
        match fewest_sequences(&setting, target, 100_000) {
            Ok(found) => {
                prop_assert!(stated(&found.setting).is_some_and(|stated| stated <= epsilon), "{view}: {found:?}");
                let fewer = Setting { sequences: found.setting.sequences - 1, ..found.setting.clone() };
                if fewer.gamma() > 0 {
                    let one_less = stated(&fewer);
                    prop_assert!(one_less.is_none_or(|stated| stated > epsilon), "{view}: {one_less:?} with {fewer:?}");
                }
            }
            Err(error) => prop_assert!(matches!(error, PrivacyError::NothingMeets { .. }), "{error}"),
        }
    }
}
