//! `floras`: the paper's scheme.
//!
//! | sequences | actual view | any channel | raw signal |
//! |---|---|---|---|
//! | orthonormal | the distribution of `μ` of the whole decoder | the worst channel | `Δ·|h|/s` |
//! | orthonormal, several branches under Rayleigh fading | an upper bound of it | a bound over all channels | `Δ·‖h‖/s` over all antennas |
//! | orthonormal, several branches under other fading | estimated from drawn rounds | a bound over all channels | `Δ·‖h‖/s`, estimated for Rician fading |
//! | orthonormal, channels from a trace | estimated from the trace | the worst channel | estimated from the trace |
//! | orthonormal, unequal clients, or clients with phase errors | estimated from drawn rounds | the worst channel | estimated |
//! | orthonormal, channels that age | estimated from drawn rounds | none without a margin | estimated, in the worst block |
//! | overlapping (Gaussian, Gold, or such a file) | estimated from drawn rounds | none | `Δ·|h|·‖a‖/s`, estimated as well |

use std::ops::RangeInclusive;

use floras_core::{
    Assignment, ChannelSource, Choice, Modulation, Neighbours, ParametersPerSymbol, PhaseError, Pilot,
    Projector, Receiver, SequenceSource, Snr, View,
};
use floras_phy::{Channels, Floras, FlorasSettings, SequenceSet, Uplink, UplinkError};
use floras_privacy::{Account, Coefficients, Setting, Source};
use serde::{Deserialize, Serialize};

use super::{BOTH_DIMENSIONS, ChannelKnowledge, Scheme, SchemeFile, check_coherence};
use crate::accounting::AccountContext;
use crate::error::SimError;
use crate::experiment::{ExperimentError, Radio, SIZES, Settings, is_default, within};

/// Why Lemma 1 does not apply to overlapping sequences.
pub const OVERLAPPING: &str = "with overlapping sequences the unused ones make no Cauchy noise once clients transmit, so that \
     Remark 3 of the paper does not hold; the actual view counts what they do";

/// Why the idealised and the published view do not describe a channel that ages.
pub const AGEING: &str = "the channel ages between pilot and payload, and these views count every client with a gain of 1; the actual \
     view counts the gains that there are";

/// Why there is no bound for every channel if channels age.
const NO_MARGIN: &str = "the bound for every channel needs channels that do not grow from pilot to payload, and these age; \
     privacy.channel_growth sets a margin";

/// Why a bound with a margin is no guarantee if channels age.
const MARGIN_EXCEEDED: &str = "the channels age, and grow beyond any margin with some probability; it holds for rounds in which they \
     do not";

/// The FLORAS scheme of an experiment: its sequences, modulation, receiver and pilot.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "FlorasKeys")]
pub struct FlorasScheme {
    /// Number of sequences `N`, from 1 to 2^24.
    pub sequences: usize,
    /// Kind of sequence, or a file of sequences.
    pub family: SequenceSource,
    /// The kind of symbol: real without phase errors, real after phase correction, or complex.
    pub modulation: Modulation,
    /// The number of parameters in a symbol; two need complex modulation.
    pub parameters_per_symbol: ParametersPerSymbol,
    /// The base station's rule for the weights `w(ĥ)` of despread symbols.
    pub receiver: Receiver,
    /// Amplitude and repetitions of the pilot.
    pub pilot: Pilot,
    /// The scale of the projector, for sequences that overlap.
    pub projector: Projector,
    /// How the clients of a round learn their sequences.
    pub assignment: Assignment,
}

impl Default for FlorasScheme {
    fn default() -> Self {
        Self {
            sequences: 25,
            family: SequenceSource::default(),
            modulation: Modulation::default(),
            parameters_per_symbol: ParametersPerSymbol::default(),
            receiver: Receiver::default(),
            pilot: Pilot::default(),
            projector: Projector::default(),
            assignment: Assignment::default(),
        }
    }
}

/// The keys of FLORAS. The error of the phase correction has a key of its own.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FlorasKeys {
    sequences: usize,
    family: SequenceSource,
    modulation: Modulation,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_error: Option<PhaseError>,
    #[serde(skip_serializing_if = "is_default")]
    parameters_per_symbol: ParametersPerSymbol,
    receiver: Receiver,
    pilot: Pilot,
    projector: Projector,
    assignment: Assignment,
}

impl Default for FlorasKeys {
    fn default() -> Self {
        FlorasScheme::default().into()
    }
}

impl From<FlorasScheme> for FlorasKeys {
    fn from(scheme: FlorasScheme) -> Self {
        let FlorasScheme {
            sequences,
            family,
            modulation,
            parameters_per_symbol,
            receiver,
            pilot,
            projector,
            assignment,
        } = scheme;
        let (modulation, phase_error) = match modulation {
            Modulation::Real | Modulation::Complex => (modulation, None),
            Modulation::PhaseCorrected(error) => (Modulation::PhaseCorrected(PhaseError::None), Some(error)),
        };
        Self {
            sequences,
            family,
            modulation,
            phase_error,
            parameters_per_symbol,
            receiver,
            pilot,
            projector,
            assignment,
        }
    }
}

impl SchemeFile for FlorasScheme {
    const NAME: &'static str = "floras";
    const LABEL: &'static str = "FLORAS";
    type Keys = FlorasKeys;

    fn read(keys: FlorasKeys) -> Result<Self, ExperimentError> {
        const RANGE: RangeInclusive<usize> = SIZES;
        within("uplink.sequences", Some(keys.sequences), RANGE)?;
        let FlorasKeys {
            sequences,
            family,
            modulation,
            phase_error,
            parameters_per_symbol,
            receiver,
            pilot,
            projector,
            assignment,
        } = keys;
        let modulation = match modulation {
            // Without phase correction the key of the error has no effect.
            Modulation::Real | Modulation::Complex => modulation,
            corrected => corrected
                .with_phase_error(phase_error)
                .map_err(|error| ExperimentError::value("uplink.phase_error", error))?,
        };
        Ok(Self {
            sequences,
            family,
            modulation,
            parameters_per_symbol,
            receiver,
            pilot,
            projector,
            assignment,
        })
    }
}

impl FlorasScheme {
    /// The uplink over channels and noise of the caller's choice, with one antenna.
    pub fn over(
        &self,
        length: usize,
        channels: Channels,
        snr: Snr,
        seed: u64,
    ) -> Result<Floras, UplinkError> {
        let sequences = SequenceSet::open(&self.family, self.sequences, length, seed)?;
        let Self { modulation, parameters_per_symbol, receiver, pilot, projector, assignment, .. } = *self;
        Ok(Floras::new(FlorasSettings {
            sequences,
            modulation,
            antennas: 1,
            parameters_per_symbol,
            receiver,
            channels,
            snr,
            pilot,
            projector,
            assignment,
        }))
    }

    /// The uplink over a radio.
    pub fn over_radio(&self, radio: &Radio, seed: u64) -> Result<Floras, UplinkError> {
        let of_one_antenna = self.over(radio.length, radio.channels()?, radio.snr()?, seed)?;
        let settings = of_one_antenna.settings().clone();
        Ok(Floras::new(FlorasSettings { antennas: radio.antennas, ..settings }))
    }

    /// Whether sequences of `length` chips are orthonormal. Those of a file are read and compared.
    pub fn is_orthonormal(&self, length: usize) -> Result<bool, UplinkError> {
        match &self.family {
            SequenceSource::Family(family) => Ok(family.is_orthonormal()),
            SequenceSource::File(file) => {
                Ok(SequenceSet::from_file(file, self.sequences, length)?.is_orthonormal())
            }
        }
    }

    /// Whether the sequence of a silent client has at least as much noise in the decoder as that of a client that sends. This holds
    /// for weights that decrease with the size of the estimate. MMSE weights are largest where estimate and noise are equal.
    pub(crate) fn noise_grows_with_silence(&self) -> bool {
        self.receiver.regularisation().is_none()
    }

    fn modulation_label(&self) -> String {
        match self.parameters_per_symbol {
            ParametersPerSymbol::One => self.modulation.label(),
            two @ ParametersPerSymbol::Two => format!("{}, {}", self.modulation.label(), two.label()),
        }
    }

    /// The largest `N` for sequences of `length` chips.
    pub fn max_sequences(&self, length: usize) -> Result<usize, UplinkError> {
        SequenceSet::max_count(&self.family, length)
    }

    /// The distribution of `Δ·‖h‖·‖a‖/s` over drawn rounds, with `a` the client's sequence and `‖h‖` over all antennas.
    fn estimate_raw(&self, context: &AccountContext<'_>, noise_std: f64) -> Result<Source, SimError> {
        let radio = context.radio();
        let uplink = self.over_radio(radio, context.seed())?;
        let (channels, is_orthonormal) = (radio.channels()?, uplink.settings().sequences.is_orthonormal());
        let norm = |sequence: usize| {
            let chips = uplink.settings().sequences.sequence(sequence).unwrap_or_default();
            chips.iter().map(|chip| chip * chip).sum::<f64>().sqrt()
        };
        context.estimate_by(&mut |round| {
            let norms: Vec<f64> = match is_orthonormal {
                true => vec![1.0; round.clients().len()],
                false => uplink.despread(round)?.assigned.into_iter().map(norm).collect(),
            };
            // Raw samples have both branches, whatever the modulation and the error of the correction.
            let mut largest = vec![0.0_f64; round.clients().len()];
            for block in channels.draw_payload_at(round, radio.antennas)? {
                for (largest, h) in largest.iter_mut().zip(block.channels.chunks(radio.antennas)) {
                    let norm = match h {
                        [h] => h.norm(),
                        several => several.iter().map(|h| h.norm_sqr()).sum::<f64>().sqrt(),
                    };
                    *largest = largest.max(norm);
                }
            }
            let clients = largest.into_iter().zip(norms);
            let sensitivity = context.sent_sensitivity().unwrap_or(f64::INFINITY);
            Ok(clients.map(|(h, norm)| sensitivity * h * norm / noise_std).collect())
        })
    }

    /// Whether the distribution of the fading, drawn independently for every client and round, describes the pilot and the payload.
    fn is_plain(&self, radio: &Radio) -> bool {
        let corrects_phase = matches!(self.modulation, Modulation::PhaseCorrected(_));
        let knows_phase = radio.channel_error == 0.0 || !corrects_phase;
        knows_phase && !radio.ages() && !radio.is_unequal()
    }
}

/// The setting without noise from the other clients' sequences, with the same `γ` and the same sensitivity. It gives a bound for
/// any set of silent clients.
fn of_one_sender(setting: &Setting) -> Setting {
    Setting {
        clip: setting.sensitivity() / 2.0,
        sequences: setting.sequences - setting.per_round + 1,
        per_round: 1,
        clients: 1,
        ..setting.clone()
    }
}

impl Scheme for FlorasScheme {
    fn build(&self, radio: &Radio, seed: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        Ok(Box::new(self.over_radio(radio, seed)?))
    }

    fn account(&self, context: &AccountContext<'_>) -> Result<Account, SimError> {
        let radio = context.radio();
        let noise_std = radio.snr()?.despread_noise_std(radio.length);
        let is_orthonormal = self.is_orthonormal(radio.length)?;
        let channel = match radio.fading {
            ChannelSource::Fading(fading) if noise_std > 0.0 && is_orthonormal && self.is_plain(radio) => {
                Coefficients::of_antennas(fading, self.modulation, radio.antennas, noise_std)?
            }
            ChannelSource::Fading(_) | ChannelSource::Trace(_) => None,
        };
        let privacy = context.privacy();
        let sent_scale = context.sent_scale().unwrap_or(f64::INFINITY);
        let setting = Setting {
            // Every bound of the scheme depends on C over the payload's noise.
            clip: privacy.clip.unwrap_or_default() * sent_scale,
            sequences: self.sequences as u64,
            per_round: context.clients().per_round.into(),
            clients: context.clients().total.into(),
            delta: privacy.delta,
            unit: context.unit(),
            neighbours: Neighbours::ReplaceOne,
            clipping: privacy.normalise,
            receiver: self.receiver,
            branches: self.modulation.branches(radio.antennas) as u32,
            channel,
            pilot: self.pilot,
            margins: privacy.margins,
            masks: None,
        };
        let mut account = Account::of(&setting)?;
        if noise_std == 0.0 {
            for view in View::RIGOROUS {
                account
                    .set(view, Source::Nothing("the channel has no noise, and gives no privacy".to_owned()));
            }
            return Ok(account);
        }
        if !is_orthonormal {
            let source = setting.source(View::Idealised)?;
            account.set(View::Idealised, source.with_caveat(OVERLAPPING));
            let reason = "sequences that overlap have no bound for every channel".to_owned();
            account.set(View::AnyChannel, Source::Nothing(reason));
        }
        if radio.ages() {
            account.set(View::Idealised, setting.source(View::Idealised)?.with_caveat(AGEING));
            account.set(
                View::AnyChannel,
                match (is_orthonormal, setting.margins.channel_growth > 1.0) {
                    (false, _) => {
                        Source::Nothing("sequences that overlap have no bound for every channel".to_owned())
                    }
                    (true, false) => Source::Nothing(NO_MARGIN.to_owned()),
                    (true, true) => setting.source(View::AnyChannel)?.with_caveat(MARGIN_EXCEEDED),
                },
            );
        }
        let is_bounded = setting.channel.as_ref().is_some_and(Coefficients::bounds_actual);
        if is_bounded && context.has_silent() && !self.noise_grows_with_silence() {
            let source = of_one_sender(&setting).source(View::Actual)?;
            account.set(View::Actual, context.caveat(source));
        }
        if !is_bounded {
            account.set(View::Actual, context.estimate()?);
        }
        if setting.channel.is_none() {
            account.set(View::RawSignal, self.estimate_raw(context, noise_std)?);
        }
        Ok(account)
    }

    fn channel_knowledge(&self) -> ChannelKnowledge {
        match self.modulation {
            Modulation::PhaseCorrected(_) => ChannelKnowledge::Phase,
            Modulation::Real | Modulation::Complex => ChannelKnowledge::Nothing,
        }
    }

    fn parameters_per_symbol(&self) -> ParametersPerSymbol {
        self.parameters_per_symbol
    }

    fn summary(&self, per_round: u32) -> String {
        let unused = self.sequences.saturating_sub(per_round as usize);
        format!("floras with {} sequences (γ = {unused} unused)", self.sequences)
    }

    fn description(&self, radio: &Radio, per_round: u32) -> String {
        let receiver = self.receiver.description();
        let sequences = match self.sequences {
            1 => "1 sequence".to_owned(),
            many => format!("{many} sequences"),
        };
        let privacy = match self.sequences.saturating_sub(per_round as usize) {
            0 => "γ = 0 stayed unused, so that the sum has no noise from unused sequences".to_owned(),
            unused => format!("γ = {unused} stayed unused, and their noise protects a single client"),
        };
        let assignment = match self.assignment {
            Assignment::Seed => "",
            Assignment::Keyed => {
                " The sequences were assigned by the clients' group key, as in the protocol; in a simulation the key \
                 comes from the seed and is not secret."
            }
        };
        format!(
            "Uplink scheme FLORAS: all clients send at the same time, and each one spreads its symbols with a secret sequence; the base station \
             decodes only the sum, with {receiver}. Of {sequences} with {} chips each, {privacy}.{assignment}",
            radio.length
        )
    }

    fn sequences(&self) -> Option<usize> {
        Some(self.sequences)
    }

    fn check_radio(&self, radio: &Radio) -> Result<(), ExperimentError> {
        let antennas = self.modulation.check_antennas(radio.antennas);
        antennas.map_err(|error| ExperimentError::value("uplink.antennas", error))?;
        self.modulation
            .check_packing(self.parameters_per_symbol)
            .map_err(|error| ExperimentError::value("uplink.parameters_per_symbol", error))?;
        check_coherence(radio, self.parameters_per_symbol)
    }

    fn remarks(&self) -> Vec<&'static str> {
        match self.parameters_per_symbol {
            ParametersPerSymbol::One => Vec::new(),
            ParametersPerSymbol::Two => vec![BOTH_DIMENSIONS],
        }
    }

    fn details(&self, per_round: u32) -> Vec<(&'static str, String)> {
        let unused = self.sequences.saturating_sub(per_round as usize);
        vec![
            ("sequences, N", format!("{} ({unused} unused)", self.sequences)),
            ("modulation", self.modulation_label()),
            ("receiver", self.receiver.label()),
        ]
    }

    fn notes(&self, settings: &Settings) -> Vec<String> {
        let has_unused = self.sequences > settings.clients.per_round as usize;
        let is_cauchy =
            self.receiver == Receiver::Paper && self.modulation.branches(settings.uplink.radio.antennas) == 1;
        if !is_cauchy || !has_unused || settings.uplink.truncate.is_some() {
            return Vec::new();
        }
        vec![
            "with the paper's receiver, unused sequences add Cauchy noise, which has no mean and no variance; without \
             uplink.truncate, single rounds can move the model so far that training diverges"
                .to_owned(),
        ]
    }
}
