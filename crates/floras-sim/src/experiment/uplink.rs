//! The section `[uplink]`: which scheme, and its settings.

use std::ops::RangeInclusive;

use floras_core::{
    Admission, ChannelSource, Family, Fidelity, Modulation, NoiseReference, PhaseError, PowerRule, Receiver,
    Snr, SnrConvention, named_choice,
};
use floras_phy::{
    CentralGaussian, ChannelInversion, ChannelInversionSettings, Channels, Floras, FlorasSettings, Ideal,
    PhaseCorrected, PhaseCorrectedSettings, SequenceSet, Uplink, UplinkError,
};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};
use super::number_or_none::NumberOrNone;

/// Everything between the clients' updates and the decoded sum.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkSettings {
    /// The scheme.
    pub scheme: Scheme,
    /// Symbol or chip level.
    pub fidelity: Fidelity,
    /// `B`: decoded values are clamped to `±B`, from 1e-30 to 1e30; absent means that they are not.
    pub truncate: Option<f64>,
}

/// A scheme and what it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Scheme {
    /// The paper's.
    Floras(FlorasScheme),
    /// Channel inversion at the clients, the paper's baseline.
    ChannelInversion {
        /// Who takes part.
        admission: Admission,
        /// How the power is set.
        power_rule: PowerRule,
        /// Which noise applies.
        noise: NoiseReference,
        /// Standard deviation of the noise that the clients add, in each parameter of the sum: from 0 to 1e30.
        artificial_noise_std: f64,
        /// The channel.
        air: Air,
    },
    /// Phase correction without spreading (Sery and Cohen).
    PhaseCorrected {
        /// How wrong the clients are about their phase.
        phase_error: PhaseError,
        /// Which noise applies.
        noise: NoiseReference,
        /// The channel.
        air: Air,
    },
    /// The exact sum.
    Ideal,
    /// A trusted server that adds Gaussian noise to the exact sum.
    Gaussian {
        /// Standard deviation of the noise in each parameter of the sum: from 1e-30 to 1e30.
        noise_std: f64,
    },
}

/// The settings of FLORAS.
#[derive(Clone, Debug, PartialEq)]
pub struct FlorasScheme {
    /// `N`, sequences: from 1 to 2^24.
    pub sequences: usize,
    /// Kind of sequence.
    pub family: Family,
    /// Real, or phase-corrected.
    pub modulation: Modulation,
    /// The base station's weights.
    pub receiver: Receiver,
    /// The channel.
    pub air: Air,
}

/// What all schemes that use the air share.
#[derive(Clone, Debug, PartialEq)]
pub struct Air {
    /// `L`, chips in a sequence, from 1 to 2^24; for schemes without spreading, of the FLORAS system that they are compared
    /// with.
    pub length: usize,
    /// Where the channel coefficients come from.
    pub fading: ChannelSource,
    /// SNR in decibels: from −100 to 100, or infinite for no noise.
    pub snr_db: f64,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
}

#[derive(Clone, Copy, Debug, Default)]
enum SchemeName {
    #[default]
    Floras,
    ChannelInversion,
    PhaseCorrected,
    Ideal,
    Gaussian,
}

named_choice!(
    SchemeName,
    "scheme",
    [Floras => "floras", "FLORAS"],
    [ChannelInversion => "channel-inversion", "channel inversion"],
    [PhaseCorrected => "phase-corrected", "phase correction without spreading"],
    [Ideal => "ideal", "the exact sum"],
    [Gaussian => "gaussian", "central Gaussian noise"],
);

/// The section as it stands in a file: the keys of every scheme. Those that the scheme does not use are checked all the same.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [uplink]")]
pub(crate) struct UplinkFile {
    scheme: SchemeName,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequences: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    family: Option<Family>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modulation: Option<Modulation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase_error: Option<PhaseError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<Receiver>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fading: Option<ChannelSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snr_db: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snr_convention: Option<SnrConvention>,
    #[serde(skip_serializing_if = "Option::is_none")]
    admission: Option<Admission>,
    #[serde(skip_serializing_if = "Option::is_none")]
    power_rule: Option<PowerRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<NoiseReference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artificial_noise_std: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise_std: Option<f64>,
    fidelity: Fidelity,
    truncate: NumberOrNone,
}

/// Sequences, and chips in one.
const SIZES: RangeInclusive<usize> = 1..=1 << 24;

impl UplinkFile {
    pub(crate) fn check(&self) -> Result<(), ExperimentError> {
        within("uplink.sequences", self.sequences, SIZES)?;
        within("uplink.length", self.length, SIZES)?;
        if let Some(snr_db) = self.snr_db {
            Snr::new(snr_db, SnrConvention::default())
                .map_err(|error| ExperimentError::value("uplink.snr_db", error))?;
        }
        if let Some(modulation @ Modulation::PhaseCorrected(_)) = self.modulation {
            let joined = modulation.with_phase_error(self.phase_error);
            joined.map_err(|error| ExperimentError::value("uplink.phase_error", error))?;
        }
        if let Some(ChannelSource::Trace(path)) = &self.fading
            && path.to_str().is_none()
        {
            return Err(ExperimentError::refused("uplink.fading", "the name of the file must be UTF-8"));
        }
        within("uplink.artificial_noise_std", self.artificial_noise_std, 0.0..=1e30)?;
        within("uplink.noise_std", self.noise_std, 1e-30..=1e30)?;
        self.truncate.within("uplink.truncate", 1e-30..=1e30)
    }

    /// The modulation with its phase error; under real modulation the key of the error has no effect.
    fn modulation(&self) -> Modulation {
        let modulation = self.modulation.unwrap_or_default();
        modulation.with_phase_error(self.phase_error).unwrap_or(modulation)
    }

    fn air(&self) -> Air {
        Air {
            length: self.length.unwrap_or(32),
            fading: self.fading.clone().unwrap_or_default(),
            snr_db: self.snr_db.unwrap_or(20.0),
            snr_convention: self.snr_convention.unwrap_or_default(),
        }
    }

    fn set_air(&mut self, air: &Air) {
        self.length = Some(air.length);
        self.fading = Some(air.fading.clone());
        self.snr_db = Some(air.snr_db);
        self.snr_convention = Some(air.snr_convention);
    }
}

impl From<UplinkFile> for UplinkSettings {
    fn from(file: UplinkFile) -> Self {
        let phase_error = file.phase_error.unwrap_or_default();
        let noise = file.noise.unwrap_or_default();
        let scheme = match file.scheme {
            SchemeName::Floras => Scheme::Floras(FlorasScheme {
                sequences: file.sequences.unwrap_or(25),
                family: file.family.unwrap_or_default(),
                modulation: file.modulation(),
                receiver: file.receiver.unwrap_or_default(),
                air: file.air(),
            }),
            SchemeName::ChannelInversion => Scheme::ChannelInversion {
                admission: file.admission.unwrap_or_default(),
                power_rule: file.power_rule.unwrap_or(PowerRule::FixedAtThreshold),
                noise,
                artificial_noise_std: file.artificial_noise_std.unwrap_or(0.0),
                air: file.air(),
            },
            SchemeName::PhaseCorrected => Scheme::PhaseCorrected { phase_error, noise, air: file.air() },
            SchemeName::Ideal => Scheme::Ideal,
            SchemeName::Gaussian => Scheme::Gaussian { noise_std: file.noise_std.unwrap_or(1.0) },
        };
        Self { scheme, fidelity: file.fidelity, truncate: file.truncate.0 }
    }
}

impl From<&UplinkSettings> for UplinkFile {
    fn from(settings: &UplinkSettings) -> Self {
        let UplinkSettings { scheme, fidelity, truncate } = settings;
        let mut file = Self { fidelity: *fidelity, truncate: NumberOrNone(*truncate), ..Self::default() };
        match scheme {
            Scheme::Floras(floras) => {
                file.sequences = Some(floras.sequences);
                file.family = Some(floras.family);
                // The error of the phase correction has a key of its own.
                file.modulation = Some(match floras.modulation {
                    Modulation::Real => Modulation::Real,
                    Modulation::PhaseCorrected(error) => {
                        file.phase_error = Some(error);
                        Modulation::PhaseCorrected(PhaseError::None)
                    }
                });
                file.receiver = Some(floras.receiver);
            }
            Scheme::ChannelInversion { admission, power_rule, noise, artificial_noise_std, .. } => {
                file.scheme = SchemeName::ChannelInversion;
                file.admission = Some(*admission);
                file.power_rule = Some(*power_rule);
                file.noise = Some(*noise);
                file.artificial_noise_std = Some(*artificial_noise_std);
            }
            Scheme::PhaseCorrected { phase_error, noise, .. } => {
                file.scheme = SchemeName::PhaseCorrected;
                file.phase_error = Some(*phase_error);
                file.noise = Some(*noise);
            }
            Scheme::Ideal => file.scheme = SchemeName::Ideal,
            Scheme::Gaussian { noise_std } => {
                file.scheme = SchemeName::Gaussian;
                file.noise_std = Some(*noise_std);
            }
        }
        if let Some(air) = scheme.air() {
            file.set_air(air);
        }
        file
    }
}

impl Default for UplinkSettings {
    fn default() -> Self {
        UplinkFile::default().into()
    }
}

impl UplinkSettings {
    /// The uplink itself.
    pub(crate) fn build(&self, seed: u64) -> Result<Box<dyn Uplink>, ExperimentError> {
        let uplink: Result<Box<dyn Uplink>, UplinkError> = match &self.scheme {
            Scheme::Floras(floras) => floras.build(seed),
            Scheme::ChannelInversion { admission, power_rule, noise, artificial_noise_std, air } => {
                air.channel().and_then(|(channels, snr)| {
                    let settings = ChannelInversionSettings {
                        admission: *admission,
                        power: *power_rule,
                        noise: *noise,
                        length: air.length,
                        channels,
                        snr,
                        artificial_noise_std: *artificial_noise_std,
                    };
                    Ok(Box::new(ChannelInversion::new(settings)?) as Box<dyn Uplink>)
                })
            }
            Scheme::PhaseCorrected { phase_error, noise, air } => {
                air.channel().and_then(|(channels, snr)| {
                    let settings = PhaseCorrectedSettings {
                        phase_error: *phase_error,
                        noise: *noise,
                        length: air.length,
                        channels,
                        snr,
                    };
                    Ok(Box::new(PhaseCorrected::new(settings)?) as Box<dyn Uplink>)
                })
            }
            Scheme::Ideal => Ok(Box::new(Ideal)),
            Scheme::Gaussian { noise_std } => {
                CentralGaussian::new(*noise_std).map(|uplink| Box::new(uplink) as Box<dyn Uplink>)
            }
        };
        uplink.map_err(|error| ExperimentError::refused("uplink", error))
    }
}

impl Scheme {
    /// The name in the experiment file.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Floras(_) => "floras",
            Self::ChannelInversion { .. } => "channel-inversion",
            Self::PhaseCorrected { .. } => "phase-corrected",
            Self::Ideal => "ideal",
            Self::Gaussian { .. } => "gaussian",
        }
    }

    /// The noise that clients add, if they add any.
    pub fn artificial_noise_std(&self) -> Option<f64> {
        match *self {
            Self::ChannelInversion { artificial_noise_std, .. } => {
                Some(artificial_noise_std).filter(|&std| std > 0.0)
            }
            _ => None,
        }
    }

    /// The channel, for schemes that use one.
    pub fn air(&self) -> Option<&Air> {
        match self {
            Self::Floras(floras) => Some(&floras.air),
            Self::ChannelInversion { air, .. } | Self::PhaseCorrected { air, .. } => Some(air),
            Self::Ideal | Self::Gaussian { .. } => None,
        }
    }
}

impl FlorasScheme {
    fn build(&self, seed: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        let (channels, snr) = self.air.channel()?;
        Ok(Box::new(self.over(channels, snr, seed)?))
    }

    /// The same scheme over a channel of the caller's choice.
    pub(crate) fn over(&self, channels: Channels, snr: Snr, seed: u64) -> Result<Floras, UplinkError> {
        let sequences = SequenceSet::new(self.family, self.sequences, self.air.length, seed)?;
        let (modulation, receiver) = (self.modulation, self.receiver);
        Ok(Floras::new(FlorasSettings { sequences, modulation, receiver, channels, snr }))
    }
}

impl Air {
    /// Where the channel coefficients come from, and the noise.
    pub(crate) fn channel(&self) -> Result<(Channels, Snr), UplinkError> {
        Ok((Channels::open(&self.fading)?, Snr::new(self.snr_db, self.snr_convention)?))
    }
}
