//! Uplinks that are not linear: votes, compressed or quantised sums, and sums whose scale depends on the updates.
//!
//! A linear uplink is described by gains and noise that do not depend on the updates. The schemes here need the updates themselves:
//! a vote takes their signs, a compressed sum their largest entries. They have the symbol level only, and their noise is the
//! simulation's.

use super::{Sent, Uplink};
use crate::cost::Cost;
use crate::effective::EffectiveChannel;
use crate::error::UplinkError;
use crate::memory::ClientMemory;
use crate::round::Round;

/// An uplink whose decoded vector depends on the updates in another way than `Σ_k g_k x_k + ν·n`.
pub trait Nonlinear: Send + Sync {
    /// Sends the updates and writes the estimate of their sum to `decoded`.
    ///
    /// There is one update for each client of the round, in the order of its list, clipped while it is read. All values are finite, and
    /// all updates and `decoded` have the same length. Randomness comes from the round's streams only.
    fn receive(
        &self,
        round: &Round<'_>,
        updates: &[Sent<'_>],
        memory: &mut ClientMemory,
        decoded: &mut [f32],
    ) -> Result<Received, UplinkError>;

    /// Whether clients keep a vector from one round to the next, as error feedback does.
    fn keeps_memory(&self) -> bool {
        false
    }
}

/// What is known about a round of a [`Nonlinear`] uplink besides the decoded vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Received {
    /// The effective channel, for a sum whose scale depends on the updates; `None` if the decoded vector is no weighted sum.
    pub channel: Option<EffectiveChannel>,
    /// Transmit power, channel uses and energy; `None` for a scheme without a radio.
    pub cost: Option<Cost>,
}

/// Receives a round over an uplink that is nonlinear. An error if clients keep a memory and none is given.
pub(crate) fn receive(
    uplink: &dyn Uplink,
    nonlinear: &dyn Nonlinear,
    round: &Round<'_>,
    updates: &[Sent<'_>],
    memory: Option<&mut ClientMemory>,
    decoded: &mut [f32],
) -> Result<Received, UplinkError> {
    match memory {
        Some(memory) => nonlinear.receive(round, updates, memory, decoded),
        None if nonlinear.keeps_memory() => Err(UplinkError::NeedsMemory { scheme: uplink.name() }),
        None => nonlinear.receive(round, updates, &mut ClientMemory::default(), decoded),
    }
}
