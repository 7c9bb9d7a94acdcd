//! How a run ended: each trial, and means with 95% intervals over the trials.
//!
//! The interval of a mean over `n` trials is `mean ± t·s/√n`, with `s` their standard deviation and `t` the 97.5% quantile of
//! Student's distribution with `n − 1` degrees of freedom.

use floras_phy::Cost;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::accounting::PrivacyReport;
use crate::cost;
use crate::experiment::{Settings, VERSION};
use crate::federation::RoundMetrics;

/// The content of `summary.json`. It does not depend on the machine or the time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// The experiment's name.
    pub name: String,
    /// Version of the program.
    pub version: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of rounds per trial.
    pub rounds: u32,
    /// Number of updates in the trials' last rounds that were not finite and were sent as zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken: u32,
    /// How each trial ended.
    pub trials: Vec<TrialSummary>,
    /// Means over the trials that finished; `None` if all diverged.
    #[serde(rename = "final")]
    pub finals: Option<Finals>,
    /// The cost of a trial on the air, as in [`TrialSummary::Finished`]: means over the trials that finished, and the largest peak
    /// power. `None` for schemes without a radio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The privacy statements.
    pub privacy: PrivacyReport,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The end of a trial: all rounds done, or diverged.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "status", rename_all = "kebab-case")]
pub enum TrialSummary {
    /// All rounds were done.
    Finished {
        /// The trial, counted from 0.
        trial: u32,
        /// Loss over all training samples, with the penalty.
        train_loss: f64,
        /// Loss over the test samples, with the penalty.
        test_loss: f64,
        /// Share of the test samples that are classified correctly.
        test_accuracy: f64,
        /// Its cost on the air: channel uses and energy of all rounds together, the largest peak power, and means over the rounds
        /// of mean power and dynamic range. `None` for schemes without a radio, and if an earlier version ran some of the rounds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost>,
    },
    /// A parameter of the common model, or the last loss, was not finite or too large.
    Diverged {
        /// The trial, counted from 0.
        trial: u32,
        /// The round in which it diverged, counted from 1.
        round: u32,
    },
}

/// Final values over the trials that finished.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Finals {
    /// Loss over all training samples, with the penalty.
    pub train_loss: Estimate,
    /// Loss over the test samples, with the penalty.
    pub test_loss: Estimate,
    /// Share of the test samples that are classified correctly.
    pub test_accuracy: Estimate,
}

/// A mean with its 95% interval.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the trials.
    pub mean: f64,
    /// Half the width of the 95% interval; `None` for a single trial.
    pub ci95: Option<f64>,
}

impl Estimate {
    /// The mean of some values, and its interval; `None` without values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        Some(Self { mean, ci95: Self::half_width(values, 0.975) })
    }

    /// Half the width of the interval of the mean of some values, `t·s/√n`, with `t` the given quantile of Student's distribution:
    /// 0.975 for the 95% interval. `None` for fewer than two values, and if it is not finite.
    pub fn half_width(values: &[f64], quantile: f64) -> Option<f64> {
        let count = values.len() as f64;
        let mean = mean(values)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let student = StudentsT::new(0.0, 1.0, count - 1.0).ok()?;
        let half = student.inverse_cdf(quantile) * (squares / (count - 1.0) / count).sqrt();
        half.is_finite().then_some(half)
    }
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

impl Summary {
    /// A summary of the last line and the cost of every trial.
    pub(crate) fn new(
        settings: &Settings,
        rounds: u32,
        last_lines: &[RoundMetrics],
        costs: &[Option<Cost>],
        privacy: PrivacyReport,
    ) -> Self {
        let ends = last_lines.iter().zip(costs);
        let trials: Vec<TrialSummary> = ends.map(|(last, cost)| TrialSummary::new(last, *cost)).collect();
        let costs: Vec<Cost> = trials.iter().filter_map(TrialSummary::cost).collect();
        let finished: Vec<[f64; 3]> = trials.iter().filter_map(TrialSummary::values).collect();
        let estimate = |index: usize| {
            let values: Vec<f64> = finished.iter().map(|values| values[index]).collect();
            Estimate::of(&values)
        };
        let finals = match [estimate(0), estimate(1), estimate(2)] {
            [Some(train_loss), Some(test_loss), Some(test_accuracy)] => {
                Some(Finals { train_loss, test_loss, test_accuracy })
            }
            _ => None,
        };
        Self {
            name: settings.name.clone(),
            version: VERSION.to_owned(),
            seed: settings.seed,
            rounds,
            broken: last_lines.iter().map(|line| line.broken).sum(),
            trials,
            finals,
            cost: cost::average(&costs),
            privacy,
        }
    }

    /// Rounds done, over all trials.
    pub(crate) fn rounds_done(&self) -> u64 {
        let rounds = |trial: &TrialSummary| match *trial {
            TrialSummary::Finished { .. } => self.rounds,
            TrialSummary::Diverged { round, .. } => round,
        };
        self.trials.iter().map(|trial| u64::from(rounds(trial))).sum()
    }

    /// Trials that diverged, each with its round.
    pub fn diverged(&self) -> Vec<(u32, u32)> {
        let round = |trial: &TrialSummary| match *trial {
            TrialSummary::Diverged { trial, round } => Some((trial, round)),
            TrialSummary::Finished { .. } => None,
        };
        self.trials.iter().filter_map(round).collect()
    }
}

impl TrialSummary {
    fn new(last: &RoundMetrics, cost: Option<Cost>) -> Self {
        match (last.train_loss, last.test_loss, last.test_accuracy) {
            (Some(train_loss), Some(test_loss), Some(test_accuracy)) if !last.diverged => {
                Self::Finished { trial: last.trial, train_loss, test_loss, test_accuracy, cost }
            }
            _ => Self::Diverged { trial: last.trial, round: last.round },
        }
    }

    /// The cost of a finished trial on the air.
    pub fn cost(&self) -> Option<Cost> {
        match *self {
            Self::Finished { cost, .. } => cost,
            Self::Diverged { .. } => None,
        }
    }

    fn values(&self) -> Option<[f64; 3]> {
        match *self {
            Self::Finished { train_loss, test_loss, test_accuracy, .. } => {
                Some([train_loss, test_loss, test_accuracy])
            }
            Self::Diverged { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// t quantiles as printed in tables: 12.706 for 1 degree of freedom, 2.776 for 4.
    #[test]
    fn intervals_follow_students_distribution() {
        let two = Estimate::of(&[1.0, 3.0]).unwrap();
        assert_eq!(two.mean, 2.0);
        assert!((two.ci95.unwrap() - 12.706).abs() < 1e-3);
        let five = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((five.ci95.unwrap() - 2.776 * (2.5_f64 / 5.0).sqrt()).abs() < 1e-3);
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, ci95: None }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn diverged_trials_are_listed_and_not_averaged() {
        let finished = |trial, accuracy| RoundMetrics {
            trial,
            round: 9,
            train_loss: Some(0.5),
            test_loss: Some(0.6),
            test_accuracy: Some(accuracy),
            ..RoundMetrics::default()
        };
        let lines = [finished(0, 0.8), RoundMetrics::diverged(1, 4, 0.1), finished(2, 0.9)];
        let summarise = |lines: &[RoundMetrics]| {
            let privacy = PrivacyReport {
                delta: 1e-5,
                rounds: 9,
                level: "client".to_owned(),
                views: floras_privacy::Views::default(),
                worst_client: None,
                notes: Vec::new(),
                growth: Vec::new(),
                curves: Vec::new(),
            };
            let costs = [Cost { energy: 3.0, ..Cost::default() }, Cost::default(), Cost::default()].map(Some);
            Summary::new(&Settings::default(), 9, lines, &costs, privacy)
        };
        let summary = summarise(&lines);
        assert_eq!(summary.diverged(), [(1, 4)]);
        let finals = summary.finals.unwrap();
        assert!((finals.test_accuracy.mean - 0.85).abs() < 1e-12);
        assert_eq!((finals.train_loss.mean, finals.test_loss.mean), (0.5, 0.6));
        assert_eq!(summary.cost.unwrap().energy, 1.5);
        let text = serde_json::to_string(&summary).unwrap();
        assert!(text.contains(r#"{"status":"diverged","trial":1,"round":4}"#), "{text}");
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
        let none = summarise(&lines[1..2]);
        assert_eq!((none.finals, none.cost), (None, None));
    }
}
