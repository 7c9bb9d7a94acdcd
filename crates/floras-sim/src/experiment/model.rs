//! The section `[model]`: the model and its penalty.

use floras_core::named_choice;
use floras_learn::{LearnError, Logistic, Model, Perceptron};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};

/// The model that is trained: the section `[model]` of an experiment file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelSettings {
    /// The kind of the model.
    pub kind: ModelKind,
    /// `λ` of the penalty `λ‖w‖²`: from 0 to 1e6.
    pub l2: f64,
}

/// The kind of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// Multinomial logistic regression.
    Logistic,
    /// A perceptron with one hidden layer.
    Mlp {
        /// Hidden units: from 1 to 65536.
        hidden: usize,
    },
}

impl ModelSettings {
    /// The model for samples with these numbers of features and classes.
    pub(crate) fn build(&self, features: usize, classes: usize) -> Result<Box<dyn Model>, LearnError> {
        Ok(match self.kind {
            ModelKind::Logistic => Box::new(Logistic::new(features, classes, self.l2)?),
            ModelKind::Mlp { hidden } => Box::new(Perceptron::new(features, hidden, classes, self.l2)?),
        })
    }

    /// A short description of the model.
    pub fn description(&self) -> String {
        match self.kind {
            ModelKind::Logistic => "a linear classifier (logistic regression)".to_owned(),
            ModelKind::Mlp { hidden } => format!("a small neural network with {hidden} hidden units"),
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
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

/// The section as written in a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [model]")]
pub(super) struct ModelFile {
    kind: ModelName,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<usize>,
    l2: Option<f64>,
}

impl ModelFile {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        within("model.hidden", self.hidden, 1..=1 << 16)?;
        within("model.l2", self.l2, 0.0..=1e6)
    }
}

impl From<ModelFile> for ModelSettings {
    fn from(file: ModelFile) -> Self {
        let kind = match file.kind {
            ModelName::Logistic => ModelKind::Logistic,
            ModelName::Mlp => ModelKind::Mlp { hidden: file.hidden.unwrap_or(64) },
        };
        Self { kind, l2: file.l2.unwrap_or(0.01) }
    }
}

impl From<ModelSettings> for ModelFile {
    fn from(settings: ModelSettings) -> Self {
        let (kind, hidden) = match settings.kind {
            ModelKind::Logistic => (ModelName::Logistic, None),
            ModelKind::Mlp { hidden } => (ModelName::Mlp, Some(hidden)),
        };
        Self { kind, hidden, l2: Some(settings.l2) }
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        ModelFile::default().into()
    }
}
