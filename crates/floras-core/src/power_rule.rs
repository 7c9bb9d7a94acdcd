//! How channel inversion sets its transmit power.

use crate::named_choice;

/// How `η` is set, the received power of inverted channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PowerRule {
    /// `√η = min |h_k|` over the admitted clients: the weakest client sends at full power.
    WorstAdmitted,
    /// `√η` is the admission threshold; clients need not know each other's channels. The default in the library and in
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
