//! Sources of files: a directory of this machine, or an HTTP server.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::Failure;

/// Time for a connection, and for the head of an answer.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A server that sends nothing for this long is given up.
const STALL: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// Directories in which an unpacked archive has its files.
const INNER: &[&str] = &["", "cifar-10-batches-bin/"];

/// A source of files.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Directory(PathBuf),
    Url(String),
}

/// An opened file.
pub(super) struct Opened {
    content: Box<dyn Read>,
    /// Length in bytes, if the source states it.
    length: Option<u64>,
    is_remote: bool,
    /// Whether the server has stopped in the middle of the file.
    pub(super) has_stalled: Arc<AtomicBool>,
}

/// Why a file cannot be opened.
pub(super) struct OpenError {
    /// `None` if the directory has no such file.
    pub(super) reason: Option<String>,
    /// Other files of the source cannot be opened either.
    pub(super) is_gone: bool,
}

impl Source {
    /// A directory that exists, or a URL.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let address = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        if address.is_some_and(|address| !address.is_empty() && !address.starts_with('/')) {
            return Ok(Self::Url(text.trim_end_matches('/').to_owned()));
        }
        if text.contains("://") || !Path::new(text).is_dir() {
            let allowed = "a directory that exists, or a URL such as http://mirror.example/mnist";
            return Err(Failure::option("--from", allowed, text));
        }
        Ok(Self::Directory(PathBuf::from(text)))
    }

    pub(super) fn is_url(&self) -> bool {
        matches!(self, Self::Url(_))
    }

    /// The names under which the source may have a file. Servers have the gzipped files.
    pub(super) fn names(&self, name: &str) -> Vec<String> {
        match self {
            Self::Url(_) => vec![format!("{name}.gz"), name.to_owned()],
            Self::Directory(_) => {
                // Some copies have a dot before idx, as in train-images.idx3-ubyte.
                let mut spellings = vec![name.to_owned(), name.replacen("-idx", ".idx", 1)];
                spellings.dedup();
                let inner =
                    spellings.iter().flat_map(|name| INNER.iter().map(move |inner| format!("{inner}{name}")));
                inner.flat_map(|name| [name.clone(), format!("{name}.gz")]).collect()
            }
        }
    }

    /// Path or URL of a file.
    pub(super) fn place(&self, name: &str) -> String {
        match self {
            Self::Directory(directory) => directory.join(name).display().to_string(),
            Self::Url(url) => format!("{url}/{name}"),
        }
    }

    /// Opens a file.
    pub(super) fn open(&self, name: &str) -> Result<Opened, OpenError> {
        match self {
            Self::Directory(directory) => {
                let open = File::open(directory.join(name)).and_then(|file| Ok((file.metadata()?, file)));
                let (metadata, file) = open.map_err(|error| {
                    let is_missing = error.kind() == io::ErrorKind::NotFound;
                    OpenError { reason: (!is_missing).then(|| error.to_string()), is_gone: false }
                })?;
                if metadata.is_dir() {
                    return Err(OpenError { reason: Some("it is a directory".to_owned()), is_gone: false });
                }
                let (content, length) = (Box::new(file), Some(metadata.len()));
                Ok(Opened { content, length, is_remote: false, has_stalled: Arc::default() })
            }
            Self::Url(_) => get(&self.place(name)),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(directory) => directory.display().fmt(f),
            Self::Url(url) => f.write_str(url),
        }
    }
}

impl Opened {
    /// The bytes of the file; those of a server with a progress bar.
    pub(super) fn reader(self, place: &str) -> impl BufRead {
        let bar = match self.is_remote {
            true => ProgressBar::new(self.length.unwrap_or(0)),
            false => ProgressBar::hidden(),
        };
        let name = place.rsplit('/').next().unwrap_or(place).to_owned();
        let style = ProgressStyle::with_template(
            "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
        );
        bar.set_style(style.expect("the template is well-formed"));
        bar.set_message(name);
        BufReader::with_capacity(1 << 16, bar.wrap_read(self.content))
    }
}

/// Requests a file from a server.
fn get(url: &str) -> Result<Opened, OpenError> {
    let config = ureq::Agent::config_builder()
        .timeout_connect(Some(TIMEOUT))
        .timeout_recv_response(Some(TIMEOUT))
        .user_agent(concat!("floras/", env!("CARGO_PKG_VERSION")))
        .build();
    let answer = ureq::Agent::from(config).get(url).call().map_err(|error| {
        let is_answer = matches!(error, ureq::Error::StatusCode(_));
        let reason = match error {
            ureq::Error::StatusCode(status) => format!("the server answers {status}"),
            ureq::Error::TlsRequired => "this program was built without HTTPS (feature https)".to_owned(),
            ureq::Error::Io(error) => error.to_string(),
            error => error.to_string(),
        };
        OpenError { reason: Some(reason), is_gone: !is_answer }
    })?;
    let body = answer.into_body();
    let length = body.content_length();
    let content = Box::new(Watched::new(body.into_reader()));
    let has_stalled = content.has_stalled.clone();
    Ok(Opened { content, length, is_remote: true, has_stalled })
}

/// A reader that fails if nothing is received for [`STALL`]. A thread of its own reads, since the limits of the HTTP library are
/// on the whole transfer.
struct Watched {
    parts: Receiver<io::Result<Vec<u8>>>,
    part: Cursor<Vec<u8>>,
    has_stalled: Arc<AtomicBool>,
}

impl Watched {
    fn new(mut content: impl Read + Send + 'static) -> Self {
        let (sender, parts) = sync_channel(4);
        thread::spawn(move || {
            loop {
                let mut part = vec![0; 1 << 16];
                let read = content.read(&mut part).map(|count| {
                    part.truncate(count);
                    part
                });
                let is_last = read.as_ref().map_or(true, Vec::is_empty);
                // The receiver is gone once the file is complete or given up.
                if sender.send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self { parts, part: Cursor::default(), has_stalled: Arc::default() }
    }
}

impl Read for Watched {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.position() == self.part.get_ref().len() as u64 {
            self.part = match self.parts.recv_timeout(STALL) {
                Ok(part) => Cursor::new(part?),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
                Err(RecvTimeoutError::Timeout) => {
                    self.has_stalled.store(true, Ordering::Relaxed);
                    let message = format!("the server has sent nothing for {} s", STALL.as_secs());
                    return Err(io::Error::new(io::ErrorKind::TimedOut, message));
                }
            };
        }
        self.part.read(buffer)
    }
}
