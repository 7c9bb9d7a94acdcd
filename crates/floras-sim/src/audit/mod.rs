//! The audit: our own air interface attacked, and what leaks.

mod reconstruction;
mod report;

pub use report::{
    Attacks, AuditReport, AuditVerdict, AuditedView, AuditedViews, CollusionAttack, DespreadClient,
    DespreadingAttack, DetectorResult, Measured, MembershipGame, ReconstructionAttack, ReconstructionRow,
    SequenceAttack, Verdicts,
};
