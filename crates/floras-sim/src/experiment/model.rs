//! The section `[model]`: what is learned.

use floras_core::named_choice;
use toml::Table;

use super::error::ExperimentError;
use super::section::Section;
use super::write::Write;

/// The section `[model]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// Which model.
    pub kind: ModelKind,
    /// `λ` of the penalty `λ‖w‖²`.
    pub l2: f64,
}

/// A model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Multinomial logistic regression.
    Logistic,
    /// A perceptron with one hidden layer.
    Mlp {
        /// Hidden units.
        hidden: usize,
    },
}

#[derive(Clone, Copy, Default)]
enum ModelName {
    #[default]
    Logistic,
    Mlp,
}

named_choice!(
    ModelName,
    "model",
    [Logistic => "logistic", "logistic regression"],
    [Mlp => "mlp", "perceptron with one hidden layer"],
);

impl ModelSettings {
    pub(super) fn read(table: &Table) -> Result<Self, ExperimentError> {
        let section = Section::open(table, "model", &["kind", "l2", "hidden"])?;
        let hidden = section.whole("hidden", 1..=1 << 16)?.unwrap_or(64) as usize;
        Ok(Self {
            kind: match section.parse("kind")?.unwrap_or_default() {
                ModelName::Logistic => ModelKind::Logistic,
                ModelName::Mlp => ModelKind::Mlp { hidden },
            },
            l2: section.number("l2", 0.0..=1e6, "a number between 0 and 1e6")?.unwrap_or(0.01),
        })
    }

    pub(super) fn write(&self, out: &mut Write) {
        match self.kind {
            ModelKind::Logistic => out.key("kind", "logistic"),
            ModelKind::Mlp { hidden } => {
                out.key("kind", "mlp");
                out.key("hidden", hidden);
            }
        }
        out.key("l2", self.l2);
    }
}
