//! The theorems of the paper as printed, and closed forms for its receiver: the optimal composition of pure mechanisms, one round
//! in `d` dimensions, its Rényi form.

pub mod cauchy;
pub(crate) mod pure;
pub mod rdp;
pub(crate) mod theorems;

pub use theorems::*;
