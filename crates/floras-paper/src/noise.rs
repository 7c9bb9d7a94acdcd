//! Gaussian noise of one party that suffices for an `ε` on its own.

use floras_privacy::{PrivacyError, gaussian};

/// The least standard deviation of noise in each parameter with which `rounds` sums of updates of norm `clip = C` at most have `ε` at
/// `δ`. It is that of a trusted server for the sum, and that of a client for its own update.
///
/// `T` rounds are one with `μ = 2C·√T/σ`, hence `σ = 2C·√T/μ(ε, δ)`.
pub(crate) fn sufficient_std(clip: f64, rounds: u32, epsilon: f64, delta: f64) -> Result<f64, PrivacyError> {
    let mu = gaussian::mu(epsilon, delta)?;
    // The margin keeps rounding from raising the true ε above the target.
    Ok((1.0 + 1e-9) * 2.0 * clip * f64::from(rounds).sqrt() / mu)
}
