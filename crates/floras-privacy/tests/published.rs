//! The accounting compared with `reference/privacy.json`: numbers of an independent prototype, for clip norm
//! 1.

#![expect(clippy::unwrap_used, reason = "a test may stop at once")]

use floras_privacy::cauchy::CauchyRound;
use floras_privacy::published::{PublishedComposition, PublishedRound, Weight};
use floras_privacy::rdp::{Conversion, RenyiRound};
use floras_privacy::{Account, Margins, Setting, View};
use serde_json::Value;

/// Relative accuracy of the prototype's solutions for `ε`.
const TOLERANCE: f64 = 1e-11;

fn reference(section: &str) -> Value {
    let all: Value = serde_json::from_str(include_str!("reference/privacy.json")).unwrap();
    all[section].clone()
}

fn rows(section: &str) -> Vec<Value> {
    reference(section).as_array().unwrap().clone()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

#[track_caller]
fn agrees(ours: f64, row: &Value, key: &str) {
    let expected = number(row, key);
    assert!((ours / expected - 1.0).abs() < TOLERANCE, "{key}: {ours} in {row}");
}

fn published(weight: Weight, row: &Value, composition: PublishedComposition, delta: f64) -> f64 {
    let round = PublishedRound::new(weight, 1.0, number(row, "gamma")).unwrap();
    round.epsilon(composition, row["T"].as_u64().unwrap(), delta).unwrap().as_printed()
}

#[test]
fn the_published_result_is_as_printed() {
    for row in rows("unsubsampled") {
        let weight = Weight::client(1.0).unwrap();
        agrees(published(weight, &row, PublishedComposition::Renyi, 1e-5), &row, "published");
    }
    for row in rows("subsampled") {
        let weight = Weight::client(number(&row, "p")).unwrap();
        agrees(published(weight, &row, PublishedComposition::Renyi, 1e-5), &row, "published");
    }
}

#[test]
fn the_compositions_of_figure_2_are_as_printed() {
    for row in rows("fig2_item_level") {
        let weight = Weight::item(number(&row, "q"), 1.0).unwrap();
        let u = PublishedRound::new(weight, 1.0, number(&row, "gamma")).unwrap().pure();
        agrees(u.as_printed(), &row, "a");
        for (composition, key) in [
            (PublishedComposition::Sequential, "sequential"),
            (PublishedComposition::Advanced, "advanced"),
            (PublishedComposition::Renyi, "rdp"),
            (PublishedComposition::SequentialOfConverted, "sequential_of_converted_eps"),
            (PublishedComposition::Kairouz, "dwork_rothblum_kov"),
            (PublishedComposition::Optimal, "kov_optimal_exact"),
        ] {
            agrees(published(weight, &row, composition, 1e-5), &row, key);
        }
    }
}

#[test]
fn the_renyi_form_of_the_idealised_round_agrees() {
    for row in rows("unsubsampled") {
        let round = RenyiRound::new(1.0, number(&row, "gamma")).unwrap();
        agrees(round.largest_order(), &row, "alpha_max");
        for (conversion, key) in [(Conversion::Classical, "rdp_std"), (Conversion::Improved, "rdp_improved")]
        {
            let best = round.epsilon(row["T"].as_u64().unwrap(), 1e-5, conversion).unwrap();
            agrees(best.epsilon, &row, key);
            assert!(best.epsilon >= number(&row, "exact"), "a bound is above what it bounds: {row}");
        }
    }
}

/// The Rényi form applies to the decoder without margins, and belongs to its source.
#[test]
fn renyi_forms_are_stated_where_they_hold() {
    let renyi = |account: &Account| {
        let statement = account.statement(View::Idealised, 3).unwrap().unwrap();
        (statement.details.get("renyi").copied(), statement.epsilon)
    };
    let (Some(renyi_epsilon), Some(epsilon)) = renyi(&Account::of(&Setting::default()).unwrap()) else {
        panic!("the paper's receiver has a Rényi form");
    };
    assert!(renyi_epsilon >= epsilon);
    let margins = Margins { pilot_noise: 2.0, ..Margins::default() };
    assert_eq!(renyi(&Account::of(&Setting { margins, ..Setting::default() }).unwrap()).0, None);
    let mut replaced = Account::of(&Setting::default()).unwrap();
    let source = Setting { clip: 3.0, ..Setting::default() }.source(View::Idealised).unwrap();
    replaced.set(View::Idealised, source);
    assert_eq!(renyi(&replaced).0, None);
}

#[test]
fn one_round_in_d_dimensions_agrees() {
    let section = reference("exact_in_d_one_round");
    for (gamma, row) in section.as_object().unwrap() {
        for dimension in [1, 2, 5, 10, 30, 100, 1000, 4010] {
            let round = CauchyRound::new(1.0, gamma.parse().unwrap(), dimension).unwrap();
            agrees(round.epsilon(1e-5).unwrap(), row, &dimension.to_string());
        }
    }
}

/// One round leaks twice the published amount at γ = 5, and a third more at 50.
#[test]
fn one_round_shows_more_than_was_published() {
    for (gamma, factor) in [(5.0, 2.0), (50.0, 1.3)] {
        let weight = Weight::client(1.0).unwrap();
        let published = PublishedRound::new(weight, 1.0, gamma).unwrap();
        let published = published.epsilon(PublishedComposition::Renyi, 1, 1e-5).unwrap().as_printed();
        let holds = CauchyRound::new(1.0, gamma, 4010).unwrap().epsilon(1e-5).unwrap();
        assert!(holds > factor * published, "γ = {gamma}: {holds} and {published}");
    }
}
