//! The paper's numbers, exactly as printed. They are not guarantees: see [`WHY_NOT_A_GUARANTEE`].
//!
//! The paper states that one round is `u`-DP, with a weight `w` for the random choice of clients and samples:
//!
//! ```text
//! u = ln(1 + w·(2C√(C² + γ²) + 2C²)/γ²)                                            (appendix, proof of Theorem 1)
//! w = qp/(1 + qp),  q = b/(D + 1 − b)     for an item                              (Theorems 1 and 2)
//! w = p                                   for a client                             (Theorem 3)
//! ε(α) = α·u²/2                           one round at order α                     (Theorems 1 and 3)
//! ε = √(2T·ln(1/δ))·u + T·u²/2            T rounds, reached at α = 1 + √(2·ln(1/δ)/(T·u²))     (Theorems 2 and 3)
//! ```
//!
//! `p` is `K/M` in the theorems and `K/(M + 1)` in the proof of Theorem 3. [`PublishedComposition`] holds what Fig. 2 compares.
//!
//! For one coordinate (`d = 1`) a client's `u` holds. For more coordinates, the proof rotates the noise and then treats its
//! coordinates as independent. The noise is spherical, so it may be rotated, but its coordinates are not independent. The right
//! bound, `(d + 1)·asinh(C/γ)`, is in the hundreds for a model of the paper's size, and so is every number that these steps
//! derive from it. [`crate::published::cauchy`] and [`crate::published::rdp`] use other methods.
//!
//! # Citations
//! Dwork, Rothblum, Vadhan, *Boosting and differential privacy*, FOCS 2010. Bun, Steinke, *Concentrated differential
//! privacy*, TCC 2016, proposition 3.3. Mironov, *Rényi differential privacy*, CSF 2017, proposition 3. Kairouz, Oh,
//! Viswanath, *The composition theorem for differential privacy*, IEEE Trans. Inf. Theory 63, 2017, theorems 3.3 and 3.4.

use std::fmt;

use floras_core::LocalWork;

use crate::error::{PrivacyError, require, require_delta, require_positive, require_rounds};
use crate::published::cauchy::clip_ratio;
use crate::published::pure::optimal_epsilon;

/// Why a published number can be smaller than a valid bound. One line, to follow "the published number is smaller because".
pub const WHY_NOT_A_GUARANTEE: &str = "it bounds one coordinate of the update, 2·asinh(C/γ), while a vector of d coordinates \
     shares one noise scale and shows up to (d+1)·asinh(C/γ)";

/// Why better composition does not help a bound that does not hold for one round.
pub const WHY_OPTIMAL_IS_NO_GUARANTEE_EITHER: &str = "it composes rounds as well as can be, but starts from the published bound of \
     one round, which holds for a single coordinate only";

/// Why the item-level weight needs a condition that the paper's own training does not meet.
pub const WHY_ITEM_LEVEL_NEEDS_ONE_STEP: &str = "its weight counts one mini-batch per round; a local epoch touches every sample, and the weight is then p";

/// The largest order of a Rényi divergence.
const MAX_ORDER: f64 = 1e6;

/// How the local work of a client differs from the single mini-batch that the item-level weight counts; `None` for one step.
pub fn unmet_local_work(local: LocalWork) -> Option<String> {
    match local {
        LocalWork::ONE_STEP => None,
        LocalWork::Steps(steps) => Some(format!(
            "published: its weight counts one mini-batch per round, and here a client uses {steps} of them"
        )),
        LocalWork::Epochs => Some(format!("published: {WHY_ITEM_LEVEL_NEEDS_ONE_STEP}")),
    }
}

/// A number that depends on the paper's bound of one round. It is not a guarantee, and cannot be converted into one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct PublishedBound(f64);

impl PublishedBound {
    /// The bare number, to print or to compare with valid bounds.
    pub fn as_printed(self) -> f64 {
        self.0
    }
}

impl fmt::Display for PublishedBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        f.write_str(" (published, no guarantee)")
    }
}

/// The definition of `p`: the paper has two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Participation {
    /// `p = K/M`, as in the theorems.
    #[default]
    PerClients,
    /// `p = K/(M + 1)`, as in the proof of Theorem 3, where the neighbour has one client more.
    PerClientsPlusOne,
}

impl Participation {
    /// `p` for `per_round = K` of `clients = M`.
    pub fn rate(self, per_round: u64, clients: u64) -> Result<f64, PrivacyError> {
        at_most("the number of clients per round", per_round, "clients in all", clients)?;
        let others = match self {
            Self::PerClients => 0.0,
            Self::PerClientsPlusOne => 1.0,
        };
        Ok(per_round as f64 / (clients as f64 + others))
    }
}

/// `q = b/(D + 1 − b)` for mini-batches of `batch = b` out of a client's `samples = D`.
pub fn batch_ratio(batch: u64, samples: u64) -> Result<f64, PrivacyError> {
    at_most("the mini-batch size", batch, "samples of a client", samples)?;
    Ok(batch as f64 / ((samples - batch) as f64 + 1.0))
}

/// `w`: the share of outcomes that the neighbours do not have in common, as the paper counts it.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Weight(f64);

impl Weight {
    /// `qp/(1 + qp)`, for one sample of one client (Theorems 1 and 2). See [`WHY_ITEM_LEVEL_NEEDS_ONE_STEP`].
    pub fn item(q: f64, p: f64) -> Result<Self, PrivacyError> {
        require_positive("q", q)?;
        require_share(p)?;
        Ok(Self(q * p / (1.0 + q * p)))
    }

    /// `p`, for all samples of one client (Theorem 3).
    pub fn client(p: f64) -> Result<Self, PrivacyError> {
        require_share(p)?;
        Ok(Self(p))
    }

    /// The weight `w`, above 0 and at most 1.
    pub fn value(self) -> f64 {
        self.0
    }
}

/// How the bounds of single rounds are composed to a bound of `T` rounds: the curves of Fig. 2, and better compositions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PublishedComposition {
    /// `T·u`. Needs no `δ`.
    Sequential,
    /// `√(2T·ln(1/δ))·u + T·u·(e^u − 1)` (Dwork, Rothblum, Vadhan 2010).
    Advanced,
    /// `√(2T·ln(1/δ))·u + T·u²/2`: the published result.
    Renyi,
    /// `T` times the Rényi result of one round at `δ/T`: another reading of "sequential composition of (ε, δ)-DP" in the
    /// figure.
    SequentialOfConverted,
    /// `min(T·u, √(2T·ln(1/δ))·u + T·u·tanh(u/2))` (Kairouz, Oh, Viswanath, theorem 3.4). Not in the paper.
    Kairouz,
    /// The smallest `ε` that `T` rounds of `u`-DP are guaranteed to meet (the same, theorem 3.3). Not in the paper.
    Optimal,
}

impl PublishedComposition {
    /// All compositions, in the order of their definition.
    pub const ALL: [Self; 6] = [
        Self::Sequential,
        Self::Advanced,
        Self::Renyi,
        Self::SequentialOfConverted,
        Self::Kairouz,
        Self::Optimal,
    ];

    /// Why the number is not a guarantee, in one line.
    pub fn why_not_a_guarantee(self) -> &'static str {
        match self {
            Self::Sequential | Self::Advanced | Self::Renyi | Self::SequentialOfConverted => {
                WHY_NOT_A_GUARANTEE
            }
            Self::Kairouz | Self::Optimal => WHY_OPTIMAL_IS_NO_GUARANTEE_EITHER,
        }
    }
}

/// One round as published.
///
/// ```
/// use floras_privacy::published::{PublishedComposition, Participation, PublishedRound, Weight};
///
/// // 20 of 100 clients per round, clip norm 1, five unused sequences, 300 rounds.
/// let p = Participation::PerClients.rate(20, 100)?;
/// let round = PublishedRound::new(Weight::client(p)?, 1.0, 5.0)?;
/// let published = round.epsilon(PublishedComposition::Renyi, 300, 1e-5)?;
/// assert_eq!(format!("{published:.3}"), "9.039 (published, no guarantee)");
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PublishedRound {
    u: f64,
}

impl PublishedRound {
    /// A round with weight `w`, clip norm `C`, and `γ` unused sequences.
    pub fn new(weight: Weight, clip: f64, gamma: f64) -> Result<Self, PrivacyError> {
        let c = clip_ratio(clip, gamma)?;
        Ok(Self { u: (weight.0 * 2.0 * c * (c.hypot(1.0) + c)).ln_1p() })
    }

    /// `u`, which the paper states for `δ = 0`. With `w = 1` it is `2·asinh(C/γ)`.
    pub fn pure(self) -> PublishedBound {
        PublishedBound(self.u)
    }

    /// `ε(α) = α·u²/2`, which the paper states for every order `α > 1`.
    pub fn divergence(self, order: f64) -> Result<PublishedBound, PrivacyError> {
        require(order > 1.0 && order <= MAX_ORDER, "the order", "above 1 and at most 1e6", order)?;
        Ok(PublishedBound(0.5 * order * self.u * self.u))
    }

    /// `ε` of `rounds` rounds at `δ`.
    pub fn epsilon(
        self,
        composition: PublishedComposition,
        rounds: u64,
        delta: f64,
    ) -> Result<PublishedBound, PrivacyError> {
        require_rounds(rounds)?;
        require_delta(delta)?;
        let (u, count) = (self.u, rounds as f64);
        let spread = (-2.0 * count * delta.ln()).sqrt() * u;
        Ok(PublishedBound(match composition {
            PublishedComposition::Sequential => count * u,
            PublishedComposition::Advanced => spread + count * u * u.exp_m1(),
            PublishedComposition::Renyi => spread + 0.5 * count * u * u,
            PublishedComposition::SequentialOfConverted => {
                count * ((2.0 * (count.ln() - delta.ln())).sqrt() * u + 0.5 * u * u)
            }
            PublishedComposition::Kairouz => (count * u).min(spread + count * u * (0.5 * u).tanh()),
            PublishedComposition::Optimal => optimal_epsilon(u, rounds, delta),
        }))
    }

    /// `α = 1 + √(2·ln(1/δ)/(T·u²))`, the order that yields [`PublishedComposition::Renyi`].
    pub fn best_order(self, rounds: u64, delta: f64) -> Result<f64, PrivacyError> {
        require_rounds(rounds)?;
        require_delta(delta)?;
        Ok(1.0 + (-2.0 * delta.ln() / rounds as f64).sqrt() / self.u)
    }
}

/// Checks `1 ≤ part ≤ whole`.
fn at_most(name: &'static str, part: u64, of: &str, whole: u64) -> Result<(), PrivacyError> {
    if (1..=whole).contains(&part) {
        return Ok(());
    }
    Err(PrivacyError::Inconsistent {
        name,
        allowed: format!("at least 1 and at most the {whole} {of}"),
        value: part,
    })
}

/// Checks `0 < p ≤ 1`.
fn require_share(p: f64) -> Result<(), PrivacyError> {
    require((1e-30..=1.0).contains(&p), "the participation p", "between 1e-30 and 1", p)
}

/// The conditions of Theorems 1 to 3 that are not met: `K < min{N, M}`, and at the item level `b < D` for `item = (b, D)`. The
/// formulas are evaluated nevertheless.
pub fn unmet_conditions(
    per_round: u64,
    sequences: u64,
    clients: u64,
    item: Option<(u64, u64)>,
) -> Vec<String> {
    let mut unmet = Vec::new();
    if per_round >= sequences.min(clients) {
        unmet.push(format!(
            "published: the theorems require K < min{{N, M}}, and here K = {per_round}, N = {sequences}, M = {clients}"
        ));
    }
    if let Some((batch, samples)) = item
        && batch >= samples
    {
        unmet.push(format!("published: the theorems require b < D, and here b = {batch}, D = {samples}"));
    }
    unmet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn round(weight: f64, clip: f64, gamma: f64) -> PublishedRound {
        PublishedRound::new(Weight::client(weight).unwrap(), clip, gamma).unwrap()
    }

    fn epsilon(round: PublishedRound, composition: PublishedComposition, rounds: u64, delta: f64) -> f64 {
        round.epsilon(composition, rounds, delta).unwrap().as_printed()
    }

    #[test]
    fn with_every_client_one_cauchy_coordinate_is_bounded() {
        for (clip, gamma) in [(1.0, 5.0), (1.0, 1e6), (1e-30, 1e30), (1e30, 1.0), (3.0, 1.0)] {
            let scalar = crate::published::cauchy::CauchyRound::new(clip, gamma, 1).unwrap().pure_epsilon();
            let u = round(1.0, clip, gamma).pure().as_printed();
            assert!((u / scalar - 1.0).abs() < 1e-14, "C = {clip}, γ = {gamma}: {u} and {scalar}");
        }
    }

    #[test]
    fn small_weights_scale_the_bound() {
        // u = ln(1 + w(e^{2·asinh(C/γ)} − 1)) ≈ 2wC/γ.
        let u = round(1e-9, 1.0, 1e6).pure().as_printed();
        assert!((u / 2.000_002e-15 - 1.0).abs() < 1e-9, "{u}");
    }

    #[test]
    fn participation_and_batches_are_counted_as_printed() {
        assert_eq!(Participation::PerClients.rate(20, 99).unwrap(), 20.0 / 99.0);
        assert_eq!(Participation::PerClientsPlusOne.rate(20, 99).unwrap(), 0.2);
        assert_eq!(batch_ratio(20, 200).unwrap(), 20.0 / 181.0);
        assert_eq!(batch_ratio(7, 7).unwrap(), 7.0);
        let item = Weight::item(0.5, 0.4).unwrap().value();
        assert!((item - 0.2 / 1.2).abs() < 1e-15);
        assert_eq!(Weight::client(0.4).unwrap().value(), 0.4);
    }

    #[test]
    fn the_published_result_is_optimal_over_orders() {
        for (rounds, delta) in [(1, 1e-5), (300, 1e-5), (1000, 0.1)] {
            let round = round(0.5, 1.0, 5.0);
            let at = |order: f64| {
                rounds as f64 * round.divergence(order).unwrap().as_printed() - f64::ln(delta) / (order - 1.0)
            };
            let best = round.best_order(rounds, delta).unwrap();
            let result = epsilon(round, PublishedComposition::Renyi, rounds, delta);
            assert!((at(best) / result - 1.0).abs() < 1e-13);
            assert!(at(1.0 + 0.99 * (best - 1.0)) > result && at(1.0 + 1.01 * (best - 1.0)) > result);
        }
    }

    /// The paper states that the Rényi result in Fig. 2 is the smallest.
    #[test]
    fn up_to_23_rounds_plain_sums_are_smaller() {
        let weight = Weight::item(0.05, 1.0).unwrap();
        let round = PublishedRound::new(weight, 1.0, 5.0).unwrap();
        for rounds in 1..=100 {
            let plain = epsilon(round, PublishedComposition::Sequential, rounds, 1e-5);
            let renyi = epsilon(round, PublishedComposition::Renyi, rounds, 1e-5);
            assert_eq!(plain < renyi, rounds <= 23, "T = {rounds}");
        }
    }

    #[test]
    fn a_published_number_says_what_it_is() {
        let bound = round(1.0, 1.0, 5.0).pure();
        assert_eq!(format!("{bound:.3}"), "0.397 (published, no guarantee)");
        for composition in PublishedComposition::ALL {
            assert!(!composition.why_not_a_guarantee().is_empty());
        }
        for note in [WHY_NOT_A_GUARANTEE, WHY_OPTIMAL_IS_NO_GUARANTEE_EITHER, WHY_ITEM_LEVEL_NEEDS_ONE_STEP] {
            assert!(!note.contains('\n') && !note.contains("  "), "{note}");
        }
    }

    #[test]
    fn input_out_of_range_is_refused() {
        let weight = Weight::client(1.0).unwrap();
        assert_eq!(PublishedRound::new(weight, 1.0, 0.0), Err(PrivacyError::NoUnusedSequences));
        for (clip, gamma) in [(0.0, 1.0), (1.0, -1.0), (f64::NAN, 1.0), (1.0, f64::INFINITY)] {
            assert!(PublishedRound::new(weight, clip, gamma).is_err(), "{clip} {gamma}");
        }
        for (q, p) in [(0.0, 1.0), (f64::INFINITY, 1.0), (0.1, 0.0), (0.1, 1.1), (0.1, f64::NAN)] {
            assert!(Weight::item(q, p).is_err(), "{q} {p}");
        }
        assert!(Weight::client(0.0).is_err());
        for (rounds, delta) in [(0, 1e-5), (2_000_000_000, 1e-5), (1, 0.0), (1, 1.0), (1, f64::NAN)] {
            let round = round(1.0, 1.0, 5.0);
            assert!(round.epsilon(PublishedComposition::Sequential, rounds, delta).is_err());
            assert!(round.best_order(rounds, delta).is_err());
        }
        for order in [1.0, 0.0, 1.1e6, f64::NAN, f64::INFINITY] {
            assert!(round(1.0, 1.0, 5.0).divergence(order).is_err());
        }
    }

    #[test]
    fn more_than_all_is_refused_by_name() {
        let message = |refused: Result<f64, PrivacyError>| refused.unwrap_err().to_string();
        assert_eq!(
            message(Participation::PerClients.rate(101, 100)),
            "the number of clients per round must be at least 1 and at most the 100 clients in all, not 101"
        );
        assert_eq!(
            message(batch_ratio(21, 20)),
            "the mini-batch size must be at least 1 and at most the 20 samples of a client, not 21"
        );
        for (part, whole) in [(0, 5), (0, 0), (1, 0)] {
            assert!(Participation::PerClientsPlusOne.rate(part, whole).is_err());
            assert!(batch_ratio(part, whole).is_err());
        }
    }

    proptest! {
        #[test]
        fn compositions_are_monotone_in_every_parameter(
            weight in 1e-6_f64..0.5,
            log_clip in -3.0_f64..2.0,
            log_gamma in 0.0_f64..6.0,
            rounds in 1_u64..100_000,
            log_delta in -15.0_f64..-0.1,
            step in 1e-3_f64..1.0,
        ) {
            let (clip, gamma) = (10_f64.powf(log_clip), 10_f64.powf(log_gamma));
            let delta = 10_f64.powf(log_delta);
            for composition in PublishedComposition::ALL {
                let here = epsilon(round(weight, clip, gamma), composition, rounds, delta);
                let slack = 1e-9 * here;
                let other = |weight, clip, gamma, rounds, delta| {
                    epsilon(round(weight, clip, gamma), composition, rounds, delta) - here
                };
                prop_assert!(other(weight * (1.0 + step), clip, gamma, rounds, delta) >= -slack);
                prop_assert!(other(weight, clip * (1.0 + step), gamma, rounds, delta) >= -slack);
                prop_assert!(other(weight, clip, gamma * (1.0 + step), rounds, delta) <= slack);
                prop_assert!(other(weight, clip, gamma, rounds + 1, delta) >= -slack);
                prop_assert!(other(weight, clip, gamma, rounds, delta * (1.0 - 0.5 * step)) >= -slack);
            }
        }

        #[test]
        fn valid_input_never_yields_nan(
            log_weight in -30.0_f64..0.0,
            log_clip in -30.0_f64..30.0,
            log_gamma in -30.0_f64..30.0,
            rounds in 1_u64..1_000_000_000,
            log_delta in -29.9_f64..-1e-12,
        ) {
            let delta = 10_f64.powf(log_delta);
            let round = round(10_f64.powf(log_weight), 10_f64.powf(log_clip), 10_f64.powf(log_gamma));
            let all = PublishedComposition::ALL.map(|composition| epsilon(round, composition, rounds, delta));
            let [sequential, advanced, renyi, _, kairouz, optimal] = all;
            prop_assert!(all.into_iter().all(|epsilon| epsilon.is_finite() && epsilon >= 0.0), "{all:?}");
            prop_assert!(round.best_order(rounds, delta).unwrap() >= 1.0);
            let slack = 1.0 + 1e-9;
            prop_assert!(optimal <= kairouz * slack && kairouz <= sequential && kairouz <= renyi * slack);
            prop_assert!(renyi <= advanced * slack);
        }
    }

    #[test]
    fn conditions_that_do_not_hold_are_named() {
        assert!(unmet_conditions(20, 25, 200, Some((20, 200))).is_empty());
        assert_eq!(
            unmet_conditions(20, 25, 20, None),
            ["published: the theorems require K < min{N, M}, and here K = 20, N = 25, M = 20"]
        );
        assert_eq!(unmet_conditions(20, 20, 200, Some((200, 200))).len(), 2);
    }
}
