//! The accounting: how private a federation over the air is, and against whom.

mod account;
mod actual;
mod any_channel;
pub mod calibrate;
pub mod cauchy;
mod compose;
mod error;
mod fourier;
pub mod gaussian;
mod law;
pub mod ledger;
mod loss;
mod noise;
pub mod normal;
mod pilot;
pub mod published;
mod pure;
mod quadrature;
pub mod rdp;
mod receiver;
mod sampling;
mod solve;
mod table;
mod tabulated;
mod view;

pub use account::{Account, Level, Local, NORMALISED, Neighbours, Scaling, Setting, Source};
pub use actual::{Amplitude, Angle, Coefficients};
pub use any_channel::{AnyChannel, idealised, simple_bound};
pub use compose::{Bounds, Composition, Grid, MOST_EPSILON};
pub use error::PrivacyError;
pub use law::{Cells, Law, Values};
pub use receiver::{Receiver, clipped_mean};
pub use sampling::{Curve, Sampling};
pub use view::{Statement, View, Views};
