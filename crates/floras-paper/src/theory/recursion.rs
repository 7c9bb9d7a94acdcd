//! A provable result in place of Theorem 4: training reaches a neighbourhood of the optimum, and stays there.
//!
//! **Setting.** Assumptions 1 to 3; every mini-batch gradient has norm `H` at most; the paper's normalisation; a rate
//! `η ≤ 1/(4L)` that is constant within a round of `E` steps; `e` is the error that clamped noise adds to the clean
//! average `u` of a round. The noise of a round is independent of the sent updates, at high SNR.
//!
//! **Claim.** With `Δ = E‖w − w*‖²` before a round and `Δ⁺` after it,
//!
//! ```text
//! Δ⁺ ≤ A + 2b·√A + v,         A = α·Δ + g,         α = (1 − ημ)^E
//! g  = η²·(ΣH_k²/M² + 6LΓ + 2(E−1)²H²)·(1 − α)/(ημ) + (M−K)/(M−1)·η²E²H²/K
//! b  = ηEH·|β(KC)|/(KC),      v = η²E²H²·[(d−1)m(0) + m(KC)]/(KC)²
//! ```
//!
//! with `β` and `m` of [`Truncation`](super::Truncation).
//!
//! **Proof.** *Clean round.* The lemma of one step (Li et al. 2020, Lemma 1; the first lemma of the paper's appendix
//! B) contracts by `1 − ημ` and adds `η²` times gradient variance, `6LΓ` and `2/η²` times the spread of the clients'
//! models, which `E − 1` steps of length `ηH` keep below `η²(E−1)²H²`. `E` such steps add up to `αΔ` and the first
//! part of `g`. Drawing `K` of `M` clients is unbiased and adds the second part (the second lemma there, without its
//! factor 4, as the rate does not change within a round). So `E‖u − w*‖² ≤ A`. *Noise.* Given the updates, `‖E e‖ ≤
//! b` and `E‖e‖² ≤ v`: the normalised sum has norm `KC` at most, and undoing the normalisation and averaging
//! multiplies the error by `C_max/(KC)`, where `C_max ≤ ηEH`. Hence `Δ⁺ = E‖u − w*‖² + 2E⟨E e, u − w*⟩ + E‖e‖² ≤ A +
//! 2b·E‖u − w*‖ + v`, and `E‖u − w*‖ ≤ √A`. ∎
//!
//! The map is increasing and concave, positive at 0, and of slope `α < 1` far out. So it has one fixed point, to
//! which it leads from anywhere: the **floor**. With `x = √A`, the fixed point solves `(1−α)x² − 2αb·x − (αv + g) =
//! 0`.
//!
//! **Rates that fall to 0** (with `Σ η = ∞`): `g` and `v` shrink as `η²`, while `b` and `1 − α` shrink as `η`. So for
//! any `Δ` above `(2ρH/μ)²`, `ρ = |β(KC)|/(KC)`, the decrease per round eventually exceeds all increases, and
//! `limsup Δ_t ≤ (2ρH/μ)²`. This limit is 0 only if clamping has no bias, which is why `O(1/t)` is not proved. `ρ` is
//! between 0 and 1. If the gradient of `f` is bounded by `H`, `‖w − w*‖ ≤ H/μ` holds anyway, so the floor is
//! informative only for `ρ < ½`.
//!
//! # Citations
//! Li, Huang, Yang, Wang, Zhang, *On the convergence of FedAvg on non-IID data*, ICLR 2020.

use super::bound::Problem;

/// Upper bounds on the noise of a round, relative to `K` times the longest update: bias `ρ`, and second moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeNoise {
    /// Relative bias `ρ = |β(KC)|/(KC)`, from 0 to 1.
    pub bias: f64,
    /// Relative second moment, `[(d−1)m(0) + m(KC)]/(KC)²`.
    pub second_moment: f64,
}

/// An upper bound on the effect of one round on `Δ = E‖w − w*‖²`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundMap {
    /// Factor `α = (1 − ημ)^E` of the previous `Δ`; between 0 and 1 for `0 < μ ≤ L`.
    pub contraction: f64,
    /// Error `g` that a round without noise adds to `Δ`.
    pub drift: f64,
    /// Bound `b` on the norm of the noise's bias.
    pub bias: f64,
    /// Bound `v` on the second moment of the noise.
    pub noise: f64,
}

impl RoundMap {
    /// The map of a round at rate `η`; `None` unless `0 < η ≤ 1/(4L)`, as the lemma of one step requires.
    pub fn new(problem: &Problem, rate: f64, noise: RelativeNoise) -> Option<Self> {
        if !(rate > 0.0 && 4.0 * problem.smoothness * rate <= 1.0) {
            return None;
        }
        let steps = problem.local_steps;
        let contraction = (1.0 - rate * problem.mu).powf(steps);
        let length = rate * steps * problem.gradient_bound;
        let spread = 2.0 * ((steps - 1.0) * problem.gradient_bound).powi(2);
        let one_step =
            problem.gradient_mean_square + 6.0 * problem.smoothness * problem.heterogeneity + spread;
        let steps_add = rate * one_step * (1.0 - contraction) / problem.mu;
        let drift = steps_add + problem.sampling_share() * length * length / problem.per_round;
        Some(Self {
            contraction,
            drift,
            bias: length * noise.bias,
            noise: length * length * noise.second_moment,
        })
    }

    /// Upper bound on `Δ⁺`, for `Δ = distance_squared`.
    pub fn apply(self, distance_squared: f64) -> f64 {
        let clean = self.contraction * distance_squared + self.drift;
        clean + 2.0 * self.bias * clean.sqrt() + self.noise
    }

    /// The floor: the fixed point, to which rounds at this rate converge from any start.
    pub fn floor(self) -> f64 {
        let Self { contraction, drift, bias, noise } = self;
        let lost = 1.0 - contraction;
        let half = contraction * bias;
        let root = (half + (half * half + lost * (contraction * noise + drift)).sqrt()) / lost;
        root * root + 2.0 * bias * root + noise
    }
}

/// `(2ρH/μ)²`, an upper bound on the limit of `E‖w − w*‖²` if the rate falls to 0.
pub fn limit_floor(problem: &Problem, noise: RelativeNoise) -> f64 {
    (2.0 * noise.bias * problem.gradient_bound / problem.mu).powi(2)
}
