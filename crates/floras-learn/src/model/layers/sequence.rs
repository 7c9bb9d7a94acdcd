//! Layers one after another, with the memory of their forward pass.
//!
//! Activations have one row per sample, and in a row channel after channel, each row of pixels after row. ReLU and dropout work in place, on the
//! outputs of the layer before them; every other layer has outputs of its own.

use rand::{Rng, RngExt};

use super::LayerChoice;
use super::average_pool;
use super::conv::{Columns, Conv, Kernel};
use super::dropout::Dropout;
use super::group_norm::GroupNorm;
use super::linear::Linear;
use super::max_pool::MaxPool;
use super::relu;
use super::residual::{BlockMemory, Residual};
use crate::data::Shape;
use crate::error::LearnError;
use crate::model::Tensor;

/// A checked sequence of layers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sequence {
    input: Shape,
    layers: Vec<Placed>,
    /// Number of parameters of all layers.
    parameters: usize,
}

/// A layer in its place.
#[derive(Clone, Debug, PartialEq)]
struct Placed {
    name: String,
    layer: Layer,
    output: Shape,
    /// The first of the layer's parameters.
    start: usize,
    /// The layer in whose memory the outputs are: itself, or an earlier one if it works in place.
    station: usize,
}

#[derive(Clone, Debug, PartialEq)]
enum Layer {
    Conv(Conv),
    MaxPool(MaxPool),
    AveragePool,
    Relu,
    GroupNorm(GroupNorm),
    Dropout(Dropout),
    Linear(Linear),
    Residual(Box<Residual>),
}

/// Whether values are dropped, and by which generator.
pub(crate) enum Mode<'a> {
    Training(&'a mut dyn Rng),
    Evaluation,
}

/// What a sequence keeps for its backward pass.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory {
    layers: Vec<Kept>,
}

/// What a layer keeps for its backward pass.
#[derive(Clone, Debug, Default)]
struct Kept {
    outputs: Vec<f32>,
    /// The places of the largest values, for max pooling.
    places: Vec<u32>,
    /// The factors by which dropout multiplied the values.
    factors: Vec<f32>,
    /// Mean and inverse deviation of each group, for group normalisation.
    statistics: Vec<[f32; 2]>,
    block: Option<Box<BlockMemory>>,
}

/// Buffers that all layers share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    columns: Columns,
    bytes: Vec<u8>,
    spare: Vec<Vec<f32>>,
}

/// What a backward pass is to compute.
pub(crate) struct Gradients<'a> {
    /// The gradient of the parameters, which is overwritten.
    pub(crate) gradient: &'a mut [f32],
    /// Whether the gradient of the inputs is needed.
    pub(crate) wants_inputs: bool,
}

impl Shared {
    /// A buffer of this length with any content.
    pub(crate) fn take(&mut self, length: usize) -> Vec<f32> {
        // The smallest that is large enough, so that large buffers are not made again and again.
        let fits = |buffer: &Vec<f32>| buffer.capacity() >= length;
        let best = (0..self.spare.len()).filter(|&at| fits(&self.spare[at]));
        let best = best.min_by_key(|&at| self.spare[at].capacity()).or(self.spare.len().checked_sub(1));
        let mut buffer = best.map(|at| self.spare.swap_remove(at)).unwrap_or_default();
        buffer.resize(length, 0.0);
        buffer
    }

    pub(crate) fn give_back(&mut self, buffer: Vec<f32>) {
        self.spare.push(buffer);
    }
}

impl Layer {
    fn new(input: Shape, choice: LayerChoice) -> Result<(Self, Shape), LearnError> {
        Ok(match choice {
            LayerChoice::Conv { channels, kernel, stride, padding, has_bias } => {
                let conv = Conv::new(input, channels, Kernel { side: kernel, stride, padding, has_bias })?;
                (Self::Conv(conv), conv.output())
            }
            LayerChoice::MaxPool { side } => {
                let pool = MaxPool::new(input, side)?;
                (Self::MaxPool(pool), pool.output())
            }
            LayerChoice::AveragePool => (Self::AveragePool, Shape::vector(input.channels)),
            LayerChoice::Relu => (Self::Relu, input),
            LayerChoice::GroupNorm { groups } => (Self::GroupNorm(GroupNorm::new(input, groups)?), input),
            LayerChoice::Dropout { probability } => (Self::Dropout(Dropout::new(probability)), input),
            LayerChoice::Linear { outputs } => {
                (Self::Linear(Linear { inputs: input.features(), outputs }), Shape::vector(outputs))
            }
            LayerChoice::Residual { channels, stride, groups } => {
                let block = Residual::new(input, channels, stride, groups)?;
                let output = block.output();
                (Self::Residual(Box::new(block)), output)
            }
        })
    }

    fn is_in_place(&self) -> bool {
        matches!(self, Self::Relu | Self::Dropout(_))
    }

    fn tensors(&self) -> Vec<Tensor> {
        let tensor = |name: &str, shape: Vec<usize>| Tensor { name: name.to_owned(), shape };
        match self {
            Self::Conv(conv) => {
                let mut tensors = vec![tensor("weight", conv.weight_shape())];
                if conv.has_bias() {
                    tensors.push(tensor("bias", vec![conv.output().channels]));
                }
                tensors
            }
            Self::GroupNorm(norm) => {
                vec![tensor("weight", vec![norm.channels()]), tensor("bias", vec![norm.channels()])]
            }
            Self::Linear(linear) => vec![
                tensor("weight", vec![linear.outputs, linear.inputs]),
                tensor("bias", vec![linear.outputs]),
            ],
            Self::Residual(block) => block.tensors(),
            Self::MaxPool(_) | Self::AveragePool | Self::Relu | Self::Dropout(_) => Vec::new(),
        }
    }

    fn initialise(&self, randomness: &mut dyn Rng, parameters: &mut Vec<f32>) {
        let mut uniform = |count: usize, fan_in: usize| {
            let bound = 1.0 / (fan_in as f32).sqrt();
            parameters.extend((0..count).map(|_| bound * (2.0 * randomness.random::<f32>() - 1.0)));
        };
        match self {
            Self::Conv(conv) => {
                let biases = if conv.has_bias() { conv.output().channels } else { 0 };
                uniform(conv.weight_shape().iter().product::<usize>() + biases, conv.fan_in());
            }
            Self::Linear(linear) => uniform(linear.weights() + linear.outputs, linear.inputs),
            Self::GroupNorm(norm) => norm.initialise(parameters),
            Self::Residual(block) => block.initialise(randomness, parameters),
            Self::MaxPool(_) | Self::AveragePool | Self::Relu | Self::Dropout(_) => {}
        }
    }
}

impl Sequence {
    /// Checks that every layer fits its input. `name` names a layer by its place, from 0.
    pub(crate) fn new(
        input: Shape,
        choices: &[LayerChoice],
        name: impl Fn(usize) -> String,
    ) -> Result<Self, LearnError> {
        let (mut layers, mut shape, mut start) =
            (Vec::<Placed>::with_capacity(choices.len()), input, 0_usize);
        for (at, &choice) in choices.iter().enumerate() {
            let in_layer =
                |reason: String| LearnError::Layer { number: at + 1, layer: choice.to_string(), reason };
            let (layer, output) = Layer::new(shape, choice).map_err(|error| match error {
                LearnError::Layer { reason, .. } => in_layer(reason),
                other => other,
            })?;
            let features = output.channels.checked_mul(output.pixels());
            if features.is_none_or(|features| features > Shape::MAX_FEATURES) {
                let most = Shape::MAX_FEATURES;
                let reason =
                    format!("its output of {output} has more than {most} features; its input is {shape}");
                return Err(in_layer(reason));
            }
            let length: usize = layer.tensors().iter().map(Tensor::length).sum();
            let station = match layers.last() {
                Some(before) if layer.is_in_place() => before.station,
                _ => at,
            };
            layers.push(Placed { name: name(at), layer, output, start, station });
            (shape, start) = (output, start + length);
            if start > Self::MAX_PARAMETERS {
                let most = Self::MAX_PARAMETERS;
                return Err(in_layer(format!(
                    "the network has more than {most} parameters; its input is {shape}"
                )));
            }
        }
        Ok(Self { input, layers, parameters: start })
    }

    /// Largest number of parameters.
    pub(crate) const MAX_PARAMETERS: usize = 1 << 28;

    pub(crate) fn input(&self) -> Shape {
        self.input
    }

    pub(crate) fn output(&self) -> Shape {
        self.layers.last().map_or(self.input, |last| last.output)
    }

    pub(crate) fn parameters(&self) -> usize {
        self.parameters
    }

    /// The parameters of all layers, with the layer's name before each.
    pub(crate) fn tensors(&self) -> Vec<Tensor> {
        let named = |placed: &Placed| {
            let name = placed.name.clone();
            let prefixed = move |tensor: Tensor| Tensor { name: format!("{name}.{}", tensor.name), ..tensor };
            placed.layer.tensors().into_iter().map(prefixed)
        };
        self.layers.iter().flat_map(named).collect()
    }

    /// Appends initial parameters.
    pub(crate) fn initialise(&self, randomness: &mut dyn Rng, parameters: &mut Vec<f32>) {
        self.layers.iter().for_each(|placed| placed.layer.initialise(randomness, parameters));
    }

    /// The parameters of a layer.
    fn range(&self, at: usize) -> std::ops::Range<usize> {
        self.layers[at].start..self.layers.get(at + 1).map_or(self.parameters, |next| next.start)
    }

    /// The inputs of a layer, after the forward pass up to it.
    fn inputs_of<'a>(&self, at: usize, inputs: &'a [f32], memory: &'a [Kept]) -> &'a [f32] {
        match at.checked_sub(1) {
            None => inputs,
            Some(before) => &memory[self.layers[before].station].outputs,
        }
    }

    /// The outputs of the last forward pass.
    pub(crate) fn outputs<'a>(&self, inputs: &'a [f32], memory: &'a Memory) -> &'a [f32] {
        self.inputs_of(self.layers.len(), inputs, &memory.layers)
    }

    /// Computes the outputs of all layers.
    pub(crate) fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        mode: &mut Mode<'_>,
        memory: &mut Memory,
        shared: &mut Shared,
    ) {
        memory.layers.resize_with(self.layers.len(), Kept::default);
        let samples = inputs.len() / self.input.features();
        for (at, placed) in self.layers.iter().enumerate() {
            let parameters = &parameters[self.range(at)];
            let (before, rest) = memory.layers.split_at_mut(at);
            let kept = &mut rest[0];
            if placed.layer.is_in_place() {
                let values: &mut [f32] = if placed.station == at {
                    kept.outputs.clear();
                    kept.outputs.extend_from_slice(self.inputs_of(at, inputs, before));
                    &mut kept.outputs
                } else {
                    &mut before[placed.station].outputs
                };
                match (&placed.layer, &mut *mode) {
                    (Layer::Dropout(dropout), Mode::Training(randomness)) => {
                        dropout.forward(values, *randomness, &mut shared.bytes, &mut kept.factors);
                    }
                    (Layer::Dropout(_), Mode::Evaluation) => {}
                    _ => relu::forward(values),
                }
                continue;
            }
            kept.outputs.resize(samples * placed.output.features(), 0.0);
            let inputs = self.inputs_of(at, inputs, before);
            let outputs = &mut kept.outputs;
            match &placed.layer {
                Layer::Conv(conv) => conv.forward(parameters, inputs, outputs, &mut shared.columns),
                Layer::MaxPool(pool) => pool.forward(inputs, outputs, &mut kept.places),
                Layer::AveragePool => average_pool::forward(self.shape_before(at).pixels(), inputs, outputs),
                Layer::GroupNorm(norm) => norm.forward(parameters, inputs, outputs, &mut kept.statistics),
                Layer::Linear(linear) => linear.forward(parameters, inputs, outputs),
                Layer::Residual(block) => {
                    let memory = kept.block.get_or_insert_default();
                    block.forward(parameters, inputs, outputs, mode, memory, shared);
                }
                Layer::Relu | Layer::Dropout(_) => {}
            }
        }
    }

    /// The shape of a layer's input.
    fn shape_before(&self, at: usize) -> Shape {
        at.checked_sub(1).map_or(self.input, |before| self.layers[before].output)
    }

    /// Computes the gradient of the parameters from that of the outputs, after a forward pass in training. Returns the gradient of
    /// the inputs if it is needed, and otherwise any buffer.
    pub(crate) fn backward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        mut out_gradient: Vec<f32>,
        gradients: Gradients<'_>,
        memory: &mut Memory,
        shared: &mut Shared,
    ) -> Vec<f32> {
        let Gradients { gradient, wants_inputs } = gradients;
        for (at, placed) in self.layers.iter().enumerate().rev() {
            let (before, rest) = memory.layers.split_at_mut(at);
            let kept = &mut rest[0];
            match &placed.layer {
                Layer::Relu => {
                    let outputs =
                        if placed.station == at { &kept.outputs } else { &before[placed.station].outputs };
                    relu::backward(outputs, &mut out_gradient);
                    continue;
                }
                Layer::Dropout(_) => {
                    Dropout::backward(&kept.factors, &mut out_gradient);
                    continue;
                }
                _ => {}
            }
            let (parameters, gradient) = (&parameters[self.range(at)], &mut gradient[self.range(at)]);
            let inputs = self.inputs_of(at, inputs, before);
            let wanted = wants_inputs || at > 0;
            let mut buffer = shared.take(if wanted { inputs.len() } else { 0 });
            let in_gradient = wanted.then_some(buffer.as_mut_slice());
            match (&placed.layer, in_gradient) {
                (Layer::Conv(conv), in_gradient) => {
                    conv.backward(
                        parameters,
                        inputs,
                        &out_gradient,
                        gradient,
                        in_gradient,
                        &mut shared.columns,
                    );
                }
                (Layer::Linear(linear), in_gradient) => {
                    linear.backward(parameters, inputs, &out_gradient, gradient, in_gradient);
                }
                (Layer::Residual(block), in_gradient) => {
                    let memory = kept.block.get_or_insert_default();
                    let values = (inputs, &kept.outputs[..]);
                    block.backward(
                        parameters,
                        values,
                        &mut out_gradient,
                        (gradient, in_gradient),
                        memory,
                        shared,
                    );
                }
                (Layer::GroupNorm(norm), in_gradient) => {
                    let mut unused = Vec::new();
                    let in_gradient = in_gradient.unwrap_or_else(|| {
                        unused.resize(inputs.len(), 0.0);
                        &mut unused
                    });
                    norm.backward(parameters, inputs, &kept.statistics, &out_gradient, gradient, in_gradient);
                }
                (Layer::MaxPool(pool), Some(in_gradient)) => {
                    pool.backward(&kept.places, &out_gradient, in_gradient);
                }
                (Layer::AveragePool, Some(in_gradient)) => {
                    average_pool::backward(self.shape_before(at).pixels(), &out_gradient, in_gradient);
                }
                (Layer::MaxPool(_) | Layer::AveragePool, None) | (Layer::Relu | Layer::Dropout(_), _) => {}
            }
            shared.give_back(std::mem::replace(&mut out_gradient, buffer));
        }
        out_gradient
    }
}
