//! Results that must not change unintentionally: metrics of short runs, byte for byte, and `ε` of 50 settings to 1e-12.
//!
//! `UPDATE_RECORDED=1` records them again. The CHANGELOG lists every intended change.
//!
//! Training multiplies matrices with the widest instructions of the processor, and the order of its sums shows in the last digits.
//! The bytes were recorded with AVX-512; on other processors numbers may differ by [`OTHER_PROCESSOR`], relatively.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;
use serde_json::Value;

const OTHER_PROCESSOR: f64 = 1e-2;
const EPSILON: f64 = 1e-12;

/// Presets, with the settings that make them short.
const RUNS: [(&str, &str); 6] = [
    ("private", "--rounds 2 --trials 1"),
    ("quick", "--rounds 4"),
    ("digits-iid", "--rounds 4 --trials 2"),
    ("digits-noniid", "--rounds 4 --trials 2"),
    ("fig4-inversion", "--rounds 4 --trials 2"),
    (
        "many-clients",
        "--rounds 3 --trials 1 --set data.train=40000 --set clients.total=2000 --set clients.per_round=200 \
         --set uplink.sequences=220",
    ),
];

fn recorded(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name)
}

fn is_update() -> bool {
    std::env::var_os("UPDATE_RECORDED").is_some()
}

fn floras(arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(env!("CARGO_BIN_EXE_floras")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Numbers within a relative tolerance, and everything else the same.
fn is_close(one: &Value, other: &Value, tolerance: f64) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= tolerance * one.abs().max(other.abs())
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| is_close(value, other, tolerance)))
        }
        (one, other) => one == other,
    }
}

fn has_avx512() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

#[test]
fn metrics_of_short_runs_are_as_recorded() {
    for (preset, options) in RUNS {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("run");
        let options: Vec<&str> = options.split_whitespace().collect();
        floras(&[&["run", preset], &options[..], &["--out", out.to_str().unwrap()]].concat());
        let metrics = fs::read_to_string(out.join("metrics.jsonl")).unwrap();
        let file = recorded(&format!("{preset}.jsonl"));
        if is_update() {
            fs::write(&file, &metrics).unwrap();
            continue;
        }
        let expected = fs::read_to_string(file).unwrap();
        if has_avx512() {
            assert!(metrics == expected, "{preset}: {metrics}");
            continue;
        }
        assert_eq!(metrics.lines().count(), expected.lines().count(), "{preset}");
        for (ours, expected) in metrics.lines().zip(expected.lines()) {
            let [parsed, beside] = [ours, expected].map(|line| serde_json::from_str(line).unwrap());
            assert!(is_close(&parsed, &beside, OTHER_PROCESSOR), "{preset}: {ours}, recorded {expected}");
        }
    }
}

/// The views of `floras account`, with their numbers alone.
fn epsilons(flags: &str) -> Value {
    let flags: Vec<&str> = flags.split_whitespace().collect();
    let answer = floras(&[&["account"], &flags[..], &["--json"]].concat());
    let mut answer: Value = serde_json::from_slice(&answer).unwrap();
    let Value::Object(views) = answer["views"].take() else { panic!("{flags:?} has no views") };
    let numbers = |view: Value| match view {
        Value::Object(fields) => {
            Value::Object(fields.into_iter().filter(|(_, value)| value.is_number()).collect())
        }
        other => other,
    };
    Value::Object(views.into_iter().map(|(name, view)| (name, numbers(view))).collect())
}

#[test]
fn epsilons_of_fifty_settings_are_as_recorded() {
    let file = recorded("accounts.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let entries: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(entries.len(), 50);
    let found: Vec<Value> =
        entries.par_iter().map(|entry| epsilons(entry["account"].as_str().unwrap())).collect();
    if is_update() {
        let line = |(entry, views): (&Value, &Value)| {
            format!("{}\n", serde_json::json!({ "account": entry["account"], "views": views }))
        };
        fs::write(&file, entries.iter().zip(&found).map(line).collect::<String>()).unwrap();
        return;
    }
    let differing = |(entry, views): (&Value, &Value)| {
        let message = format!("{}: {views}, recorded {}", entry["account"], entry["views"]);
        (!is_close(views, &entry["views"], EPSILON)).then_some(message)
    };
    let differences: Vec<String> = entries.iter().zip(&found).filter_map(differing).collect();
    assert!(differences.is_empty(), "{} settings differ:\n{}", differences.len(), differences.join("\n"));
}
