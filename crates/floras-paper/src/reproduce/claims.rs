//! The paper's claims as data, and the rules for verdicts.
//!
//! All rules compare the paper's number with an interval of ours for a difference between two curves. The interval is widened by
//! [`Measure::margin`] for what the paper rounds ("about", "almost the same"). Two intervals are used, both from Student's distribution:
//! the 95% interval of one claim, and the *simultaneous* one. The latter has the level `1 − 5%/12` for the twelve claims on curves
//! (Bonferroni), so the probability that any of them misses its number is at most 5%.
//!
//! | the paper's number | reproduced | not reproduced | inconclusive |
//! |---|---|---|---|
//! | an effect `p` | inside the 95% interval; half the interval at most `\|p\|/2`; half of the effect, `p/2`, outside of the interval | outside of the simultaneous interval | otherwise |
//! | no effect | inside the 95% interval; half the interval at most [`Measure::resolution`] | outside of the simultaneous interval | otherwise |
//!
//! Why both need more than the 95% interval:
//!
//! - A wide interval contains nearly every number. *Reproduced* needs power: the interval distinguishes the number from no effect and from
//!   half of the effect. If the effect is the paper's, an interval of `±p/4` does so with a probability of 97.5%.
//! - A 95% interval misses one number in twenty, so twelve of them contradict a correct paper in up to 46% of all runs. With three trials,
//!   this happens if the trials are close to each other by accident. *Not reproduced* therefore uses the simultaneous interval.
//!
//! One trial has no interval and is inconclusive. The rules were fixed before the runs that they judge.

use floras_sim::Estimate;
use floras_sim::figure::{Claim, Verdict};

/// Training loss in nats where every curve begins: all parameters are 0, and ten digits are equally likely.
pub const START_LOSS: f64 = std::f64::consts::LN_10;

/// The quantity in which two curves are compared, at their last round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Test accuracy, in points (hundredths).
    Accuracy,
    /// Training loss with penalty, in percent of the other curve's decrease from [`START_LOSS`]. Percent of the loss itself would have no
    /// power: early in training all losses are close to their start value, and so to each other.
    Loss,
}

impl Measure {
    /// Tolerance for "about" and "almost the same": 1 point of accuracy, 5% of the decrease of the loss.
    pub fn margin(self) -> f64 {
        match self {
            Self::Accuracy => 1.0,
            Self::Loss => 5.0,
        }
    }

    /// Maximum half width of an interval that can show the absence of an effect. For accuracies it is half of 2.5 points, the smallest
    /// effect in the paper. For losses it is half of the margin.
    pub fn resolution(self) -> f64 {
        match self {
            Self::Accuracy => 1.25,
            Self::Loss => 2.5,
        }
    }

    /// The difference of two final values, `of` minus `than`, in the unit of the measure. Accuracies are from 0 to 1, losses in nats.
    pub fn difference(self, of: f64, than: f64) -> f64 {
        match self {
            Self::Accuracy => 100.0 * (of - than),
            Self::Loss => 100.0 * (of - than) / (START_LOSS - than),
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::Accuracy => "points",
            Self::Loss => "% of the decrease",
        }
    }
}

/// A difference between two curves that the paper states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurveClaim {
    /// The claim, in one sentence.
    pub claim: &'static str,
    /// The quantity that is compared.
    pub measure: Measure,
    /// The paper's number, in the unit of the measure; 0 for no effect.
    pub published: f64,
    /// The partition, as in an experiment file.
    pub partition: &'static str,
    /// The curve whose value is above or below that of `than`.
    pub of: &'static str,
    /// The curve with which `of` is compared: its value is subtracted.
    pub than: &'static str,
}

/// The claims of Section VII-A about figure 4: FLORAS, channel inversion and phase correction.
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

/// The claims of Section VII-B about figure 5: the effect of unused sequences.
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

/// Quantile of Student's distribution for the simultaneous interval: 97.5% if there were one claim.
const SIMULTANEOUS: f64 = 1.0 - 0.025 / (FIG4.len() + FIG5.len()) as f64;

impl CurveClaim {
    /// The verdict on differences, one for each pair of trials that shared their channels and batches.
    pub fn judge(&self, differences: &[f64]) -> Claim {
        let ours = Estimate::of(differences);
        let (verdict, reason) = match ours {
            None => (Verdict::Inconclusive, "no pair of trials finished".to_owned()),
            Some(Estimate { ci95: None, .. }) => {
                (Verdict::Inconclusive, "one trial has no interval".to_owned())
            }
            Some(Estimate { mean, ci95: Some(half) }) => {
                let simultaneous = Estimate::half_width(differences, SIMULTANEOUS).unwrap_or(half);
                self.compare(mean, half, simultaneous)
            }
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

    /// The largest half width of an interval that distinguishes the paper's number from its alternative.
    fn resolution(&self) -> f64 {
        if self.published == 0.0 { self.measure.resolution() } else { 0.5 * self.published.abs() }
    }

    fn compare(&self, mean: f64, half: f64, simultaneous: f64) -> (Verdict, String) {
        let (margin, resolution, unit) = (self.measure.margin(), self.resolution(), self.measure.unit());
        let apart = (mean - self.published).abs();
        let distance = |half: f64, which: &str| {
            let within = half + margin;
            format!(
                "{apart:.1} {unit} apart; {within:.1} are within our {which} and a reading error of {margin}"
            )
        };
        if apart > simultaneous + margin {
            return (Verdict::NotReproduced, distance(simultaneous, "simultaneous interval"));
        }
        let reason = distance(half, "interval");
        if apart > half + margin {
            let within = simultaneous + margin;
            (Verdict::Inconclusive, format!("{reason}, {within:.1} within the simultaneous one"))
        } else if half > resolution {
            (
                Verdict::Inconclusive,
                format!("{reason}; an interval of more than ±{resolution} {unit} cannot show it"),
            )
        } else if self.published != 0.0 && mean * self.published.signum() - half <= 0.5 * self.published.abs()
        {
            (Verdict::Inconclusive, format!("{reason}; half of the effect is within our interval as well"))
        } else {
            (Verdict::Reproduced, reason)
        }
    }
}

#[cfg(test)]
mod tests {
    use floras_core::random::{Purpose, StreamName};
    use rand::RngExt;

    use super::*;

    fn verdict(claim: &CurveClaim, differences: &[f64]) -> Verdict {
        claim.judge(differences).verdict
    }

    #[test]
    fn effects_are_reproduced_within_interval_and_point() {
        // Two equal trials have an interval of width 0.
        assert_eq!(verdict(&FIG4[0], &[8.4, 8.4]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[0], &[6.6, 6.6]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[0], &[8.6, 8.6]), Verdict::NotReproduced);
        assert_eq!(verdict(&FIG4[0], &[6.4, 6.4]), Verdict::NotReproduced);
        // Mean 9.5, and an interval of ±12.706·0.25 = 3.2 for two trials half a point apart.
        assert_eq!(verdict(&FIG4[0], &[9.25, 9.75]), Verdict::Reproduced);
    }

    #[test]
    fn the_interval_must_exclude_half_the_effect() {
        // Review's cases: +9.8 ± 11.3 for +10.2, and −0.6 ± 1.0 for −2.5.
        assert_eq!(verdict(&FIG4[1], &[8.91, 10.69]), Verdict::Inconclusive);
        assert_eq!(verdict(&FIG5[1], &[-1.3, 0.0, -0.5]), Verdict::Inconclusive);
        // ±12.706·0.09 = 1.14 around −2.6 ends at −1.46, and around −2.3 at −1.16; half of −2.5 is −1.25.
        assert_eq!(verdict(&FIG5[1], &[-2.51, -2.69]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG5[1], &[-2.21, -2.39]), Verdict::Inconclusive);
        // An interval beyond half of the effect, and too wide: ±12.706·0.12 = 1.5 around −3.
        assert_eq!(verdict(&FIG5[1], &[-2.88, -3.12]), Verdict::Inconclusive);
        // No effect inside, and the number far outside.
        assert_eq!(verdict(&FIG4[1], &[0.01, -0.01]), Verdict::NotReproduced);
    }

    /// For two trials, Student's quantile at `1 − 0.025/12` is `tan(π·(1/2 − 0.025/12)) = 152.8`, at 97.5% it is 12.7.
    #[test]
    fn only_the_simultaneous_interval_contradicts_a_number() {
        // ±0.6 and ±7.6 around 11, 3.5 points from 7.5.
        assert_eq!(verdict(&FIG4[0], &[10.95, 11.05]), Verdict::Inconclusive);
        // ±0.2 and ±2.3 (3.3 with the margin), and ±0.2 and ±2.6 (3.6 with the margin).
        assert_eq!(verdict(&FIG4[0], &[10.985, 11.015]), Verdict::NotReproduced);
        assert_eq!(verdict(&FIG4[0], &[10.983, 11.017]), Verdict::Inconclusive);
    }

    /// Twelve true claims with three trials each, and a standard deviation of 100, relative to which margins are small. The share of runs
    /// with a claim that is not reproduced is `1 − (1 − 5%/12)^12 = 4.9%`, less the effect of the margins. For 4,000 runs it is between
    /// 3.5% and 6.0% with probability 99.8%. With 95% intervals it would be 46%.
    #[test]
    fn true_claims_are_rarely_contradicted() {
        let mut random = StreamName::new(5, Purpose(0)).stream();
        let mut normal = || {
            let (radius, angle): (f64, f64) = (random.random(), random.random());
            (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
        };
        let runs = 4000;
        let mut contradicted = 0;
        for _ in 0..runs {
            let missed = FIG4.iter().chain(&FIG5).filter(|claim| {
                let trials = [0; 3].map(|_| claim.published + 100.0 * normal());
                verdict(claim, &trials) == Verdict::NotReproduced
            });
            contradicted += usize::from(missed.count() > 0);
        }
        let share = contradicted as f64 / f64::from(runs);
        assert!((0.035..=0.06).contains(&share), "{share}");
    }

    #[test]
    fn no_effect_needs_a_narrow_interval() {
        // ±12.706·0.05 = 0.6 and ±12.706·0.2 = 2.5.
        assert_eq!(verdict(&FIG4[2], &[0.05, 0.15]), Verdict::Reproduced);
        assert_eq!(verdict(&FIG4[2], &[-0.1, 0.3]), Verdict::Inconclusive);
        assert_eq!(verdict(&FIG4[2], &[1.1, 1.1]), Verdict::NotReproduced);
    }

    #[test]
    fn losses_are_compared_by_how_far_they_fell() {
        let near = |of: f64, than: f64, percent: f64| {
            let found = Measure::Loss.difference(of, than);
            assert!((found - percent).abs() < 1e-9, "{found}, not {percent}");
        };
        near(START_LOSS, 1.0, 100.0);
        near(1.0, 1.0, 0.0);
        // Half the decrease of the other, although both are within 3% of the start value.
        near(START_LOSS - 0.03, START_LOSS - 0.06, 50.0);
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
        let far = "1.8 points apart; 1.0 are within our simultaneous interval and a reading error of 1";
        assert_eq!(claim.reason, far);
        let near = FIG4[1].judge(&[11.0, 11.0, 11.0]);
        assert_eq!(near.reason, "0.8 points apart; 1.0 are within our interval and a reading error of 1");
        let reason = |differences: &[f64]| FIG5[1].judge(differences).reason;
        let unsure = reason(&[-2.21, -2.39]);
        assert!(unsure.ends_with("half of the effect is within our interval as well"), "{unsure}");
        let wide = reason(&[-2.88, -3.12]);
        assert!(wide.ends_with("an interval of more than ±1.25 points cannot show it"), "{wide}");
        let missed = reason(&[-4.98, -5.02]);
        assert!(
            missed.ends_with(
                "1.3 are within our interval and a reading error of 1, 4.1 within the simultaneous one"
            ),
            "{missed}"
        );
    }
}
