//! The output of the program: help, results, and errors about wrong input.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn floras(arguments: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_floras");
    Command::new(program).args(arguments.split_whitespace()).output().expect("the program starts")
}

/// The result of a command in its own directory: exit code, standard output, standard error.
fn said(directory: &Path, arguments: &str) -> (Option<i32>, String, String) {
    let program = env!("CARGO_BIN_EXE_floras");
    let output = Command::new(program).args(arguments.split_whitespace()).current_dir(directory).output();
    let output = output.expect("the program starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(output.stdout), text(output.stderr))
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

/// `account` accepts every setting that `calibrate` finds, and states the same epsilon.
#[test]
fn calibrations_can_be_fed_back_to_account() {
    let federation = "--per-round 20 --receiver clipped=1.0 --length 128";
    let cases = [
        "--view idealised --epsilon 4 --clip 1",
        "--view any-channel --epsilon 6 --clip 1",
        "--view published --epsilon 1 --clip 1",
        "--view idealised --find clip --epsilon 2 --clip 1 --sequences 64",
        "--view any-channel --find clip --epsilon 6 --clip 1 --sequences 64",
        "--view idealised --find rounds --epsilon 8 --clip 1 --sequences 64 --rounds 50",
        "--view actual --epsilon 6 --clip 1 --snr-db 10",
        "--view raw-signal --find clip --epsilon 4 --clip 1 --sequences 64 --snr-db 10",
    ];
    for case in cases {
        let found = json(&format!("calibrate {federation} {case} --json"));
        let [sequences, clip, rounds] = ["sequences", "clip", "rounds"].map(|key| found[key].to_string());
        let receiver = found["receiver"].as_str().expect("a receiver");
        let radio = if case.contains("--snr-db") { "--snr-db 10" } else { "" };
        let account = json(&format!(
            "account --per-round 20 --length 128 --sequences {sequences} --clip {clip} --rounds {rounds} \
             --receiver {receiver} {radio} --json"
        ));
        let view = found["view"].as_str().expect("a view").replace('-', "_");
        assert_eq!(account["views"][&view]["epsilon"], found["epsilon"], "{case}");
    }
}

/// Figures of the papers of other schemes have the same output as those of FLORAS.
#[test]
fn reproductions_of_peers_print_their_claims() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, out, error) = said(directory.path(), "reproduce liu2021 --quick --json");
    assert_eq!(code, Some(0), "{error}");
    let report: Value = serde_json::from_str(out.trim_end()).expect("JSON");
    assert_eq!(
        (report["quick"].as_bool(), report["out"].as_str()),
        (Some(true), Some("runs/reproduce-liu2021-quick"))
    );
    let claims = report["claims"].as_array().expect("claims");
    assert!(claims.iter().all(|claim| claim["verdict"] == "reproduced"), "{report}");
    let guarantee = claims.last().expect("a claim");
    assert!(guarantee["ours"].as_f64() < guarantee["published"].as_f64(), "{guarantee}");
    let page = directory.path().join("runs/reproduce-liu2021-quick/report.html");
    let page = std::fs::read_to_string(page).expect("the report");
    assert!(
        page.contains("Figure 3: gap against ε at 30 dB") && page.contains("Published figures, reproduced")
    );
}

/// `calibrate --toml` prints an experiment file with the same epsilon.
#[test]
fn calibrations_are_experiment_files() {
    let directory = tempfile::tempdir().expect("a directory");
    let cases = [
        "--epsilon 6 --clip 1 --per-round 20 --receiver clipped=1.0",
        "--epsilon 8 --clip 1 --per-round 20 --receiver clipped=1.0 --find clip --sequences 40 --length 48 --snr-db 10",
        "--epsilon 8 --clip 1 --per-round 20 --clients 100 --rounds 3 --sequences 60 --mask-std 9 --noise-std 2 --find clip",
        "quick --epsilon 20 --find rounds",
        "quick --epsilon 8 --find masks --set uplink.power=unit",
        "private --epsilon 10 --find masks",
    ];
    for case in cases {
        let found = json(&format!("calibrate {case} --json"));
        let (code, file, error) = said(directory.path(), &format!("calibrate {case} --toml"));
        assert_eq!(code, Some(0), "{error}");
        std::fs::write(directory.path().join("found.toml"), &file).expect("a file");
        let run = "run found.toml --rounds 1 --trials 1 ";
        let (_, _, notes) = said(directory.path(), run);
        assert!(!notes.contains("without effect"), "{case}: {notes}");
        let (code, account, error) = said(directory.path(), "account found.toml --json");
        assert_eq!(code, Some(0), "{case}: {error}{file}");
        let account: Value = serde_json::from_str(&account).expect("JSON");
        let view = found["view"].as_str().expect("a view").replace('-', "_");
        assert_eq!(account["views"][&view]["epsilon"], found["epsilon"], "{case}: {file}");
        // The budget of the preset, 8, would stop the run early.
        assert_eq!(file.contains("\nbudget = 10.0\n"), case.starts_with("private"), "{case}: {file}");
        assert!(!file.contains("budget = 8"), "{case}: {file}");
    }
}

#[test]
fn other_sweeps_have_their_own_directories() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = |arguments: &str| {
        said(directory.path(), &format!("sweep quick --rounds 1 --trials 1 --over {arguments}"))
    };
    let begins = |arguments: &str| sweep(arguments).2.lines().next().map(str::to_owned);
    assert_eq!(begins("seed=1,2").as_deref(), Some("2 points in runs/quick-sweep"));
    assert_eq!(begins("uplink.snr_db=0,1").as_deref(), Some("2 points in runs/quick-sweep-2"));
    assert_eq!(begins("seed=2,1").as_deref(), Some("2 points in runs/quick-sweep-3"));
    assert_eq!(begins("uplink.snr_db=0,1").as_deref(), Some("2 points in runs/quick-sweep-2"));
    assert_eq!(begins("seed=1,2").as_deref(), Some("2 points in runs/quick-sweep"));

    let table = directory.path().join("runs/quick-sweep/sweep.csv");
    let before = std::fs::read(&table).expect("a table");
    let (code, out, err) = sweep("seed=1 --out runs/quick-sweep");
    assert_eq!((code, out.as_str(), err.lines().count()), (Some(2), "", 1));
    assert!(
        err.starts_with("error: runs/quick-sweep holds another sweep: its table has point 2, and "),
        "{err}"
    );
    assert!(err.ends_with("; choose another --out\n"), "{err}");
    assert!(std::fs::read(&table).expect("a table") == before);
}

#[test]
fn sweeps_leave_other_directories_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = "run quick --rounds 1 --trials 1 --set name=mine-sweep";
    assert_eq!(said(directory.path(), run).0, Some(0));
    let page = directory.path().join("runs/mine-sweep/report.html");
    let before = std::fs::read(&page).expect("a page");
    let sweep = "sweep quick --rounds 1 --trials 1 --set name=mine --over seed=1,2";
    let (code, out, err) = said(directory.path(), &format!("{sweep} --out runs/mine-sweep"));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    let refusal =
        "error: runs/mine-sweep is not empty and is not a floras sweep directory; choose another --out\n";
    assert_eq!(err, refusal);
    let (code, _, err) = said(directory.path(), sweep);
    assert_eq!(code, Some(0), "{err}");
    assert!(err.starts_with("2 points in runs/mine-sweep-2\n"), "{err}");
    assert!(err.ends_with("\ndrawing the reports of 2 runs and of the sweep\n"), "{err}");
    assert!(std::fs::read(&page).expect("a page") == before);
}

#[test]
fn comparisons_replace_no_plots_of_runs() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["a", "b"] {
        let run = format!("run quick --rounds 1 --trials 1 --out {name}");
        assert_eq!(said(directory.path(), &run).0, Some(0));
    }
    let plot = directory.path().join("a/plots/accuracy.svg");
    let before = std::fs::read(&plot).expect("a plot");
    let (code, out, err) = said(directory.path(), "compare a b --out a");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert_eq!(err, "error: a holds a run, whose plots a comparison would replace; choose another --out\n");
    assert!(std::fs::read(&plot).expect("a plot") == before);
    // An earlier comparison is replaced.
    for _ in 0..2 {
        assert_eq!(said(directory.path(), "compare a b --out both").0, Some(0));
    }
}

#[test]
fn comparisons_of_two_views_fit_the_terminal() {
    let directory = tempfile::tempdir().expect("a directory");
    for (name, view) in [("quick-any-channel", "any-channel"), ("quick-idealised", "idealised")] {
        let run = format!("run quick --rounds 1 --trials 2 --set privacy.view={view} --out {name}");
        assert_eq!(said(directory.path(), &run).0, Some(0));
    }
    let (_, text, _) = said(directory.path(), "compare quick-any-channel quick-idealised");
    assert!(text.contains("  view ") && !text.contains("test loss"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn unusable_directories_are_wrong_input() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("afile"), "").expect("a file");
    let cannot = "error: cannot create the directory afile/x: ";
    let is_a_file = "error: afile is a file and not a directory; choose another directory\n";
    for command in [
        "run quick --rounds 1 --trials 1 --out",
        "sweep quick --rounds 1 --trials 1 --over seed=1,2 --out",
        "data fetch mnist --from . --out",
        "man",
    ] {
        let (code, _, err) = said(directory.path(), &format!("{command} afile/x"));
        assert!(code == Some(2) && err.contains(cannot), "{command}: {err}");
        assert!(err.ends_with("; choose another directory\n"), "{command}: {err}");
        let (code, _, err) = said(directory.path(), &format!("{command} afile"));
        assert!(code == Some(2) && err.ends_with(is_a_file), "{command}: {err}");
    }
    let (code, _, err) = said(directory.path(), "run --resume --out afile");
    assert_eq!((code, err.as_str()), (Some(2), is_a_file));
}

#[test]
fn failed_fetches_leave_no_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    // Port 1 is not in use.
    let (code, _, err) = said(directory.path(), "data fetch mnist --from http://127.0.0.1:1");
    assert_eq!(code, Some(1), "{err}");
    assert!(!err.contains("io:") && !err.contains("--from"), "{err}");
    assert!(!directory.path().join("data").exists());
}

#[test]
fn runs_are_compared() {
    let directory = tempfile::tempdir().expect("a directory");
    let run = "run quick --rounds 2 --trials 2";
    assert_eq!(said(directory.path(), &format!("{run} --out a")).0, Some(0));
    assert_eq!(said(directory.path(), &format!("{run} --set uplink.snr_db=0 --out b")).0, Some(0));
    let (code, text, error) = said(directory.path(), "compare a b --out both");
    assert_eq!((code, error.as_str()), (Some(0), ""), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("1  a ") && lines[2].starts_with("2  b "), "{text}");
    assert!(text.contains("Epsilon is in the any-channel view at delta = 1e-5."), "{text}");
    assert!(text.contains("\nuplink.snr_db  20.0  0.0\n"), "{text}");
    assert!(text.ends_with("plots           both/plots\n"), "{text}");
    let plot = std::fs::read_to_string(directory.path().join("both/plots/accuracy.svg")).expect("a plot");
    assert!(plot.contains(">a<") && plot.contains(">b<"));
    let (_, text, _) = said(directory.path(), "compare a b --json");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    let summary = std::fs::read_to_string(directory.path().join("a/summary.json")).expect("a summary");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(found["runs"][0]["final"], summary["final"]);
    assert_eq!(found["runs"][0]["epsilon"], summary["privacy"]["views"]["any_channel"]["epsilon"]);
    assert_eq!(found["settings"].as_array().map(Vec::len), Some(1));
    let (_, text, _) = said(directory.path(), "compare a a");
    assert!(text.ends_with("\nAll settings are the same.\n"), "{text}");

    assert_eq!(
        said(directory.path(), "sweep quick --over seed=1,2 --set rounds=1 --set trials=1 --out s").0,
        Some(0)
    );
    let (_, text, _) = said(directory.path(), "compare s a");
    assert!(text.contains("\n1  point-001 ") && text.contains("\n3  a "), "{text}");
    let (code, _, error) = said(directory.path(), "compare a");
    assert_eq!((code, error.as_str()), (Some(2), "error: a comparison needs at least 2 runs, not 1\n"));
}

/// The files are complete: every command is in them.
#[test]
fn completions_and_man_pages_know_all_commands() {
    let directory = tempfile::tempdir().expect("a directory");
    let (_, help, _) = said(directory.path(), "help");
    let names =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = names
        .filter(|line| line.chars().nth(2) != Some(' '))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(names.contains(&"compare") && names.len() > 12, "{names:?}");
    assert_eq!(said(directory.path(), "man pages").0, Some(0));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, script, _) = said(directory.path(), &format!("completions {shell}"));
        assert_eq!(code, Some(0));
        assert!(names.iter().all(|name| script.contains(name)), "{shell}");
    }
    let (_, script, _) = said(directory.path(), "completions bash");
    assert!(script.contains(" many-clients "), "no presets in {script}");
    for name in names.into_iter().filter(|name| *name != "help") {
        assert!(directory.path().join(format!("pages/floras-{name}.1")).exists(), "{name}");
    }
    let (_, page, _) = said(directory.path(), "man");
    assert!(page.contains(".TH floras 1"), "{page}");
}

#[test]
fn exported_trainings_compose() {
    let directory = tempfile::tempdir().expect("a directory");
    let account = "account --clip 1 --sequences 60 --per-round 20 --receiver clipped=1.0 --view idealised";
    let (code, _, error) = said(directory.path(), &format!("{account} --rounds 10 --export a.json"));
    assert_eq!((code, &error[..]), (Some(0), ""));
    let (code, text, _) = said(directory.path(), "compose a.json a.json --json");
    assert_eq!(code, Some(0));
    let joint: Value = serde_json::from_str(&text).expect("JSON");
    let twice = json(&format!("{account} --rounds 20 --json"));
    let stated = twice["views"]["idealised"]["epsilon"].as_f64().expect("a number");
    let ratio = joint["epsilon"].as_f64().expect("a number") / stated;
    assert!((ratio - 1.0).abs() < 1e-4, "{ratio}");
    // A damaged file: one message, and nothing else.
    let damaged = std::fs::read_to_string(directory.path().join("a.json"))
        .expect("a file")
        .replace("\"step\"", "\"stop\"");
    std::fs::write(directory.path().join("b.json"), damaged).expect("a file");
    let (code, text, error) = said(directory.path(), "compose b.json");
    assert_eq!((code, &text[..]), (Some(2), ""));
    assert!(error.contains("b.json") && error.contains("stop"), "{error}");
    // A rejected command leaves no file, and no part of one.
    let (code, _, _) = said(directory.path(), &format!("{account} --rounds 0 --export c.json"));
    assert_eq!(code, Some(2));
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 2);
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
fn the_chip_level_needs_little_memory() {
    let sizes = "--per-round 20 --sequences 256 --length 256 --dim 500000";
    let measured = json(&format!("bench uplink {sizes} --repeat 1 --fidelity chip --json"));
    let [peak, data] = ["peak_bytes", "data_bytes"].map(|key| measured[key].as_f64().expect("a number"));
    assert!(peak < 1.5 * data, "{peak} bytes for {data} bytes of updates and sum");
}

#[test]
fn a_run_prints_one_screen() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, out, err) = said(directory.path(), "run quick --rounds 4 --trials 2 --threads 1");
    assert_eq!(code, Some(0), "{err}");
    let lines: Vec<&str> = out.lines().collect();
    assert!(lines.len() < 20, "one screen: {out}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{out}");
    let heading = "quick after 4 rounds, seed 1: mean of 2 trials ± 95 % interval; ";
    assert!(lines[0].starts_with(heading) && lines[0].ends_with(" rounds/s"), "{out}");
    for (line, name) in lines[1..3].iter().zip(["test accuracy ", "loss            test "]) {
        assert!(line.starts_with(name) && line.contains(" ± "), "{line}");
    }
    assert!(lines[4].starts_with("privacy of a client after 4 rounds, delta = 1e-5 ("), "{out}");
    for (line, view) in
        lines[6..11].iter().zip(["raw-signal", "any-channel", "actual", "idealised", "published"])
    {
        assert!(line.starts_with(view), "{line}");
    }
    assert_eq!(lines.last(), Some(&"report          runs/quick/report.html"));
    assert!(
        err.starts_with("quick: a linear classifier (logistic regression) with 4010 parameters"),
        "{err}"
    );
    // A terminal shows a bar and a spinner instead of these lines.
    let is_progress = |line: &&str| line.contains("%  trial ") || line.starts_with("drawing ");
    let screen = lines.len() + err.lines().filter(|line| !is_progress(line)).count();
    assert!(screen < 20, "a terminal shows {screen} lines: {err}{out}");
    assert!(err.contains("100%  trial 2/2  round 4/4  local loss "), "{err}");
    for name in [
        "experiment.toml",
        "metrics.jsonl",
        "ledger.jsonl",
        "summary.json",
        "partition.json",
        "parameters/trial-0001.safetensors",
    ] {
        assert!(directory.path().join("runs/quick").join(name).exists(), "{name}");
    }

    let (code, out, err) = said(directory.path(), "run quick --rounds 4 --trials 2 --resume");
    assert!(code == Some(0) && out.contains("the run was already complete"), "{out}{err}");
    let (code, out, _) = said(directory.path(), "run quick --rounds 1 --trials 1");
    assert!(
        code == Some(0) && out.ends_with("report          runs/quick-2/report.html\n"),
        "a new run takes a new directory: {out}"
    );
    assert!(out.starts_with("quick after 1 round, seed 1: 1 trial; ") && !out.contains(" ± "), "{out}");
    let (code, out, err) = said(directory.path(), "run --resume --out runs/quick --set uplink.snr_db=3");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(
        err.contains("runs/quick holds another experiment: uplink.snr_db is 20.0 there and 3.0 here"),
        "{err}"
    );
    let (code, _, err) = said(directory.path(), "run quick --out runs/quick");
    assert!(code == Some(2) && err.contains("runs/quick already holds a run"), "{err}");
}

#[test]
fn the_command_in_a_report_repeats_the_run() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, out, err) =
        said(directory.path(), "run quick --rounds 3 --trials 2 --seed 7 --out runs/first");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("report          runs/first/report.html\n"), "{out}");
    let first = directory.path().join("runs/first");
    let page = std::fs::read_to_string(first.join("report.html")).expect("a page");
    let command = page.split("<code>floras ").nth(1).and_then(|rest| rest.split("</code>").next());
    let (code, _, err) = said(&first, command.expect("a command"));
    assert_eq!(code, Some(0), "{err}");
    let again = directory.path().join("runs/quick-again");
    for name in ["metrics.jsonl", "summary.json", "experiment.toml", "report.html", "plots/loss.png"] {
        let read = |directory: &Path| std::fs::read(directory.join(name)).expect("a file");
        assert!(read(&first) == read(&again), "{name} differs");
    }
}

#[test]
fn reports_are_written_again_from_files() {
    let directory = tempfile::tempdir().expect("a directory");
    assert_eq!(said(directory.path(), "run quick --rounds 2 --trials 1 --out run").0, Some(0));
    let page = directory.path().join("run/report.html");
    let first = std::fs::read(&page).expect("a page");
    std::fs::remove_file(&page).expect("a page");
    let (code, out, err) = said(directory.path(), "report run");
    assert_eq!((code, err.as_str()), (Some(0), ""));
    assert_eq!(out, "report          run/report.html\nplots           run/plots\n");
    assert!(std::fs::read(&page).expect("a page") == first);
    // A complete run without a report gets one if it is run again.
    std::fs::remove_file(&page).expect("a page");
    assert_eq!(said(directory.path(), "run --resume --out run").0, Some(0));
    assert!(std::fs::read(&page).expect("a page") == first);

    let (code, out, err) = said(directory.path(), "report .");
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("error: . has nothing to report"), "{err}");
    std::fs::write(directory.path().join("run/summary.json"), "{").expect("a file");
    let (code, _, err) = said(directory.path(), "report run");
    assert!(code == Some(2) && err.starts_with("error: run/summary.json is damaged"), "{err}");
}

#[test]
fn results_survive_a_failing_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let out = directory.path().join("run");
    std::fs::create_dir(&out).expect("a directory");
    assert_eq!(said(directory.path(), "run quick --rounds 2 --trials 1 --out run").0, Some(0));
    // A file has the name of the directory for plots.
    std::fs::remove_dir_all(out.join("plots")).expect("a directory");
    std::fs::write(out.join("plots"), "").expect("a file");
    std::fs::remove_file(out.join("report.html")).expect("a page");
    let (code, said_out, err) = said(directory.path(), "run --resume --out run");
    assert_eq!(code, Some(0), "{err}");
    assert!(said_out.contains("test accuracy"), "{said_out}");
    assert!(err.contains("note: no report was written: cannot create run/plots"), "{err}");
    assert_eq!(said(directory.path(), "report run").0, Some(1));
}

#[test]
fn run_prints_one_json_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, out, _) = said(directory.path(), "run quick --rounds 2 --trials 2 --json --out here");
    assert_eq!((code, out.lines().count()), (Some(0), 1));
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(
        (&report["name"], &report["rounds"], &report["trials"]),
        (&"quick".into(), &2.into(), &2.into())
    );
    for key in ["train_loss", "test_accuracy"] {
        assert!(report["final"][key]["mean"].is_f64() && report["final"][key]["ci95"].is_f64(), "{report}");
    }
    assert!(report["rounds_per_second"].as_f64().is_some_and(|speed| speed > 0.0));
    assert_eq!(report["out"], "here");
    let views = &report["privacy"]["views"];
    for view in ["published", "idealised", "actual", "any_channel", "raw_signal"] {
        // Without a useful number, the exceeded limit is stated.
        let stated = views[view]["epsilon"].as_f64().or(views[view]["epsilon_above"].as_f64());
        assert!(stated.is_some_and(|epsilon| epsilon > 0.0), "{view}: {views}");
    }
    assert_eq!(
        (&views["published"]["guarantee"], &views["actual"]["guarantee"]),
        (&false.into(), &true.into())
    );
}

#[test]
fn account_and_calibrate_print_one_json_object() {
    let directory = tempfile::tempdir().expect("a directory");
    let object = |arguments: &str| -> Value {
        let (code, out, err) = said(directory.path(), arguments);
        assert_eq!((code, out.lines().count()), (Some(0), 1), "{err}");
        serde_json::from_str(&out).expect("JSON")
    };
    let radio = "--length 30 --snr-db 20";
    let account =
        object(&format!("account --clip 1 --sequences 30 --per-round 20 --clients 20 {radio} --json"));
    assert_eq!(
        (&account["gamma"], &account["rounds"], &account["level"]),
        (&10.into(), &1.into(), &"client".into())
    );
    let epsilon = |view: &str| account["views"][view]["epsilon"].as_f64().expect("a number");
    assert!((epsilon("published") - 0.978).abs() < 5e-4 && (epsilon("idealised") - 1.7227).abs() < 5e-5);
    assert!((epsilon("actual") - 14.0).abs() < 0.15 && epsilon("any_channel") > 25.1);
    assert!(epsilon("raw_signal") > epsilon("any_channel") && account["notes"].is_array());
    let bare = object("account --clip 1 --sequences 30 --per-round 20 --json");
    assert_eq!((&bare["views"]["actual"], &bare["views"]["raw_signal"]), (&Value::Null, &Value::Null));

    let found = object("calibrate --epsilon 2 --clip 1 --per-round 20 --view idealised --json");
    assert_eq!(
        (&found["sequences"], &found["gamma"], &found["view"]),
        (&29.into(), &9.into(), &"idealised".into())
    );
    assert!(found["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 2.0) && found["views"].is_object());
    let (code, out, _) =
        said(directory.path(), "calibrate --epsilon 2 --clip 1 --per-round 20 --most-sequences 21 --json");
    let none: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(code, Some(1), "nothing meets the target");
    assert!(none["sequences"].is_null() && none["reason"].is_string(), "{none}");
}

#[test]
fn audit_prints_json_and_writes_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let audit = directory.path().join("audit");
    let (code, out, error) = said(directory.path(), "audit --games 20000 --seed 2 --json --out audit");
    assert_eq!((code, out.lines().count()), (Some(0), 1), "{error}");
    let found: Value = serde_json::from_str(&out).unwrap();
    for view in ["released_model", "idealised", "actual", "any_channel", "raw_signal"] {
        let row = &found["views"][view];
        assert!((row["published"].as_f64().unwrap() - 1.9858).abs() < 1e-4, "{view}");
        assert_eq!(row["confidence"], 0.95);
        assert_eq!(row["verdict"]["rigorous"], "consistent", "{view}");
        assert!(row["lower_bound"].as_f64().unwrap() <= row["rigorous"].as_f64().unwrap());
    }
    // Raw samples need few games to show more than the paper's epsilon.
    assert_eq!(found["views"]["raw_signal"]["verdict"]["published"], "violated");
    let attacks = &found["attacks"];
    assert_eq!(attacks["sequences"]["detectors"].as_array().unwrap().len(), 6);
    assert_eq!(attacks["despreading"]["clients"].as_array().unwrap().len(), 20);
    assert_eq!(attacks["reconstruction"]["rows"].as_array().unwrap().len(), 6);
    assert_eq!(attacks["membership"].as_array().unwrap().len(), 12);
    assert_eq!(attacks["collusion"]["named"], 1.0);
    let page = std::fs::read_to_string(audit.join("report.html")).unwrap();
    assert!(page.contains("rigorous") && page.contains("despread"));
    assert!(audit.join("plots").join("reconstruction.svg").exists());
    let whole: Value =
        serde_json::from_str(&std::fs::read_to_string(audit.join("audit.json")).unwrap()).unwrap();
    assert_eq!(whole["views"], found["views"]);
    assert_eq!(whole["attacks"]["reconstruction"]["originals"].as_array().unwrap().len(), 10);
}

#[test]
fn an_audit_attacks_rounds_with_masks() {
    let directory = tempfile::tempdir().unwrap();
    let (code, out, error) = said(
        directory.path(),
        "audit --games 20000 --set masks.mask_std=8 --set masks.noise_std=0.9 --set uplink.power=\"unit\" --out audit",
    );
    assert_eq!(code, Some(0), "{error}");
    for words in
        ["Rounds with masks", "With one part of the masks broken:", "clients refuse", "note: clients mask"]
    {
        assert!(out.contains(words), "no {words} in {out}");
    }
    let page = std::fs::read_to_string(directory.path().join("audit/report.html")).unwrap();
    assert!(page.contains("Rounds with masks"));
    let found = std::fs::read_to_string(directory.path().join("audit/audit.json")).unwrap();
    let found: Value = serde_json::from_str(&found).unwrap();
    let masks = &found["attacks"]["masks"];
    assert_eq!((masks["clients"].as_u64(), masks["per_round"].as_u64()), (Some(10), Some(20)));
    assert_eq!(masks["replays_refused"], masks["replays_requested"]);
    for row in masks["adversaries"].as_array().unwrap() {
        assert_eq!(row["verdict"], "consistent", "{row}");
    }
}

#[test]
fn the_audit_of_a_run_joins_its_report() {
    let directory = tempfile::tempdir().unwrap();
    let (code, _, error) = said(
        directory.path(),
        "run quick --rounds 2 --trials 1 --set clients.total=20 --set clients.per_round=20 --set uplink.sequences=25 --set uplink.length=32 --out mine",
    );
    assert_eq!(code, Some(0), "{error}");
    let (code, out, error) =
        said(directory.path(), "audit mine/experiment.toml --games 2000 --trainings 8 --out mine");
    assert_eq!(code, Some(0), "{error}");
    assert!(out.contains("Claims and measurements") && out.contains("One client reveals its key"), "{out}");
    assert!(error.contains("attacking: raw samples"), "{error}");
    let page = std::fs::read_to_string(directory.path().join("mine/report.html")).unwrap();
    assert!(page.contains("Audit") && page.contains("test accuracy"));
    let (code, _, error) =
        said(directory.path(), "audit mine/experiment.toml --set uplink.snr_db=3 --out mine");
    assert_eq!(code, Some(2));
    assert!(
        error.contains("mine holds a run of another experiment, in which uplink.snr_db is 20"),
        "{error}"
    );
}

#[test]
fn divergence_is_never_printed_as_a_number() {
    let directory = tempfile::tempdir().expect("a directory");
    let blow_up = "--set uplink.scheme=ideal --set local.rate=1e6 --set model.l2=1e6 --set privacy.clip=1e30";
    let (code, out, err) = said(directory.path(), &format!("run quick --rounds 9 --trials 2 {blow_up}"));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("no trial finished"), "{out}");
    assert!(out.contains("diverged        2 of 2: trial 1 in round "), "{out}");
    assert!(
        err.starts_with("note: without effect under the other settings, and left out: uplink.sequences, "),
        "{err}"
    );
    assert!(![out, err].iter().any(|text| text.contains("NaN") || text.contains("inf")));
}

#[test]
fn a_run_that_cannot_work_leaves_nothing_behind() {
    let directory = tempfile::tempdir().expect("a directory");
    let too_large =
        "--set model.kind=mlp --set model.hidden=65536 --set clients.total=1000 --set clients.per_round=1000";
    for arguments in [
        format!("run digits-iid {too_large} --set uplink.sequences=1024 --set uplink.length=1024"),
        "run digits-iid --set uplink.snr_db=inf".to_owned(),
        "run digits-iid --set data.train=5000".to_owned(),
    ] {
        let (code, out, err) = said(directory.path(), &arguments);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{err}");
        assert_eq!((err.lines().count(), err.starts_with("error: ")), (1, true), "{err}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 0);
}

#[test]
fn grids_and_experiments_are_distinguished() {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("grid.toml"), "[sweep]\nrounds = [1]").expect("a file");
    std::fs::write(directory.path().join("one.toml"), "rounds = 1").expect("a file");
    let (code, _, err) = said(directory.path(), "run grid.toml --out x");
    assert_eq!(code, Some(2));
    assert!(err.trim_end().ends_with("; run it with `floras sweep`"), "{err}");
    let (code, _, err) = said(directory.path(), "sweep one.toml --out x");
    assert_eq!(code, Some(2));
    assert!(err.contains("there is no section [sweep]") && err.contains("--over key=a,b,c"), "{err}");
    assert!(!directory.path().join("x").exists());
}

/// The Gaussian mechanism has a closed form: `μ = 2C/ν·√T`, and `ε` from Balle and Wang's `δ(ε)` by bisection.
#[test]
fn account_and_calibrate_work_for_every_scheme() {
    let directory = tempfile::tempdir().expect("a directory");
    let clipped = "--set privacy.clip=1 --set privacy.normalise=clip --set rounds=10";
    for scheme in floras_sim::schemes::all() {
        let arguments = format!("account digits-iid --json {clipped} --set uplink.scheme={}", scheme.name());
        let (code, out, error) = said(directory.path(), &arguments);
        assert_eq!((code, out.lines().count()), (Some(0), 1), "{error}");
        let report: Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!((report["scheme"].as_str(), &report["rounds"]), (Some(scheme.name()), &10.into()));
        assert_eq!(report["gamma"].is_null(), scheme.name() != "floras");
        assert!(
            report["views"]["actual"]["epsilon"].is_number()
                || report["views"]["actual"]["reason"].is_string()
        );
        let find = if scheme.name() == "ideal" { "noise" } else { "rounds" };
        let arguments = format!(
            "calibrate digits-iid --epsilon 50 --view actual --find {find} {clipped} --set uplink.scheme={} --json",
            scheme.name()
        );
        let (code, out, error) = said(directory.path(), &arguments);
        assert!(code == Some(0) || code == Some(1), "{error}");
        let key = if scheme.name() == "ideal" { "masks.noise_std" } else { "rounds" };
        assert!(serde_json::from_str::<Value>(&out).expect("JSON")["key"] == key);
    }
    let gaussian = format!("{clipped} --set uplink.scheme=gaussian");
    let (_, out, _) =
        said(directory.path(), &format!("account digits-iid --json {gaussian} --set uplink.noise_std=40"));
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let epsilon = report["views"]["actual"]["epsilon"].as_f64().expect("a number");
    assert!((epsilon - 0.561284_93).abs() < 1e-6, "{epsilon}");
    // The found setting, written into a file, has the same epsilon.
    let calibrate = format!("calibrate digits-iid --epsilon 1 --view actual --find noise --json {gaussian}");
    let (code, out, error) = said(directory.path(), &calibrate);
    assert_eq!(code, Some(0), "{error}");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    let text =
        found["fragment"].as_str().expect("text").replace("[uplink]", "[uplink]\nscheme = \"gaussian\"");
    let text = format!("rounds = 10\n{text}[privacy]\nclip = 1.0\n");
    std::fs::write(directory.path().join("found.toml"), text).expect("a file");
    let (_, out, error) = said(directory.path(), "account found.toml --json");
    let report: Value = serde_json::from_str(&out).expect(&error);
    assert_eq!(report["views"]["actual"]["epsilon"], found["epsilon"]);
    let spent = found["epsilon"].as_f64().expect("a number");
    assert!(spent <= 1.0 && spent > 0.999, "{spent}");
}

/// The adversary of these views has the raw samples, and the statement does not exclude what it covers.
#[test]
fn statements_do_not_exclude_their_adversary() {
    let directory = tempfile::tempdir().expect("a directory");
    for (scheme, view, is_covered) in [
        ("broadband-inversion", "any-channel", true),
        ("power-control", "any-channel", true),
        ("phase-corrected", "actual", false),
        ("digital", "any-channel", false),
    ] {
        let setting = match scheme {
            "digital" => "--set uplink.central_noise_std=6",
            _ => "--set uplink.snr_db=-10",
        };
        let arguments = format!(
            "account quick --set uplink.scheme={scheme} --set privacy.view={view} --set privacy.clip=1 \
             --set privacy.normalise=clip {setting} --statement"
        );
        let (code, out, err) = said(directory.path(), &arguments);
        assert_eq!(code, Some(0), "{err}");
        let text = out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(text.contains("nor a base station that keeps"), !is_covered, "{text}");
        assert_eq!(text.contains("and keeps its raw samples"), is_covered, "{text}");
    }
}

/// Water-filling has an estimate in the actual view.
#[test]
fn notes_call_no_estimate_a_bound() {
    let directory = tempfile::tempdir().expect("a directory");
    let arguments = "account quick --set uplink.scheme=power-control --set uplink.policy=water-filling \
                     --set uplink.min_noise_std=4 --set uplink.snr_db=20 --set privacy.clip=1 --set clients.total=400 \
                     --set privacy.normalise=clip --json";
    let (code, out, err) = said(directory.path(), arguments);
    assert_eq!(code, Some(0), "{err}");
    let report: Value = serde_json::from_str(&out).expect("JSON");
    let actual = &report["views"]["actual"];
    assert_eq!(actual["guarantee"], false);
    // A guarantee with such a gap has a note.
    let number = |key: &str| actual[key].as_f64().expect("a number");
    assert!(number("epsilon_lower") < 0.99 * number("epsilon"), "{actual}");
    let notes = report["notes"].to_string();
    assert!(!notes.contains("the actual ε of"), "{notes}");
}

#[test]
fn calibration_names_what_can_be_found() {
    let directory = tempfile::tempdir().expect("a directory");
    let find = |find: &str| {
        let arguments = format!(
            "calibrate quick --epsilon 8 --set uplink.scheme=one-bit --set privacy.normalise=clip \
             --set privacy.clip=1 {find}"
        );
        said(directory.path(), &arguments)
    };
    let (code, _, err) = find("");
    assert_eq!(code, Some(2));
    let expected = "error: --find must be rounds or noise (scheme one-bit has no sequences), not sequences\n";
    assert_eq!(err, expected);
    let (code, _, err) = find("--find masks");
    assert_eq!(code, Some(2));
    let expected =
        "error: --find must be rounds or noise (scheme one-bit refuses masks that cancel), not masks\n";
    assert_eq!(err, expected);
    let (code, _, err) = find("--find clip");
    assert_eq!(code, Some(1));
    assert!(err.contains("privacy.clip"), "{err}");
    let (code, out, err) = find("--find noise --json");
    assert_eq!(code, Some(0), "{err}");
    let found: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(found["key"], "masks.noise_std");
    let epsilon = found["epsilon"].as_f64().expect("a number");
    assert!((7.99..=8.0).contains(&epsilon), "{epsilon}");
    let (_, out, _) = find("--find noise");
    assert!(out.contains("\n[masks]\nnoise_std = ") && out.contains("\nquick: one-bit "), "{out}");
}

#[test]
fn other_benchmarks_have_their_own_directories() {
    let directory = tempfile::tempdir().expect("a directory");
    let first = directory.path().join("runs/benchmark-quick");
    std::fs::create_dir_all(&first).expect("a directory");
    std::fs::write(first.join("command"), "floras benchmark --quick\n").expect("a file");
    for _ in 0..2 {
        let (code, _, err) = said(directory.path(), "benchmark gaussian --quick");
        assert_eq!(code, Some(0), "{err}");
        assert!(err.contains("recording in runs/benchmark-quick-2;"), "{err}");
    }
    assert!(!directory.path().join("runs/benchmark-quick-3").exists());
    let (code, _, err) = said(directory.path(), "benchmark gaussian --quick --out runs/benchmark-quick");
    assert_eq!(code, Some(2));
    assert!(err.contains("holds the results of `floras benchmark --quick`"), "{err}");
    assert!(!err.contains("recording in"), "{err}");
}

#[test]
fn unknown_data_sets_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, _, err) = said(directory.path(), "data fetch mnst");
    assert_eq!(code, Some(2));
    let expected = "error: invalid value 'mnst' for '<SET>': expected one of mnist, fashion-mnist, cifar10";
    assert_eq!(err.lines().next(), Some(expected));
    assert!(!err.contains("possible values"), "{err}");
}
