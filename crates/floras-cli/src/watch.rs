//! `floras watch` and `floras run --live`: a local page that follows a run.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use clap::Args;
use floras_live::Server;

use crate::failure::Failure;
use crate::run::print_status;

/// The run to follow.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:

  floras watch runs/private                  follow a run that is in progress, or look at a finished one
  floras watch runs/private --port 8080      on a port of your choice
  floras run --live                          start a run and follow it

The page shows curves, epsilon against its budget, gains and the remaining time. Its address is printed on standard error.
It is served on 127.0.0.1 only: no other machine can reach it. Ctrl-C ends the server; the run is not affected.")]
pub(crate) struct Options {
    /// The run directory.
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Port on 127.0.0.1; 0 takes a free one.
    #[arg(long, value_name = "n", default_value_t = 0, allow_negative_numbers = true, value_parser = port)]
    port: u16,
}

/// Whether a run serves its live view.
#[derive(Debug, Args)]
pub(crate) struct LiveOptions {
    /// Serve a page on 127.0.0.1 that follows the run; its address is printed on standard error.
    #[arg(long)]
    live: bool,

    /// Port of the page; 0 takes a free one.
    #[arg(
        long,
        value_name = "n",
        default_value_t = 0,
        requires = "live",
        allow_negative_numbers = true,
        value_parser = port
    )]
    port: u16,
}

/// Follows a run until the program is ended.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let server = Server::start(&options.directory, options.port)?;
    print_status(&format!("live view: {}  (Ctrl-C ends it)", server.url()));
    server.wait();
    Ok(())
}

impl LiveOptions {
    /// Takes the port, if a live view was asked for: a port in use must not leave a run directory behind.
    pub(crate) fn listen(&self) -> Result<Option<TcpListener>, Failure> {
        Ok(self.live.then(|| Server::listen(self.port)).transpose()?)
    }
}

/// Starts the live view of a run directory on its port.
pub(crate) fn start(listener: Option<TcpListener>, directory: &Path) -> Result<Option<Server>, Failure> {
    let server = listener.map(|listener| Server::start_on(listener, directory)).transpose()?;
    if let Some(server) = &server {
        print_status(&format!("live view: {}", server.url()));
    }
    Ok(server)
}

/// Shows the end of the run, and waits until the last page is closed.
pub(crate) fn finish(live: Option<Server>) {
    if let Some(server) = live {
        server.finish(|| {
            print_status(
                "the live view is open in a browser; close the page or press Ctrl-C to end the program",
            )
        });
    }
}

/// Parses a port.
fn port(text: &str) -> Result<u16, &'static str> {
    text.parse().map_err(|_| "expected an integer between 0 and 65535, e.g. 8080; 0 takes a free port")
}
