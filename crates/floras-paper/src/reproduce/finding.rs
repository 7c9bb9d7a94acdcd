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
    /// Whether an estimate agrees with the claim; `None` if its interval does not decide.
    pub(super) agrees: fn(mean: f64, half: f64) -> Option<bool>,
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

    fn verdict(ours: &[f64], agrees: fn(f64, f64) -> Option<bool>) -> Verdict {
        let (published, unit, reason) = (None, "dB", String::new());
        Finding { claim: "", published, ours: ours.to_vec(), unit, agrees, reason }.judge().verdict
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
}
