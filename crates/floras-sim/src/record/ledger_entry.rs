//! One round in a ledger file: what it leaked, its clients, and the largest loss of a client so far.
//!
//! A run's `ledger.jsonl` and the file of an [`AirLedger`](crate::AirLedger) have the same entries, one JSON object per line. An
//! `AirLedger` composes rounds that differ; its entries therefore also hold the cohort, the gains and the noise of the round.
//! [`floras_privacy::ledger::Ledger`] adds up the `μ` of the entries in memory.

use std::collections::BTreeMap;

use floras_phy::Noise;
use floras_privacy::ledger::Worst;
use serde::{Deserialize, Serialize};

/// One round in a ledger file.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerEntry {
    /// The repetition that the round belongs to, from 0. Earlier versions of `AirLedger` did not write it.
    #[serde(default)]
    pub trial: u32,
    /// The round, counted from 1.
    pub round: u32,
    /// Number of clients that were selected. A run writes it, and `among`, only if it has dropouts; `gains` and the noise are only
    /// in the file of an `AirLedger`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected: Option<u32>,
    /// Number of clients from which the selected ones were sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub among: Option<u32>,
    /// `ε` of this round alone, in every view that has one.
    pub spent: BTreeMap<String, f64>,
    /// The clients that sent.
    pub clients: Vec<u32>,
    /// `g_k` of each of them; with several blocks, the largest gain relative to the mean noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gains: Option<Vec<f64>>,
    /// `ν`, the standard deviation of the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise_std: Option<f64>,
    /// The generator of the noise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// `μ_k = Δ·|g_k|/ν` of each client, given the realised channels; empty if there is no noise, or no bound on an update.
    pub mu: Vec<f64>,
    /// The client with the largest loss over all rounds so far.
    pub worst: Option<Worst>,
}

impl LedgerEntry {
    /// Rejects entries that no ledger writes after round `last`: accepting them would under-count the loss.
    pub(crate) fn check(&self, last: u32) -> Result<(), String> {
        if self.round != last + 1 {
            return Err(format!("round {} follows round {last}", self.round));
        }
        let clients = self.clients.len();
        let is_finite = |values: &[f64]| values.iter().all(|value| value.is_finite());
        if self.gains.as_ref().is_some_and(|gains| gains.len() != clients || !is_finite(gains)) {
            return Err(format!("there must be {clients} finite gains"));
        }
        if ![0, clients].contains(&self.mu.len())
            || !is_finite(&self.mu)
            || self.mu.iter().any(|&mu| mu < 0.0)
        {
            return Err(format!("there must be {clients} values of mu, or none, and none below 0"));
        }
        if self.noise_std.is_some_and(|std| !(std.is_finite() && std >= 0.0)) {
            return Err("noise_std must be finite and not negative".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use floras_privacy::ledger::Ledger;

    use super::*;

    fn entry(ledger: &mut Ledger, round: u32, clients: [u32; 2], mu: [f64; 2]) -> LedgerEntry {
        ledger.add(&clients, &mu);
        let worst = ledger.worst().unwrap();
        LedgerEntry { round, clients: clients.into(), mu: mu.into(), worst, ..LedgerEntry::default() }
    }

    #[test]
    fn ledgers_resume_from_their_lines() {
        let [mut whole, mut again] = [Ledger::new(1e-5).unwrap(), Ledger::new(1e-5).unwrap()];
        for round in 1..=5 {
            let line =
                serde_json::to_string(&entry(&mut whole, round, [1, 3], [0.6 / 1.1, 3.4 / 1.1])).unwrap();
            let read: LedgerEntry = serde_json::from_str(&line).unwrap();
            read.check(round - 1).unwrap();
            again.add(&read.clients, &read.mu);
        }
        let next = |ledger: &mut Ledger| entry(ledger, 6, [3, 0], [0.2 / 0.7, 0.4 / 0.7]);
        assert_eq!(next(&mut whole), next(&mut again));
    }

    /// Lines as version 0.1.0 wrote them, in a run directory and in the file of an `AirLedger`.
    #[test]
    fn lines_of_both_earlier_formats_are_read() {
        let of_run = r#"{"trial":2,"round":1,"spent":{"actual":2.5},"clients":[0,4],"mu":[0.5,0.25],"worst":{"client":0,"mu":0.5,"epsilon":2.0}}"#;
        let of_air = r#"{"round":1,"selected":3,"among":9,"clients":[0,4],"gains":[1.0,0.5],"noise_std":4.0,"mu":[0.5,0.25],"spent":{"actual":2.5},"worst":null}"#;
        let [run, air] = [of_run, of_air].map(|line| {
            let entry: LedgerEntry = serde_json::from_str(line).unwrap();
            entry.check(0).unwrap();
            entry
        });
        assert_eq!(serde_json::to_string(&run).unwrap(), of_run);
        assert_eq!((air.trial, air.selected, air.among, air.noise), (0, Some(3), Some(9), None));
        assert_eq!((air.clients, air.mu, air.spent), (run.clients, run.mu, run.spent));
    }
}
