//! The live view: a local web page that follows the files of a run directory.
//!
//! ```text
//! run directory ──(polled)──▶ Watcher ──▶ Board ──(server-sent events)──▶ page
//!                             Accountant ──▶ ε after the recorded rounds
//! ```
//!
//! The watcher reads `experiment.toml`, `metrics.jsonl`, `ledger.jsonl` and `summary.json`. It has no other connection with
//! the training, so that a run in another process is followed in the same way as one in this process. `ε` is the one that
//! `floras account` states for the number of rounds in the ledger, and the one of `summary.json` once the run has ended.
//!
//! The server is small and blocking: one thread per connection, at most [`MAX_CONNECTIONS`], each with timeouts. It listens
//! on 127.0.0.1 only. It accepts only GET requests whose `Host` is this address, so that a web site that resolves its own
//! name to 127.0.0.1 is refused. Every response has a Content-Security-Policy that allows no external resource.

mod account;
mod board;
mod error;
mod http;
mod server;
mod tail;
mod watcher;

pub use error::LiveError;
pub use server::{MAX_CONNECTIONS, Server};

/// The example of the README, compiled as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
