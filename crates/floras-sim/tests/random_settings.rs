//! Accounts of diverse settings against bounds on the true `ε`, which an independent program computed
//! (`xtask/accounting/recorded.py`).

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;

use floras_sim::inquiry::Inquiry;
use serde::Deserialize;
use serde_json::{Map, Value};

const REFERENCE: &str = include_str!("../../floras-privacy/tests/reference/random.json");

/// A recorded bound is allowed to be off by this share.
const TOLERANCE: f64 = 1e-4;
/// An `ε` may be left out as too large only if it is at least this.
const LARGE_ENOUGH: f64 = 1e4;

#[derive(Deserialize)]
struct Reference {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    command: String,
    setting: Map<String, Value>,
    /// Bounds by view and field.
    views: BTreeMap<String, BTreeMap<String, Bounds>>,
}

#[derive(Deserialize)]
struct Bounds {
    lower: f64,
    upper: Option<f64>,
}

/// How much larger than the true `ε` a view's statement may be.
///
/// The actual view bounds the noise of other clients' sequences, generously for the paper's receiver. The others are
/// exact but for their numerical grids.
fn looseness(view: &str) -> f64 {
    if view == "actual" { 2.0 } else { 1.03 }
}

impl Case {
    /// What the account states, by view.
    fn statements(&self) -> Map<String, Value> {
        let table = toml::Table::try_from(&self.setting).unwrap();
        let sequences = Inquiry::sequences(&table).unwrap();
        let report = Inquiry::read(&table).unwrap().account(sequences, None).unwrap();
        let Value::Object(views) = serde_json::to_value(report.views).unwrap() else { panic!("not an object") };
        views
    }

    /// The stated numbers for which `is_wrong` holds.
    fn wrong(&self, is_wrong: impl Fn(&str, Option<f64>, &Bounds) -> bool) -> Vec<String> {
        let statements = self.statements();
        let mut found = Vec::new();
        for (view, fields) in &self.views {
            let Some(statement) = statements.get(view).filter(|statement| statement["guarantee"] == true) else {
                continue;
            };
            for (field, bounds) in fields {
                let Some(value) = statement.get(field) else { continue };
                let stated = value.as_f64();
                if is_wrong(view, stated, bounds) {
                    let Bounds { lower, upper } = bounds;
                    found.push(format!(
                        "{}\n  {view}.{field}: stated {stated:?}, true at least {lower}, at most {upper:?}",
                        self.command
                    ));
                }
            }
        }
        found
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str::<Reference>(REFERENCE).unwrap().cases
}

#[test]
fn guarantees_are_not_below_the_true_epsilon() {
    let is_wrong = |_: &str, stated: Option<f64>, bounds: &Bounds| match stated {
        Some(stated) => stated < bounds.lower * (1.0 - TOLERANCE),
        None => bounds.lower < LARGE_ENOUGH,
    };
    let wrong: Vec<String> = cases().iter().flat_map(|case| case.wrong(is_wrong)).collect();
    assert!(wrong.is_empty(), "{} false guarantees:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn guarantees_are_close_to_the_true_epsilon() {
    let is_wrong = |view: &str, stated: Option<f64>, bounds: &Bounds| {
        stated.zip(bounds.upper).is_some_and(|(stated, upper)| stated > upper * looseness(view) + 1e-4)
    };
    let wrong: Vec<String> = cases().iter().flat_map(|case| case.wrong(is_wrong)).collect();
    assert!(wrong.is_empty(), "{} loose guarantees:\n{}", wrong.len(), wrong.join("\n"));
}
