//! The basic block of a residual network, with group normalisation.
//!
//! ```text
//! y = max(0, norm(conv(max(0, norm(conv(x))))) + shortcut(x))
//! ```
//!
//! Both convolutions have kernels of 3×3 pixels, padding 1 and no biases; the first one has the block's stride. `C × H × W` becomes
//! `O × ⌈H/s⌉ × ⌈W/s⌉`. The shortcut is `x` itself if that has the same shape, and otherwise a convolution of 1×1 pixels with the same stride and a
//! normalisation. The parameters are those of the convolutions and normalisations in this order, the shortcut's last.
//!
//! # Citations
//!
//! K. He, X. Zhang, S. Ren and J. Sun, "Deep residual learning for image recognition", CVPR 2016.

use super::relu;
use super::sequence::{Gradients, Memory, Mode, Sequence, Shared};
use super::{LayerChoice, refused};
use crate::data::Shape;
use crate::error::LearnError;
use crate::model::Tensor;

/// A residual block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Residual {
    body: Sequence,
    /// Without layers if the shortcut is the input itself.
    shortcut: Sequence,
}

/// What a block keeps for its backward pass.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockMemory {
    body: Memory,
    shortcut: Memory,
}

impl Residual {
    pub(super) fn new(
        input: Shape,
        channels: usize,
        stride: usize,
        groups: usize,
    ) -> Result<Self, LearnError> {
        if !channels.is_multiple_of(groups) {
            return refused(format!(
                "{groups} groups do not divide its {channels} channels; its input is {input}"
            ));
        }
        let conv = |kernel: usize, stride: usize| {
            let padding = kernel / 2;
            LayerChoice::Conv { channels, kernel, stride, padding, has_bias: false }
        };
        let norm = LayerChoice::GroupNorm { groups };
        let body = [conv(3, stride), norm, LayerChoice::Relu, conv(3, 1), norm];
        let names = ["conv1", "norm1", "relu", "conv2", "norm2"];
        let body = Sequence::new(input, &body, |at| names[at].to_owned())?;
        let shortcut = [conv(1, stride), norm];
        let names = ["shortcut.conv", "shortcut.norm"];
        let shortcut = if body.output() == input { &[][..] } else { &shortcut };
        let shortcut = Sequence::new(input, shortcut, |at| names[at].to_owned())?;
        Ok(Self { body, shortcut })
    }

    pub(super) fn output(&self) -> Shape {
        self.body.output()
    }

    pub(super) fn tensors(&self) -> Vec<Tensor> {
        [self.body.tensors(), self.shortcut.tensors()].concat()
    }

    pub(super) fn initialise(&self, randomness: &mut dyn rand::Rng, parameters: &mut Vec<f32>) {
        self.body.initialise(randomness, parameters);
        self.shortcut.initialise(randomness, parameters);
    }

    /// Writes the outputs of all samples.
    pub(super) fn forward(
        &self,
        parameters: &[f32],
        inputs: &[f32],
        outputs: &mut [f32],
        mode: &mut Mode<'_>,
        memory: &mut BlockMemory,
        shared: &mut Shared,
    ) {
        let (body, shortcut) = parameters.split_at(self.body.parameters());
        self.body.forward(body, inputs, mode, &mut memory.body, shared);
        self.shortcut.forward(shortcut, inputs, mode, &mut memory.shortcut, shared);
        let body = self.body.outputs(inputs, &memory.body);
        let shortcut = self.shortcut.outputs(inputs, &memory.shortcut);
        for ((output, &body), &shortcut) in outputs.iter_mut().zip(body).zip(shortcut) {
            *output = body + shortcut;
        }
        relu::forward(outputs);
    }

    /// Writes the gradient of the parameters, and that of the inputs if it is asked for. `out_gradient` is overwritten.
    pub(super) fn backward(
        &self,
        parameters: &[f32],
        (inputs, outputs): (&[f32], &[f32]),
        out_gradient: &mut [f32],
        (gradient, in_gradient): (&mut [f32], Option<&mut [f32]>),
        memory: &mut BlockMemory,
        shared: &mut Shared,
    ) {
        relu::backward(outputs, out_gradient);
        let (body, shortcut) = parameters.split_at(self.body.parameters());
        let (body_gradient, shortcut_gradient) = gradient.split_at_mut(self.body.parameters());
        let wants_inputs = in_gradient.is_some();
        let mut run = |sequence: &Sequence, parameters: &[f32], gradient: &mut [f32], memory: &mut Memory| {
            let mut copy = shared.take(out_gradient.len());
            copy.copy_from_slice(out_gradient);
            sequence.backward(parameters, inputs, copy, Gradients { gradient, wants_inputs }, memory, shared)
        };
        let through_body = run(&self.body, body, body_gradient, &mut memory.body);
        let through_shortcut = run(&self.shortcut, shortcut, shortcut_gradient, &mut memory.shortcut);
        if let Some(in_gradient) = in_gradient {
            for ((sum, &body), &shortcut) in in_gradient.iter_mut().zip(&through_body).zip(&through_shortcut)
            {
                *sum = body + shortcut;
            }
        }
        shared.give_back(through_body);
        shared.give_back(through_shortcut);
    }
}
