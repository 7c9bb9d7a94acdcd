//! The accounting: how private a federation over the air is, and against whom.

#![warn(missing_docs)]

mod error;
pub mod gaussian;
pub mod normal;
mod quadrature;
mod solve;

pub use error::PrivacyError;
