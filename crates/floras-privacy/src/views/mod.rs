//! The views: the distribution of `μ` against each adversary, and what is stated about it.
//!
//! The decoder's noise `ν` is a sum over sequences (`noise`, `few`), each weighted by the receiver (`receiver`) with a channel
//! estimate (`pilot`). `gains` joins both to `g`; [`actual`] averages over the channels, [`any_channel`] takes the worst one.

pub(crate) mod actual;
pub(crate) mod any_channel;
mod few;
mod gains;
mod nodes;
mod noise;
mod pilot;
pub(crate) mod receiver;
pub(crate) mod statement;
