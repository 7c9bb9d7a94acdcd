//! Uplink schemes: how the updates of a round become one decoded sum.
//!
//! Each scheme is one small file behind the trait [`Uplink`]. It turns a round into an effective channel `(g, ν)`
//! for the symbol level and, if it can be simulated there, into a [`ChipLink`] for the chip level; the two have the same
//! distribution.
//!
//! | scheme | gain `g_k` | noise `ν` | what the clients must know |
//! |---|---|---|---|
//! | [`Floras`] | `h_k·w(ĥ_k)` | `s·√(Σ_{k≤N} w(ĥ_k)²)` | their sequence (and their phase, if they correct it) |
//! | [`ChannelInversion`] | 1 if admitted, else 0 | `√(a² + σ²/η)` | their channel |
//! | [`BroadbandInversion`] | `K/K_m` where admitted, else 0 | `(σ/√ρ₀)·K/K_m` | their channel on each subcarrier |
//! | [`PowerControl`] | 1 if admitted, else 0 | `max(σ/c_max, ν_min)` | their channel, and the level |
//! | [`ArtificialNoise`] | 1 if admitted, else 0 | at least `√(m·r + σ²/c²)` with `m` admitted | their channel, and the level |
//! | [`Blind`] | `Re ĥᴴh_k/R` | `σ·‖ĥ‖/R` | nothing |
//! | [`PhaseCorrected`] | `|h_k|·cos(error)/E|h|` | `σ/E|h|` | their phase |
//! | [`Ideal`] | 1 | 0 | – |
//! | [`CentralGaussian`] | 1 | as chosen | – |
//!
//! Schemes that are not linear, such as votes and compressed sums, implement [`Nonlinear`] too.
//!
//! [`UnitPower`] and [`Masked`] wrap any of them: clients that send at unit power, and clients that mask their updates.
//!
//! The table is for channels that are constant over a round and known without error where they must be known. The module of each
//! scheme covers ageing channels and estimation errors of the clients.

mod a_dsgd;
mod artificial_noise;
mod blind;
mod broadband_inversion;
mod central_gaussian;
mod channel_inversion;
mod cotaf;
mod d_dsgd;
mod digital;
mod error_feedback;
mod floras;
mod fsk_vote;
mod groups;
mod ideal;
mod largest;
mod masked;
mod modulation;
mod nonlinear;
mod one_bit;
mod phase_corrected;
mod power_control;
mod sent;
mod signal;
mod unit_power;
mod unspread;
mod votes;

use floras_core::Fidelity;
use floras_core::random::Purpose;

use crate::chip::ChipLink;
use crate::cost::Transmission;
use crate::effective::EffectiveChannel;
use crate::error::UplinkError;
use crate::round::Round;
use crate::updates;

pub use a_dsgd::{ADsgd, ADsgdSettings};
pub use artificial_noise::{ArtificialNoise, ArtificialNoiseSettings, PowerSplit};
pub use blind::{Blind, BlindSettings};
pub use broadband_inversion::{BroadbandInversion, BroadbandInversionSettings};
pub use central_gaussian::CentralGaussian;
pub use channel_inversion::{ChannelInversion, ChannelInversionSettings};
pub use cotaf::{Cotaf, CotafSettings};
pub use d_dsgd::{DDsgd, DDsgdSettings};
pub use digital::{CodeRate, Digital, DigitalSettings};
pub use floras::{Floras, FlorasSettings};
pub(crate) use floras::{cross_gain, gain};
pub use fsk_vote::{FskVote, FskVoteSettings};
pub use ideal::Ideal;
pub use masked::Masked;
pub(crate) use nonlinear::receive;
pub use nonlinear::{Nonlinear, Received};
pub use one_bit::OneBit;
pub use phase_corrected::{PhaseCorrected, PhaseCorrectedSettings};
pub use power_control::{LevelPolicy, PowerControl, PowerControlSettings};
pub use sent::Sent;
pub use signal::Signal;
pub use unit_power::{UnitPower, unit_scale};

/// The result of a round at the base station.
#[derive(Clone, Debug, PartialEq)]
pub struct Decoded {
    /// `x̃`, the noisy sum of the updates.
    pub sum: Vec<f32>,
    /// The effective channel `(g, ν)` of the round.
    pub channel: EffectiveChannel,
}

/// An uplink scheme. Most are linear; the others return themselves as [`nonlinear`](Self::nonlinear).
pub trait Uplink: Send + Sync {
    /// The scheme's name, as in `floras` or `channel-inversion`.
    fn name(&self) -> &'static str;

    /// Draws the effective channel of a round. [`NotLinear`](UplinkError::NotLinear) for a scheme without one.
    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError>;

    /// The scheme as a nonlinear one; `None` for a linear scheme.
    fn nonlinear(&self) -> Option<&dyn Nonlinear> {
        None
    }

    /// Draws the same round at the chip level, including the pilot. An error for a scheme without a chip level.
    fn link(&self, _round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        Err(UplinkError::NoChipLevel { scheme: self.name() })
    }

    /// The values that the clients of a round send at the chip level in place of their updates, in the order of its list. `None` if
    /// they send the updates.
    fn sent(&self, _round: &Round<'_>, _updates: &[&[f32]]) -> Result<Option<Vec<Vec<f32>>>, UplinkError> {
        Ok(None)
    }

    /// Adds to the effective channel of a round's [`link`](Self::link) the noise that clients add to their updates and that the link
    /// does not include.
    fn with_added_noise(
        &self,
        _round: &Round<'_>,
        channel: EffectiveChannel,
    ) -> Result<EffectiveChannel, UplinkError> {
        Ok(channel)
    }

    /// The transmission of a round, for its [`Cost`](crate::Cost); `None` for a scheme without a radio.
    fn transmission(&self, _round: &Round<'_>) -> Result<Option<Transmission>, UplinkError> {
        Ok(None)
    }

    /// The signal behind the round's effective channel: of [`realise`](Self::realise) at the symbol level, of
    /// [`link`](Self::link) at the chip level. They draw the pilot's noise differently. `None` for a scheme without a radio.
    fn signal(&self, _round: &Round<'_>, _fidelity: Fidelity) -> Result<Option<Signal>, UplinkError> {
        Ok(None)
    }
}

/// Sends the updates of a round's clients, in the order of its list, over `uplink`.
///
/// ```
/// use floras_phy::{Fidelity, Ideal, Round, transmit};
///
/// let round = Round::new(1, 0, 1, &[0, 1])?;
/// let decoded = transmit(&Ideal, &round, &[[1.0, 2.0], [3.0, 4.0]], Fidelity::Symbol)?;
/// assert_eq!(decoded.sum, [4.0, 6.0]);
/// # Ok::<(), floras_phy::UplinkError>(())
/// ```
pub fn transmit<U: AsRef<[f32]> + Sync>(
    uplink: &dyn Uplink,
    round: &Round<'_>,
    updates: &[U],
    fidelity: Fidelity,
) -> Result<Decoded, UplinkError> {
    let mut sum = vec![0.0; updates::parameters(updates)];
    let channel = transmit_into(uplink, round, updates, fidelity, &mut sum)?;
    Ok(Decoded { sum, channel })
}

/// [`transmit`] into memory that the caller provides; returns the round's effective channel.
///
/// After an error the contents of `decoded` are unspecified.
pub fn transmit_into<U: AsRef<[f32]> + Sync>(
    uplink: &dyn Uplink,
    round: &Round<'_>,
    updates: &[U],
    fidelity: Fidelity,
    decoded: &mut [f32],
) -> Result<EffectiveChannel, UplinkError> {
    let noise = round.stream_name(Purpose::PAYLOAD_NOISE);
    let round = &round.with_parameters(decoded.len());
    match fidelity {
        Fidelity::Symbol => {
            let channel = uplink.realise(round)?;
            channel.apply_into(updates, noise, decoded)?;
            Ok(channel)
        }
        Fidelity::Chip => {
            let link = uplink.link(round)?;
            let rows: Vec<&[f32]> = updates.iter().map(AsRef::as_ref).collect();
            match uplink.sent(round, &rows)? {
                Some(sent) => link.transmit_into(&sent, noise, decoded)?,
                None => link.transmit_into(updates, noise, decoded)?,
            }
            uplink.with_added_noise(round, link.effective()?)
        }
    }
}
