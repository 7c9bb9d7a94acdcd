//! The privacy report of a run, and the growth of `ε`.

use std::collections::BTreeMap;

use floras_core::View;
use floras_privacy::ledger::Worst;
use floras_privacy::{PrivacyError, Sampling, Views};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Accounting;
use crate::plotted::PlottedCurves;

/// Maximum `ε` of one round for which intermediate values are computed. A view with a larger one has no useful guarantee and takes
/// long to compose: only the first and the last `ε` are reported.
const MAX_FIRST_EPSILON: f64 = 1e5;

/// The privacy report of a run: the content of `privacy` in `summary.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct PrivacyReport {
    /// Privacy parameter `δ` at which all `ε` of the report hold, between 0 and 1.
    pub delta: f64,
    /// Number of rounds that the statements cover: the maximum over the trials.
    pub rounds: u32,
    /// The unit that the statements protect: `client` or `item`.
    pub level: String,
    /// The privacy statement of each view.
    pub views: Views,
    /// The client with the largest loss over all trials, given the drawn channels.
    pub worst_client: Option<Worst>,
    /// Assumptions and caveats.
    pub notes: Vec<String>,
    /// `ε` after increasing numbers of rounds, from the first to the last. Empty in files of older versions.
    #[serde(default)]
    pub growth: Vec<Spent>,
    /// `δ(ε)` and trade-off functions after all rounds. Empty in files of older versions.
    #[serde(default)]
    pub curves: Vec<PlottedCurves>,
}

/// `ε` after some rounds.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Spent {
    /// The number of rounds.
    pub rounds: u32,
    /// `ε` in every view that has one, by name.
    pub epsilon: BTreeMap<String, f64>,
}

impl Accounting {
    /// `ε` in every view at logarithmically spaced rounds. Both ends are taken from earlier results.
    pub(super) fn growth(&self, rounds: u32, last: &Views) -> Result<Vec<Spent>, PrivacyError> {
        // Composition is slow with sampled clients; their curve is as smooth with fewer points.
        let points = if self.account.sampling() == Sampling::Everyone { 8 } else { 5 };
        let mut growth = vec![Spent { rounds: 1, epsilon: self.one_round.clone() }];
        let between =
            log_spaced(rounds, points).into_iter().filter(|&between| between > 1 && between < rounds);
        let has_growth = |view: &View| self.one_round(*view).is_some_and(|first| first <= MAX_FIRST_EPSILON);
        let growing: Vec<View> = last.iter().map(|(view, _)| view).filter(has_growth).collect();
        let wanted: Vec<(u32, View)> =
            between.flat_map(|rounds| growing.iter().map(move |&view| (rounds, view))).collect();
        let spent = |&(rounds, view): &(u32, View)| self.account.epsilon(view, rounds.into());
        let epsilons: Vec<Option<f64>> = wanted.par_iter().map(spent).collect::<Result<_, _>>()?;
        for (&(rounds, view), epsilon) in wanted.iter().zip(epsilons) {
            if growth.last().is_none_or(|last| last.rounds != rounds) {
                growth.push(Spent { rounds, epsilon: BTreeMap::new() });
            }
            if let (Some(spent), Some(epsilon)) = (growth.last_mut(), epsilon) {
                spent.epsilon.insert(view.field(), epsilon);
            }
        }
        if rounds > 1 {
            let epsilon =
                last.iter().filter_map(|(view, statement)| Some((view.field(), statement.epsilon?)));
            growth.push(Spent { rounds, epsilon: epsilon.collect() });
        }
        lower_by_later(&mut growth);
        Ok(growth)
    }
}

/// Replaces each bound by the smallest bound for at least as many rounds, because fewer rounds leak no more. At large `ε`, a bound
/// for few rounds can be looser than one for many.
fn lower_by_later(growth: &mut [Spent]) {
    let mut least: BTreeMap<String, f64> = BTreeMap::new();
    for spent in growth.iter_mut().rev() {
        for (view, epsilon) in &mut spent.epsilon {
            let least = least.entry(view.clone()).or_insert(*epsilon);
            *least = least.min(*epsilon);
            *epsilon = *least;
        }
    }
}

/// Logarithmically spaced integers from 1 to `last`, each once.
fn log_spaced(last: u32, points: u32) -> Vec<u32> {
    let at = |point: u32| f64::from(last).powf(f64::from(point) / f64::from(points - 1)).round() as u32;
    let mut rounds: Vec<u32> = (0..points).map(at).collect();
    rounds.dedup();
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_for_many_rounds_holds_for_fewer() {
        let spent = |rounds, values: &[(&str, f64)]| Spent {
            rounds,
            epsilon: values.iter().map(|&(view, epsilon)| (view.to_owned(), epsilon)).collect(),
        };
        let mut growth = [
            spent(1, &[("a", 1.0), ("b", 5.0)]),
            spent(2, &[("a", 9.0)]),
            spent(4, &[("a", 3.0)]),
            spent(8, &[]),
        ];
        lower_by_later(&mut growth);
        let a: Vec<Option<&f64>> = growth.iter().map(|spent| spent.epsilon.get("a")).collect();
        assert_eq!(a, [Some(&1.0), Some(&3.0), Some(&3.0), None]);
        assert_eq!(growth[0].epsilon.get("b"), Some(&5.0));
    }

    #[test]
    fn growth_covers_one_round_to_all() {
        assert_eq!(log_spaced(1, 10), [1]);
        assert_eq!(log_spaced(3, 5), [1, 2, 3]);
        assert_eq!(log_spaced(10_000, 5), [1, 10, 100, 1000, 10_000]);
        let many = log_spaced(300, 10);
        assert_eq!((many[0], many[many.len() - 1]), (1, 300));
        assert!(many.is_sorted_by(|a, b| a < b), "{many:?}");
    }
}
