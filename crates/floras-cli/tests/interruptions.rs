//! Runs that are killed or interrupted, and resume.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Three trials that take a few seconds on two threads, so that the program makes checkpoints meanwhile.
const LONG: [&str; 10] = [
    "run",
    "quick",
    "--rounds",
    "450",
    "--trials",
    "3",
    "--set",
    "record.train_every=7",
    "--record-signal",
    "1-30,200,449",
];

fn floras(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_floras"));
    command.args(arguments).arg("--out").arg(out).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn succeed(mut command: Command) {
    assert!(command.status().unwrap().success());
}

/// Everything that must be the same after a resume: metrics, ledger, summary, parameters, signals.
fn lasting_files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries =
        |path: &Path| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let parameters = entries(&directory.join("parameters"));
    let signals = entries(&directory.join("signals")).into_iter().flat_map(|trial| entries(&trial));
    let others = ["metrics.jsonl", "ledger.jsonl", "summary.json", "experiment.toml", "partition.json"]
        .map(|name| directory.join(name));
    let read =
        |path: PathBuf| (path.strip_prefix(directory).unwrap().to_path_buf(), fs::read(&path).unwrap());
    parameters.into_iter().chain(signals).chain(others).map(read).collect()
}

/// Begins or resumes a run and kills it as soon as `moment` holds; `false` if it ended before.
fn kill_when(mut command: Command, moment: impl Fn() -> bool) -> bool {
    let mut child: Child = command.spawn().unwrap();
    let patience = Instant::now();
    while !moment() {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(patience.elapsed() < Duration::from_secs(120), "the moment never came");
        sleep(Duration::from_millis(2));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

fn lines(path: &Path) -> usize {
    fs::read(path).map_or(0, |bytes| bytes.iter().filter(|&&byte| byte == b'\n').count())
}

/// The privacy loss of every result that was shown before a kill is recorded.
fn all_results_are_in_the_ledger(directory: &Path) {
    for trial in 0..3 {
        let [results, ledger] = ["trial", "ledger"]
            .map(|kind| lines(&directory.join(format!("checkpoint/{kind}-000{trial}.jsonl"))));
        assert!(ledger >= results, "trial {trial}: {ledger} rounds in the ledger, {results} shown");
    }
}

#[test]
fn a_resumed_run_has_the_same_bytes() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, killed] = ["whole", "killed"].map(|name| directory.path().join(name));
    succeed(floras(&[&LONG[..], &["--threads", "2"]].concat(), &whole));

    // The first rounds, before there is any checkpoint.
    let checkpoint = killed.join("checkpoint/trial-0000.safetensors");
    let early = || lines(&killed.join("metrics.jsonl")) > 3;
    assert!(kill_when(floras(&LONG, &killed), early));
    assert!(!killed.join("summary.json").exists());
    all_results_are_in_the_ledger(&killed);
    // A slow machine may have made checkpoints by then; without them, the run is in the state after an earlier kill.
    for trial in 0..3 {
        let _ = fs::remove_file(killed.join(format!("checkpoint/trial-000{trial}.safetensors")));
    }

    // Some rounds after a checkpoint, which are lost and done again.
    let resume = [&LONG[..], &["--resume", "--threads", "1"]].concat();
    let after_checkpoint = || checkpoint.exists() && lines(&killed.join("metrics.jsonl")) > 20;
    assert!(kill_when(floras(&resume, &killed), after_checkpoint));
    all_results_are_in_the_ledger(&killed);

    // One trial has ended and another is running.
    let resume = [&LONG[..], &["--resume", "--threads", "2"]].concat();
    let one_ended = || {
        killed.join("parameters/trial-0001.safetensors").exists()
            && lines(&killed.join("checkpoint/trial-0002.jsonl")) > 10
    };
    assert!(kill_when(floras(&resume, &killed), one_ended));
    assert!(!killed.join("summary.json").exists());

    // An incomplete line, as after a kill during a write, or on a full disk.
    let log = killed.join("checkpoint/trial-0002.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    bytes.extend_from_slice(b"{\"trial\":2,\"rou");
    fs::write(&log, bytes).unwrap();

    // The experiment need not be named again.
    succeed(floras(&["run", "--resume"], &killed));
    assert!(lasting_files(&whole) == lasting_files(&killed));
    assert_eq!(lasting_files(&whole).len(), 3 + 3 * 32 + 5);
    assert_eq!(lines(&whole.join("metrics.jsonl")), 3 * 450);
}

#[test]
fn second_processes_in_a_directory_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let mut first = floras(&LONG, &out).spawn().unwrap();
    let patience = Instant::now();
    while lines(&out.join("metrics.jsonl")) == 0 {
        assert!(patience.elapsed() < Duration::from_secs(120), "the first process never began");
        sleep(Duration::from_millis(2));
    }
    let second = floras(&["run", "--resume"], &out).stderr(Stdio::piped()).output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    let message = String::from_utf8(second.stderr).unwrap();
    assert_eq!(second.status.code(), Some(2));
    assert!(message.contains("is in use by another process"), "{message}");
}

#[test]
fn the_same_command_resumes_a_sweep() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("grid.toml");
    fs::write(
        &file,
        "name = \"grid\"\ntrials = 2\nrounds = 60\n[sweep]\nuplink.sequences = [20, 25, 30]\nlocal.batch = [20, 50]\n",
    )
    .unwrap();
    let arguments = ["sweep", file.to_str().unwrap()];
    let [whole, killed] = ["whole", "killed"].map(|name| directory.path().join(name));
    succeed(floras(&arguments, &whole));
    let third_point = || killed.join("point-003/metrics.jsonl").exists();
    assert!(kill_when(floras(&arguments, &killed), third_point));
    assert!(lines(&killed.join("sweep.csv")) < 7);
    let first_point = fs::metadata(killed.join("point-001/summary.json")).unwrap().modified().unwrap();
    succeed(floras(&arguments, &killed));
    assert_eq!(fs::metadata(killed.join("point-001/summary.json")).unwrap().modified().unwrap(), first_point);
    assert_eq!(fs::read(whole.join("sweep.csv")).unwrap(), fs::read(killed.join("sweep.csv")).unwrap());
    assert_eq!(lines(&whole.join("sweep.csv")), 7);
}

/// Ctrl-C keeps the rounds that were done, reports what they spent and prints the command that resumes the run.
#[test]
fn ctrl_c_prints_the_resume_command() {
    let directory = tempfile::tempdir().unwrap();
    let [whole, stopped] = ["whole", "stopped"].map(|name| directory.path().join(name));
    succeed(floras(&LONG, &whole));
    let child = floras(&LONG, &stopped).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while lines(&stopped.join("metrics.jsonl")) < 5 {
        assert!(patience.elapsed() < Duration::from_secs(120), "the run never began");
        sleep(Duration::from_millis(2));
    }
    let interrupt = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    let command = format!("resume with `floras run --resume --out {}`", stopped.display());
    let last = message.lines().last().unwrap();
    assert!(last.starts_with("interrupted after ") && last.ends_with(&command), "{message}");
    assert!(last.contains(" of 1350 rounds") && !last.contains(" 1350 of "), "{message}");
    assert!(message.contains("spent so far    epsilon "), "{message}");
    let page = fs::read_to_string(stopped.join("report.html")).unwrap();
    assert!(
        page.contains("This run is not complete") && page.contains("any-channel"),
        "no privacy in the page"
    );
    succeed(floras(&["run", "--resume"], &stopped));
    assert!(lasting_files(&whole) == lasting_files(&stopped));
}

/// Ctrl-C prints the command that continues the sweep, and the next one counts the rounds of all points.
#[test]
fn ctrl_c_prints_how_to_resume_sweeps() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("my sweep");
    let arguments = ["sweep", "quick", "--rounds", "300", "--trials", "2", "--over", "seed=[1, 2]"];
    let child = floras(&arguments, &out).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while lines(&out.join("point-002/metrics.jsonl")) < 5 {
        assert!(patience.elapsed() < Duration::from_secs(120), "the second point never began");
        sleep(Duration::from_millis(2));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    let last = message.lines().last().unwrap();
    let command = format!(
        " of 1200 rounds; resume with `floras sweep quick --rounds 300 --trials 2 --over 'seed=[1, 2]' --out '{}'`",
        out.display()
    );
    assert!(last.starts_with("interrupted after ") && last.ends_with(&command), "{message}");
    let resumed = floras(&arguments, &out).stderr(Stdio::piped()).output().unwrap();
    let message = String::from_utf8(resumed.stderr).unwrap();
    assert!(resumed.status.success() && message.contains("\n 100%  trial "), "{message}");
    assert!(!message.contains("\n  10%  trial ") && !message.contains("\n  40%  trial "), "{message}");
}

/// Ctrl-C while the report is written does not change the result.
#[test]
fn complete_runs_print_results_despite_ctrl_c() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("run");
    let mut command = floras(&["run", "quick", "--rounds", "60", "--trials", "2"], &out);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let patience = Instant::now();
    while !out.join("summary.json").exists() {
        assert!(patience.elapsed() < Duration::from_secs(120), "the run never ended");
        sleep(Duration::from_millis(1));
    }
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let output = child.wait_with_output().unwrap();
    let result = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(result.starts_with("quick after 60 rounds") && result.contains("\nreport  "), "{result}");
    assert!(out.join("report.html").exists());
}

/// The largest memory of a run in bytes, sampled while it runs.
#[cfg(target_os = "linux")]
fn peak_bytes(mut command: Command) -> u64 {
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) * 1024);
        sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    assert!(peak > 0);
    peak
}

/// A client's samples take 4 KiB here, its update 2 KiB. If all 100,000 clients had either in memory, that would be 200 MiB and
/// more. If every round leaked the memory of its updates, 2 MiB, 60 rounds would differ from 6. The accounting at the end takes
/// some tens of MiB, which depend on the number of rounds.
#[cfg(target_os = "linux")]
#[test]
fn memory_does_not_grow_with_clients_or_rounds() {
    let directory = tempfile::tempdir().unwrap();
    let peak = |name: &str, more: &[&str]| {
        let arguments = [&["run", "many-clients", "--threads", "1", "--trials", "1"][..], more].concat();
        peak_bytes(floras(&arguments, &directory.path().join(name)))
    };
    let few = peak("few", &["--rounds", "6", "--set", "clients.total=2000", "--set", "data.train=40000"]);
    let many = peak("many", &["--rounds", "6"]);
    let long = peak("long", &["--rounds", "60"]);
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    assert!(mib(many) < mib(few) + 24.0, "{} MiB for 2,000 clients, {} for 100,000", mib(few), mib(many));
    assert!(mib(long) < mib(many) + 32.0, "{} MiB for 6 rounds, {} for 60", mib(many), mib(long));
}
