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
    /// Sums of two maximum-length sequences; they overlap a little.
    Gold,
    /// Cyclic shifts of a Zadoff–Chu sequence, in-phase and quadrature chips.
    ZadoffChu,
}

impl Family {
    /// Whether the sequences of every set are orthonormal.
    pub const fn is_orthonormal(self) -> bool {
        match self {
            Self::Walsh | Self::Orthonormal | Self::ZadoffChu => true,
            Self::Gaussian | Self::Gold => false,
        }
    }
}

named_choice!(
    Family,
    "sequence family",
    [Walsh => "walsh", "Walsh"],
    [Orthonormal => "orthonormal", "orthonormal"],
    [Gaussian => "gaussian", "Gaussian"],
    [Gold => "gold", "Gold"],
    [ZadoffChu => "zadoff-chu", "Zadoff–Chu"],
);
