//! `floras bench`: how fast this machine is.

mod resources;
mod uplink;

use clap::Subcommand;

use crate::failure::Failure;

/// What can be measured.
#[derive(Debug, Subcommand)]
pub(crate) enum What {
    /// One round of the air interface.
    Uplink(uplink::Options),
}

/// Measures.
pub(crate) fn run(what: &What) -> Result<(), Failure> {
    match what {
        What::Uplink(options) => uplink::run(options),
    }
}
