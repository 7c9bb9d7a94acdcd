//! Claims that name a direction or an exact value, and the rule for their verdicts.
//!
//! A claim is compared with the mean of one number per trial and its 95% interval. It is inconclusive if the interval does not decide.

use floras_sim::Estimate;
use floras_sim::figure::{Claim, Verdict};

/// A measured quantity and the claim about it.
pub(super) struct Finding<'a> {
    pub(super) claim: &'a str,
    pub(super) published: Option<f64>,
    /// One number per trial, or per pair of trials.
    pub(super) ours: Vec<f64>,
    pub(super) unit: &'a str,
    /// Whether an estimate agrees with the claim, from its mean and half the width of its 95% interval; `None` if they do not decide.
    pub(super) agrees: &'a dyn Fn(f64, f64) -> Option<bool>,
    pub(super) reason: String,
}

/// Whether an estimate is positive. An exact 0 is not.
pub(super) fn is_above_zero(mean: f64, half: f64) -> Option<bool> {
    (mean.abs() > half || (mean == 0.0 && half == 0.0)).then_some(mean > 0.0)
}

/// Whether an estimate is negative. An exact 0 is not.
pub(super) fn is_below_zero(mean: f64, half: f64) -> Option<bool> {
    is_above_zero(-mean, half)
}

/// Whether an estimate is 0 in every trial.
pub(super) fn is_zero(mean: f64, half: f64) -> Option<bool> {
    Some(mean == 0.0 && half == 0.0)
}

/// Whether an estimate is at most a published bound. Estimates above it by less than the interval do not decide.
pub(super) fn is_at_most(bound: f64) -> impl Fn(f64, f64) -> Option<bool> {
    move |mean, half| match mean - bound {
        above if above <= -half => Some(true),
        above if above > 2.0 * half => Some(false),
        _ => None,
    }
}

/// Whether an estimate is a published number up to `margin`. The interval must be as narrow as the margin. It is widened twice for a
/// difference: an estimate of the published number itself differs with a probability of 0.5% with five trials, and 0.05% with twenty.
pub(super) fn is_near(published: f64, margin: f64) -> impl Fn(f64, f64) -> Option<bool> {
    move |mean, half| match (mean - published).abs() {
        away if away > margin + 2.0 * half => Some(false),
        away if away <= margin + half && half <= margin => Some(true),
        _ => None,
    }
}

impl Finding<'_> {
    /// The claim with its verdict.
    pub(super) fn judge(self) -> Claim {
        let estimate = Estimate::of(&self.ours);
        let verdict = match estimate {
            None => None,
            Some(Estimate { mean, ci95 }) => ci95.and_then(|half| (self.agrees)(mean, half)),
        };
        let reason = match estimate {
            None => "no trial has a result".to_owned(),
            Some(Estimate { ci95: None, .. }) => format!("one trial has no interval; {}", self.reason),
            Some(_) => self.reason,
        };
        Claim {
            claim: self.claim.to_owned(),
            published: self.published,
            ours: estimate.map(|estimate| estimate.mean),
            ci95: estimate.and_then(|estimate| estimate.ci95),
            unit: self.unit.to_owned(),
            verdict: match verdict {
                None => Verdict::Inconclusive,
                Some(true) => Verdict::Reproduced,
                Some(false) => Verdict::NotReproduced,
            },
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ours: &[f64], agrees: impl Fn(f64, f64) -> Option<bool>) -> Verdict {
        let (published, unit, reason) = (None, "dB", String::new());
        Finding { claim: "", published, ours: ours.to_vec(), unit, agrees: &agrees, reason }.judge().verdict
    }

    #[test]
    fn directions_need_an_interval_on_one_side() {
        assert_eq!(verdict(&[20.0, 20.1], is_above_zero), Verdict::Reproduced);
        assert_eq!(verdict(&[-20.0, -20.1], is_above_zero), Verdict::NotReproduced);
        assert_eq!(verdict(&[-20.0, -20.1], is_below_zero), Verdict::Reproduced);
        assert_eq!(verdict(&[-0.1, 0.2], is_above_zero), Verdict::Inconclusive);
        assert_eq!(verdict(&[0.0, 0.0], is_above_zero), Verdict::NotReproduced);
        assert_eq!(verdict(&[1.0], is_above_zero), Verdict::Inconclusive);
        assert_eq!(verdict(&[], is_above_zero), Verdict::Inconclusive);
    }

    #[test]
    fn an_exact_zero_allows_no_trial_elsewhere() {
        assert_eq!(verdict(&[0.0, 0.0], is_zero), Verdict::Reproduced);
        assert_eq!(verdict(&[0.0, 1e-9], is_zero), Verdict::NotReproduced);
        assert_eq!(verdict(&[1e-9, -1e-9], is_zero), Verdict::NotReproduced);
    }
    /// The interval of `[2.9, 3.1]` is ±1.27 around 3, that of `[2.999, 3.001]` is ±0.0127.
    #[test]
    fn bounds_and_numbers_have_margins() {
        assert_eq!(verdict(&[2.999, 3.001], is_at_most(3.1)), Verdict::Reproduced);
        assert_eq!(verdict(&[2.999, 3.001], is_at_most(2.98)), Verdict::Inconclusive);
        assert_eq!(verdict(&[2.999, 3.001], is_at_most(2.9)), Verdict::NotReproduced);
        assert_eq!(verdict(&[0.5, 0.5], is_at_most(0.5)), Verdict::Reproduced);
        assert_eq!(verdict(&[2.999, 3.001], is_near(3.1, 0.1)), Verdict::Reproduced);
        assert_eq!(verdict(&[2.9, 3.1], is_near(3.0, 0.1)), Verdict::Inconclusive);
        assert_eq!(verdict(&[2.999, 3.001], is_near(3.12, 0.1)), Verdict::Inconclusive);
        assert_eq!(verdict(&[2.999, 3.001], is_near(3.2, 0.1)), Verdict::NotReproduced);
    }
}
