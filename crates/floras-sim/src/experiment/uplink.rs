//! The section `[uplink]`: which scheme, and its settings.

use floras_core::{
    Admission, ChannelSource, Family, Fidelity, Modulation, NoiseReference, PhaseError, PowerRule, Receiver,
    Snr, SnrConvention, named_choice,
};
use floras_phy::{
    CentralGaussian, ChannelInversion, ChannelInversionSettings, Channels, Floras, FlorasSettings, Ideal,
    PhaseCorrected, PhaseCorrectedSettings, SequenceSet, Uplink, UplinkError,
};
use toml::Table;

use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

/// Everything between the clients' updates and the decoded sum.
#[derive(Clone, Debug, PartialEq)]
pub struct UplinkSettings {
    /// The scheme.
    pub scheme: Scheme,
    /// Symbol or chip level.
    pub fidelity: Fidelity,
    /// `B`: decoded values are clamped to `±B`; absent means none.
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
        /// Standard deviation of the noise that the clients add, in each parameter of the sum.
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
        /// Standard deviation of the noise in each parameter of the sum.
        noise_std: f64,
    },
}

/// The settings of FLORAS.
#[derive(Clone, Debug, PartialEq)]
pub struct FlorasScheme {
    /// `N`.
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
    /// `L`, chips in a sequence; for schemes without spreading, of the FLORAS system that they are compared with.
    pub length: usize,
    /// Where the channel coefficients come from.
    pub fading: ChannelSource,
    /// SNR in decibels.
    pub snr_db: f64,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
}

const KEYS: [&str; 17] = [
    "scheme",
    "sequences",
    "length",
    "family",
    "modulation",
    "phase_error",
    "receiver",
    "fading",
    "snr_db",
    "snr_convention",
    "fidelity",
    "truncate",
    "admission",
    "power_rule",
    "noise",
    "artificial_noise_std",
    "noise_std",
];
/// The keys of the section.
pub(crate) fn uplink_keys() -> impl Iterator<Item = &'static str> {
    KEYS.into_iter()
}

/// Norms and bounds far from the ends of single precision, as the air interface wants them.
const SOUND: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

#[derive(Clone, Copy, Default)]
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

impl UplinkSettings {
    pub(super) fn read(experiment: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(experiment, "uplink", &KEYS)?;
        let keys = Keys::read(&section)?;
        let scheme = match section.parse::<SchemeName>("scheme")?.unwrap_or_default() {
            SchemeName::Floras => Scheme::Floras(keys.floras),
            SchemeName::ChannelInversion => Scheme::ChannelInversion {
                admission: keys.admission,
                power_rule: keys.power_rule,
                noise: keys.noise,
                artificial_noise_std: keys.artificial_noise_std,
                air: keys.floras.air,
            },
            SchemeName::PhaseCorrected => Scheme::PhaseCorrected {
                phase_error: keys.phase_error,
                noise: keys.noise,
                air: keys.floras.air,
            },
            SchemeName::Ideal => Scheme::Ideal,
            SchemeName::Gaussian => Scheme::Gaussian { noise_std: keys.noise_std },
        };
        let fidelity = section.parse("fidelity")?.unwrap_or_default();
        let truncate =
            section.number_or_none("truncate", SOUND, "a number between 1e-30 and 1e30, or \"none\"")?;
        Ok(Self { scheme, fidelity, truncate })
    }

    pub(super) fn write(&self, out: &mut Write) {
        out.key("scheme", self.scheme.name());
        match &self.scheme {
            Scheme::Floras(floras) => floras.write(out),
            Scheme::ChannelInversion { admission, power_rule, noise, artificial_noise_std, air } => {
                out.choice("admission", admission);
                out.choice("power_rule", power_rule);
                out.choice("noise", noise);
                out.key("artificial_noise_std", *artificial_noise_std);
                air.write(out);
            }
            Scheme::PhaseCorrected { phase_error, noise, air } => {
                out.choice("phase_error", phase_error);
                out.choice("noise", noise);
                air.write(out);
            }
            Scheme::Ideal => {}
            Scheme::Gaussian { noise_std } => out.key("noise_std", *noise_std),
        }
        out.choice("fidelity", &self.fidelity);
        match self.truncate {
            Some(bound) => out.key("truncate", bound),
            None => out.key("truncate", "none"),
        }
    }

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

/// Every key of the section, whether the scheme uses it or not: a wrong value is wrong under any scheme.
struct Keys {
    floras: FlorasScheme,
    phase_error: PhaseError,
    admission: Admission,
    power_rule: PowerRule,
    noise: NoiseReference,
    artificial_noise_std: f64,
    noise_std: f64,
}

impl Keys {
    fn read(section: &Section<'_>) -> Result<Self, ExperimentError> {
        let phase_error = section.parse("phase_error")?.unwrap_or_default();
        let most = 1 << 24;
        let air = Air {
            length: section.whole("length", 1..=most)?.unwrap_or(32) as usize,
            fading: section.parse("fading")?.unwrap_or_default(),
            snr_db: read_snr_db(section)?,
            snr_convention: section.parse("snr_convention")?.unwrap_or_default(),
        };
        let modulation = read_modulation(section)?;
        let floras = FlorasScheme {
            sequences: section.whole("sequences", 1..=most)?.unwrap_or(25) as usize,
            family: section.parse("family")?.unwrap_or_default(),
            modulation,
            receiver: section.parse("receiver")?.unwrap_or_default(),
            air,
        };
        let positive = "a number above 0 and at most 1e30";
        Ok(Self {
            floras,
            phase_error,
            admission: section.parse("admission")?.unwrap_or_default(),
            power_rule: section.parse("power_rule")?.unwrap_or(PowerRule::FixedAtThreshold),
            noise: section.parse("noise")?.unwrap_or_default(),
            artificial_noise_std: section
                .number("artificial_noise_std", 0.0..=1e30, "a number from 0 to 1e30")?
                .unwrap_or(0.0),
            noise_std: section.number("noise_std", 1e-30..=1e30, positive)?.unwrap_or(1.0),
        })
    }
}

impl FlorasScheme {
    fn write(&self, out: &mut Write) {
        out.key("sequences", self.sequences);
        out.choice("family", &self.family);
        match self.modulation {
            Modulation::Real => out.choice("modulation", &self.modulation),
            Modulation::PhaseCorrected(error) => {
                out.key("modulation", "phase-corrected");
                out.choice("phase_error", &error);
            }
        }
        out.choice("receiver", &self.receiver);
        self.air.write(out);
    }

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
    fn write(&self, out: &mut Write) {
        out.key("length", self.length);
        out.choice("fading", &self.fading);
        out.key("snr_db", self.snr_db);
        out.choice("snr_convention", &self.snr_convention);
    }

    /// Where the channel coefficients come from, and the noise.
    pub(crate) fn channel(&self) -> Result<(Channels, Snr), UplinkError> {
        Ok((Channels::open(&self.fading)?, Snr::new(self.snr_db, self.snr_convention)?))
    }
}

/// Whether clients correct their channel's phase. The error of the correction may have a key of its own.
pub(crate) fn read_modulation(section: &Section<'_>) -> Result<Modulation, ExperimentError> {
    let error = section.parse("phase_error")?.unwrap_or_default();
    Ok(section.parse::<Modulation>("modulation")?.unwrap_or_default().with_phase_error(error))
}

fn read_snr_db(section: &Section<'_>) -> Result<f64, ExperimentError> {
    let allowed = format!("a number of decibels {}", Snr::ALLOWED);
    let snr_db = section.number("snr_db", f64::NEG_INFINITY..=f64::INFINITY, &allowed)?.unwrap_or(20.0);
    Snr::new(snr_db, SnrConvention::default()).map_err(|_| section.no_such_choice("snr_db", &allowed))?;
    Ok(snr_db)
}
