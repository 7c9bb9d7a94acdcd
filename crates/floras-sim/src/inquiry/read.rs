//! Inquiries as tables, with the keys of an experiment file and of the command line.

use floras_phy::{Fading, SnrConvention};
use floras_privacy::{Local, Margins, Neighbours, Scaling, View};
use toml::Table;

use super::{Find, Goal, Inquiry, LevelChoice, ReceiverChoice};
use crate::accounting::receiver;
use crate::experiment::{ExperimentError, FadingChoice, Section, radio};

const KEYS: [&str; 27] = [
    "clip",
    "per_round",
    "clients",
    "rounds",
    "delta",
    "level",
    "batch",
    "samples",
    "local",
    "neighbours",
    "normalise",
    "receiver",
    "length",
    "snr_db",
    "snr_convention",
    "fading",
    "modulation",
    "phase_error",
    "pilot_noise",
    "channel_growth",
    "foreign_pilots",
    "sequences",
    "dim",
    "epsilon",
    "view",
    "find",
    "most_sequences",
];
const ANY: std::ops::RangeInclusive<f64> = f64::NEG_INFINITY..=f64::INFINITY;
const WHOLE: std::ops::RangeInclusive<u64> = 0..=i64::MAX as u64;

impl Inquiry {
    /// Reads an inquiry from a table.
    pub fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::top(table, &KEYS)?;
        let whole = |key: &str| section.whole(key, WHOLE);
        let modes = [("clip", Scaling::Fixed), ("paper", Scaling::PaperNormalisation)];
        let neighbours = [("replace-one", Neighbours::ReplaceOne), ("add-remove", Neighbours::AddOrRemove)];
        let levels = [("client", LevelChoice::Client), ("item", LevelChoice::Item)];
        Ok(Self {
            clip: required(section.number("clip", ANY, "a number")?, "clip")?,
            per_round: required(whole("per_round")?, "per_round")?,
            clients: whole("clients")?,
            rounds: whole("rounds")?,
            delta: section.number("delta", ANY, "a number")?.unwrap_or(1e-5),
            level: section.one_of("level", &levels)?.unwrap_or_default(),
            batch: whole("batch")?,
            samples: whole("samples")?,
            local: section
                .one_of("local", &[("one-step", Local::OneStep), ("epochs", Local::Epochs)])?
                .unwrap_or(Local::OneStep),
            neighbours: section.one_of("neighbours", &neighbours)?.unwrap_or(Neighbours::ReplaceOne),
            scaling: section.one_of("normalise", &modes)?.unwrap_or(Scaling::Fixed),
            receiver: read_receiver(&section)?,
            length: whole("length")?,
            snr_db: section.number("snr_db", ANY, "a number of decibels")?,
            snr_convention: section
                .one_of("snr_convention", &radio::CONVENTIONS)?
                .unwrap_or(SnrConvention::Symbol),
            fading: read_fading(&section)?,
            modulation: radio::read_modulation(&section)?,
            margins: Margins {
                pilot_noise: section.number("pilot_noise", ANY, "a number")?.unwrap_or(1.0),
                channel_growth: section.number("channel_growth", ANY, "a number")?.unwrap_or(1.0),
                foreign_pilots: whole("foreign_pilots")?.unwrap_or(0),
            },
        })
    }

    /// The table's number of sequences, which an account needs.
    pub fn sequences(table: &Table) -> Result<u64, ExperimentError> {
        required(Section::top(table, &KEYS)?.whole("sequences", WHOLE)?, "sequences")
    }

    /// The table's number of parameters, if it has one.
    pub fn dim(table: &Table) -> Result<Option<u64>, ExperimentError> {
        Section::top(table, &KEYS)?.whole("dim", WHOLE)
    }
}

impl Goal {
    /// Reads a goal from the table of an inquiry.
    pub fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::top(table, &KEYS)?;
        let finds = [("sequences", Find::Sequences), ("clip", Find::Clip), ("rounds", Find::Rounds)];
        Ok(Self {
            epsilon: required(section.number("epsilon", ANY, "a number")?, "epsilon")?,
            view: read_view(&section)?.unwrap_or(View::Idealised),
            find: section.one_of("find", &finds)?.unwrap_or_default(),
            sequences: section.whole("sequences", WHOLE)?,
            most_sequences: section.whole("most_sequences", WHOLE)?,
        })
    }
}

fn read_view(section: &Section<'_>) -> Result<Option<View>, ExperimentError> {
    section.one_of("view", &View::ALL.map(|view| (view.name(), view)))
}

fn read_receiver(section: &Section<'_>) -> Result<ReceiverChoice, ExperimentError> {
    if section.value("receiver").and_then(toml::Value::as_str) == Some("clipped") {
        return Ok(ReceiverChoice::ClippedSomehow);
    }
    Ok(ReceiverChoice::Given(receiver(radio::read_receiver(section)?)))
}

fn read_fading(section: &Section<'_>) -> Result<Fading, ExperimentError> {
    match radio::read_fading(section)? {
        FadingChoice::Law(law) => Ok(law),
        FadingChoice::Trace(_) => {
            Err(ExperimentError::refused("fading", "a trace has no law that could be accounted for"))
        }
    }
}

fn required<T>(value: Option<T>, key: &str) -> Result<T, ExperimentError> {
    value.ok_or_else(|| ExperimentError::refused(key, "it must be given"))
}
