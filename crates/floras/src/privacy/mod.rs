//! `floras account` and `floras calibrate`: how private a federation is, and against whom.

pub(crate) mod account;
pub(crate) mod calibrate;
mod federation;
mod report;

pub(crate) use floras_sim::inquiry::epsilon_text;
pub(crate) use report::views as print_views;
