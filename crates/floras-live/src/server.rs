//! The server: a thread that polls the run directory, one that accepts connections, and one per connection.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::board::{Board, Cursor};
use crate::error::LiveError;
use crate::http::{self, PAGE_POLICY, REPORT_POLICY, Refusal};
use crate::watcher::Watcher;

/// Maximum number of simultaneous connections. A further one receives the status 503.
pub const MAX_CONNECTIONS: usize = 64;

/// Time between two polls of the run directory.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// An idle event stream sends a comment after this time, which detects a closed page.
const KEEP_ALIVE: Duration = Duration::from_secs(1);
/// A client that neither sends nor receives bytes for this time is disconnected.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum time until the end of a run is on the board.
const MAX_FINISH: Duration = Duration::from_secs(3);

const PAGE: &str = include_str!("page/live.html");
const STYLE: &str = include_str!("page/live.css");
const SCRIPT: &str = include_str!("page/live.js");

/// Files of the run directory that a report links to.
const FILES: [&str; 7] = [
    "report.html",
    "experiment.toml",
    "metrics.jsonl",
    "ledger.jsonl",
    "summary.json",
    "partition.json",
    "audit.json",
];

/// The live view of a run directory. It ends when it is dropped.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    directory: PathBuf,
    board: Arc<Board>,
    connections: AtomicUsize,
    /// Number of pages that receive events.
    pages: AtomicUsize,
    is_closing: AtomicBool,
}

impl Server {
    /// Binds a port of 127.0.0.1, 0 for any free one. The run directory need not exist yet.
    pub fn listen(port: u16) -> Result<TcpListener, LiveError> {
        TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => LiveError::PortInUse { port },
            _ => LiveError::Listen { port, error },
        })
    }

    /// Serves the live view of a run directory on a port of 127.0.0.1; 0 for any free one.
    pub fn start(directory: &Path, port: u16) -> Result<Self, LiveError> {
        Self::start_on(Self::listen(port)?, directory)
    }

    /// Serves the live view of a run directory on a port from [`listen`](Self::listen).
    pub fn start_on(listener: TcpListener, directory: &Path) -> Result<Self, LiveError> {
        let mut watcher = Watcher::new(directory)?;
        let address = listener.local_addr().map_err(|error| LiveError::Listen { port: 0, error })?;
        let shared = Arc::new(Shared {
            directory: directory.to_path_buf(),
            board: watcher.board(),
            connections: AtomicUsize::new(0),
            pages: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
        });
        let mut server = Self { address, shared: Arc::clone(&shared), threads: Vec::new() };
        let of_watcher = Arc::clone(&shared);
        server.spawn("live-watcher", move || {
            while !of_watcher.is_closing.load(Ordering::Relaxed) {
                watcher.poll();
                thread::sleep(POLL_INTERVAL);
            }
        })?;
        server.spawn("live-server", move || accept(&listener, address.port(), &shared))?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), LiveError> {
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work).map_err(LiveError::Thread)?;
        self.threads.push(thread);
        Ok(())
    }

    /// The address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Serves until the process ends.
    pub fn wait(mut self) {
        for thread in std::mem::take(&mut self.threads) {
            // A thread that panicked has printed why.
            let _ = thread.join();
        }
    }

    /// Shows the end of a run of this process, and serves until the last page is closed. `open` is called first if a page is
    /// open.
    pub fn finish(self, open: impl FnOnce()) {
        let start = Instant::now();
        while !self.shared.board.is_finished() && start.elapsed() < MAX_FINISH {
            thread::sleep(POLL_INTERVAL / 4);
        }
        let has_pages = || self.shared.pages.load(Ordering::Relaxed) > 0;
        if has_pages() {
            open();
        }
        while has_pages() {
            thread::sleep(POLL_INTERVAL);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.is_closing.store(true, Ordering::Relaxed);
        self.shared.board.close();
        // A connection wakes the accepting thread.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        for thread in std::mem::take(&mut self.threads) {
            let _ = thread.join();
        }
    }
}

/// A count of open pages: incremented when created, decremented when dropped.
struct PageCount<'a>(&'a AtomicUsize);

impl<'a> PageCount<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for PageCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections until the server closes.
fn accept(listener: &TcpListener, port: u16, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_closing.load(Ordering::Relaxed) {
            break;
        }
        let Ok(mut stream) = stream else {
            // For example, too many open files: wait until some are closed.
            thread::sleep(POLL_INTERVAL);
            continue;
        };
        let timeouts =
            stream.set_read_timeout(Some(TIMEOUT)).and_then(|()| stream.set_write_timeout(Some(TIMEOUT)));
        if timeouts.is_err() {
            continue;
        }
        if shared.connections.load(Ordering::Relaxed) >= MAX_CONNECTIONS {
            refuse(&mut stream);
            continue;
        }
        let counted = Arc::clone(shared);
        counted.connections.fetch_add(1, Ordering::Relaxed);
        let work = move || {
            // An error means that the client has disconnected.
            let _ = answer(&mut stream, port, &counted);
            counted.connections.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("live-connection".to_owned()).spawn(work).is_err() {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Responds that there are too many connections. It reads the request first: closing a connection with unread bytes resets it,
/// and the response is lost.
fn refuse(stream: &mut TcpStream) {
    let read = stream.set_read_timeout(Some(POLL_INTERVAL)).and_then(|()| stream.read(&mut [0; 4096]));
    if read.is_ok() {
        let _ = Refusal::Busy.write(stream);
    }
}

fn answer(stream: &mut TcpStream, port: u16, shared: &Shared) -> io::Result<()> {
    let path = match http::read_path(stream, port) {
        Ok(path) => path,
        Err(refusal) => return refusal.write(stream),
    };
    match path.as_str() {
        "/" => text(stream, "text/html; charset=utf-8", PAGE),
        "/live.css" => text(stream, "text/css; charset=utf-8", STYLE),
        "/live.js" => text(stream, "text/javascript; charset=utf-8", SCRIPT),
        "/events" => events(stream, shared),
        path => file(stream, &shared.directory, path),
    }
}

fn text(out: &mut impl Write, content_type: &str, content: &str) -> io::Result<()> {
    http::head(out, "200 OK", content_type, PAGE_POLICY, Some(content.len() as u64), "")?;
    out.write_all(content.as_bytes())
}

fn events(stream: &mut TcpStream, shared: &Shared) -> io::Result<()> {
    let _page = PageCount::new(&shared.pages);
    stream.set_nodelay(true)?;
    http::head(stream, "200 OK", "text/event-stream", PAGE_POLICY, None, "")?;
    stream.write_all(b"retry: 1000\n\n")?;
    let mut cursor = Cursor::default();
    while let Some(events) = shared.board.events(&mut cursor, KEEP_ALIVE) {
        stream.write_all(events.as_bytes())?;
    }
    Ok(())
}

fn file(out: &mut impl Write, directory: &Path, path: &str) -> io::Result<()> {
    let Some((found, content_type, policy)) = find(directory, path) else {
        return Refusal::NotFound.write(out);
    };
    let file = File::open(found)?;
    let length = file.metadata()?.len();
    http::head(out, "200 OK", content_type, policy, Some(length), "")?;
    // A file that grows meanwhile is sent up to the announced length.
    io::copy(&mut file.take(length), out).map(drop)
}

/// The file of a path, its content type and its Content-Security-Policy. Only the files of a report that are in the run
/// directory are served.
fn find(directory: &Path, path: &str) -> Option<(PathBuf, &'static str, &'static str)> {
    let name = path.strip_prefix('/')?;
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    let plot =
        name.strip_prefix("plots/").filter(|plot| plot.chars().all(is_plain) && !plot.starts_with('.'));
    if plot.is_none() && !FILES.contains(&name) {
        return None;
    }
    let (content_type, policy) = match name.rsplit_once('.')?.1 {
        "html" => ("text/html; charset=utf-8", REPORT_POLICY),
        "svg" => ("image/svg+xml", REPORT_POLICY),
        "png" => ("image/png", PAGE_POLICY),
        "pdf" => ("application/pdf", PAGE_POLICY),
        "json" => ("application/json", PAGE_POLICY),
        "csv" | "jsonl" | "toml" => ("text/plain; charset=utf-8", PAGE_POLICY),
        _ => return None,
    };
    // Symbolic links to files outside the directory are not followed.
    let found = fs::canonicalize(directory.join(name)).ok()?;
    let is_inside = fs::canonicalize(directory).is_ok_and(|directory| found.starts_with(directory));
    (is_inside && found.is_file()).then_some((found, content_type, policy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_a_report_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        fs::create_dir_all(run.join("plots")).unwrap();
        fs::create_dir_all(run.join("checkpoint")).unwrap();
        for name in [
            "report.html",
            "plots/accuracy.svg",
            "checkpoint/trial-0000.safetensors",
            "lock",
            "plots/.hidden.svg",
        ] {
            fs::write(run.join(name), "x").unwrap();
        }
        fs::write(directory.path().join("summary.json"), "x").unwrap();
        for path in ["/report.html", "/plots/accuracy.svg"] {
            assert!(find(&run, path).is_some(), "{path}");
        }
        let refused = [
            "/summary.json",
            "/../summary.json",
            "/plots/../../summary.json",
            "/plots/..%2f..%2fsummary.json",
            "/plots/.hidden.svg",
            "/plots/",
            "/plots",
            "//etc/passwd",
            "/checkpoint/trial-0000.safetensors",
            "/lock",
            "/",
        ];
        for path in refused {
            assert!(find(&run, path).is_none(), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_directory_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let run = directory.path().join("run");
        fs::create_dir_all(&run).unwrap();
        fs::write(directory.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(directory.path().join("secret"), run.join("report.html")).unwrap();
        assert!(find(&run, "/report.html").is_none());
    }
}
