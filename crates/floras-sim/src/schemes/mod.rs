//! The uplink schemes that an experiment can name.
//!
//! A scheme is one file here: its keys in `[uplink]`, how it is built, its privacy account, and its descriptions. [`all`] lists
//! them. Everything else works on the trait [`Scheme`], so that `run`, `sweep`, `account`, `calibrate`, Python and the report need
//! no change for a new one. Another crate adds its own with [`register`].

mod a_dsgd;
mod artificial_noise;
mod assumptions;
mod blind;
mod broadband_inversion;
mod channel_inversion;
mod cotaf;
mod d_dsgd;
mod digital;
mod fields;
mod floras;
mod fsk_vote;
mod gaussian;
mod ideal;
mod one_bit;
mod phase_corrected;
mod power_control;
mod registry;

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use floras_core::{Admission, ChannelSource, Fading, ParametersPerSymbol, View};
use floras_phy::{Uplink, UplinkError};
use floras_privacy::{Account, Sampling, Source};
use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Table;

pub use a_dsgd::ADsgdScheme;
pub use artificial_noise::ArtificialNoiseScheme;
pub use assumptions::{ChannelKnowledge, NoiseKey, Trust};
pub use blind::BlindScheme;
pub use broadband_inversion::BroadbandInversionScheme;
pub use channel_inversion::ChannelInversionScheme;
pub use cotaf::CotafScheme;
pub use d_dsgd::DDsgdScheme;
pub use digital::DigitalScheme;
pub use floras::{AGEING, FlorasScheme, OVERLAPPING};
pub use fsk_vote::FskVoteScheme;
pub use gaussian::GaussianScheme;
pub use ideal::IdealScheme;
pub use one_bit::OneBitScheme;
pub use phase_corrected::PhaseCorrectedScheme;
pub use power_control::PowerControlScheme;
pub use registry::{SchemeEntry, all, register};
pub(crate) use registry::{find, keys, read_all};

pub use crate::experiment::within;

use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, Settings};

/// An uplink scheme. A value holds the scheme's own settings.
pub trait Scheme: Any + fmt::Debug + Send + Sync {
    /// The uplink over this radio. Sequences of some families are drawn from the seed.
    fn build(&self, radio: &Radio, seed: u64) -> Result<Box<dyn Uplink>, UplinkError>;

    /// The privacy account of a round: the distribution of `μ = Δ·|g|/ν` in each view.
    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError>;

    /// What a client must know about its own channel before it sends.
    fn channel_knowledge(&self) -> ChannelKnowledge;

    /// A short description for one line of text, such as `floras with 25 sequences (γ = 5 unused)`, for `per_round` clients per
    /// round.
    fn summary(&self, per_round: u32) -> String;

    /// How the updates reach the base station, in one or two sentences.
    fn description(&self, radio: &Radio, per_round: u32) -> String;

    /// Whether it sends over a radio, and so reads `length`, `fading`, `snr_db` and `snr_convention`.
    fn uses_radio(&self) -> bool {
        true
    }

    /// Whether the decoded vector is a sum with gains and noise that do not depend on the updates. A scheme that is not linear has the
    /// symbol level only, and needs updates that are clipped each on its own, without masks and at unscaled power.
    fn is_linear(&self) -> bool {
        true
    }

    /// Whether its channel or its account depends on the number of parameters `d`.
    fn needs_parameters(&self) -> bool {
        !self.is_linear()
    }

    /// Whether what a client sends depends on the rounds in which it took part before, as with error feedback. Sampling then
    /// amplifies nothing: statements are about an adversary who sees who takes part.
    fn reveals_participation(&self) -> bool {
        false
    }

    /// Whether a client's update can be lost in a round although the client sends it, as a packet in outage. Masks of the others then
    /// stay in the sum.
    fn has_outage(&self) -> bool {
        false
    }

    /// The number of parameters in a symbol, for a linear scheme with complex symbols.
    fn parameters_per_symbol(&self) -> ParametersPerSymbol {
        ParametersPerSymbol::One
    }

    /// Whether its privacy statement allows that clients count by their number of samples.
    fn allows_weights(&self) -> bool {
        false
    }

    /// Number of sequences `N`, for a scheme that spreads updates: at most `N` clients take part in a round.
    fn sequences(&self) -> Option<usize> {
        None
    }

    /// Rejects a radio that the scheme cannot use: most schemes receive with one antenna.
    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        require_one_antenna(radio)
    }

    /// The adversary of a view, if it differs from the view's usual one. It leaves out whether the adversary knows who takes
    /// part: statements add that if clients are drawn at random.
    fn adversary(&self, _view: View) -> Option<&'static str> {
        None
    }

    /// Whether the adversary of a view has the raw samples of the base station.
    fn has_raw_samples(&self, view: View) -> bool {
        view == View::RawSignal
    }

    /// What that adversary sees, in at most 22 characters for the column of a table, if it differs from the view's usual words.
    fn adversary_sees(&self, _view: View) -> Option<&'static str> {
        None
    }

    /// The scheme's own settings as names and values, for tables.
    fn details(&self, _per_round: u32) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Notes for the user about an experiment with this scheme.
    fn notes(&self, _settings: &Settings) -> Vec<String> {
        Vec::new()
    }

    /// What a comparison with other schemes must state, because conditions or results differ by it: clauses that can follow the scheme's
    /// name and a colon. Schemes with the same remark are named together.
    fn remarks(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The scheme's own noise, which calibration can search to meet an `ε`.
    fn noise_key(&self) -> Option<NoiseKey> {
        None
    }
}

/// Rejects several antennas, for a scheme that receives with one.
fn require_one_antenna(radio: &Radio) -> Result<(), ExperimentError> {
    if radio.antennas == 1 {
        return Ok(());
    }
    let reason = format!("this scheme receives with 1 antenna, not {}", radio.antennas);
    Err(ExperimentError::refused("uplink.antennas", reason))
}

/// Rejects a radio whose channels have no known distribution that is the same for all clients: the scale of the sum, or the power of
/// clients, follows from it.
fn require_equal_channels(radio: &Radio) -> Result<(), ExperimentError> {
    if radio.trace().is_some() {
        let reason = "this scheme scales by the distribution of the channels; give a fading, not a trace";
        return Err(ExperimentError::refused("uplink.fading", reason));
    }
    if radio.is_unequal() {
        let reason =
            "this scheme sets one scale for all clients, which needs equal mean channels: power_control = 1";
        return Err(ExperimentError::refused("uplink.path_loss", reason));
    }
    Ok(())
}

/// Rejects a threshold that clients practically never reach. The channels of a trace are checked when the uplink is built, which reads it.
fn check_admission(radio: &Radio, admission: Admission) -> Result<(), ExperimentError> {
    if radio.trace().is_some() {
        return Ok(());
    }
    let checked = radio.channels().and_then(|channels| channels.check_admission(admission));
    checked.map_err(|error| ExperimentError::refused("uplink.admission", error))
}

/// Rejects blocks of an ageing channel that would split the parameters of a symbol.
fn check_coherence(radio: &Radio, packing: ParametersPerSymbol) -> Result<(), ExperimentError> {
    if radio.coherence.is_some_and(|coherence| !coherence.is_multiple_of(packing.get())) {
        let reason = "it must be even: two parameters share a symbol, and a symbol has one channel";
        return Err(ExperimentError::refused("uplink.coherence", reason));
    }
    Ok(())
}

/// Whether the numbers of an account are for adversaries who do not know which `per_round` of `total` clients take part.
pub(crate) fn is_selection_secret(per_round: u32, total: u32, sampling: Sampling) -> bool {
    per_round < total && matches!(sampling, Sampling::ReplaceOne(_) | Sampling::AddRemove(_))
}

/// The description of an adversary. Under sampling, the numbers of `idealised` and `raw-signal` are for one who does not know who takes
/// part. That phrase belongs before the first comma.
pub(crate) fn adversary_under(view: View, adversary: &str, is_selection_secret: bool) -> String {
    if !(is_selection_secret && matches!(view, View::Idealised | View::RawSignal)) {
        return adversary.to_owned();
    }
    let end = adversary.find(", ").unwrap_or(adversary.len());
    let (who, condition) = adversary.split_at(end);
    format!("{who} but does not know who takes part{condition}")
}

/// A remark of schemes that divide the channel uses among the clients.
const SHARED_USES: &str = "a client sends at the power K in a share 1/K of the channel uses";

/// A remark of schemes that use both real dimensions of a symbol.
const BOTH_DIMENSIONS: &str =
    "clients send in both real dimensions of a symbol, those of other schemes in one";

/// A remark of schemes with subcarriers.
const INDEPENDENT_SUBCARRIERS: &str = "channels are independent between subcarriers, as in a wide band";

/// The assumption of bounds on the samples of a receiver for which all clients are aligned. With another antenna, over whose channels they
/// are not, both updates and noise could be separated.
const ONE_ANTENNA: &str = "the base station, and anyone it works with, receives with one antenna, the one at which the clients are aligned";

/// The assumptions of a bound in which the receiver's noise protects clients that arrive at a constant amplitude.
const BY_RECEIVER_NOISE: [&str; 2] = [
    "the receiver's noise is at least the stated one",
    "the coefficient that every client inverts is correct, although the base station can return another",
];

/// Sets the views of clients that arrive at a constant amplitude, in noise of the receiver that makes `mu` of it. A client is silent with
/// some probability unless it `is_always_admitted`. The adversary of `any-channel` can choose strong channels; the others see less than the
/// bound counts then, so that they have no lower bound.
fn set_by_receiver_noise(account: &mut Account, bound: &Source, is_always_admitted: bool) {
    let bound = bound.clone().assuming(BY_RECEIVER_NOISE);
    let averaged = if is_always_admitted { bound.clone() } else { bound.clone().without_lower() };
    account.set(View::Actual, averaged.clone());
    account.set(View::AnyChannel, bound.assuming([ONE_ANTENNA]));
    account.set(View::RawSignal, averaged.assuming([ONE_ANTENNA]));
}

/// Whether every client is admitted in every round: without fading, if the threshold is at most 1.
fn admits_always(radio: &Radio, admission: Admission) -> bool {
    let is_constant = radio.fading == ChannelSource::Fading(Fading::None);
    let is_known = !radio.is_unequal() && !radio.ages() && radio.channel_error == 0.0;
    is_constant && is_known && admission.amplitude() <= 1.0
}

/// The adversary of views in which the receiver's noise protects clients. Under sampling, the number of `any-channel` is for one who knows
/// who takes part.
fn receiver_noise_adversary(view: View) -> Option<&'static str> {
    match view {
        View::AnyChannel => Some(
            "a base station that knows every channel and who takes part, and keeps its raw samples, with no less noise than stated",
        ),
        View::RawSignal => Some("a base station that keeps its raw samples, with no less noise than stated"),
        _ => None,
    }
}

/// Whether the adversary of a view has raw samples, where the receiver's noise protects clients.
fn receiver_noise_has_raw_samples(view: View) -> bool {
    matches!(view, View::AnyChannel | View::RawSignal)
}

/// What an adversary sees who knows every channel and keeps raw samples.
const SAMPLES_AND_CHANNELS: &str = "samples, all channels";

/// Why there is no bound for every channel if clients do not know theirs exactly.
const NOT_KNOWN: &str =
    "a client whose channel is stronger than it knows arrives louder than intended, without a limit";

/// Why a channel without noise has no guarantee.
const NO_NOISE: &str = "the channel has no noise, and gives no privacy";

/// The form of a scheme in an experiment file.
///
/// Its own keys are the fields of [`Keys`](Self::Keys), all with defaults. A scheme is written with `serde`, under the same
/// keys.
pub trait SchemeFile: Scheme + Serialize + Sized {
    /// The value of `scheme`, as in `channel-inversion`.
    const NAME: &'static str;
    /// A short label for tables and figures.
    const LABEL: &'static str;
    /// The keys in the file. It must be a struct whose field names are the keys.
    type Keys: DeserializeOwned;

    /// Checks the keys. Errors name a key as in `uplink.noise_std`.
    fn read(keys: Self::Keys) -> Result<Self, ExperimentError>;
}

/// A scheme with its settings.
#[derive(Clone)]
pub struct SchemeChoice {
    name: &'static str,
    /// Keys of `[uplink]` that belong to this scheme only.
    keys: Table,
    scheme: Arc<dyn Scheme>,
}

impl SchemeChoice {
    /// The choice of this scheme.
    pub fn new<S: SchemeFile>(scheme: S) -> Self {
        let keys = Table::try_from(&scheme).expect("a scheme's keys are numbers, texts and choices");
        Self { name: S::NAME, keys, scheme: Arc::new(scheme) }
    }

    /// The name in the experiment file.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The settings of scheme `S`, if it is the chosen one.
    pub fn get<S: Scheme>(&self) -> Option<&S> {
        let scheme: &dyn Any = self.scheme.as_ref();
        scheme.downcast_ref()
    }

    /// What the adversary of each view sees, in a few words, where the scheme has its own.
    pub fn adversaries(&self) -> BTreeMap<View, &'static str> {
        let own = |view| self.adversary_sees(view).map(|words| (view, words));
        View::ALL.into_iter().filter_map(own).collect()
    }

    /// The settings of FLORAS, if it is the chosen one.
    pub fn floras(&self) -> Option<&FlorasScheme> {
        self.get()
    }

    pub(crate) fn keys(&self) -> &Table {
        &self.keys
    }
}

impl<S: SchemeFile> From<S> for SchemeChoice {
    fn from(scheme: S) -> Self {
        Self::new(scheme)
    }
}

impl Deref for SchemeChoice {
    type Target = dyn Scheme;

    fn deref(&self) -> &Self::Target {
        self.scheme.as_ref()
    }
}

impl PartialEq for SchemeChoice {
    fn eq(&self, other: &Self) -> bool {
        (self.name, &self.keys) == (other.name, &other.keys)
    }
}

impl fmt::Debug for SchemeChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.scheme.fmt(f)
    }
}
