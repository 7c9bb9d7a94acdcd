//! A network: a checked sequence of layers, and a linear layer to the classes.
//!
//! ```text
//! softmax(W·layers(x) + b)
//! ```
//!
//! Samples have a shape, channels × height × width, which every layer maps to another one.
//!
//! Initial weights and biases of convolutions and linear layers are uniform between `±1/√n` for `n` inputs of an output. This is
//! PyTorch's default (`kaiming_uniform_` with `a = √5`, whose bound is `√(6/((1 + a²)·n)) = 1/√n`). Normalisations begin with scale 1 and
//! offset 0.

use rand::Rng;

use super::layers::{DEFAULT_GROUPS, Gradients, LayerChoice, Memory, Mode, Sequence, Shared};
use super::{Batch, Model, Scratch, Tensor};
use crate::data::Shape;
use crate::error::{LearnError, require};
use crate::softmax::{self, Score};

/// A network of layers.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    sequence: Sequence,
    classes: usize,
    l2: f32,
}

/// The memory of a network's passes.
#[derive(Clone, Debug, Default)]
pub(super) struct NetworkMemory {
    layers: Memory,
    shared: Shared,
    rows: Vec<f32>,
}

/// Largest number of layers.
const MAX_LAYERS: usize = 1000;

/// Samples that are scored together; this limits the memory.
const SCORED_TOGETHER: usize = 16;

impl Network {
    /// A network of these layers and a linear layer to the classes, for samples of this shape, with penalty `l2·‖w‖²`.
    ///
    /// ```
    /// use floras_learn::{Model, Network, Shape};
    ///
    /// let layers = ["conv=32x3", "relu", "conv=64x3", "relu", "max-pool=2", "linear=128", "relu"];
    /// let layers: Vec<_> = layers.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
    /// let network = Network::new(Shape::new(3, 32, 32), &layers, 10, 0.0)?;
    /// assert_eq!(network.parameters(), 1_626_442);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(input: Shape, layers: &[LayerChoice], classes: usize, l2: f64) -> Result<Self, LearnError> {
        require(
            input.features() > 0 && classes > 1,
            "the model",
            "for at least 1 feature and 2 classes",
            "smaller",
        )?;
        require((0.0..=1e6).contains(&l2), "the penalty l2 (λ)", "between 0 and 1e6", l2)?;
        let count = layers.len();
        require(count <= MAX_LAYERS, "the number of layers", format!("at most {MAX_LAYERS}"), count)?;
        let mut layers = layers.to_vec();
        layers.push(LayerChoice::Linear { outputs: classes });
        let name = |at: usize| if at == count { "output".to_owned() } else { format!("layer{}", at + 1) };
        Ok(Self { sequence: Sequence::new(input, &layers, name)?, classes, l2: l2 as f32 })
    }

    /// The layers of the network `cnn`, with which federated learning libraries compare their speed on CIFAR-10.
    pub fn cnn() -> Vec<LayerChoice> {
        let conv =
            |channels| LayerChoice::Conv { channels, kernel: 3, stride: 1, padding: 0, has_bias: true };
        let (relu, dropout) = (LayerChoice::Relu, |probability| LayerChoice::Dropout { probability });
        let pool = LayerChoice::MaxPool { side: 2 };
        let linear = LayerChoice::Linear { outputs: 128 };
        vec![conv(32), relu, conv(64), relu, pool, dropout(0.25), linear, relu, dropout(0.5)]
    }

    /// The layers of `resnet`: a residual network of 18 layers for small images, with group normalisation. `groups` divides 64.
    pub fn resnet(groups: usize) -> Vec<LayerChoice> {
        let (kernel, stride, padding) = (3, 1, 1);
        let stem = LayerChoice::Conv { channels: 64, kernel, stride, padding, has_bias: false };
        let mut layers = vec![stem, LayerChoice::GroupNorm { groups }, LayerChoice::Relu];
        for (stage, channels) in [64, 128, 256, 512].into_iter().enumerate() {
            let stride = if stage == 0 { 1 } else { 2 };
            layers.push(LayerChoice::Residual { channels, stride, groups });
            layers.push(LayerChoice::Residual { channels, stride: 1, groups });
        }
        layers.push(LayerChoice::AveragePool);
        layers
    }

    /// Number of groups of [`resnet`](Self::resnet) if none is stated.
    pub const RESNET_GROUPS: usize = DEFAULT_GROUPS;

    /// Fills labels, features, the layers' memory, and the logits, class after class.
    fn forward(&self, parameters: &[f32], batch: Batch<'_>, mode: &mut Mode<'_>, scratch: &mut Scratch) {
        batch.copy_labels(&mut scratch.labels);
        batch.copy_features(&mut scratch.features);
        let NetworkMemory { layers, shared, .. } = &mut scratch.network;
        self.sequence.forward(parameters, &scratch.features, mode, layers, shared);
        let rows = self.sequence.outputs(&scratch.features, layers);
        transpose(rows, self.classes, &mut scratch.logits);
    }
}

/// The transpose of a matrix with rows of this length.
fn transpose(matrix: &[f32], width: usize, transposed: &mut Vec<f32>) {
    let height = matrix.len() / width;
    transposed.resize(matrix.len(), 0.0);
    for (i, row) in matrix.chunks_exact(width).enumerate() {
        for (j, &value) in row.iter().enumerate() {
            transposed[j * height + i] = value;
        }
    }
}

impl Model for Network {
    fn features(&self) -> usize {
        self.sequence.input().features()
    }

    fn classes(&self) -> usize {
        self.classes
    }

    fn l2(&self) -> f32 {
        self.l2
    }

    fn tensors(&self) -> Vec<Tensor> {
        self.sequence.tensors()
    }

    fn initialise(&self, randomness: &mut dyn Rng) -> Vec<f32> {
        let mut parameters = Vec::with_capacity(self.parameters());
        self.sequence.initialise(randomness, &mut parameters);
        parameters
    }

    fn gradient(
        &self,
        parameters: &[f32],
        batch: Batch<'_>,
        dropout: &mut dyn Rng,
        scratch: &mut Scratch,
        gradient: &mut [f32],
    ) -> f64 {
        self.forward(parameters, batch, &mut Mode::Training(dropout), scratch);
        let loss_sum = softmax::gradient(&mut scratch.logits, &scratch.labels, &mut scratch.softmax);
        let NetworkMemory { layers, shared, rows } = &mut scratch.network;
        transpose(&scratch.logits, batch.count(), rows);
        let mut out_gradient = shared.take(rows.len());
        out_gradient.copy_from_slice(rows);
        let wanted = Gradients { gradient: &mut *gradient, wants_inputs: false };
        let unused =
            self.sequence.backward(parameters, &scratch.features, out_gradient, wanted, layers, shared);
        shared.give_back(unused);
        if self.l2 > 0.0 {
            let slope = 2.0 * self.l2;
            gradient.iter_mut().zip(parameters).for_each(|(slot, &parameter)| *slot += slope * parameter);
        }
        loss_sum / batch.count() as f64
    }

    fn score(&self, parameters: &[f32], batch: Batch<'_>, scratch: &mut Scratch) -> Score {
        let mut score = Score::default();
        for rows in batch.rows.chunks(SCORED_TOGETHER) {
            self.forward(parameters, Batch { rows, ..batch }, &mut Mode::Evaluation, scratch);
            score = score.and(softmax::score(&mut scratch.logits, &scratch.labels, &mut scratch.softmax));
        }
        score
    }
}
