//! The published Rényi divergence at one order.

use floras_core::Level;
use floras_privacy::Account;
use serde::Serialize;

use super::{ExperimentAccount, Inquiry, wrong};
use crate::error::SimError;

/// `ε(α) = α·u²/2` as published, which is not proven.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PublishedRenyi {
    /// `α`: above 1 and at most 1e6.
    pub alpha: f64,
    /// Number of the theorem: 1 at the item level, 3 at the client level.
    pub theorem: u8,
    /// `ε(α)` of one round.
    pub one_round: f64,
    /// `T·ε(α)`, of all rounds.
    pub all_rounds: f64,
    /// Whether it is a guarantee: always `false`.
    pub guarantee: bool,
}

impl PublishedRenyi {
    fn of(account: &Account, level: Level, rounds: u64, alpha: f64) -> Result<Self, SimError> {
        if !(alpha > 1.0 && alpha <= 1e6) {
            return Err(wrong("alpha", "above 1 and at most 1e6", alpha));
        }
        let Some(divergence) = account.published_divergence(alpha)? else {
            return Err(wrong("alpha", "left out: the scheme has no published formula", alpha));
        };
        let theorem = match level {
            Level::Item => 1,
            Level::Client => 3,
        };
        let one_round = divergence.as_printed();
        Ok(Self { alpha, theorem, one_round, all_rounds: rounds as f64 * one_round, guarantee: false })
    }
}

impl Inquiry {
    /// The published Rényi divergence of order `alpha`, of one round and of all rounds.
    pub fn published_renyi(&self, sequences: u64, alpha: f64) -> Result<PublishedRenyi, SimError> {
        let account = Account::of(&self.accountable(sequences)?)?;
        PublishedRenyi::of(&account, self.level, self.rounds.unwrap_or(1), alpha)
    }
}

impl ExperimentAccount {
    /// The published Rényi divergence of order `alpha`, of one round and of all rounds.
    pub fn published_renyi(&self, alpha: f64) -> Result<PublishedRenyi, SimError> {
        PublishedRenyi::of(&self.account, self.level(), self.rounds(), alpha)
    }
}

#[cfg(test)]
mod tests {
    use floras_core::{Clipping, Fading, LocalWork, Modulation, Neighbours, Pilot, SnrConvention};
    use floras_privacy::Margins;

    use super::*;
    use crate::inquiry::ReceiverChoice;

    fn inquiry(level: Level) -> Inquiry {
        let item = |number| Some(number).filter(|_| level == Level::Item);
        Inquiry {
            clip: 1.0,
            per_round: 20,
            clients: Some(200),
            rounds: Some(50),
            delta: 1e-5,
            level,
            batch: item(20),
            samples: item(200),
            local: LocalWork::default(),
            neighbours: Neighbours::default(),
            clipping: Clipping::default(),
            receiver: ReceiverChoice::default(),
            length: None,
            snr_db: None,
            snr_convention: SnrConvention::default(),
            fading: Fading::default(),
            modulation: Modulation::default(),
            antennas: 1,
            pilot: Pilot::default(),
            margins: Margins::default(),
            masks: None,
        }
    }

    #[test]
    fn the_divergence_is_that_of_the_theorem() {
        let qp = 20.0 / 181.0 * 0.1;
        for (level, theorem, w) in [(Level::Client, 3, 0.1), (Level::Item, 1, qp / (1.0 + qp))] {
            let u = (1.0_f64 + w * (2.0 * 26.0_f64.sqrt() + 2.0) / 25.0).ln();
            let found = inquiry(level).published_renyi(25, 8.0).unwrap();
            assert_eq!((found.alpha, found.theorem, found.guarantee), (8.0, theorem, false));
            assert!((found.one_round / (4.0 * u * u) - 1.0).abs() < 1e-12, "{found:?}");
            assert!((found.all_rounds / (200.0 * u * u) - 1.0).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn orders_out_of_range_are_refused() {
        for alpha in [1.0, 0.0, -2.0, 1.1e6, f64::NAN] {
            let error = inquiry(Level::Client).published_renyi(25, alpha).unwrap_err().to_string();
            assert_eq!(error, format!("alpha must be above 1 and at most 1e6, not {alpha}"));
        }
        assert!(inquiry(Level::Client).published_renyi(20, 8.0).is_err(), "γ = 0 has no published formula");
    }
}
