//! The learning side of federated learning: data sets, partitions over clients, models, and local SGD.
//!
//! The crate does not depend on radio or privacy. A model is a loss and a gradient over one flat slice of parameters;
//! an update is the difference of two such slices. All randomness comes from the caller, as a generator of `rand`.
//!
//! | item | content |
//! |---|---|
//! | [`data`] | embedded digits, files in their standard formats, generated tasks |
//! | [`Partition`] | which client holds which samples |
//! | [`Model`]: [`Logistic`], [`Perceptron`], [`Network`] | loss and gradient over whole batches |
//! | [`LocalSgd`], [`Rate`] | local training of a client in a round |

pub mod data;
mod error;
mod local;
pub mod model;
mod partition;
mod rate;
mod softmax;

pub use data::{Augmentation, DataSet, Samples, Shape};
pub use error::LearnError;
pub use local::{ClientData, LocalSgd, Randomness, Work, Workspace};
pub use model::{Batch, LayerChoice, Logistic, Model, Network, Perceptron, Scratch, Tensor};
pub use partition::{Partition, Shares};
pub use rate::{Rate, Schedule};
pub use softmax::Score;

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
