//! The examples of the READMEs and of the book, run as documentation tests. A package lacks the files outside the crate, and
//! builds without them.

#[doc = include_str!("../README.md")]
struct Crate;
#[doc = include_str!("../../../README.md")]
struct Readme;
#[doc = include_str!("../../../docs/how-floras-works.md")]
struct HowFlorasWorks;
#[doc = include_str!("../../../docs/air-interface.md")]
struct AirInterface;
#[doc = include_str!("../../../docs/accounting.md")]
struct Accounting;
#[doc = include_str!("../../../docs/audit.md")]
struct Audit;
#[doc = include_str!("../../../docs/randomness.md")]
struct Randomness;
