//! The options that describe a federation and its radio.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};
use floras_core::{Clipping, Fading, Level, LocalWork, Modulation, Neighbours, PhaseError, SnrConvention};
use floras_privacy::PrivacyError;
use floras_sim::inquiry::{Inquiry, Keywords, ReceiverChoice};
use floras_sim::{ExperimentError, SimError};
use serde::Serialize;

use crate::command::{choice, integer, number};
use crate::failure::Failure;
use crate::text::quoted;

/// Clients, updates and radio.
#[derive(Clone, Debug, Args, Serialize)]
pub(crate) struct FederationOptions {
    /// Norm that every update is clipped to (C).
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = number)]
    clip: Option<f64>,

    /// Clients per round (K).
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = integer::<u64>)]
    per_round: Option<u64>,

    /// All clients (M); K if absent.
    #[arg(long, value_name = "M", allow_negative_numbers = true, value_parser = integer::<u64>)]
    clients: Option<u64>,

    /// Learning rounds (T); 1 if absent.
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = integer::<u64>)]
    rounds: Option<u64>,

    /// Probability with which the bound may fail (δ).
    #[arg(long, value_name = "δ", allow_negative_numbers = true, value_parser = number, default_value = "1e-5")]
    delta: f64,

    /// What is protected: all data of a client, or one item.
    #[arg(long, value_parser = choice::<Level>(), default_value_t)]
    level: Level,

    /// Samples in a mini-batch (b), for --level item.
    #[arg(long, value_name = "b", allow_negative_numbers = true, value_parser = integer::<u64>)]
    batch: Option<u64>,

    /// Samples per client (D), for --level item.
    #[arg(long, value_name = "D", allow_negative_numbers = true, value_parser = integer::<u64>)]
    samples: Option<u64>,

    /// Local work of a client in a round, for --level item: one mini-batch, n mini-batches, or epochs over all samples.
    #[arg(long, value_parser = choice::<LocalWork>(), default_value_t)]
    local: LocalWork,

    /// Which populations are neighbours.
    #[arg(long, value_parser = choice::<Neighbours>(), default_value_t)]
    neighbours: Neighbours,

    /// How updates are normalised to norm C: each on its own, or as in the paper.
    #[arg(long, value_parser = choice::<Clipping>(), default_value_t)]
    normalise: Clipping,

    /// The base station's weights.
    #[arg(long, value_parser = choice::<ReceiverChoice>(), default_value_t)]
    receiver: ReceiverChoice,

    /// Chips in a sequence (L); with --snr-db, adds the views of the actual channel and of the raw signal.
    #[arg(long, value_name = "L", allow_negative_numbers = true, value_parser = integer::<u64>)]
    length: Option<u64>,

    /// SNR in decibels.
    #[arg(long, value_name = "dB", allow_negative_numbers = true, value_parser = number)]
    snr_db: Option<f64>,

    /// What the SNR refers to.
    #[arg(long, value_parser = choice::<SnrConvention>(), default_value_t)]
    snr_convention: SnrConvention,

    /// The distribution of the channels.
    #[arg(long, value_parser = choice::<Fading>(), default_value_t)]
    fading: Fading,

    /// Which branches the base station decodes, and whether clients correct the phase of their channel.
    #[arg(long, value_parser = choice::<Modulation>(), default_value_t)]
    modulation: Modulation,

    /// Receive antennas of the base station (R), from 1 to 64.
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = integer::<u64>, default_value = "1")]
    antennas: u64,

    /// The error of the clients' phase correction.
    #[arg(long, value_parser = choice::<PhaseError>())]
    phase_error: Option<PhaseError>,

    /// Amplitude of the pilot (a); payload symbols have unit power.
    #[arg(long, value_name = "a", allow_negative_numbers = true, value_parser = number, default_value = "1")]
    pilot_amplitude: f64,

    /// Repetitions of the pilot, which are averaged (r): its noise is 1/(a·√r) of the payload's.
    #[arg(long, value_name = "r", allow_negative_numbers = true, value_parser = integer::<u32>, default_value = "1")]
    pilot_repetitions: u32,

    /// Margin: maximum of the pilot noise's standard deviation relative to its nominal value (ρ).
    #[arg(long, value_name = "ρ", allow_negative_numbers = true, value_parser = number, default_value = "1")]
    pilot_noise: f64,

    /// Margin: maximum factor by which a client's channel grows from its pilot to its payload (κ).
    #[arg(long, value_name = "κ", allow_negative_numbers = true, value_parser = number, default_value = "1")]
    channel_growth: f64,

    /// Margin: unused sequences on which other transmitters may send a pilot (j).
    #[arg(long, value_name = "j", allow_negative_numbers = true, value_parser = integer::<u64>, default_value = "0")]
    foreign_pilots: u64,

    /// Standard deviation of the masks that clients share in pairs (σ_m), in units of an update; 0 if absent.
    #[arg(long, value_name = "σ_m", allow_negative_numbers = true, value_parser = number)]
    mask_std: Option<f64>,

    /// Standard deviation of the noise that each client adds to its update (σ_z); without it there are no masks.
    #[arg(long, value_name = "σ_z", allow_negative_numbers = true, value_parser = number)]
    noise_std: Option<f64>,

    /// Clients of a round that may reveal their keys and their noise, at most K − 2; 0 if absent.
    #[arg(long, value_name = "a", allow_negative_numbers = true, value_parser = integer::<u32>)]
    colluding: Option<u32>,
}

/// The key of an experiment that an option corresponds to; other options have none.
const KEYS: [(&str, &str); 20] = [
    ("clip", "privacy.clip"),
    ("per_round", "clients.per_round"),
    ("clients", "clients.total"),
    ("rounds", "rounds"),
    ("delta", "privacy.delta"),
    ("level", "privacy.level"),
    ("batch", "local.batch"),
    ("normalise", "privacy.normalise"),
    ("receiver", "uplink.receiver"),
    ("sequences", "uplink.sequences"),
    ("length", "uplink.length"),
    ("snr_db", "uplink.snr_db"),
    ("snr_convention", "uplink.snr_convention"),
    ("fading", "uplink.fading"),
    ("modulation", "uplink.modulation"),
    ("antennas", "uplink.antennas"),
    ("phase_error", "uplink.phase_error"),
    ("mask_std", "masks.mask_std"),
    ("noise_std", "masks.noise_std"),
    ("colluding", "masks.colluding"),
];

/// Options that belong to the description of a federation too.
const MORE: [&str; 3] = ["sequences", "dim", "max_sequences"];

/// Checks that a command describes either an experiment or a federation: `account` and `calibrate`, and no other command.
pub(crate) fn check_options(matches: &ArgMatches) -> Result<(), Failure> {
    let Some((command @ ("account" | "calibrate"), matches)) = matches.subcommand() else { return Ok(()) };
    let is_given = |id: &str| {
        matches!(matches.try_contains_id(id), Ok(true))
            && matches.value_source(id) == Some(ValueSource::CommandLine)
    };
    if is_given("experiment") || is_given("settings") {
        let described = FederationOptions::augment_args(clap::Command::new("federation"));
        let ids = described.get_arguments().map(|argument| argument.get_id().as_str());
        let Some(id) = ids.chain(MORE).find(|id| is_given(id)) else { return Ok(()) };
        let option = id.replace('_', "-");
        let value = matches.get_raw(id).into_iter().flatten().next().unwrap_or_default();
        let hint = match KEYS.iter().find(|(known, _)| *known == id) {
            Some((_, key)) => {
                let setting = quoted(format!("{key}={}", value.to_string_lossy()));
                format!("; change its setting with --set {setting}")
            }
            None => String::new(),
        };
        let message =
            format!("--{option} describes a federation and cannot be used with an experiment{hint}");
        return Err(Failure::Usage(message));
    }
    // `calibrate` can search the sequences.
    let required = ["clip", "per-round", "sequences"];
    let required = if command == "account" { &required[..] } else { &required[..2] };
    let missing: Vec<String> = required
        .iter()
        .filter(|option| !is_given(&option.replace('-', "_")))
        .map(|option| format!("--{option}"))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "give an experiment file or a preset, as in `floras {command} private`, or describe a federation: {} not given",
        match missing.as_slice() {
            [one] => format!("{one} is"),
            [first @ .., last] => format!("{} and {last} are", first.join(", ")),
            [] => String::new(),
        }
    )))
}

impl FederationOptions {
    /// The federation as an inquiry; an option is the keyword of the same name.
    pub(crate) fn inquiry(&self) -> Result<Inquiry, Failure> {
        let inquiry = Keywords::read(self).and_then(|keywords| keywords.inquiry());
        inquiry.map_err(|error| as_option(error.into()))
    }
}

/// The option of a quantity that the accounting names; other quantities keep their name.
fn option_of(name: &'static str) -> &'static str {
    match name {
        "the clip norm" => "--clip",
        "the number of clients" => "--clients",
        "the number of clients per round" => "--per-round",
        "the number of sequences" => "--sequences",
        "the mini-batch size" => "--batch",
        "the number of samples of a client" => "--samples",
        "the number of colluding clients" => "--colluding",
        "the pilot noise relative to the payload noise" => "--pilot-noise",
        "the channel's growth from pilot to payload" => "--channel-growth",
        "the number of foreign pilots" => "--foreign-pilots",
        "rounds" => "--rounds",
        "delta" => "--delta",
        "epsilon" => "--epsilon",
        other => other,
    }
}

/// The error of a keyword as the error of its option.
pub(crate) fn as_option(error: SimError) -> Failure {
    match error {
        // A key of an experiment file, as in `privacy.clip`, is not the name of an option.
        SimError::Experiment(
            ref
            dotted @ (ExperimentError::Value { ref key, .. } | ExperimentError::Incomplete { ref key, .. }),
        ) if key.contains('.') => dotted.clone().into(),
        SimError::Experiment(ExperimentError::Value { key, allowed, value }) => {
            Failure::option(format!("--{}", key.replace('_', "-")), allowed, value)
        }
        SimError::Experiment(ExperimentError::Incomplete { key, requirement }) => {
            Failure::Usage(format!("--{} {requirement}", key.replace('_', "-")))
        }
        SimError::Privacy(PrivacyError::OutOfRange { name, allowed, value }) => {
            Failure::option(option_of(name), allowed, value)
        }
        SimError::Privacy(PrivacyError::Inconsistent { name, allowed, value }) => {
            Failure::option(option_of(name), allowed, value)
        }
        // Without the stage at which it occurred.
        SimError::Privacy(error) => Failure::Privacy(error),
        SimError::Uplink(error) => Failure::Input(error),
        other => Failure::Simulation(other),
    }
}
