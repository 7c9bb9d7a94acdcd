//! Inquiries as tables, with the keys of an experiment file and of the command line.

use floras_core::View;
use floras_privacy::Margins;
use toml::Table;

use super::{Goal, Inquiry};
use crate::experiment::{ExperimentError, Section, read_modulation};

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
        Ok(Self {
            clip: required(section.number("clip", ANY, "a number")?, "clip")?,
            per_round: required(whole("per_round")?, "per_round")?,
            clients: whole("clients")?,
            rounds: whole("rounds")?,
            delta: section.number("delta", ANY, "a number")?.unwrap_or(1e-5),
            level: section.parse("level")?.unwrap_or_default(),
            batch: whole("batch")?,
            samples: whole("samples")?,
            local: section.parse("local")?.unwrap_or_default(),
            neighbours: section.parse("neighbours")?.unwrap_or_default(),
            clipping: section.parse("normalise")?.unwrap_or_default(),
            receiver: section.parse("receiver")?.unwrap_or_default(),
            length: whole("length")?,
            snr_db: section.number("snr_db", ANY, "a number of decibels")?,
            snr_convention: section.parse("snr_convention")?.unwrap_or_default(),
            fading: section.parse("fading")?.unwrap_or_default(),
            modulation: read_modulation(&section)?,
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
        Ok(Self {
            epsilon: required(section.number("epsilon", ANY, "a number")?, "epsilon")?,
            view: section.parse("view")?.unwrap_or(View::Idealised),
            find: section.parse("find")?.unwrap_or_default(),
            sequences: section.whole("sequences", WHOLE)?,
            most_sequences: section.whole("most_sequences", WHOLE)?,
        })
    }
}

fn required<T>(value: Option<T>, key: &str) -> Result<T, ExperimentError> {
    value.ok_or_else(|| ExperimentError::refused(key, "it must be given"))
}
