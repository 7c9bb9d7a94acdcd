//! The ledger: each client's accumulated privacy loss for the realised channels.
//!
//! Given the realised channels, a round is a Gaussian mechanism with `μ_{t,k} = Δ·|g_k|/ν_t` for client `k`. All rounds so far
//! are a Gaussian mechanism with `μ_k² = Σ_t μ²_{t,k}`, the sum over the rounds in which `k` took part. The largest `μ_k`
//! determines the stated loss.
//!
//! This module adds up in memory; `floras_sim::LedgerEntry` is the format on disk.

use std::collections::BTreeMap;

use floras_core::View;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::{PrivacyError, require_delta};
use crate::numerics::gaussian;

/// The client with the largest loss.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// Number of the client, from 0.
    pub client: u32,
    /// Total `μ` of all rounds so far, `√(Σ_t μ²_{t,k})`, at most 1e100.
    pub mu: f64,
    /// `ε` of a Gaussian mechanism with this `μ`, at the ledger's `δ`.
    pub epsilon: f64,
}

/// `ε` of a single round, by the name of the view, for every view with a finite `ε`.
pub fn of_one_round(account: &Account) -> Result<BTreeMap<String, f64>, PrivacyError> {
    let mut spent = BTreeMap::new();
    for view in View::ALL {
        if let Some(epsilon) = account.epsilon(view, 1)? {
            spent.insert(view.field(), epsilon);
        }
    }
    Ok(spent)
}

/// The accumulated loss of each client.
#[derive(Clone, Debug)]
pub struct Ledger {
    delta: f64,
    /// `μ_k²` of each client that took part so far.
    squares: BTreeMap<u32, f64>,
    worst: Option<(u32, f64)>,
}

impl Ledger {
    /// An empty ledger.
    pub fn new(delta: f64) -> Result<Self, PrivacyError> {
        require_delta(delta)?;
        Ok(Self { delta, squares: BTreeMap::new(), worst: None })
    }

    /// Adds a round with `μ_k` of each of its clients. `mu` is empty for a round in which nothing was sent or no loss is finite.
    pub fn add(&mut self, clients: &[u32], mu: &[f64]) {
        for (&client, mu) in clients.iter().zip(mu) {
            let square = self.squares.entry(client).or_default();
            *square += mu * mu;
            if self.worst.is_none_or(|(_, largest)| *square > largest) {
                self.worst = Some((client, *square));
            }
        }
    }

    /// The client with the largest loss; `None` if no `μ` was added.
    pub fn worst(&self) -> Result<Option<Worst>, PrivacyError> {
        let Some((client, square)) = self.worst else { return Ok(None) };
        // Above this μ nothing is hidden, and its square would overflow.
        let mu = square.sqrt().min(1e100);
        Ok(Some(Worst { client, mu, epsilon: gaussian::epsilon(self.delta, mu)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Δ = 2: gains 1 and 3 under noise 4 and 2 give μ = ½, 1½ and then 1, 3 for clients 0 and 2; client 2 ends at √(1½² + 3²).
    #[test]
    fn squares_add_up_for_those_who_took_part() {
        let mut ledger = Ledger::new(1e-5).unwrap();
        ledger.add(&[0, 2], &[0.5, 1.5]);
        assert_eq!(ledger.worst().unwrap().unwrap().client, 2);
        ledger.add(&[0, 2], &[1.0, 3.0]);
        let worst = ledger.worst().unwrap().unwrap();
        assert_eq!((worst.client, worst.mu), (2, (1.5_f64 * 1.5 + 9.0).sqrt()));
        assert!((gaussian::delta(worst.epsilon, worst.mu) / 1e-5 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn zero_noise_or_unbounded_updates_have_no_epsilon() {
        let mut ledger = Ledger::new(1e-5).unwrap();
        ledger.add(&[0], &[]);
        assert_eq!(ledger.worst().unwrap(), None);
    }
}
