//! The Rényi curve of a view: the divergence of all rounds together, by order.
//!
//! Divergences of independent rounds add up. With the masses `m` of the loss `l` of one round of kind `i` on a grid, which
//! leaks at least as much as the round,
//!
//! ```text
//! ε(α) = Σ_i T_i·ln(Σ m·e^{(α − 1)·l}) / (α − 1)
//! ```
//!
//! An infinite loss, however improbable, makes every divergence infinite, and so does a tail that falls too slowly. So the
//! curve is stated for the mechanism outside an event: with probability `1 − η` per round the loss is on the grid, and given
//! that, the divergence is larger by at most `−α·ln(1 − η)/(α − 1)`, which is added. The event's probability over all rounds
//! is stated beside the curve. This is "δ-approximate" Rényi privacy: an `(ε, δ)` that is derived from the curve holds at `δ`
//! plus that probability.
//!
//! Two cases are exact and need no event: Gaussian rounds, `ε(α) = α·Σ T_i·μ_i²/2`, and the idealised round of the paper's
//! receiver ([`RenyiRound`](crate::published::rdp::RenyiRound)), whose divergence is infinite from its largest order on.
//!
//! # Citations
//! Mironov, *Rényi differential privacy*, CSF 2017. Bun, Steinke, *Concentrated differential privacy*, TCC 2016, section 8:
//! approximate variants.

use floras_core::View;

use crate::engine::compose::{Composition, Part};
use crate::engine::distribution::{MuDistribution, Side};
use crate::engine::sampling::{Direction, Sampling};
use crate::error::{PrivacyError, require};
use crate::mixed::Mixed;
use crate::views::DetailSource;

/// Orders `α` in common use.
pub const ORDERS: [f64; 20] = [
    1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 24.0, 32.0, 48.0, 64.0,
    128.0, 256.0,
];
/// Approximate probability of the event over all rounds, relative to `δ`.
const EVENT: f64 = 1e-5;
/// Probability that a composition cuts off, relative to its `δ`.
const CUT: f64 = 1e-7;
/// Number of grid points of a round's loss.
const POINTS: f64 = (1_u32 << 15) as f64;

/// Rényi divergences of a view after all rounds.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RenyiCurve {
    /// Orders `α`, each above 1 and at most 1e6.
    pub orders: Vec<f64>,
    /// An upper bound on the divergence at each order; infinite where no finite bound is known.
    pub epsilons: Vec<f64>,
    /// The divergences hold outside an event whose probability is at most this; 0 if they always hold.
    pub event: f64,
}

impl RenyiCurve {
    /// The curve of a view at some orders above 1; `None` if the view has no guarantee.
    pub fn new(rounds: &Mixed<'_>, view: View, orders: &[f64]) -> Result<Option<Self>, PrivacyError> {
        for &order in orders {
            require(order > 1.0 && order <= 1e6, "the order", "above 1 and at most 1e6", order)?;
        }
        let mut best = paper_receiver(rounds, view, orders)?;
        let others = match best {
            Some(_) => rounds.bounding_masks().into_iter().collect(),
            None => rounds.bounding(view),
        };
        for bounding in others {
            let curve = match of_parts(&bounding.parts, rounds.delta(), orders) {
                Err(error) if error.is_no_guarantee() => continue,
                other => other?,
            };
            best = Some(match best {
                None => curve,
                Some(other) => other.smaller(curve),
            });
        }
        Ok(best)
    }

    /// The smaller bound at each order.
    fn smaller(self, other: Self) -> Self {
        let epsilons = self.epsilons.iter().zip(other.epsilons).map(|(one, other)| one.min(other));
        Self { epsilons: epsilons.collect(), event: self.event.max(other.event), orders: self.orders }
    }
}

/// The closed form of a view whose rounds have one: the idealised one, for the paper's receiver.
fn paper_receiver(
    rounds: &Mixed<'_>,
    view: View,
    orders: &[f64],
) -> Result<Option<RenyiCurve>, PrivacyError> {
    let mut epsilons = vec![0.0; orders.len()];
    for (account, rounds) in rounds.parts() {
        let (Some(DetailSource::Renyi(round)), Sampling::Everyone) =
            (account.detail_sources.get(&view), account.sampling())
        else {
            return Ok(None);
        };
        for (epsilon, &order) in epsilons.iter_mut().zip(orders) {
            *epsilon += *rounds as f64 * round.divergence(order)?;
        }
    }
    Ok(Some(RenyiCurve { orders: orders.to_vec(), epsilons, event: 0.0 }))
}

fn of_parts(parts: &[Part<'_>], delta: f64, orders: &[f64]) -> Result<RenyiCurve, PrivacyError> {
    let composition = Composition::of_parts(parts)?;
    let orders = orders.to_vec();
    if let Some(MuDistribution::Constant(mu)) = composition.as_one_distribution() {
        let epsilons = orders.iter().map(|order| 0.5 * order * mu * mu).collect();
        return Ok(RenyiCurve { orders, epsilons, event: 0.0 });
    }
    let (mut epsilons, mut event) = (vec![0.0_f64; orders.len()], 0.0_f64);
    for &direction in composition.directions {
        let (of_direction, event_of_direction) = of_direction(&composition, direction, delta, &orders)?;
        epsilons.iter_mut().zip(of_direction).for_each(|(worst, epsilon)| *worst = worst.max(epsilon));
        event = event.max(event_of_direction);
    }
    Ok(RenyiCurve { orders, epsilons, event })
}

fn of_direction(
    composition: &Composition<'_>,
    direction: Direction,
    delta: f64,
    orders: &[f64],
) -> Result<(Vec<f64>, f64), PrivacyError> {
    let prepared = composition.prepared(direction, Side::Upper, (EVENT / CUT * delta).min(0.5))?;
    let losses = prepared.round_losses(prepared.reach() / POINTS);
    let times: Vec<f64> = composition.parts.iter().map(|part| part.rounds as f64).collect();
    // ln of the probability that no round has an infinite loss.
    let log_finite: f64 =
        losses.iter().zip(&times).map(|(loss, times)| times * (-loss.infinite.min(1.0)).ln_1p()).sum();
    let at_order = |&order: &f64| {
        let theta = order - 1.0;
        let sum: f64 = losses.iter().zip(&times).map(|(loss, times)| times * loss.log_moment(theta)).sum();
        // Divergences are not negative; sums of masses are rounded.
        ((sum - order * log_finite) / theta).max(0.0)
    };
    Ok((orders.iter().map(at_order).collect(), -log_finite.exp_m1()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Account, Source};
    use crate::engine::distribution::Values;
    use crate::published::rdp::RenyiRound;

    fn curve(distribution: MuDistribution, sampling: Sampling, rounds: u64, orders: &[f64]) -> RenyiCurve {
        let mut account = Account::new(sampling, 1e-5).unwrap();
        account.set(View::Actual, Source::of(distribution));
        let rounds = Mixed::new(&[(&account, rounds)]).unwrap();
        RenyiCurve::new(&rounds, View::Actual, orders).unwrap().unwrap()
    }

    #[test]
    fn gaussian_rounds_are_exact() {
        let exact = curve(MuDistribution::Constant(0.3), Sampling::Everyone, 10, &ORDERS);
        assert_eq!(exact.event, 0.0);
        for (order, epsilon) in ORDERS.iter().zip(&exact.epsilons) {
            assert!((epsilon / (0.5 * order * 0.9) - 1.0).abs() < 1e-12);
        }
    }

    /// On a grid, outside an event of probability 1e-10: not below the closed form where that event does not matter.
    #[test]
    fn a_grid_matches_the_gaussian_at_small_orders() {
        let distribution = MuDistribution::Values(Values::new([(0.3, 1.0)]));
        let orders = [1.25, 1.5, 2.0, 4.0, 8.0];
        let found = curve(distribution, Sampling::Everyone, 10, &orders);
        assert!(found.event > 0.0 && found.event < 1.5e-10, "{}", found.event);
        for (order, epsilon) in orders.iter().zip(&found.epsilons) {
            let ratio = epsilon / (0.5 * order * 0.9);
            assert!((1.0 - 1e-5..1.0 + 1e-3).contains(&ratio), "order {order}: {ratio}");
        }
    }

    #[test]
    fn heavy_tails_are_below_their_divergence_bound() {
        // μ = a|G| diverges from α_max = ½ + √(¼ + 1/a²) on; outside the event it does not.
        let round = RenyiRound::new(0.5, 1.0 / 0.3).unwrap();
        let orders = [2.0, 2.5, 1.01 * round.largest_order()];
        let found = curve(MuDistribution::HalfNormal { scale: 0.3 }, Sampling::Everyone, 1, &orders);
        for (&order, &epsilon) in orders.iter().zip(&found.epsilons) {
            let exact = round.divergence(order).unwrap();
            assert!(epsilon.is_finite() && epsilon <= exact * 1.001, "order {order}: {epsilon}, {exact}");
        }
        let ratio = found.epsilons[0] / round.divergence(2.0).unwrap();
        assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
    }

    /// Mironov, Talwar, Zhang 2019 for order 2 of a Gaussian that is left out with probability 1 − p: removing one has
    /// `ε(2) = ln(1 + p²(e^{μ²} − 1))`.
    #[test]
    fn sampling_lowers_the_divergence_as_known() {
        let (p, mu) = (0.1, 1.0_f64);
        let found = curve(MuDistribution::Constant(mu), Sampling::AddRemove(p), 1, &[2.0]);
        let exact = (p * p * (mu * mu).exp_m1()).ln_1p();
        assert!((found.epsilons[0] / exact - 1.0).abs() < 0.05, "{} and {exact}", found.epsilons[0]);
    }

    #[test]
    fn orders_up_to_one_are_refused() {
        let account = Account::new(Sampling::Everyone, 1e-5).unwrap();
        let rounds = Mixed::new(&[(&account, 1)]).unwrap();
        for order in [1.0, 0.5, f64::NAN, f64::INFINITY] {
            assert!(RenyiCurve::new(&rounds, View::Actual, &[order]).is_err());
        }
    }
}
