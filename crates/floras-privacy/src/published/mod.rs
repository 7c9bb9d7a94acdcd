//! What the paper states, and closed forms for its receiver: the theorems as printed, the optimal composition of pure mechanisms,
//! one round in `d` dimensions, its Rényi form.

pub mod cauchy;
pub(crate) mod pure;
pub mod rdp;
pub(crate) mod theorems;

pub use theorems::*;
