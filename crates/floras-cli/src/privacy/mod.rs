//! `floras account`, `floras calibrate` and `floras compose`: how private a federation is, and against whom.

pub(crate) mod account;
pub(crate) mod calibrate;
pub(crate) mod compose;
mod experiment;
mod federation;
mod report;

pub(crate) use floras_sim::inquiry::epsilon_text;
pub(crate) use report::views as print_views;
