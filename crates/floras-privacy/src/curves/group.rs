//! Group privacy: the leakage of a view about `k` clients together.
//!
//! Two neighbouring populations then differ in up to `k` clients (or items) instead of one. Two bounds hold, and the smaller
//! one is stated:
//!
//! | bound | holds for | `δ` |
//! |---|---|---|
//! | scaled | the idealised view | the curve of one client with the sensitivity `kΔ`: no client's channel fades, so together they move the sum by at most `kΔ` |
//! | generic | every rigorous view | `δ_k(kε) ≤ δ(ε)·(e^{kε} − 1)/(e^ε − 1)`: from one population to the other in `k` steps |
//!
//! Under sampling, the scaled bound takes the probability `q` that at least one of the group takes part: given a cohort with
//! some of them, others who are not in the cohort can take their places, which moves the sum by at most `kΔ`. So Balle et
//! al.'s theorem holds with `q` in place of `p`,
//!
//! ```text
//! q = 1 − (M−k choose K)/(M choose K)      (replace-one),      q = 1 − (M choose K)/(M+k choose K)      (add-or-remove)
//! ```
//!
//! and `q` is at most `kp`. At the item level, a group is counted as entering every round. In the actual and the any-channel view, every
//! client has its own channel, and no scaled bound is known: the generic bound is stated. The published view has no group privacy.
//!
//! # Citations
//! Dwork, Roth, *The algorithmic foundations of differential privacy*, 2014, theorem 2.2. Vadhan, *The complexity of
//! differential privacy*, 2017, lemma 2.2. Balle, Barthe, Gaboardi, NeurIPS 2018.

use floras_core::View;
use floras_core::{Clipping, Neighbours};

use crate::account::Account;
use crate::engine::compose::MAX_EPSILON;
use crate::engine::sampling::Sampling;
use crate::error::{PrivacyError, require, require_rounds};
use crate::numerics::solve::first_at_most;
use crate::setting::{PrivacyUnit, Setting};

/// Maximum number of clients in a group.
pub const MAX_GROUP: u64 = 1_000_000;
/// Ratio of successive `ε` in the search for the smallest.
const RATIO: f64 = 1.25;

/// The bound that gives the `ε` of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum GroupBound {
    /// The curve of one client with `k` times the sensitivity, and the probability that any of `k` takes part.
    Scaled,
    /// The bound of one client, applied `k` times.
    Generic,
}

/// The `ε` of a group in a view.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct GroupEpsilon {
    /// `ε` at the account's `δ`, an upper bound.
    pub epsilon: f64,
    /// The bound that gives this `ε`.
    pub bound: GroupBound,
}

/// The `ε` of up to `k` clients together after some rounds; `None` if no finite one is established.
pub fn group_epsilon(
    setting: &Setting,
    view: View,
    rounds: u64,
    group: u64,
) -> Result<Option<GroupEpsilon>, PrivacyError> {
    setting.check()?;
    if view == View::Published {
        require_rounds(rounds)?;
        require_group(group)?;
        return Ok(None);
    }
    let generic = group_epsilon_of(&Account::of_view(setting, view)?, view, rounds, group)?;
    let scaled = if view == View::Idealised { scaled(setting, rounds, group)? } else { None };
    let scaled = scaled.map(|epsilon| GroupEpsilon { epsilon, bound: GroupBound::Scaled });
    let both = [scaled, generic].into_iter().flatten();
    Ok(both.min_by(|one, other| one.epsilon.total_cmp(&other.epsilon)))
}

/// The generic bound on the `ε` of up to `k` clients together, for an account of any scheme; `None` if no finite one is established.
pub fn group_epsilon_of(
    account: &Account,
    view: View,
    rounds: u64,
    group: u64,
) -> Result<Option<GroupEpsilon>, PrivacyError> {
    require_rounds(rounds)?;
    require_group(group)?;
    if view == View::Published {
        return Ok(None);
    }
    let generic = generic(account, view, rounds, group)?;
    Ok(generic.map(|epsilon| GroupEpsilon { epsilon, bound: GroupBound::Generic }))
}

fn require_group(group: u64) -> Result<(), PrivacyError> {
    require((1..=MAX_GROUP).contains(&group), "the size of a group", "between 1 and 1e6", group as f64)
}

/// The scaled bound: sensitivity `kΔ`, and probability `q` in place of `p`.
fn scaled(setting: &Setting, rounds: u64, group: u64) -> Result<Option<f64>, PrivacyError> {
    if setting.clipping == Clipping::Paper {
        return Ok(None);
    }
    let larger = Setting { clip: setting.clip * group as f64, ..setting.clone() };
    let account = Account::of_view(&larger, View::Idealised)?.with_sampling(sampling(setting, group))?;
    account.epsilon(View::Idealised, rounds)
}

/// The sampling of a group, which takes part if at least one of its members does.
fn sampling(setting: &Setting, group: u64) -> Sampling {
    let probability = match setting.unit {
        PrivacyUnit::Client => match setting.neighbours {
            Neighbours::ReplaceOne => at_least_one(setting.clients, setting.per_round, group),
            Neighbours::AddRemove => {
                at_least_one(setting.clients.saturating_add(group), setting.per_round, group)
            }
        },
        // A client may hold no items other than those of the group, so that none could take their places.
        PrivacyUnit::Item { .. } if group > 1 => 1.0,
        PrivacyUnit::Item { .. } => setting.sampling().probability(),
    };
    match setting.neighbours {
        // Without others who could take the group's places, every client counts as a participant.
        Neighbours::ReplaceOne if probability >= 1.0 => Sampling::Everyone,
        Neighbours::ReplaceOne => Sampling::ReplaceOne(probability),
        Neighbours::AddRemove => Sampling::AddRemove(probability),
    }
}

/// The probability that `per_round` of `clients` include at least one member of the group; 1 if there are not enough others.
fn at_least_one(clients: u64, per_round: u64, group: u64) -> f64 {
    if clients < per_round.saturating_add(group) {
        return 1.0;
    }
    let log_none: f64 = (0..group).map(|i| (-(per_round as f64) / (clients - i) as f64).ln_1p()).sum();
    // Rounded up.
    (-log_none.exp_m1() * (1.0 + 1e-12)).min(1.0)
}

/// The generic bound, for `k` steps of one client each.
fn generic(account: &Account, view: View, rounds: u64, group: u64) -> Result<Option<f64>, PrivacyError> {
    let Some(one) = account.epsilon(view, rounds)? else { return Ok(None) };
    if group == 1 {
        return Ok(Some(one));
    }
    let k = group as f64;
    let target = account.delta().ln();
    // ln of δ(ε)·(e^{kε} − 1)/(e^ε − 1), the factor being k at 0.
    let log_delta = |epsilon: f64| -> Result<f64, PrivacyError> {
        let delta = account.delta_at(view, rounds, epsilon)?.unwrap_or(1.0);
        Ok(delta.ln() + (k - 1.0) * epsilon + log_ratio(k * epsilon) - log_ratio(epsilon)
            + if epsilon == 0.0 { k.ln() } else { 0.0 })
    };
    // δ of the group exceeds that of one client, and so does its ε. The search begins there.
    let (mut below, mut epsilon) = (0.0, one.max(1e-3));
    loop {
        if log_delta(epsilon)? <= target {
            break;
        }
        below = epsilon;
        epsilon *= RATIO;
        // δ is not certified below 1e-30.
        if k * epsilon > MAX_EPSILON
            || account.delta_at(view, rounds, epsilon)?.is_some_and(|delta| delta < 1e-30)
        {
            return Ok(None);
        }
    }
    let width = epsilon - below;
    let at = |x: f64| log_delta(below + x).map_or(f64::INFINITY, |log| (log - target).exp());
    let refined = first_at_most(at, 1.0, 0.5 * width, width, 1e-6).map_or(epsilon, |x| below + x);
    Ok(Some(k * refined.min(epsilon)))
}

/// `ln(1 − e^{−x})`; 0 for `x = 0`, where the caller adds the logarithm of the limit.
fn log_ratio(x: f64) -> f64 {
    if x == 0.0 { 0.0 } else { (-(-x).exp_m1()).ln() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use floras_core::Receiver;

    fn setting() -> Setting {
        Setting {
            clip: 1.0,
            sequences: 60,
            per_round: 20,
            clients: 20,
            delta: 1e-5,
            unit: PrivacyUnit::Client,
            neighbours: Neighbours::ReplaceOne,
            clipping: Clipping::Each,
            receiver: Receiver::clipped(1.0).unwrap(),
            channel: None,
            ..Setting::default()
        }
    }

    #[test]
    fn a_group_of_one_is_one_client() {
        for view in [View::Idealised, View::AnyChannel] {
            let one = Account::of(&setting()).unwrap().epsilon(view, 1).unwrap().unwrap();
            let group = group_epsilon(&setting(), view, 1, 1).unwrap().unwrap();
            assert!((group.epsilon / one - 1.0).abs() < 1e-9, "{view}: {} and {one}", group.epsilon);
        }
    }

    #[test]
    fn the_scaled_bound_uses_a_larger_clip_norm() {
        let group = group_epsilon(&setting(), View::Idealised, 10, 3).unwrap().unwrap();
        let larger = Account::of(&Setting { clip: 3.0, ..setting() }).unwrap();
        let exact = larger.epsilon(View::Idealised, 10).unwrap().unwrap();
        assert_eq!((group.epsilon, group.bound), (exact, GroupBound::Scaled));
    }

    #[test]
    fn the_generic_bound_is_above_the_exact_one() {
        let account = Account::of(&setting()).unwrap();
        for group in [2, 3] {
            let generic = generic(&account, View::Idealised, 1, group).unwrap().unwrap();
            let exact = scaled(&setting(), 1, group).unwrap().unwrap();
            assert!(generic >= exact && generic < 3.0 * exact, "{group}: {generic} and {exact}");
        }
    }

    #[test]
    fn epsilon_grows_with_the_group() {
        for view in [View::Idealised, View::AnyChannel] {
            let mut last = 0.0;
            for group in 1..4 {
                let Some(found) = group_epsilon(&setting(), view, 1, group).unwrap() else { continue };
                assert!(found.epsilon > last, "{view}, {group}: {} after {last}", found.epsilon);
                last = found.epsilon;
            }
            assert!(last > 0.0);
        }
    }

    /// Of 5 clients 2 take part; 3 of the 10 pairs avoid a given pair of clients.
    #[test]
    fn the_probability_of_a_group_is_hypergeometric() {
        assert!((at_least_one(5, 2, 2) - 0.7).abs() < 1e-9);
        assert!((at_least_one(5, 2, 1) - 0.4).abs() < 1e-9);
        assert_eq!(at_least_one(5, 2, 4), 1.0);
        let sampled = Setting { clients: 200, ..setting() };
        let few = group_epsilon(&sampled, View::Idealised, 10, 2).unwrap().unwrap();
        let all = group_epsilon(&setting(), View::Idealised, 10, 2).unwrap().unwrap();
        assert!(few.epsilon < all.epsilon);
    }

    #[test]
    fn invalid_groups_and_the_published_view_are_refused() {
        assert!(group_epsilon(&setting(), View::Idealised, 1, 0).is_err());
        assert!(group_epsilon(&setting(), View::Published, 1, 2).unwrap().is_none());
    }
}
