//! What the paper claims, as data, and how a verdict is reached.
//!
//! A number of the paper is **reproduced** if it lies within our 95% interval, widened by [`READING_POINTS`] for what the
//! paper rounds ("about"). The rule was fixed before the first run, and there is no other.

use floras_sim::Estimate;
use floras_sim::figure::{Claim, Verdict};

/// Points of accuracy that "about" and "almost the same" may mean.
pub const READING_POINTS: f64 = 1.0;

/// A difference in final test accuracy that the paper states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AccuracyClaim {
    /// The sentence.
    pub claim: &'static str,
    /// Points of accuracy, in hundredths.
    pub published_points: f64,
    /// The partition, as in an experiment file.
    pub partition: &'static str,
    /// The curve that is better or worse,
    pub of: &'static str,
    /// than this one.
    pub than: &'static str,
}

/// Section VII-A, figure 4.
pub const FIG4: [AccuracyClaim; 4] = [
    AccuracyClaim {
        claim: "IID, 0 dB: the test accuracy of FLORAS is about 7.5 points above that of channel inversion",
        published_points: 7.5,
        partition: "iid",
        of: "FLORAS 0 dB",
        than: "channel inversion 0 dB",
    },
    AccuracyClaim {
        claim: "non-IID, 0 dB: the test accuracy of FLORAS is 10.2 points above that of channel inversion",
        published_points: 10.2,
        partition: "one-label",
        of: "FLORAS 0 dB",
        than: "channel inversion 0 dB",
    },
    AccuracyClaim {
        claim: "IID, 15 dB: FLORAS and channel inversion perform alike",
        published_points: 0.0,
        partition: "iid",
        of: "FLORAS 15 dB",
        than: "channel inversion 15 dB",
    },
    AccuracyClaim {
        claim: "non-IID, 15 dB: FLORAS and channel inversion perform alike",
        published_points: 0.0,
        partition: "one-label",
        of: "FLORAS 15 dB",
        than: "channel inversion 15 dB",
    },
];

/// Section VII-B, figure 5.
pub const FIG5: [AccuracyClaim; 6] = [
    AccuracyClaim {
        claim: "IID, 20 dB: γ = 10 costs about 3.5 points of test accuracy",
        published_points: -3.5,
        partition: "iid",
        of: "γ = 10",
        than: "γ = 0",
    },
    AccuracyClaim {
        claim: "non-IID, 20 dB: γ = 10 costs about 2.5 points of test accuracy",
        published_points: -2.5,
        partition: "one-label",
        of: "γ = 10",
        than: "γ = 0",
    },
    AccuracyClaim {
        claim: "IID, 20 dB: γ = 1 costs almost nothing",
        published_points: 0.0,
        partition: "iid",
        of: "γ = 1",
        than: "γ = 0",
    },
    AccuracyClaim {
        claim: "IID, 20 dB: γ = 5 costs almost nothing",
        published_points: 0.0,
        partition: "iid",
        of: "γ = 5",
        than: "γ = 0",
    },
    AccuracyClaim {
        claim: "non-IID, 20 dB: γ = 1 costs almost nothing",
        published_points: 0.0,
        partition: "one-label",
        of: "γ = 1",
        than: "γ = 0",
    },
    AccuracyClaim {
        claim: "non-IID, 20 dB: γ = 5 costs almost nothing",
        published_points: 0.0,
        partition: "one-label",
        of: "γ = 5",
        than: "γ = 0",
    },
];

impl AccuracyClaim {
    /// The verdict on differences in points, one for each pair of trials that shared their channels and batches.
    pub fn judge(&self, differences: &[f64]) -> Claim {
        let ours = Estimate::of(differences);
        let (verdict, reason) = match ours {
            None => (Verdict::NotReproduced, "no pair of trials finished".to_owned()),
            Some(ours) => self.compare(ours),
        };
        Claim {
            claim: self.claim.to_owned(),
            published: self.published_points,
            ours: ours.map(|ours| ours.mean),
            ci95: ours.and_then(|ours| ours.ci95),
            unit: "points".to_owned(),
            verdict,
            reason,
        }
    }

    fn compare(&self, ours: Estimate) -> (Verdict, String) {
        let allowed = ours.ci95.unwrap_or(0.0) + READING_POINTS;
        let apart = (ours.mean - self.published_points).abs();
        let verdict = if apart <= allowed { Verdict::Reproduced } else { Verdict::NotReproduced };
        let shows_nothing = self.published_points != 0.0 && ours.mean.abs() <= ours.ci95.unwrap_or(0.0);
        let but = if shows_nothing { "; no difference at all is within our interval as well" } else { "" };
        let reason =
            format!("{apart:.1} points apart; {allowed:.1} are within our interval and a reading error{but}");
        (verdict, reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(differences: &[f64]) -> Verdict {
        FIG4[0].judge(differences).verdict
    }

    #[test]
    fn a_claim_is_reproduced_within_the_interval_and_a_point() {
        // Two equal trials have an interval of width 0.
        assert_eq!(verdict(&[8.4, 8.4]), Verdict::Reproduced);
        assert_eq!(verdict(&[6.6, 6.6]), Verdict::Reproduced);
        assert_eq!(verdict(&[8.6, 8.6]), Verdict::NotReproduced);
        assert_eq!(verdict(&[6.4, 6.4]), Verdict::NotReproduced);
        // Mean 9.5 and interval 0.25·12.706/√2·√2 = 3.2 for two trials half a point apart.
        assert_eq!(verdict(&[9.25, 9.75]), Verdict::Reproduced);
        assert_eq!(verdict(&[]), Verdict::NotReproduced);
    }

    #[test]
    fn a_verdict_says_how_it_was_reached() {
        let claim = FIG4[1].judge(&[12.0, 12.0, 12.0]);
        assert_eq!((claim.published, claim.ours, claim.ci95), (10.2, Some(12.0), Some(0.0)));
        assert_eq!(claim.reason, "1.8 points apart; 1.0 are within our interval and a reading error");
        let unsure = FIG5[1].judge(&[-2.0, 0.0]);
        assert!(
            unsure.reason.ends_with("no difference at all is within our interval as well"),
            "{}",
            unsure.reason
        );
    }
}
