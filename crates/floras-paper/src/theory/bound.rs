//! Theorem 4 as printed, evaluated for any second moment `D`.
//!
//! ```text
//! μ' = μ − 2√(dD)·EH/K > 0,     η_t = 2/(μ'(t + r))
//! G  = (1 + 2√(dD)·EHη_1/K)·(ΣH_k²/M² + 6LΓ + 8(E−1)²H² + (M−K)/(M−1)·4E²H²/K) + 4dD·E²H²/K²
//! E f(w_t) − f* ≤ L/(t + r)·[4G/μ'² + (1 + r)‖w_0 − w*‖²]
//! ```
//!
//! `t` counts SGD steps, `E` of them per round. The theorem states "for some `r ≥ 0`". Its lemmas need `η_t ≤ 1/(4L)`
//! and `η_t ≤ 2η_{t+E}` for all `t ≥ 0`, hence `r ≥ max(8L/μ', E)`. The smallest such `r` is used.
//!
//! The result is the value of the formula. It is not a guarantee, for any `D`: [`notes`](super::notes) explains why.

use std::convert::Infallible;

use floras_privacy::largest_integer;
use serde::Serialize;

use super::truncation::Truncation;

/// The constants of the theorem.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Problem {
    /// Strong convexity `μ` of the loss.
    pub mu: f64,
    /// Smoothness `L` of the clients' losses.
    pub smoothness: f64,
    /// Upper bound `H` on the norm of mini-batch gradients.
    pub gradient_bound: f64,
    /// Sum of the squared gradient bounds of all clients, over the square of their number, `Σ_k H_k²/M²`.
    pub gradient_mean_square: f64,
    /// Heterogeneity of the clients, `Γ = f* − Σ p_k f_k*`.
    pub heterogeneity: f64,
    /// Squared distance of the initial model from the minimum, `‖w_0 − w*‖²`.
    pub distance_squared: f64,
    /// Number of SGD steps per round, `E`.
    pub local_steps: f64,
    /// Total number of clients, `M`.
    pub clients: f64,
    /// Number of clients per round, `K`.
    pub per_round: f64,
    /// Number of model parameters, `d`.
    pub parameters: f64,
}

/// The terms of Theorem 4, if its condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// Strong convexity less the effect of the noise, `μ' = μ − 2√(dD)·EH/K`; above 0.
    pub mu_prime: f64,
    /// The offset `r`, the smallest that the lemmas allow.
    pub offset: f64,
    /// Learning rate of the first step, `η_1`.
    pub first_rate: f64,
    /// The sum `G` of the error terms, as in the module documentation.
    pub g: f64,
    /// Number of SGD steps, `t`.
    pub step: f64,
    /// Upper bound on `E f(w_t) − f*`.
    pub excess_loss: f64,
}

impl Problem {
    /// `(M−K)/(M−1)`; 0 if every client takes part in every round.
    pub fn sampling_share(&self) -> f64 {
        if self.clients > 1.0 { (self.clients - self.per_round) / (self.clients - 1.0) } else { 0.0 }
    }

    /// `2√(dD)·EH/K`, which `μ` must exceed; `None` if `D` is negative and has no root.
    pub fn needed_convexity(&self, second_moment: f64) -> Option<f64> {
        let root = (self.parameters * second_moment).sqrt();
        let needed = 2.0 * root * self.local_steps * self.gradient_bound / self.per_round;
        (second_moment >= 0.0).then_some(needed)
    }

    /// Whether `μ > 2√(dD)·EH/K`.
    pub fn meets(&self, second_moment: f64) -> bool {
        self.needed_convexity(second_moment).is_some_and(|needed| self.mu > needed)
    }

    /// The bound after `t = step` SGD steps; `None` if the condition fails.
    pub fn bound(&self, second_moment: f64, step: f64) -> Option<Bound> {
        let needed = self.needed_convexity(second_moment).filter(|needed| self.mu > *needed)?;
        let mu_prime = self.mu - needed;
        let offset = (8.0 * self.smoothness / mu_prime).max(self.local_steps);
        let first_rate = 2.0 / (mu_prime * (1.0 + offset));
        let (steps, h) = (self.local_steps, self.gradient_bound);
        let clean = self.gradient_mean_square
            + 6.0 * self.smoothness * self.heterogeneity
            + 8.0 * ((steps - 1.0) * h).powi(2)
            + self.sampling_share() * 4.0 / self.per_round * (steps * h).powi(2);
        let noise = 4.0 * self.parameters * second_moment * (steps * h / self.per_round).powi(2);
        let g = (1.0 + needed * first_rate) * clean + noise;
        let bracket = 4.0 * g / (mu_prime * mu_prime) + (1.0 + offset) * self.distance_squared;
        let excess_loss = self.smoothness / (step + offset) * bracket;
        Some(Bound { mu_prime, offset, first_rate, g, step, excess_loss })
    }
}

/// The quantities that bound the noise of a round: the clip norm `C` and the clamp bound `B`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Clip norm `C` of the updates, above 0.
    pub clip: f64,
    /// Bound `B` to which decoded values are clamped.
    pub bound: f64,
}

impl Limits {
    fn truncation(self, gamma: f64) -> Option<Truncation> {
        Truncation::new(gamma, self.bound).ok()
    }

    /// `D(γ)` as printed in Theorem 4, in units of `C²`; NaN if `γ` or `B` is out of range.
    pub fn printed(self, gamma: f64) -> f64 {
        self.truncation(gamma).map_or(f64::NAN, |truncation| truncation.printed(self.clip))
    }

    /// `D'(γ) = [(d−1)m(0) + m(KC)]/(dC²)`: the second moment of clamped noise, averaged over coordinates, in place
    /// of the printed `D`.
    pub fn corrected(self, gamma: f64, problem: &Problem) -> f64 {
        let (d, sum_norm) = (problem.parameters, problem.per_round * self.clip);
        let error = self.truncation(gamma).map_or(f64::NAN, |noise| noise.largest_error(sum_norm, d));
        error / (d * self.clip * self.clip)
    }

    /// The largest integer `γ` up to which the condition holds with the printed `D`. `None` if it fails for `γ = 0`,
    /// infinity if it holds for every `γ` at which the printed `D` has a root.
    pub fn largest_gamma_printed(self, problem: &Problem) -> Option<f64> {
        let peak = self.truncation(1.0)?.printed_peak(self.clip);
        largest(peak, |gamma| problem.meets(self.printed(gamma)))
    }

    /// The largest integer `γ` for which the condition holds with the corrected `D'`, which grows with `γ`. `None` if
    /// it fails for `γ = 0`.
    pub fn largest_gamma_corrected(self, problem: &Problem) -> Option<f64> {
        largest(1e15, |gamma| problem.meets(self.corrected(gamma, problem)))
    }

    /// The smallest `K` for which the condition holds with the printed `D`, which does not depend on `K`.
    pub fn least_clients_printed(self, gamma: f64, problem: &Problem) -> Option<f64> {
        let with = |per_round: f64| Problem { per_round, ..*problem };
        let needed = with(1.0).needed_convexity(self.printed(gamma))?;
        Some(least((needed / problem.mu).floor() + 2.0, |k| with(k).meets(self.printed(gamma))))
    }

    /// The smallest `K` for which the condition holds with the corrected `D'`; `None` if no `K` does.
    ///
    /// `√(dD')/K` falls with `K` as long as the noise dominates, and rises to 1 once the sum `K·C` exceeds `B`. `m`
    /// is convex in `s²`, so `[(d−1)m(0) + m(KC)]/K²` has one minimum. The smallest `K` is on its falling side.
    pub fn least_clients_corrected(self, gamma: f64, problem: &Problem) -> Option<f64> {
        let with = |per_round: f64| Problem { per_round, ..*problem };
        let needed =
            |k: f64| with(k).needed_convexity(self.corrected(gamma, &with(k))).unwrap_or(f64::INFINITY);
        let (mut low, mut high) = (1.0_f64, 1e15_f64);
        while high - low > 2.0 {
            let (left, right) = ((low + (high - low) / 3.0).floor(), (high - (high - low) / 3.0).ceil());
            if needed(left) <= needed(right) { high = right } else { low = left }
        }
        let valley = [low, (low + 1.0).min(high), high]
            .into_iter()
            .min_by(|a, b| needed(*a).total_cmp(&needed(*b)))?;
        let meets = |k: f64| problem.mu > needed(k);
        meets(valley).then(|| least(valley, meets))
    }
}

/// The largest integer up to `most` for which `meets` is true, provided that it is true up to some integer and false
/// beyond. Infinity if it is true for `most`, `None` if it is false for 0.
fn largest(most: f64, meets: impl Fn(f64) -> bool) -> Option<f64> {
    if !meets(0.0) {
        return None;
    }
    if meets(most) {
        return Some(f64::INFINITY);
    }
    let Ok(found) = largest_integer::<Infallible>(most as u64, |number| Ok(meets(number as f64)));
    Some(found as f64)
}

/// The smallest integer above 0 for which `meets` is true, provided that it is false below some integer, and true from
/// there to `high`.
fn least(high: f64, meets: impl Fn(f64) -> bool) -> f64 {
    let Ok(fails) =
        largest_integer::<Infallible>((high as u64).saturating_sub(1), |number| Ok(!meets(number as f64)));
    fails as f64 + 1.0
}
