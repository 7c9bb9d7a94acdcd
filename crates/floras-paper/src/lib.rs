//! A common benchmark of schemes, reproduction of the paper's figures, and evaluation of its convergence theorem.
//!
//! [`benchmark`] compares the field's schemes under equal conditions. [`reproduce`] reproduces the figures of the paper and compares its claims with them, with the frontier between privacy and
//! accuracy; it does the same for figures of the papers of other schemes. [`theory`] evaluates the convergence theorem for an experiment, as printed and corrected.
//!
//! # Citations
//! Wei, Wang, Huang, Shen, Yang, Poor, *Differentially private wireless federated learning using orthogonal sequences*, IEEE
//! Trans. Inf. Theory 72(5), 2026, arXiv:2306.08280: the paper that this crate calls "the paper".

pub mod benchmark;
mod noise;
pub mod reproduce;
pub mod theory;

/// The example of the README, run as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
