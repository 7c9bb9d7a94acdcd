//! How channel inversion sets its power.

use crate::named_choice;

/// How `η` is set, the power at which inverted channels arrive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PowerRule {
    /// `√η = min |h_k|` over the admitted clients: the weakest sends at full power.
    WorstAdmitted,
    /// `√η` is the admission threshold, so that no client needs to know the others' channels. The default, in the library as in
    /// experiment files.
    #[default]
    FixedAtThreshold,
}

named_choice!(
    PowerRule,
    "power rule",
    [WorstAdmitted => "worst-admitted", "power of the weakest admitted client"],
    [FixedAtThreshold => "fixed-at-threshold", "power at the admission threshold"],
);
