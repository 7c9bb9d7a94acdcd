//! Accounts of diverse settings compared with bounds on the true `ε`, which an independent program computed
//! (`xtask/accounting/recorded.py`).

#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use floras_sim::inquiry::Keywords;
use serde::Deserialize;
use serde_json::{Map, Value};

const REFERENCE: &str = include_str!("reference/random.json");

/// Relative tolerance of a recorded bound.
const TOLERANCE: f64 = 1e-4;
/// An `ε` may be omitted as too large only if it is at least this.
const LARGE_ENOUGH: f64 = 1e4;
/// A stated `ε` is at most this many times the true one.
const LOOSENESS: f64 = 1.03;

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

impl Case {
    /// The statements of the account, by view.
    fn statements(&self) -> Map<String, Value> {
        let keywords = Keywords::read(&self.setting).unwrap();
        let report = keywords.inquiry().unwrap().account(keywords.sequences().unwrap(), None).unwrap();
        serde_json::from_value(serde_json::to_value(report.views).unwrap()).unwrap()
    }
}

/// All cases with their statements, which take most of the time.
static CASES: LazyLock<Vec<(Case, Map<String, Value>)>> = LazyLock::new(|| {
    let cases = serde_json::from_str::<Reference>(REFERENCE).unwrap().cases;
    cases
        .into_iter()
        .map(|case| {
            let statements = case.statements();
            (case, statements)
        })
        .collect()
});

/// The stated numbers for which `is_wrong` holds, one per line.
fn wrong(is_wrong: impl Fn(&str, Option<f64>, &Bounds) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (case, statements) in CASES.iter() {
        for (view, fields) in &case.views {
            let Some(statement) = statements.get(view).filter(|statement| statement["guarantee"] == true)
            else {
                continue;
            };
            for (field, bounds) in fields {
                let Some(value) = statement.get(field) else { continue };
                let stated = value.as_f64();
                if is_wrong(view, stated, bounds) {
                    let (Bounds { lower, upper }, command) = (bounds, &case.command);
                    found.push(format!("{view}.{field} = {stated:?}, true {lower} to {upper:?}: {command}"));
                }
            }
        }
    }
    found
}

#[test]
fn guarantees_are_not_below_the_true_epsilon() {
    let wrong = wrong(|_, stated, bounds| match stated {
        Some(stated) => stated < bounds.lower * (1.0 - TOLERANCE),
        None => bounds.lower < LARGE_ENOUGH,
    });
    assert!(wrong.is_empty(), "{} false guarantees:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn guarantees_are_close_to_the_true_epsilon() {
    let wrong = wrong(|_, stated, bounds| {
        stated.zip(bounds.upper).is_some_and(|(stated, upper)| stated > upper * LOOSENESS + 1e-4)
    });
    assert!(wrong.is_empty(), "{} loose guarantees:\n{}", wrong.len(), wrong.join("\n"));
}
