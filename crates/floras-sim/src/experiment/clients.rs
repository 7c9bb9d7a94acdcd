//! The section `[clients]`: how many there are, how many take part, and how much each counts.

use floras_core::named_choice;
use toml::Table;

use super::WHOLE;
use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

/// The section `[clients]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// `M`.
    pub total: u32,
    /// `K`.
    pub per_round: u32,
    /// How much each client counts.
    pub weights: Weights,
}

/// How much a client counts in the average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Weights {
    /// All the same.
    #[default]
    Equal,
    /// In proportion to its samples.
    Samples,
}

named_choice!(
    Weights,
    "weights",
    [Equal => "equal", "all clients equally"],
    [Samples => "samples", "in proportion to samples"],
);

impl ClientSettings {
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "clients", &["total", "per_round", "weights"])?;
        let total = section.whole("total", WHOLE)?.unwrap_or(20) as u32;
        Ok(Self {
            total,
            per_round: section.whole("per_round", WHOLE)?.map_or(total.min(20), |count| count as u32),
            weights: section.parse("weights")?.unwrap_or_default(),
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        out.key("total", self.total);
        out.key("per_round", self.per_round);
        out.choice("weights", &self.weights);
    }
}
