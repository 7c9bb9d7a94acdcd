//! The ledger: what every round spent, in every view, and what each client's channels have given away so far.
//!
//! Given the realised channels a round is a Gaussian mechanism with `μ_{t,k} = Δ·|g_k|/ν_t` for client `k`, and the rounds so
//! far are one with `μ_k² = Σ_t μ²_{t,k}`, the sum over the rounds in which `k` took part. The worst client decides.
//!
//! A [`Spend`] is one line of an append-only file. Whoever keeps the file brings a round's line to the disk before the round's
//! result is shown to anyone, so that a crash cannot make a round forgotten.

use std::collections::BTreeMap;

use floras_core::View;
use serde::{Deserialize, Serialize};

use crate::account::Account;
use crate::error::{PrivacyError, require_delta};
use crate::numerics::gaussian;

/// What one round spent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Spend {
    /// The repetition that the round belongs to, from 0.
    pub trial: u32,
    /// From 1.
    pub round: u32,
    /// `ε` of this round alone, in every view that has one.
    pub spent: BTreeMap<String, f64>,
    /// Who took part.
    pub clients: Vec<u32>,
    /// `μ_{t,k}` of each of them, given the realised channels; empty if there is no noise, or no bound on an update.
    pub mu: Vec<f64>,
    /// The client that has given away most, all rounds so far together.
    pub worst: Option<Worst>,
}

/// The client that has given away most.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Worst {
    /// Who.
    pub client: u32,
    /// `√(Σ_t μ²_{t,k})`.
    pub mu: f64,
    /// `ε` of a Gaussian mechanism with this `μ`.
    pub epsilon: f64,
}

/// The `ε` of a single round in every view that has one, by name.
pub fn of_one_round(account: &Account) -> Result<BTreeMap<String, f64>, PrivacyError> {
    let mut spent = BTreeMap::new();
    for view in View::ALL {
        if let Some(epsilon) = account.epsilon(view, 1)? {
            spent.insert(view.field(), epsilon);
        }
    }
    Ok(spent)
}

/// Adds up what each client has revealed.
#[derive(Clone, Debug)]
pub struct Ledger {
    delta: f64,
    one_round: BTreeMap<String, f64>,
    squares: Vec<f64>,
    worst: Option<(u32, f64)>,
}

impl Ledger {
    /// An empty ledger for so many clients.
    pub fn new(clients: u32, delta: f64, one_round: BTreeMap<String, f64>) -> Result<Self, PrivacyError> {
        require_delta(delta)?;
        Ok(Self { delta, one_round, squares: vec![0.0; clients as usize], worst: None })
    }

    /// Enters a round with `μ_k = Δ·|g_k|/ν` of each of its clients. A round that broke down before anything was sent has none,
    /// nor one in which nothing is hidden; it counts all the same.
    pub fn record(
        &mut self,
        trial: u32,
        round: u32,
        clients: &[u32],
        mu: Vec<f64>,
    ) -> Result<Spend, PrivacyError> {
        let mut spend =
            Spend { trial, round, spent: self.one_round.clone(), clients: clients.to_vec(), mu, worst: None };
        self.add(&spend);
        spend.worst = self.worst()?;
        Ok(spend)
    }

    /// Makes room for at least so many clients.
    pub fn make_room(&mut self, clients: u32) {
        if self.squares.len() < clients as usize {
            self.squares.resize(clients as usize, 0.0);
        }
    }

    /// Enters a round that is on record already.
    pub fn add(&mut self, spend: &Spend) {
        for (&client, mu) in spend.clients.iter().zip(&spend.mu) {
            if let Some(square) = self.squares.get_mut(client as usize) {
                *square += mu * mu;
                if self.worst.is_none_or(|(_, most)| *square > most) {
                    self.worst = Some((client, *square));
                }
            }
        }
    }

    /// The client that has given away most; `None` if nothing is known to be hidden.
    pub fn worst(&self) -> Result<Option<Worst>, PrivacyError> {
        let Some((client, square)) = self.worst else { return Ok(None) };
        let mu = square.sqrt();
        // Beyond this an ε says nothing any more, and doubles end.
        let mu = mu.min(1e100);
        Ok(Some(Worst { client, mu, epsilon: gaussian::epsilon(self.delta, mu)? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger() -> Ledger {
        let one_round = BTreeMap::from([("idealised".to_owned(), 1.5)]);
        Ledger::new(4, 1e-5, one_round).unwrap()
    }

    /// Δ = 2: gains 1 and 3 under noise 4 and 2 give μ = ½, 1½ and then 1, 3 for clients 0 and 2; client 2 ends at √(1½² + 3²).
    #[test]
    fn squares_add_up_for_those_who_took_part() {
        let mut ledger = ledger();
        let first = ledger.record(0, 1, &[0, 2], vec![0.5, 1.5]).unwrap();
        assert_eq!(first.mu, [0.5, 1.5]);
        assert_eq!(first.spent["idealised"], 1.5);
        assert_eq!(first.worst.unwrap().client, 2);
        let second = ledger.record(0, 2, &[0, 2], vec![1.0, 3.0]).unwrap();
        let worst = second.worst.unwrap();
        assert_eq!((worst.client, worst.mu), (2, (1.5_f64 * 1.5 + 9.0).sqrt()));
        assert!((gaussian::delta(worst.epsilon, worst.mu) / 1e-5 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_ledger_filled_from_its_lines_goes_on_as_before() {
        let mut whole = ledger();
        let lines: Vec<Spend> = (1..=5)
            .map(|round| whole.record(0, round, &[1, 3], vec![0.6 / 1.1, 3.4 / 1.1]).unwrap())
            .collect();
        let mut again = ledger();
        for line in &lines {
            let text = serde_json::to_string(line).unwrap();
            again.add(&serde_json::from_str(&text).unwrap());
        }
        let next = |ledger: &mut Ledger| ledger.record(0, 6, &[3, 0], vec![0.2 / 0.7, 0.4 / 0.7]).unwrap();
        assert_eq!(next(&mut whole), next(&mut again));
    }

    #[test]
    fn without_noise_or_without_a_bound_nothing_is_known_to_be_hidden() {
        let spend = ledger().record(0, 1, &[0], Vec::new()).unwrap();
        assert_eq!((spend.mu.len(), spend.worst), (0, None));
        let mut unbounded = Ledger::new(4, 1e-5, BTreeMap::new()).unwrap();
        assert_eq!(unbounded.record(0, 1, &[0], Vec::new()).unwrap().worst, None);
    }
}
