//! The views: the distribution of `μ` against each adversary, and the statements about it.
//!
//! The decoder's noise `ν` is a sum over sequences (`noise`, `few`), each weighted by the receiver (`receiver`) with a channel
//! estimate (`pilot`, `divisors`, `estimates`). `gains` joins both to `g`; [`actual`] averages over the channels, [`any_channel`] takes the worst one,
//! and [`idealised`] has strong clients only. [`of`] lists the views.

pub(crate) mod actual;
pub(crate) mod any_channel;
mod divisors;
mod estimates;
mod few;
mod gains;
pub(crate) mod idealised;
pub(crate) mod masks;
mod nodes;
mod noise;
mod pilot;
mod published;
mod raw_signal;
pub(crate) mod receiver;
pub(crate) mod statement;

use floras_core::View;

use crate::account::Source;
use crate::engine::distribution::MuDistribution;
use crate::engine::sampling::Curve;
use crate::engine::tabulated::Tabulated;
use crate::error::PrivacyError;
use crate::published::rdp::RenyiRound;
use crate::published::theorems::PublishedRound;
use crate::setting::Setting;

/// The source of a view's additional numbers.
pub(crate) enum DetailSource {
    /// The view has no additional numbers.
    Absent,
    /// One round as published, with `p` of the theorems and of the appendix.
    Published(Result<(PublishedRound, PublishedRound), PrivacyError>),
    /// The Rényi form of one round in which every client takes part.
    Renyi(RenyiRound),
    /// Another curve that bounds the view, and the name of its number.
    Bound(&'static str, Box<dyn Curve>),
}

/// The source of the `ε` of a view in a FLORAS federation, with its assumptions, and the source of its additional numbers.
pub(crate) fn of(setting: &Setting, view: View) -> Result<(Source, DetailSource), PrivacyError> {
    let (source, details) = match view {
        View::Published => published::view(setting),
        View::Idealised => idealised::view(setting),
        View::Actual => actual::view(setting),
        View::AnyChannel => return any_channel::view(setting),
        View::RawSignal => raw_signal::view(setting),
    }?;
    // Sampling reduces these numbers. The any-channel adversary sees from the pilot who takes part.
    let is_sampled = setting.sampling().probability() < 1.0;
    let secret = is_sampled.then_some("the adversary does not know who takes part in a round");
    Ok((source.assuming(secret), details))
}

/// The curve of a distribution.
pub(crate) fn boxed(distribution: MuDistribution) -> Box<dyn Curve> {
    if let MuDistribution::Cells(_) = distribution {
        return Box::new(Tabulated::new(distribution));
    }
    Box::new(distribution)
}
