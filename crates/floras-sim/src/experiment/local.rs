//! The section `[local]`: what a client does in a round.

use floras_learn::{LocalSgd, Rate, Work};
use toml::{Table, Value};

use super::WHOLE;
use super::error::ExperimentError;
use super::section::{Section, number};
use super::write::Write;

/// The section `[local]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSettings {
    /// Mini-batches, and how many.
    pub sgd: LocalSgd,
    /// The learning rate.
    pub rate: Rate,
}

const RATES: &str =
    "a number above 0, { initial = 0.1, factor = 0.99, every = 10 } or { mu = 0.02, offset = 0 }";

impl LocalSettings {
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "local", &["batch", "epochs", "steps", "rate"])?;
        let amount = 1..=1_000_000;
        let epochs = section.whole("epochs", amount.clone())?;
        let steps = section.whole("steps", amount)?;
        let work = match (epochs, steps) {
            (Some(_), Some(_)) => {
                let reason = "give either local.epochs or local.steps, not both";
                return Err(ExperimentError::refused("local.steps", reason));
            }
            (None, Some(steps)) => Work::Steps(steps as u32),
            (epochs, None) => Work::Epochs(epochs.unwrap_or(1) as u32),
        };
        let batch = section.whole("batch", WHOLE)?.unwrap_or(20) as usize;
        Ok(Self { sgd: LocalSgd { batch, work }, rate: read_rate(&section)? })
    }

    pub(super) fn write(&self, out: &mut Write) {
        out.key("batch", self.sgd.batch);
        match self.sgd.work {
            Work::Epochs(epochs) => out.key("epochs", epochs),
            Work::Steps(steps) => out.key("steps", steps),
        }
        let fields = |fields: &[(&str, Value)]| {
            Value::Table(fields.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        let rate = match self.rate {
            Rate::Constant(rate) => Value::Float(rate),
            Rate::Decay { initial, factor, every } => fields(&[
                ("initial", initial.into()),
                ("factor", factor.into()),
                ("every", i64::from(every).into()),
            ]),
            Rate::InverseTime { mu, offset } => fields(&[("mu", mu.into()), ("offset", offset.into())]),
        };
        out.key("rate", rate);
    }
}

fn read_rate(section: &Section<'_>) -> Result<Rate, ExperimentError> {
    let Some(value) = section.value("rate") else { return Ok(Rate::Constant(0.005)) };
    let rate = match value {
        Value::Table(fields) => {
            let has = |keys: &[&str]| {
                fields.len() == keys.len() && keys.iter().all(|key| fields.contains_key(*key))
            };
            let field = |key: &str| fields.get(key).and_then(number);
            if has(&["initial", "factor", "every"]) {
                let every = fields["every"].as_integer().and_then(|every| u32::try_from(every).ok());
                let (initial, factor) = (field("initial"), field("factor"));
                initial.zip(factor).zip(every).map(|((initial, factor), every)| Rate::Decay {
                    initial,
                    factor,
                    every,
                })
            } else if has(&["mu", "offset"]) {
                field("mu").zip(field("offset")).map(|(mu, offset)| Rate::InverseTime { mu, offset })
            } else {
                None
            }
        }
        plain => number(plain).map(Rate::Constant),
    };
    let rate = rate.ok_or_else(|| section.no_such_choice("rate", RATES))?;
    rate.check().map_err(|error| ExperimentError::refused("local.rate", error))?;
    Ok(rate)
}
