//! The layers of a network, one per file: formula, shapes, and both passes by hand.

mod average_pool;
mod choice;
mod conv;
mod dropout;
mod group_norm;
mod linear;
mod max_pool;
mod relu;
mod residual;
mod sequence;
mod sum;

pub(crate) use choice::DEFAULT_GROUPS;
pub use choice::LayerChoice;
pub(crate) use sequence::{Gradients, Memory, Mode, Sequence, Shared};

use crate::error::LearnError;

/// The error of a layer that does not fit its input; the sequence adds the layer.
fn refused<T>(reason: String) -> Result<T, LearnError> {
    Err(LearnError::Layer { number: 0, layer: String::new(), reason })
}
