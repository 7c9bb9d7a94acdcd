//! What the paper claims, as data, and how a verdict is reached.
//!
//! All rules compare with our 95% interval of a difference between two curves, widened by [`Measure::margin`] for what the
//! paper rounds ("about", "almost the same"):
//!
//! | the paper's number | reproduced | inconclusive | not reproduced |
//! |---|---|---|---|
//! | an effect | inside, and no effect outside of the interval | inside, and no effect inside as well | outside |
//! | no effect | inside, and half the interval at most [`Measure::resolution`] | inside a wider interval | outside |
//!
//! One trial has no interval and is inconclusive. The rules were fixed before the runs that they judge.

use floras_sim::Estimate;
use floras_sim::figure::{Claim, Verdict};

/// What two curves are compared in, at their last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Test accuracy, in points (hundredths).
    Accuracy,
    /// Training loss with penalty, in percent of the other curve's.
    Loss,
}

impl Measure {
    /// What "about" and "almost the same" may mean: 1 point of accuracy, 5% of the loss.
    pub fn margin(self) -> f64 {
        match self {
            Self::Accuracy => 1.0,
            Self::Loss => 5.0,
        }
    }

    /// Half the widest interval that can show that there is no effect: half the smallest effect in the paper, 2.5 points, and
    /// half of the margin for the loss.
    pub fn resolution(self) -> f64 {
        match self {
            Self::Accuracy => 1.25,
            Self::Loss => 2.5,
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Accuracy => "points",
            Self::Loss => "%",
        }
    }
}

/// A difference between two curves that the paper states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveClaim {
    /// The sentence.
    pub claim: &'static str,
    /// What is compared.
    pub measure: Measure,
    /// The paper's number, in the unit of the measure; 0 for no effect.
    pub published: f64,
    /// The partition, as in an experiment file.
    pub partition: &'static str,
    /// The curve that is better or worse,
    pub of: &'static str,
    /// than this one.
    pub than: &'static str,
}

/// Section VII-A, figure 4.
pub const FIG4: [CurveClaim; 4] = [
    CurveClaim {
        claim: "IID, 0 dB: the test accuracy of FLORAS is about 7.5 points above that of channel inversion",
        measure: Measure::Accuracy,
        published: 7.5,
        partition: "iid",
        of: "FLORAS 0 dB",
        than: "channel inversion 0 dB",
    },
    CurveClaim {
        claim: "non-IID, 0 dB: the test accuracy of FLORAS is 10.2 points above that of channel inversion",
        measure: Measure::Accuracy,
        published: 10.2,
        partition: "one-label",
        of: "FLORAS 0 dB",
        than: "channel inversion 0 dB",
    },
    CurveClaim {
        claim: "IID, 15 dB: FLORAS and channel inversion perform alike",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "iid",
        of: "FLORAS 15 dB",
        than: "channel inversion 15 dB",
    },
    CurveClaim {
        claim: "non-IID, 15 dB: FLORAS and channel inversion perform alike",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "one-label",
        of: "FLORAS 15 dB",
        than: "channel inversion 15 dB",
    },
];

/// Section VII-B, figure 5.
pub const FIG5: [CurveClaim; 8] = [
    CurveClaim {
        claim: "IID, 20 dB: γ = 10 costs about 3.5 points of test accuracy",
        measure: Measure::Accuracy,
        published: -3.5,
        partition: "iid",
        of: "γ = 10",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "non-IID, 20 dB: γ = 10 costs about 2.5 points of test accuracy",
        measure: Measure::Accuracy,
        published: -2.5,
        partition: "one-label",
        of: "γ = 10",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "IID, 20 dB: γ = 1 costs almost nothing",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "iid",
        of: "γ = 1",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "IID, 20 dB: γ = 5 costs almost nothing",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "iid",
        of: "γ = 5",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "non-IID, 20 dB: γ = 1 costs almost nothing",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "one-label",
        of: "γ = 1",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "non-IID, 20 dB: γ = 5 costs almost nothing",
        measure: Measure::Accuracy,
        published: 0.0,
        partition: "one-label",
        of: "γ = 5",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "IID, 20 dB: γ = 10 converges to almost the same training loss",
        measure: Measure::Loss,
        published: 0.0,
        partition: "iid",
        of: "γ = 10",
        than: "γ = 0",
    },
    CurveClaim {
        claim: "non-IID, 20 dB: γ = 10 converges to almost the same training loss",
        measure: Measure::Loss,
        published: 0.0,
        partition: "one-label",
        of: "γ = 10",
        than: "γ = 0",
    },
];

impl CurveClaim {
    /// The verdict on differences, one for each pair of trials that shared their channels and batches.
    pub fn judge(&self, differences: &[f64]) -> Claim {
        let ours = Estimate::of(differences);
        let (verdict, reason) = match ours {
            None => (Verdict::Inconclusive, "no pair of trials finished".to_owned()),
            Some(Estimate { ci95: None, .. }) => {
                (Verdict::Inconclusive, "one trial has no interval".to_owned())
            }
            Some(Estimate { mean, ci95: Some(half) }) => self.compare(mean, half),
        };
        Claim {
            claim: self.claim.to_owned(),
            published: Some(self.published),
            ours: ours.map(|ours| ours.mean),
            ci95: ours.and_then(|ours| ours.ci95),
            unit: self.measure.unit().to_owned(),
            verdict,
            reason,
        }
    }

    fn compare(&self, mean: f64, half: f64) -> (Verdict, String) {
        let (margin, resolution, unit) =
            (self.measure.margin(), self.measure.resolution(), self.measure.unit());
        let apart = (mean - self.published).abs();
        let distance = format!(
            "{apart:.1} {unit} apart; {:.1} are within our interval and a reading error of {margin}",
            half + margin
        );
        if apart > half + margin {
            (Verdict::NotReproduced, distance)
        } else if self.published != 0.0 && mean.abs() <= half {
            (Verdict::Inconclusive, format!("{distance}; no effect is within our interval as well"))
        } else if self.published == 0.0 && half > resolution {
            let reason = format!("{distance}; an interval of more than ±{resolution} {unit} cannot show it");
            (Verdict::Inconclusive, reason)
        } else {
            (Verdict::Reproduced, distance)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(claim: &CurveClaim, differences: &[f64]) -> Verdict {
        claim.judge(differences).verdict
    }

    #[test]
    fn an_effect_is_reproduced_within_the_interval_and_a_point() {
        // Two equal trials have an interval of width 0.
        assert_eq!(verdict(&FIG4[0], &[8.4, 8.4]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[0], &[6.6, 6.6]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[0], &[8.6, 8.6]), Verdict::NotReproduced);
        assert_eq!(verdict(&FIG4[0], &[6.4, 6.4]), Verdict::NotReproduced);
        // Mean 9.5, and an interval of ±12.706·0.25 = 3.2 for two trials half a point apart.
        assert_eq!(verdict(&FIG4[0], &[9.25, 9.75]), Verdict::Reproduced);
    }

    #[test]
    fn an_interval_that_holds_both_the_number_and_no_effect_is_inconclusive() {
        // Review's cases: +9.8 ± 11.3 for +10.2, and −0.6 ± 1.0 for −2.5.
        assert_eq!(verdict(&FIG4[1], &[8.91, 10.69]), Verdict::Inconclusive);
        assert_eq!(verdict(&FIG5[1], &[-1.3, 0.0, -0.5]), Verdict::Inconclusive);
        // No effect inside, but the number outside.
        assert_eq!(verdict(&FIG4[1], &[0.1, -0.1]), Verdict::NotReproduced);
    }

    #[test]
    fn no_effect_needs_a_narrow_interval() {
        // ±12.706·0.05 = 0.6 and ±12.706·0.2 = 2.5.
        assert_eq!(verdict(&FIG4[2], &[0.05, 0.15]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[2], &[-0.1, 0.3]), Verdict::Inconclusive);
        assert_eq!(verdict(&FIG4[2], &[1.1, 1.1]), Verdict::NotReproduced);
    }

    #[test]
    fn without_an_interval_nothing_is_concluded() {
        assert_eq!(verdict(&FIG4[0], &[7.5]), Verdict::Inconclusive);
        assert_eq!(verdict(&FIG4[0], &[]), Verdict::Inconclusive);
    }

    #[test]
    fn a_verdict_says_how_it_was_reached() {
        let claim = FIG4[1].judge(&[12.0, 12.0, 12.0]);
        assert_eq!((claim.published, claim.ours, claim.ci95), (Some(10.2), Some(12.0), Some(0.0)));
        assert_eq!(claim.reason, "1.8 points apart; 1.0 are within our interval and a reading error of 1");
        let unsure = FIG5[1].judge(&[-2.0, 0.0]);
        assert!(unsure.reason.ends_with("no effect is within our interval as well"), "{}", unsure.reason);
    }
}
