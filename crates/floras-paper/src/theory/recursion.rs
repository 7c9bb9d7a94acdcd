//! What can be proved instead of Theorem 4: training reaches a neighbourhood of the optimum, and stays there.
//!
//! **Setting.** Assumptions 1 to 3; every mini-batch gradient has norm `H` at most; the paper's normalisation; a rate
//! `η ≤ 1/(4L)` that is constant within a round of `E` steps; `e` is what clamped noise adds to the clean average `u`
//! of a round. The noise of a round is independent of what is sent, at high SNR.
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
//! **Rates that fall to 0** (with `Σ η = ∞`): `g` and `v` shrink as `η²`, while `b` and `1 − α` shrink as `η`, so
//! that for any `Δ` above `(2ρH/μ)²`, `ρ = |β(KC)|/(KC)`, the step down is eventually larger than all steps up. So
//! `limsup Δ_t ≤ (2ρH/μ)²`. It is 0 only where clamping has no bias. This is why `O(1/t)` is not proved. `ρ` lies
//! between 0 and 1. Where the gradient of `f` is bounded by `H`, `‖w − w*‖ ≤ H/μ` is known anyway, so that the floor
//! says something new only for `ρ < ½`.
//!
//! # Citations
//! Li, Huang, Yang, Wang, Zhang, *On the convergence of FedAvg on non-IID data*, ICLR 2020.

use super::bound::Problem;

/// What a round's noise is at most, as shares of `K` times the longest update: bias `ρ` and root mean square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeNoise {
    /// `ρ = |β(KC)|/(KC)`.
    pub bias: f64,
    /// `[(d−1)m(0) + m(KC)]/(KC)²`.
    pub second_moment: f64,
}

/// One round's effect on `Δ = E‖w − w*‖²`, at most.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoundMap {
    /// `α`.
    pub contraction: f64,
    /// `g`.
    pub drift: f64,
    /// `b`.
    pub bias: f64,
    /// `v`.
    pub noise: f64,
}

impl RoundMap {
    /// The map of a round at rate `η`. `None` if `η > 1/(4L)`, where the lemma of one step says nothing.
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

    /// `Δ⁺`, at most.
    pub fn apply(self, distance_squared: f64) -> f64 {
        let clean = self.contraction * distance_squared + self.drift;
        clean + 2.0 * self.bias * clean.sqrt() + self.noise
    }

    /// The floor: the fixed point, to which all rounds at this rate lead.
    pub fn floor(self) -> f64 {
        let Self { contraction, drift, bias, noise } = self;
        let lost = 1.0 - contraction;
        let half = contraction * bias;
        let root = (half + (half * half + lost * (contraction * noise + drift)).sqrt()) / lost;
        root * root + 2.0 * bias * root + noise
    }
}

/// `(2ρH/μ)²`, what is left of `E‖w − w*‖²` at most when the rate falls to 0.
pub fn limit_floor(problem: &Problem, noise: RelativeNoise) -> f64 {
    (2.0 * noise.bias * problem.gradient_bound / problem.mu).powi(2)
}
