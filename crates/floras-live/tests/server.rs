//! The server over a plain TCP connection, and the events of a run directory that grows.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use floras_live::{LiveError, Server};
use serde_json::Value;

const EXPERIMENT: &str = "name = \"followed\"\ntrials = 2\nrounds = 4\n[uplink]\nscheme = \"ideal\"\n";

/// The address without the scheme.
fn host(server: &Server) -> String {
    server.url().trim_start_matches("http://").trim_end_matches('/').to_owned()
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(host(server)).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// The answer to a request, with its head.
fn answer(server: &Server, request: &str) -> String {
    let mut stream = connect(server);
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text
}

fn get(server: &Server, path: &str) -> String {
    answer(server, &format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", host(server)))
}

/// A run directory with an experiment only.
fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("experiment.toml"), EXPERIMENT).expect("a file");
    directory
}

fn append(path: &Path, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
    file.write_all(text.as_bytes()).expect("written");
}

/// The events of a connection, one after the other.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(server: &Server) -> Self {
        let mut stream = connect(server);
        let request = format!("GET /events HTTP/1.1\r\nHost: {}\r\n\r\n", host(server));
        stream.write_all(request.as_bytes()).expect("the server reads");
        Self(BufReader::new(stream))
    }

    /// The data of the next event of this name that `fits`.
    fn next(&mut self, wanted: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut name = String::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("an event") > 0, "the server closed the stream");
            if let Some(found) = line.strip_prefix("event: ") {
                found.trim().clone_into(&mut name);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data: Value = serde_json::from_str(data).expect("JSON");
                if name == wanted && fits(&data) {
                    return data;
                }
            }
        }
    }
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    let page = get(&server, "/");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("Content-Security-Policy: default-src 'none'; script-src 'self';"), "{page}");
    for path in ["/", "/live.css", "/live.js"] {
        let text = get(&server, path).replace("http://www.w3.org/2000/svg", "");
        let body = text.split_once("\r\n\r\n").expect("a body").1;
        assert!(!body.contains("http://") && !body.contains("https://") && !body.contains("url("), "{path}");
    }
}

#[test]
fn events_follow_a_growing_run() {
    let directory = directory();
    let metrics = directory.path().join("metrics.jsonl");
    let server = Server::start(directory.path(), 0).expect("a server");
    let mut events = Events::open(&server);
    let run = events.next("run", |_| true);
    assert_eq!((run["name"].as_str(), run["trials"].as_u64()), (Some("followed"), Some(2)));
    append(&metrics, "{\"trial\":0,\"round\":1,\"rate\":0.1,\"test_accuracy\":0.25}\n{\"trial\":0,\"rou");
    let points = events.next("points", |_| true);
    assert_eq!(points, serde_json::json!([[0, 0, 1, [0.25, null, null, null, null, null]]]));
    // The rest of the partial line, and the log of a trial that the common file does not have yet.
    append(&metrics, "nd\":2,\"rate\":0.1,\"mean_gain\":0.5}\n");
    let points = events.next("points", |_| true);
    assert_eq!(points, serde_json::json!([[0, 1, 2, [null, null, null, null, 0.5, null]]]));
    fs::create_dir(directory.path().join("checkpoint")).expect("a directory");
    append(&directory.path().join("checkpoint/trial-0001.jsonl"), "{\"trial\":1,\"round\":1,\"rate\":0.1}\n");
    let status = events.next("status", |status| status["rounds_done"] == 3);
    assert_eq!((status["rounds_total"].as_u64(), status["problem"].as_str()), (Some(8), None));
    let later = Events::open(&server).next("points", |_| true);
    assert_eq!(later.as_array().map(Vec::len), Some(3), "a new page gets everything");
}

#[test]
fn a_damaged_line_is_reported() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    let mut events = Events::open(&server);
    append(&directory.path().join("metrics.jsonl"), "{\"trial\":0}\n");
    let status = events.next("status", |status| !status["problem"].is_null());
    let problem = status["problem"].as_str().expect("words").to_owned();
    assert!(problem.contains("metrics.jsonl: line 1: missing field"), "{problem}");
}

#[test]
fn a_run_without_a_process_is_interrupted() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    let status = Events::open(&server).next("status", |status| status["state"] != "running");
    assert_eq!(status["state"], "stopped");
}

#[test]
fn a_locked_run_is_running() {
    let directory = directory();
    let _lock = floras_sim::lock_directory(directory.path()).expect("a lock");
    let server = Server::start(directory.path(), 0).expect("a server");
    let mut events = Events::open(&server);
    append(&directory.path().join("metrics.jsonl"), "{\"trial\":0,\"round\":1,\"rate\":0.1}\n");
    let status = events.next("status", |status| status["rounds_done"] == 1);
    assert_eq!(status["state"], "running");
}

#[test]
fn requests_of_other_hosts_are_refused() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    let port = server.url().rsplit(':').next().expect("a port").trim_end_matches('/').to_owned();
    for host in [format!("example.org:{port}"), "127.0.0.1".to_owned(), "example.org".to_owned()] {
        let answer = answer(&server, &format!("GET /events HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{host}: {answer}");
    }
    assert!(answer(&server, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

#[test]
fn only_get_is_answered() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    for method in ["POST", "PUT", "DELETE", "HEAD"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: {}\r\n\r\n", host(&server));
        let answer = answer(&server, &request);
        assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("Allow: GET"), "{answer}");
    }
}

#[test]
fn paths_out_of_the_directory_are_refused() {
    let outer = tempfile::tempdir().expect("a directory");
    let run = outer.path().join("run");
    fs::create_dir(&run).expect("a directory");
    fs::write(run.join("experiment.toml"), EXPERIMENT).expect("a file");
    fs::write(outer.path().join("summary.json"), "secret").expect("a file");
    let server = Server::start(&run, 0).expect("a server");
    assert!(get(&server, "/experiment.toml").ends_with(EXPERIMENT));
    for path in
        ["/../summary.json", "/plots/../../summary.json", "/%2e%2e/summary.json", "/lock", "/checkpoint/"]
    {
        let answer = get(&server, path);
        assert!(answer.starts_with("HTTP/1.1 404 ") && !answer.contains("secret"), "{path}: {answer}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let directory = directory();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let error = Server::start(directory.path(), port).expect_err("the port is taken");
    assert!(error.is_input() && matches!(error, LiveError::PortInUse { .. }), "{error}");
    assert_eq!(error.to_string(), format!("port {port} of 127.0.0.1 is in use"));
}

#[test]
fn a_directory_without_a_run_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = Server::start(&directory.path().join("missing"), 0).expect_err("no directory");
    assert!(missing.is_input() && matches!(missing, LiveError::NoSuchDirectory { .. }), "{missing}");
    let empty = Server::start(directory.path(), 0).expect_err("no run");
    assert!(empty.is_input() && matches!(empty, LiveError::NotARun { .. }), "{empty}");
}

#[test]
fn too_many_connections_are_refused() {
    let directory = directory();
    let server = Server::start(directory.path(), 0).expect("a server");
    let open: Vec<Events> = (0..floras_live::MAX_CONNECTIONS)
        .map(|_| {
            let mut events = Events::open(&server);
            events.next("run", |_| true);
            events
        })
        .collect();
    assert!(get(&server, "/").starts_with("HTTP/1.1 503 "));
    drop(open);
}
