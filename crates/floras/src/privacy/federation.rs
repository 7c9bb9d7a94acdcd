//! The options that describe a federation and its radio.

use clap::{Args, ValueEnum};
use floras_phy::{Fading, Modulation, PhaseError, SnrConvention};
use floras_privacy::{Local, Margins, Neighbours, PrivacyError, Receiver, Scaling, View};
use floras_sim::inquiry::{Inquiry, LevelChoice, ReceiverChoice};
use floras_sim::{ExperimentError, SimError};

use crate::command::{number, whole_number};
use crate::failure::Failure;

/// Who takes part, what they send, and over which radio.
#[derive(Clone, Debug, Args)]
pub(crate) struct FederationOptions {
    /// Norm that every update is clipped to (C).
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = number)]
    clip: f64,

    /// Clients a round (K).
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    per_round: u64,

    /// Clients in all (M); as many as take part in a round if absent.
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    clients: Option<u64>,

    /// Learning rounds (T); 1 if absent.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    rounds: Option<u64>,

    /// The chance that the guarantee may fail with (δ).
    #[arg(long, value_name = "δ", allow_negative_numbers = true, value_parser = number, default_value = "1e-5")]
    delta: f64,

    /// What has to stay hidden: all data of a client, or one item of it.
    #[arg(long, value_enum, default_value_t = LevelName::Client)]
    level: LevelName,

    /// Samples in a mini-batch (b), for --level item.
    #[arg(long, value_name = "b", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    batch: Option<u64>,

    /// Samples of a client (D), the same for all, for --level item.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    samples: Option<u64>,

    /// What a client does in a round, for --level item: one mini-batch, or epochs that touch every sample.
    #[arg(long, value_enum, default_value_t = LocalName::OneStep)]
    local: LocalName,

    /// Which populations are neighbours.
    #[arg(long, value_enum, default_value_t = NeighboursName::ReplaceOne)]
    neighbours: NeighboursName,

    /// How updates are brought to norm C: each on its own, or as the paper does.
    #[arg(long, value_enum, default_value_t = NormaliseName::Clip)]
    normalise: NormaliseName,

    /// The base station's weights: paper, mmse, or clipped=c.
    #[arg(long, value_name = "paper|mmse|clipped=c", value_parser = receiver, default_value = "paper")]
    receiver: ReceiverChoice,

    /// Chips in a sequence (L); with --snr-db, adds the views of the actual channel and of the raw signal.
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = whole_number::<u64>)]
    length: Option<u64>,

    /// SNR in decibels.
    #[arg(long, value_name = "dB", allow_negative_numbers = true, value_parser = number)]
    snr_db: Option<f64>,

    /// What the SNR refers to.
    #[arg(long, value_enum, default_value_t = ConventionName::Symbol)]
    snr_convention: ConventionName,

    /// The law of the channels: rayleigh, none, rician=k or nakagami=m.
    #[arg(long, value_name = "rayleigh|none|rician=k|nakagami=m", value_parser = fading, default_value = "rayleigh")]
    fading: Fading,

    /// Whether clients correct their channel's phase.
    #[arg(long, value_enum, default_value_t = ModulationName::Real)]
    modulation: ModulationName,

    /// Margin: the pilot noise's standard deviation relative to the payload noise's, at most (ρ).
    #[arg(long, value_name = "ρ", allow_negative_numbers = true, value_parser = number, default_value = "1")]
    pilot_noise: f64,

    /// Margin: the factor by which a client's channel grows from its pilot to its payload, at most (κ).
    #[arg(long, value_name = "κ", allow_negative_numbers = true, value_parser = number, default_value = "1")]
    channel_growth: f64,

    /// Margin: unused sequences on which someone else may send a pilot (j).
    #[arg(long, value_name = "j", allow_negative_numbers = true, value_parser = whole_number::<u64>, default_value = "0")]
    foreign_pilots: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum LevelName {
    Client,
    Item,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LocalName {
    OneStep,
    Epochs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NeighboursName {
    ReplaceOne,
    AddRemove,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormaliseName {
    Clip,
    Paper,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ConventionName {
    Symbol,
    ComplexSymbol,
    Despread,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModulationName {
    Real,
    PhaseCorrected,
}

/// A view.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ViewName {
    Idealised,
    Actual,
    AnyChannel,
    Published,
    RawSignal,
}

impl From<ViewName> for View {
    fn from(name: ViewName) -> Self {
        match name {
            ViewName::Idealised => Self::Idealised,
            ViewName::Actual => Self::Actual,
            ViewName::AnyChannel => Self::AnyChannel,
            ViewName::Published => Self::Published,
            ViewName::RawSignal => Self::RawSignal,
        }
    }
}

impl FederationOptions {
    /// The same as an inquiry.
    pub(crate) fn inquiry(&self) -> Inquiry {
        Inquiry {
            clip: self.clip,
            per_round: self.per_round,
            clients: self.clients,
            rounds: self.rounds,
            delta: self.delta,
            level: match self.level {
                LevelName::Client => LevelChoice::Client,
                LevelName::Item => LevelChoice::Item,
            },
            batch: self.batch,
            samples: self.samples,
            local: match self.local {
                LocalName::OneStep => Local::OneStep,
                LocalName::Epochs => Local::Epochs,
            },
            neighbours: match self.neighbours {
                NeighboursName::ReplaceOne => Neighbours::ReplaceOne,
                NeighboursName::AddRemove => Neighbours::AddOrRemove,
            },
            scaling: match self.normalise {
                NormaliseName::Clip => Scaling::Fixed,
                NormaliseName::Paper => Scaling::PaperNormalisation,
            },
            receiver: self.receiver,
            length: self.length,
            snr_db: self.snr_db,
            snr_convention: match self.snr_convention {
                ConventionName::Symbol => SnrConvention::Symbol,
                ConventionName::ComplexSymbol => SnrConvention::ComplexSymbol,
                ConventionName::Despread => SnrConvention::Despread,
            },
            fading: self.fading.clone(),
            modulation: match self.modulation {
                ModulationName::Real => Modulation::Real,
                ModulationName::PhaseCorrected => Modulation::PhaseCorrected(PhaseError::None),
            },
            margins: Margins {
                pilot_noise: self.pilot_noise,
                channel_growth: self.channel_growth,
                foreign_pilots: self.foreign_pilots,
            },
        }
    }
}

/// The error about a key, in the words of the command line.
pub(crate) fn as_option(error: SimError) -> Failure {
    match error {
        SimError::Experiment(ExperimentError::Value { key, allowed, value }) => {
            Failure::option(format!("--{}", key.replace('_', "-")), allowed, value)
        }
        SimError::Privacy(PrivacyError::OutOfRange { name: "rounds", allowed, value }) => {
            Failure::option("--rounds", allowed, value)
        }
        // Without the stage at which it occurred.
        SimError::Privacy(error) => Failure::Privacy(error),
        SimError::Uplink(error) => Failure::Input(error),
        other => Failure::Simulation(other),
    }
}

fn receiver(text: &str) -> Result<ReceiverChoice, &'static str> {
    let wrong = "it must be paper, mmse or clipped=c with a number c, such as clipped=1.0";
    match text.split_once('=') {
        None if text == "paper" => Ok(ReceiverChoice::Given(Receiver::Paper)),
        None if text == "mmse" => Ok(ReceiverChoice::Given(Receiver::Mmse)),
        None if text == "clipped" => Ok(ReceiverChoice::ClippedSomehow),
        Some(("clipped", level)) => {
            number(level).map(|c| ReceiverChoice::Given(Receiver::Clipped(c))).map_err(|_| wrong)
        }
        _ => Err(wrong),
    }
}

fn fading(text: &str) -> Result<Fading, &'static str> {
    let wrong = "it must be rayleigh, none, rician=k or nakagami=m, such as rician=3";
    match text.split_once('=') {
        None if text == "rayleigh" => Ok(Fading::Rayleigh),
        None if text == "none" => Ok(Fading::None),
        Some(("rician", factor)) => number(factor).map(Fading::Rician).map_err(|_| wrong),
        Some(("nakagami", shape)) => number(shape).map(Fading::Nakagami).map_err(|_| wrong),
        _ => Err(wrong),
    }
}
