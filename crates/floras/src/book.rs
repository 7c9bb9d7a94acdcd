//! The examples of the READMEs and of the book, run as documentation tests. A package lacks the files outside the crate, and
//! builds without them.

#[doc = include_str!("../README.md")]
struct Crate;
#[doc = include_str!("../../../README.md")]
struct Readme;
#[doc = include_str!("../../../docs/concepts/how-floras-works.md")]
struct HowFlorasWorks;
#[doc = include_str!("../../../docs/reference/air-interface.md")]
struct AirInterface;
#[doc = include_str!("../../../docs/reference/accounting.md")]
struct Accounting;
#[doc = include_str!("../../../docs/reference/audit.md")]
struct Audit;
#[doc = include_str!("../../../docs/reference/randomness.md")]
struct Randomness;
