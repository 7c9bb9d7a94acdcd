//! The accounting: how private a federation over the air is, and against whom.

#![warn(missing_docs)]

pub mod cauchy;
mod error;
pub mod gaussian;
pub mod normal;
pub mod published;
mod pure;
mod quadrature;
pub mod rdp;
mod solve;

pub use error::PrivacyError;
