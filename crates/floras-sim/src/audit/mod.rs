//! The audit: our own air interface attacked, and what leaks.

mod despreading;
mod matching;
mod report;
mod sequences;

pub use report::{
    Attacks, AuditReport, AuditVerdict, AuditedView, AuditedViews, CollusionAttack, DespreadClient,
    DespreadingAttack, DetectorResult, Measured, MembershipGame, ReconstructionAttack, ReconstructionRow,
    SequenceAttack, Verdicts,
};
