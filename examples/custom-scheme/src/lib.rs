//! `capped-inversion`: an uplink scheme that is not part of floras, written with its public API alone.
//!
//! Every client knows its channel `h_k`. It turns its phase and inverts its amplitude as far as its power allows: it multiplies
//! its symbol by `min(1/|h_k|, p)`. It adds noise `z_k` with standard deviation `a` to each parameter of its update before it
//! sends. The base station decodes
//!
//! ```text
//! x̃ = Σ_k g_k·(x_k + z_k) + σ·n,     g_k = min(1, p·|h_k|),     ν² = a²·Σ_k g_k² + σ²
//! ```
//!
//! where `σ` is the receiver's noise in one real dimension of a symbol, and `ν` the standard deviation of all noise in the sum.
//!
//! # Privacy
//! Everything that leaves a client is computed from `x_k + z_k`. One client changes the updates by at most `Δ`, so
//! `μ ≤ Δ/a` over every channel and for every receiver, because post-processing does not increase `μ`. The bound does not use the
//! noise of the receiver or of other clients. Without client noise (`a = 0`) the gain is still at most 1 if the client measures
//! its channel correctly, but the bound `Δ/σ` would depend on the base station's own noise. The scheme states no bound then.

use std::ops::RangeInclusive;

use floras::core::View;
use floras::phy::{Channels, ChipLink, EffectiveChannel, Round, SequenceSet, Uplink, UplinkError};
use floras::privacy::{Account, Source};
use floras::sim::schemes::{ChannelKnowledge, NoiseKey, Scheme, SchemeFile, Trust, within};
use floras::sim::{AccountContext, ExperimentError, Radio, SimError};
use serde::{Deserialize, Serialize};

const MAX_GAIN: RangeInclusive<f64> = 1e-3..=1e3;
const CLIENT_NOISE: RangeInclusive<f64> = 0.0..=1e30;

/// The keys of `capped-inversion` in the section `[uplink]`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct CappedInversion {
    /// `p`, the largest factor by which a client may multiply its amplitude: from 1e-3 to 1e3.
    pub max_gain: f64,
    /// `a`, standard deviation of the noise that a client adds to each parameter of its own update: from 0 to 1e30.
    pub client_noise_std: f64,
}

impl Default for CappedInversion {
    fn default() -> Self {
        Self { max_gain: 2.0, client_noise_std: 0.0 }
    }
}

impl SchemeFile for CappedInversion {
    const NAME: &'static str = "capped-inversion";
    const LABEL: &'static str = "channel inversion with capped power";
    type Keys = Self;

    fn read(keys: Self) -> Result<Self, ExperimentError> {
        within("uplink.max_gain", Some(keys.max_gain), MAX_GAIN)?;
        within("uplink.client_noise_std", Some(keys.client_noise_std), CLIENT_NOISE)?;
        Ok(keys)
    }
}

impl Scheme for CappedInversion {
    fn build(&self, radio: &Radio, _seed: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        let noise_std = radio.snr()?.symbol_noise_std(radio.length);
        Ok(Box::new(CappedInversionUplink::new(*self, radio.channels()?, noise_std)))
    }

    /// The idealised view is absent: it describes unused sequences, and this scheme has no sequences. All clients arrive in phase
    /// and unspread, so that raw samples show no more than the sum.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let mut account = context.account()?;
        let estimate = context.estimate()?;
        account.set(View::Actual, estimate.clone());
        if self.client_noise_std > 0.0 {
            let bound = context.constant(context.sensitivity() / self.client_noise_std);
            account.set(View::AnyChannel, bound.clone());
            account.set(View::RawSignal, bound);
        } else {
            let reason = "without client noise, a bound would depend on the base station's own noise";
            account.set(View::AnyChannel, Source::Nothing(reason.to_owned()));
            account.set(View::RawSignal, estimate);
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        ChannelKnowledge::Coefficient
    }

    fn summary(&self, _per_round: u32) -> String {
        format!(
            "{} with gains up to {} and client noise of {}",
            Self::NAME,
            self.max_gain,
            self.client_noise_std
        )
    }

    fn description(&self, _radio: &Radio, _per_round: u32) -> String {
        format!(
            "Over the radio by channel inversion with capped power: every client multiplies its amplitude by at most {}. It adds \
             Gaussian noise with standard deviation {} to its own update.",
            self.max_gain, self.client_noise_std
        )
    }

    /// Under the raw-signal view the adversary does not know who takes part, which statements add if clients are drawn at random. Clients
    /// that collude would reveal it.
    fn adversary(&self, view: View) -> Option<&'static str> {
        match view {
            View::AnyChannel if self.client_noise_std > 0.0 => Some(
                "anyone who receives the signal and knows, or even chooses, every channel; the other clients may collude",
            ),
            View::RawSignal => Some("a base station that keeps its raw samples"),
            _ => None,
        }
    }

    /// The column of the privacy table, in at most 22 characters.
    fn adversary_sees(&self, view: View) -> Option<&'static str> {
        (self.client_noise_std > 0.0 && view == View::AnyChannel).then_some("signal, all channels")
    }

    /// Makes `floras::sim::inquiry::calibrate_experiment` work with `Find::Noise`.
    fn noise_key(&self) -> Option<NoiseKey> {
        Some(NoiseKey { key: "client_noise_std", range: CLIENT_NOISE, trust: Trust::NoOne })
    }
}

/// The uplink of `capped-inversion`.
#[derive(Clone, Debug)]
pub struct CappedInversionUplink {
    scheme: CappedInversion,
    channels: Channels,
    /// Standard deviation `σ` of the receiver's noise in one real dimension of a symbol.
    noise_std: f64,
}

impl CappedInversionUplink {
    /// The scheme over channels with receiver noise `σ = noise_std` in one real dimension of a symbol.
    pub fn new(scheme: CappedInversion, channels: Channels, noise_std: f64) -> Self {
        Self { scheme, channels, noise_std }
    }

    /// `g_k = min(1, p·|h_k|)`.
    fn gains(&self, round: &Round<'_>) -> Result<Vec<f64>, UplinkError> {
        let channels = self.channels.draw(round)?;
        Ok(channels.iter().map(|h| (self.scheme.max_gain * h.norm()).min(1.0)).collect())
    }
}

impl Uplink for CappedInversionUplink {
    fn name(&self) -> &'static str {
        CappedInversion::NAME
    }

    fn realise(&self, round: &Round<'_>) -> Result<EffectiveChannel, UplinkError> {
        let gains = self.gains(round)?;
        let from_clients: f64 = gains.iter().map(|gain| (gain * self.scheme.client_noise_std).powi(2)).sum();
        EffectiveChannel::new(gains, (from_clients + self.noise_std.powi(2)).sqrt())
    }

    /// One chip for each symbol, which all clients share.
    fn link(&self, round: &Round<'_>) -> Result<ChipLink, UplinkError> {
        let gains = self.gains(round)?;
        let (set, clients) = (SequenceSet::orthonormal(1, 1)?, gains.len());
        let projector = set.spread(&[1.0])?;
        ChipLink::new(set, vec![0; clients], gains, projector, self.noise_std)?
            .with_client_noise(vec![self.scheme.client_noise_std; clients])
    }
}
