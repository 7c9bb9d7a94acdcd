//! The section `[uplink]`: which scheme, and its settings.

use std::path::PathBuf;

use floras_phy::{
    Admission, CentralGaussian, ChannelInversion, ChannelInversionSettings, Fading, Family, Fidelity, Floras,
    FlorasSettings, Ideal, Modulation, NoiseReference, PhaseCorrected, PhaseCorrectedSettings, PhaseError,
    PowerRule, Receiver, SequenceSet, Snr, SnrConvention, Trace, Uplink, UplinkError,
};
use toml::{Table, Value};

use super::error::ExperimentError;
use super::radio::{
    CONVENTIONS, read_admission, read_fading, read_modulation, read_phase_error, read_receiver, read_snr_db,
};
use super::section::Section;
use super::write::{Write, named};

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
    /// The law of the channels.
    pub fading: FadingChoice,
    /// SNR in decibels.
    pub snr_db: f64,
    /// What the SNR refers to.
    pub snr_convention: SnrConvention,
}

/// A law of the channels, or the file that holds them.
#[derive(Clone, Debug, PartialEq)]
pub enum FadingChoice {
    /// A law.
    Law(Fading),
    /// A trace file.
    Trace(PathBuf),
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

const SCHEMES: [(&str, SchemeName); 5] = [
    ("floras", SchemeName::Floras),
    ("channel-inversion", SchemeName::ChannelInversion),
    ("phase-corrected", SchemeName::PhaseCorrected),
    ("ideal", SchemeName::Ideal),
    ("gaussian", SchemeName::Gaussian),
];
const FAMILIES: [(&str, Family); 3] =
    [("walsh", Family::Walsh), ("orthonormal", Family::Orthonormal), ("gaussian", Family::Gaussian)];
const FIDELITIES: [(&str, Fidelity); 2] = [("symbol", Fidelity::Symbol), ("chip", Fidelity::Chip)];
const POWER_RULES: [(&str, PowerRule); 2] =
    [("worst-admitted", PowerRule::WorstAdmitted), ("fixed-at-threshold", PowerRule::FixedAtThreshold)];
const NOISES: [(&str, NoiseReference); 2] =
    [("per-symbol", NoiseReference::PerSymbol), ("same-bandwidth", NoiseReference::SameBandwidth)];
/// Norms and bounds far from the ends of single precision, as the air interface wants them.
const SOUND: std::ops::RangeInclusive<f64> = 1e-30..=1e30;

#[derive(Clone, Copy)]
enum SchemeName {
    Floras,
    ChannelInversion,
    PhaseCorrected,
    Ideal,
    Gaussian,
}

impl UplinkSettings {
    pub(super) fn read(experiment: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(experiment, "uplink", &KEYS)?;
        let keys = Keys::read(&section)?;
        let scheme = match section.one_of("scheme", &SCHEMES)?.unwrap_or(SchemeName::Floras) {
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
        let fidelity = section.one_of("fidelity", &FIDELITIES)?.unwrap_or_default();
        let truncate =
            section.number_or_none("truncate", SOUND, "a number between 1e-30 and 1e30, or \"none\"")?;
        Ok(Self { scheme, fidelity, truncate })
    }

    pub(super) fn write(&self, out: &mut Write) {
        out.key("scheme", self.scheme.name());
        match &self.scheme {
            Scheme::Floras(floras) => floras.write(out),
            Scheme::ChannelInversion { admission, power_rule, noise, artificial_noise_std, air } => {
                let (name, threshold) = match *admission {
                    Admission::Amplitude(amplitude) => ("amplitude", amplitude),
                    Admission::Power(power) => ("power", power),
                };
                out.key("admission", named(name, threshold));
                out.key("power_rule", name_of(*power_rule, &POWER_RULES));
                out.key("noise", name_of(*noise, &NOISES));
                out.key("artificial_noise_std", *artificial_noise_std);
                air.write(out);
            }
            Scheme::PhaseCorrected { phase_error, noise, air } => {
                out.key("phase_error", phase_error_value(*phase_error));
                out.key("noise", name_of(*noise, &NOISES));
                air.write(out);
            }
            Scheme::Ideal => {}
            Scheme::Gaussian { noise_std } => out.key("noise_std", *noise_std),
        }
        out.key("fidelity", name_of(self.fidelity, &FIDELITIES));
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
                air.channel().and_then(|(fading, snr)| {
                    let settings = ChannelInversionSettings {
                        admission: *admission,
                        power: *power_rule,
                        noise: *noise,
                        length: air.length,
                        fading,
                        snr,
                        artificial_noise_std: *artificial_noise_std,
                    };
                    Ok(Box::new(ChannelInversion::new(settings)?) as Box<dyn Uplink>)
                })
            }
            Scheme::PhaseCorrected { phase_error, noise, air } => air.channel().and_then(|(fading, snr)| {
                let settings = PhaseCorrectedSettings {
                    phase_error: *phase_error,
                    noise: *noise,
                    length: air.length,
                    fading,
                    snr,
                };
                Ok(Box::new(PhaseCorrected::new(settings)?) as Box<dyn Uplink>)
            }),
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
        let phase_error = read_phase_error(section)?;
        let most = 1 << 24;
        let air = Air {
            length: section.whole("length", 1..=most)?.unwrap_or(32) as usize,
            fading: read_fading(section)?,
            snr_db: read_snr_db(section)?,
            snr_convention: section.one_of("snr_convention", &CONVENTIONS)?.unwrap_or_default(),
        };
        let modulation = read_modulation(section)?;
        let floras = FlorasScheme {
            sequences: section.whole("sequences", 1..=most)?.unwrap_or(25) as usize,
            family: section.one_of("family", &FAMILIES)?.unwrap_or(Family::Walsh),
            modulation,
            receiver: read_receiver(section)?,
            air,
        };
        let positive = "a number above 0 and at most 1e30";
        Ok(Self {
            floras,
            phase_error,
            admission: read_admission(section)?,
            power_rule: section.one_of("power_rule", &POWER_RULES)?.unwrap_or(PowerRule::FixedAtThreshold),
            noise: section.one_of("noise", &NOISES)?.unwrap_or(NoiseReference::PerSymbol),
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
        out.key("family", name_of(self.family, &FAMILIES));
        match self.modulation {
            Modulation::Real => out.key("modulation", "real"),
            Modulation::PhaseCorrected(error) => {
                out.key("modulation", "phase-corrected");
                out.key("phase_error", phase_error_value(error));
            }
        }
        let receiver = match self.receiver {
            Receiver::Paper => "paper".into(),
            Receiver::Mmse => "mmse".into(),
            Receiver::Clipped(bound) => named("clipped", bound),
        };
        out.key("receiver", receiver);
        self.air.write(out);
    }

    fn build(&self, seed: u64) -> Result<Box<dyn Uplink>, UplinkError> {
        let (fading, snr) = self.air.channel()?;
        Ok(Box::new(self.over(fading, snr, seed)?))
    }

    /// The same scheme over a channel of the caller's choice.
    pub(crate) fn over(&self, fading: Fading, snr: Snr, seed: u64) -> Result<Floras, UplinkError> {
        let sequences = SequenceSet::new(self.family, self.sequences, self.air.length, seed)?;
        let (modulation, receiver) = (self.modulation, self.receiver);
        Floras::new(FlorasSettings { sequences, modulation, receiver, fading, snr })
    }
}

impl Air {
    fn write(&self, out: &mut Write) {
        out.key("length", self.length);
        let fading = match &self.fading {
            FadingChoice::Law(Fading::None) => "none".into(),
            FadingChoice::Law(Fading::Rician(factor)) => named("rician", *factor),
            FadingChoice::Law(Fading::Nakagami(shape)) => named("nakagami", *shape),
            FadingChoice::Law(Fading::Rayleigh | Fading::Trace(_) | Fading::Fixed(_)) => "rayleigh".into(),
            FadingChoice::Trace(path) => named("trace", path.to_string_lossy().into_owned()),
        };
        out.key("fading", fading);
        out.key("snr_db", self.snr_db);
        out.key("snr_convention", name_of(self.snr_convention, &CONVENTIONS));
    }

    /// The law of the channels, read from its file if it is a trace.
    pub(crate) fn law(&self) -> Result<Fading, UplinkError> {
        match &self.fading {
            FadingChoice::Law(law) => Ok(law.clone()),
            FadingChoice::Trace(path) => Ok(Trace::from_path(path)?.into()),
        }
    }

    /// The law of the channels, and the noise.
    pub(crate) fn channel(&self) -> Result<(Fading, Snr), UplinkError> {
        Ok((self.law()?, Snr::new(self.snr_db, self.snr_convention)?))
    }
}

fn phase_error_value(error: PhaseError) -> Value {
    match error {
        PhaseError::None => "none".into(),
        PhaseError::Uniform { half_width_rad } => named("uniform", half_width_rad),
        PhaseError::Gaussian { std_rad } => named("gaussian", std_rad),
    }
}

fn name_of<T: Copy + PartialEq>(meaning: T, names: &[(&'static str, T)]) -> &'static str {
    names.iter().find(|(_, known)| *known == meaning).map_or("", |(name, _)| name)
}
