//! The Gaussian mechanism: the privacy curve for a change of `μ` standard deviations.
//!
//! ```text
//! δ_G(ε; μ) = Φ(μ/2 − ε/μ) − e^ε·Φ(−μ/2 − ε/μ)
//! ```
//!
//! The second term is the first one's density seen from the other side, `e^ε·φ(−μ/2 − ε/μ) = φ(μ/2 − ε/μ)`. With the Mills
//! ratio `M` and `x = ε/μ`, the curve is therefore `φ(x − μ/2)·[M(x − μ/2) − M(x + μ/2)]`. This form has no large
//! exponentials, and no cancellation in the tails. For `x < μ/2` it is `1 − φ(x − μ/2)·[M(μ/2 − x) + M(x + μ/2)]`.
//!
//! # Citations
//! Balle, Wang, *Improving the Gaussian mechanism for differential privacy*, ICML 2018, theorem 8. Dong, Roth, Su, *Gaussian
//! differential privacy*, J. R. Stat. Soc. B 84, 2022: rounds of `μ_t` compose to `√(Σ μ_t²)`.

use crate::error::{PrivacyError, require_delta, require_epsilon};
use crate::numerics::normal::{density, mills_ratio, mills_slope};
use crate::numerics::quadrature::short_panel;
use crate::numerics::solve::first_at_most;

/// Below this `μ`, the bracket is integrated instead of subtracted.
const SMALL: f64 = 0.02;

/// `δ_G(ε; μ)` for any real `ε`, with `μ ≥ 0`; 1 for `μ = ∞`.
///
/// ```
/// use floras_privacy::gaussian;
///
/// // A mechanism with μ = 1 meets (1, 0.127)-DP.
/// assert!((gaussian::delta(1.0, 1.0) - 0.126_936_737_507).abs() < 1e-12);
/// ```
pub fn delta(epsilon: f64, mu: f64) -> f64 {
    if epsilon < 0.0 {
        return -epsilon.exp_m1() + epsilon.exp() * delta(-epsilon, mu);
    }
    if mu == 0.0 {
        return 0.0;
    }
    if mu == f64::INFINITY {
        return 1.0;
    }
    let x = epsilon / mu;
    let (near, far) = (x - 0.5 * mu, x + 0.5 * mu);
    if mu < SMALL {
        let bracket: f64 = short_panel(near, far).map(|(y, weight)| weight * mills_slope(y)).sum();
        density(near) * bracket
    } else if near < 0.0 {
        1.0 - density(near) * (mills_ratio(-near) + mills_ratio(far))
    } else {
        density(near) * (mills_ratio(near) - mills_ratio(far))
    }
}

/// The smallest `ε` with `δ_G(ε; μ) ≤ δ`.
pub fn epsilon(delta_allowed: f64, mu: f64) -> Result<f64, PrivacyError> {
    require_delta(delta_allowed)?;
    require_mu(mu)?;
    // P(loss > ε) ≤ δ at ε = μ²/2 + μ·√(2 ln(1/δ)).
    let most = 0.5 * mu * mu + mu * (2.0 * (1.0 / delta_allowed).ln()).sqrt();
    let epsilon =
        first_at_most(|epsilon| delta(epsilon, mu), delta_allowed, 0.5 * most, most.max(1e-300), 1e-13);
    Ok(epsilon.unwrap_or(most))
}

/// The largest `μ` with `δ_G(ε; μ) ≤ δ`, the sensitivity over the noise of the optimal central mechanism.
pub fn mu(epsilon: f64, delta_allowed: f64) -> Result<f64, PrivacyError> {
    require_epsilon(epsilon)?;
    require_delta(delta_allowed)?;
    // As a function of the noise 1/μ, the curve decreases.
    let at = |noise: f64| delta(epsilon, 1.0 / noise);
    let noise = first_at_most(at, delta_allowed, 1.0, 1e300, 1e-13);
    Ok(noise.map_or(0.0, |noise| 1.0 / noise))
}

/// `μ ≥ 0` and finite.
pub(crate) fn require_mu(mu: f64) -> Result<(), PrivacyError> {
    crate::error::require((0.0..=1e150).contains(&mu), "mu", "between 0 and 1e150", mu)
}
