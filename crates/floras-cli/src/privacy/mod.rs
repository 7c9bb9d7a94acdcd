//! `floras account`, `floras calibrate` and `floras compose`: the privacy of a federation.

pub(crate) mod account;
pub(crate) mod calibrate;
pub(crate) mod compose;
mod experiment;
mod federation;
mod report;

pub(crate) use floras_sim::inquiry::epsilon_text;
pub(crate) use report::{NOT_APPLICABLE, views as print_views};
