//! Kinds of spreading sequences.

use crate::named_choice;

/// A kind of spreading sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// Rows of a Hadamard matrix.
    #[default]
    Walsh,
    /// Columns of the cosine transform.
    Orthonormal,
    /// Independent Gaussian chips.
    Gaussian,
}

named_choice!(
    Family,
    "sequence family",
    [Walsh => "walsh", "Walsh"],
    [Orthonormal => "orthonormal", "orthonormal"],
    [Gaussian => "gaussian", "Gaussian"],
);
