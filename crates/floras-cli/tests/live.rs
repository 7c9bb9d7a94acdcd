//! `floras watch`, `floras run --live` and `floras data fetch`, as a user starts them.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Exit code and standard error of a command in a directory of its own.
fn ended(directory: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let program = env!("CARGO_BIN_EXE_floras");
    let output = Command::new(program).args(arguments).current_dir(directory).output().expect("it starts");
    (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
}

#[test]
fn a_training_is_followed_to_its_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut run = Command::new(env!("CARGO_BIN_EXE_floras"))
        .args(["run", "quick", "--rounds", "30", "--trials", "2", "--live", "--out", "followed"])
        .current_dir(directory.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines =
        BufReader::new(run.stderr.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    let address = lines.by_ref().find_map(|line| line.strip_prefix("live view: http://").map(str::to_owned));
    let address = address.expect("an address").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&address).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(300))).expect("a timeout");
    stream
        .write_all(format!("GET /events HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .expect("the server reads");
    let (mut name, mut points, mut epsilon, mut last) = (String::new(), 0, None, Value::Null);
    for line in BufReader::new(stream).lines() {
        let line = line.expect("an event");
        if let Some(event) = line.strip_prefix("event: ") {
            event.clone_into(&mut name);
        }
        let Some(data) = line.strip_prefix("data: ") else { continue };
        let data: Value = serde_json::from_str(data).expect("JSON");
        match name.as_str() {
            "points" => points += data.as_array().map_or(0, Vec::len),
            "privacy" => epsilon = data["epsilon"].as_f64(),
            "status" => last = data,
            _ => {}
        }
        if last["state"] == "finished" && last["report"] == true {
            break;
        }
    }
    // The connection is closed: no page is open any more, and the program ends.
    assert!(run.wait().expect("it ends").success());
    assert_eq!((points, last["rounds_done"].as_u64()), (60, Some(60)));
    let summary = std::fs::read_to_string(directory.path().join("followed/summary.json")).expect("a file");
    let summary: Value = serde_json::from_str(&summary).expect("JSON");
    assert_eq!(epsilon, summary["privacy"]["views"]["any_channel"]["epsilon"].as_f64());
    assert!(epsilon.is_some());
}

#[test]
fn a_missing_run_cannot_be_watched() {
    let directory = tempfile::tempdir().expect("a directory");
    let (code, words) = ended(directory.path(), &["watch", "missing"]);
    assert_eq!((code, words.as_str()), (Some(2), "error: there is no directory missing\n"));
    let (code, words) = ended(directory.path(), &["watch", "."]);
    assert_eq!(
        (code, words.as_str()),
        (Some(2), "error: . is not a floras run directory: experiment.toml is missing\n")
    );
}

#[test]
fn a_port_in_use_leaves_no_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let (code, words) = ended(directory.path(), &["run", "quick", "--live", "--port", &port, "--out", "run"]);
    assert_eq!(code, Some(2), "{words}");
    let expected = format!(
        "error: port {port} of 127.0.0.1 is in use; choose another --port, or leave it out for a free one\n"
    );
    assert!(words.ends_with(&expected), "{words}");
    assert!(!directory.path().join("run").exists());
}

#[test]
fn data_of_another_content_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let mirror = directory.path().join("mirror");
    std::fs::create_dir(&mirror).expect("a directory");
    std::fs::write(mirror.join("train-labels-idx1-ubyte"), [0; 60_008]).expect("a file");
    let (code, words) = ended(directory.path(), &["data", "fetch", "mnist", "--from", "mirror"]);
    assert_eq!(code, Some(1), "{words}");
    assert!(words.contains("mirror: no train-images-idx3-ubyte, plain or gzipped"), "{words}");
    let expected = "train-labels-idx1-ubyte must have the SHA-256 \
                    65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5, not ";
    assert!(words.contains(expected), "{words}");
    assert!(!directory.path().join("data").exists(), "a failed fetch leaves no directory");
    let (code, words) = ended(directory.path(), &["data", "fetch", "mnist", "--from", "nowhere"]);
    assert_eq!(code, Some(2), "{words}");
    assert!(words.starts_with("error: --from must be a directory that exists, or a URL"), "{words}");
}
