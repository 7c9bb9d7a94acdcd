//! The book: its links, its HTML, and a look at every page.

mod build;
mod links;

pub(crate) use build::{build, check};
pub(crate) use links::check as check_links;
