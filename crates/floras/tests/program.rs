//! What a user sees: help, results, and what the program says to wrong input.

use std::process::{Command, Output};

use serde_json::Value;

fn floras(arguments: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_floras");
    Command::new(program).args(arguments.split_whitespace()).output().expect("the program starts")
}

fn json(arguments: &str) -> Value {
    let output = floras(arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "a pipe gets no progress bar");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "JSON stands alone on standard output");
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn what_a_user_sees_is_as_recorded() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}

#[test]
fn bench_reports_time_and_memory_as_json() {
    for fidelity in ["symbol", "chip"] {
        let sizes = "--per-round 3 --sequences 4 --length 8 --dim 5000 --repeat 2 --threads 2";
        let measured = json(&format!("bench uplink {sizes} --json --fidelity {fidelity}"));
        for positive in ["seconds_per_round", "cpu_seconds_per_round", "peak_bytes"] {
            assert!(measured[positive].as_f64().is_some_and(|value| value > 0.0), "{positive}");
        }
        assert_eq!(measured["data_bytes"], 4 * 5000 * 4);
        assert_eq!(measured["fidelity"], fidelity);
        assert_eq!(measured["threads"], 2);
        assert!(measured["snr_convention"].as_str().is_some_and(|text| text.contains("σ²")));
    }
}

/// At L = 256 all chips on the air would take 256 times the memory of the decoded sum; few of them are kept.
#[cfg(target_os = "linux")]
#[test]
fn the_chip_level_needs_little_more_memory_than_its_data() {
    let sizes = "--per-round 20 --sequences 256 --length 256 --dim 500000";
    let measured = json(&format!("bench uplink {sizes} --repeat 1 --fidelity chip --json"));
    let [peak, data] = ["peak_bytes", "data_bytes"].map(|key| measured[key].as_f64().expect("a number"));
    assert!(peak < 1.5 * data, "{peak} bytes for {data} bytes of updates and sum");
}
