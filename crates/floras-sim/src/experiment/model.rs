//! The section `[model]`: the model and its penalty.

use floras_core::named_choice;
use floras_learn::{LayerChoice, LearnError, Logistic, Model, Network, Perceptron, Shape};
use serde::{Deserialize, Serialize};

use super::error::{ExperimentError, within};

/// The model that is trained: the section `[model]` of an experiment file.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelSettings {
    /// The kind of the model.
    pub kind: ModelKind,
    /// `λ` of the penalty `λ‖w‖²`: from 0 to 1e6.
    pub l2: f64,
}

/// The kind of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelKind {
    /// Multinomial logistic regression.
    Logistic,
    /// A perceptron with rectified linear units in any number of hidden layers.
    Mlp {
        /// Units of each hidden layer, from 1 to 65536; 1 to 100 layers.
        hidden: Vec<usize>,
    },
    /// A network of two convolutions and two linear layers; see [`Network::cnn`].
    Cnn,
    /// A residual network of 18 layers with group normalisation; see [`Network::resnet`].
    Resnet {
        /// Groups of each normalisation: a divisor of 64.
        groups: usize,
    },
    /// A network of any layers, to which a linear layer to the classes is added.
    Layers(Vec<LayerChoice>),
}

impl ModelSettings {
    /// The model for samples of this shape and with this number of classes.
    pub(crate) fn build(&self, shape: Shape, classes: usize) -> Result<Box<dyn Model>, LearnError> {
        let network = |layers: &[LayerChoice]| Network::new(shape, layers, classes, self.l2);
        let features = shape.features();
        Ok(match &self.kind {
            ModelKind::Logistic => Box::new(Logistic::new(features, classes, self.l2)?),
            ModelKind::Mlp { hidden } => Box::new(Perceptron::new(features, hidden, classes, self.l2)?),
            ModelKind::Cnn => Box::new(network(&Network::cnn())?),
            ModelKind::Resnet { groups } => Box::new(network(&Network::resnet(*groups))?),
            ModelKind::Layers(layers) => Box::new(network(layers)?),
        })
    }

    /// A short description of the model.
    pub fn description(&self) -> String {
        match &self.kind {
            ModelKind::Logistic => "a linear classifier (logistic regression)".to_owned(),
            ModelKind::Mlp { hidden } => match hidden.as_slice() {
                [hidden] => format!("a small neural network with {hidden} hidden units"),
                several => {
                    let units: Vec<String> = several.iter().map(usize::to_string).collect();
                    format!("a neural network with layers of {} hidden units", units.join(", "))
                }
            },
            ModelKind::Cnn => "a convolutional network with two convolutions".to_owned(),
            ModelKind::Resnet { .. } => "a residual network with 18 layers".to_owned(),
            ModelKind::Layers(layers) => match layers.len() {
                1 => "a neural network with 1 layer before the output".to_owned(),
                count => format!("a neural network with {count} layers before the output"),
            },
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
enum ModelName {
    #[default]
    Logistic,
    Mlp,
    Cnn,
    Resnet,
    Layers,
}

named_choice!(
    ModelName,
    "model",
    [Logistic => "logistic", "logistic regression"],
    [Mlp => "mlp", "perceptron"],
    [Cnn => "cnn", "convolutional network"],
    [Resnet => "resnet", "residual network"],
    [Layers => "layers", "network of the listed layers"],
);

/// Hidden units: those of one layer as a number, or those of every layer as a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected an integer or a list of integers, as in [128, 64]")]
enum Hidden {
    One(usize),
    Several(Vec<usize>),
}

impl Hidden {
    fn units(&self) -> &[usize] {
        match self {
            Self::One(hidden) => std::slice::from_ref(hidden),
            Self::Several(hidden) => hidden,
        }
    }
}

impl From<&[usize]> for Hidden {
    fn from(hidden: &[usize]) -> Self {
        match hidden {
            &[hidden] => Self::One(hidden),
            several => Self::Several(several.to_vec()),
        }
    }
}

/// The section as written in a file.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields, expecting = "a section, [model]")]
pub(super) struct ModelFile {
    kind: ModelName,
    #[serde(skip_serializing_if = "Option::is_none")]
    hidden: Option<Hidden>,
    #[serde(skip_serializing_if = "Option::is_none")]
    groups: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<Vec<String>>,
    l2: Option<f64>,
}

impl ModelFile {
    pub(super) fn check(&self) -> Result<(), ExperimentError> {
        if let Some(hidden) = &self.hidden {
            let count = hidden.units().len();
            if !(1..=Perceptron::MAX_DEPTH).contains(&count) {
                let allowed = format!("1 to {} layers", Perceptron::MAX_DEPTH);
                let (key, value) = ("model.hidden".to_owned(), format!("{count} layers"));
                return Err(ExperimentError::Value { key, allowed, value });
            }
            for &units in hidden.units() {
                within("model.hidden", Some(units), 1..=Perceptron::MAX_HIDDEN)?;
            }
        }
        within("model.groups", self.groups, 1..=64)?;
        within("model.l2", self.l2, 0.0..=1e6)?;
        self.layers().map(|_| ())
    }

    fn layers(&self) -> Result<Vec<LayerChoice>, ExperimentError> {
        let texts = self.layers.iter().flatten().enumerate();
        let layers = texts.map(|(at, text)| {
            let refused = |error| ExperimentError::refused(&format!("model.layers[{}]", at + 1), error);
            text.parse().map_err(refused)
        });
        layers.collect()
    }
}

impl TryFrom<ModelFile> for ModelSettings {
    type Error = ExperimentError;

    fn try_from(file: ModelFile) -> Result<Self, ExperimentError> {
        let layers = file.layers()?;
        let kind = match file.kind {
            ModelName::Logistic => ModelKind::Logistic,
            ModelName::Mlp => {
                ModelKind::Mlp { hidden: file.hidden.map_or(vec![64], |hidden| hidden.units().to_vec()) }
            }
            ModelName::Cnn => ModelKind::Cnn,
            ModelName::Resnet => ModelKind::Resnet { groups: file.groups.unwrap_or(Network::RESNET_GROUPS) },
            ModelName::Layers if file.layers.is_none() => {
                let requirement =
                    "must be given with the kind \"layers\", as in layers = [\"linear=64\", \"relu\"]";
                let (key, requirement) = ("model.layers".to_owned(), requirement.to_owned());
                return Err(ExperimentError::Incomplete { key, requirement });
            }
            ModelName::Layers => ModelKind::Layers(layers),
        };
        // The penalty makes the paper's task strongly convex; deep models are trained without it elsewhere.
        let default_l2 = match kind {
            ModelKind::Logistic | ModelKind::Mlp { .. } => 0.01,
            ModelKind::Cnn | ModelKind::Resnet { .. } | ModelKind::Layers(_) => 0.0,
        };
        Ok(Self { kind, l2: file.l2.unwrap_or(default_l2) })
    }
}

impl From<&ModelSettings> for ModelFile {
    fn from(settings: &ModelSettings) -> Self {
        let mut file = Self { l2: Some(settings.l2), ..Self::default() };
        match &settings.kind {
            ModelKind::Logistic => {}
            ModelKind::Mlp { hidden } => {
                (file.kind, file.hidden) = (ModelName::Mlp, Some(hidden.as_slice().into()));
            }
            ModelKind::Cnn => file.kind = ModelName::Cnn,
            ModelKind::Resnet { groups } => (file.kind, file.groups) = (ModelName::Resnet, Some(*groups)),
            ModelKind::Layers(layers) => {
                let texts = layers.iter().map(LayerChoice::to_string).collect();
                (file.kind, file.layers) = (ModelName::Layers, Some(texts));
            }
        }
        file
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self { kind: ModelKind::Logistic, l2: 0.01 }
    }
}
