//! Data sets: embedded digits, files in their standard formats, and generated tasks of any size.
//!
//! | data set | training + test | features | classes | source |
//! |---|---:|---:|---:|---|
//! | [`digits20`] | 5,000 together | 20×20 | 10 | embedded, reduced from [`digits28`] |
//! | [`digits28`] | 5,000 together | 28×28 | 10 | embedded, the first 500 of each digit of MNIST |
//! | [`mnist`] | 60,000 + 10,000 | 28×28 | 10 | four IDX files |
//! | [`fashion_mnist`] | 60,000 + 10,000 | 28×28 | 10 | four IDX files |
//! | [`cifar10`] | 50,000 + 10,000 | 3×32×32 | 10 | six files of the binary version |
//! | [`Synthetic`] | any | any | any | generated, client by client |

mod augmentation;
mod cifar;
mod digits;
mod file;
mod idx;
mod normalisation;
mod part;
mod resize;
mod samples;
mod shape;
mod synthetic;

pub use augmentation::Augmentation;
pub use cifar::cifar10;
pub use digits::{digits20, digits28};
pub use idx::{fashion_mnist, mnist};
pub use normalisation::Normalisation;
pub use samples::Samples;
pub use shape::Shape;
pub use synthetic::Synthetic;

/// The training and test samples of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// The training samples, which are distributed over the clients.
    pub train: Samples,
    /// Samples that no client holds.
    pub test: Samples,
}
