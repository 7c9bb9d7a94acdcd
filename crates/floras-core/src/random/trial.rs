//! The trial that a draw belongs to.
//!
//! The trials of a run are numbered from 0. Other draws of whole rounds (estimates, audits, comparisons) have a [`Domain`]
//! each, with its own numbers, and never share channels with a run.

/// The purpose of a trial. Trials of different domains share no random number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Domain {
    /// The trials of a run.
    #[default]
    Run,
    /// Channels from which a privacy statement is estimated.
    Estimate,
    /// Noise levels of schemes compared at equal privacy.
    Comparison,
    /// An audit: the effect of a colluding client on the noise.
    Collusion,
    /// An audit: the adversary's own training for one round.
    Shadows,
    /// An audit: games of one round.
    OneRound,
    /// An audit: worst-case games, two trials per table of scores.
    Tables,
    /// An audit: games of whole runs.
    WholeRuns,
    /// An audit: mini-batch order of an adversary who identifies clients.
    Naming,
    /// An audit: rounds for sequence detection.
    Detection,
    /// An audit: training for the despreading attack.
    Despreading,
}

impl Domain {
    /// All domains; the encoding allows 16.
    pub const ALL: [Self; 11] = [
        Self::Run,
        Self::Estimate,
        Self::Comparison,
        Self::Collusion,
        Self::Shadows,
        Self::OneRound,
        Self::Tables,
        Self::WholeRuns,
        Self::Naming,
        Self::Detection,
        Self::Despreading,
    ];

    /// Trial `number` of this domain, from 0.
    pub const fn trial(self, number: u16) -> TrialId {
        TrialId::new(self, number)
    }
}

/// The identity of a trial: its domain, and its number from 0. A plain number is a trial of a run.
///
/// ```
/// use floras_core::random::{Domain, TrialId};
///
/// assert_eq!(TrialId::from(3), Domain::Run.trial(3));
/// assert_ne!(TrialId::from(3), Domain::Estimate.trial(3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TrialId {
    domain: Domain,
    number: u16,
}

impl TrialId {
    pub(super) const fn new(domain: Domain, number: u16) -> Self {
        Self { domain, number }
    }

    /// The purpose of the trial.
    pub const fn domain(self) -> Domain {
        self.domain
    }

    /// The number within its domain, from 0.
    pub const fn number(self) -> u16 {
        self.number
    }
}

impl From<u16> for TrialId {
    fn from(number: u16) -> Self {
        Self::new(Domain::Run, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn domains_have_distinct_four_bit_codes() {
        for (code, domain) in Domain::ALL.into_iter().enumerate() {
            assert_eq!(domain as usize, code);
            assert!(code < 16);
        }
    }
}
