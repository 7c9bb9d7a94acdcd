//! The normal distribution and the Gaussian mechanism compared with `reference/normal.json`, computed with long
//! arithmetic.

#![expect(clippy::unwrap_used, reason = "tests")]

use floras_privacy::{gaussian, normal};
use serde_json::Value;

fn rows(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("reference/normal.json")).unwrap();
    all[list].as_array().unwrap().clone()
}

fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

/// Relative errors of the recorded numbers.
fn errors(list: &str, key: &str, ours: impl Fn(&Value) -> f64) -> Vec<(f64, Value)> {
    let compared: Vec<(f64, Value)> = rows(list)
        .into_iter()
        .filter(|row| !row[key].is_null())
        .map(|row| {
            let expected = number(&row, key);
            let found = ours(&row);
            (if expected == 0.0 { found.abs() } else { (found / expected - 1.0).abs() }, row)
        })
        .collect();
    assert!(compared.len() > 10, "{list} has {} entries with {key}", compared.len());
    compared
}

#[track_caller]
fn all_within(tolerance: f64, errors: &[(f64, Value)]) {
    for (error, row) in errors {
        // NaN fails too.
        assert!(*error <= tolerance, "off by {error:e}: {row}");
    }
}

/// Relative tolerance 1e-12, far into both tails.
#[test]
fn the_normal_distribution_agrees_with_long_arithmetic() {
    all_within(1e-12, &errors("normal", "cdf", |row| normal::cdf(number(row, "x"))));
    all_within(1e-12, &errors("normal", "log_cdf", |row| normal::log_cdf(number(row, "x"))));
    all_within(1e-12, &errors("normal", "mills_ratio", |row| normal::mills_ratio(number(row, "x"))));
}

/// Relative tolerance 1e-9 down to values of 1e-290 and to a `μ` of 1e-6, where the two terms of the formula nearly
/// cancel.
#[test]
fn the_gaussian_curve_agrees_with_long_arithmetic() {
    let ours = |row: &Value| gaussian::delta(number(row, "epsilon"), number(row, "mu"));
    all_within(1e-9, &errors("delta", "delta", ours));
}

/// Relative tolerance 1e-10, both for `ε` and for `μ`, down to `δ` = 1e-15.
#[test]
fn the_curve_is_inverted_to_high_precision() {
    let epsilon = |row: &Value| gaussian::epsilon(number(row, "delta"), number(row, "mu")).unwrap();
    all_within(1e-10, &errors("epsilon", "epsilon", epsilon));
    let mu = |row: &Value| gaussian::mu(number(row, "epsilon"), number(row, "delta")).unwrap();
    all_within(1e-10, &errors("epsilon", "mu", mu));
}
