//! Learning rates `η_t` over the rounds `t = 1, 2, …`.

use serde::{Deserialize, Serialize};

use crate::error::{LearnError, require};

/// A [`Schedule`] whose rates are in range: in a file, `0.005`, `{ initial = 0.1, factor = 0.99, every = 10 }` or
/// `{ mu = 0.02, offset = 0 }`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(try_from = "Schedule", into = "Schedule")]
pub struct Rate(Schedule);

/// The dependence of the learning rate on the round.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(
    untagged,
    deny_unknown_fields,
    expecting = "expected a number above 0, { initial = 0.1, factor = 0.99, every = 10 } or { mu = 0.02, offset = 0 }"
)]
pub enum Schedule {
    /// The same in every round: between 1e-12 and 1e6.
    Constant(f64),
    /// `η_t = initial·factor^⌊(t−1)/every⌋`.
    Decay {
        /// The rate of the first round: between 1e-12 and 1e6.
        initial: f64,
        /// The factor of each decay: above 0 and at most 1.
        factor: f64,
        /// Number of rounds between two decays: at least 1.
        every: u32,
    },
    /// `η_t = 2/(μ'(t + r))`, the schedule of the paper's Theorem 4.
    InverseTime {
        /// `μ'`, the strong convexity that remains under the noise: between 1e-12 and 1e6.
        mu: f64,
        /// `r`: between 0 and 1e12.
        offset: f64,
    },
}

impl Rate {
    /// A constant rate: between 1e-12 and 1e6.
    pub fn constant(rate: f64) -> Result<Self, LearnError> {
        Schedule::Constant(rate).try_into()
    }

    /// The rate of a round, counted from 1.
    pub fn at(self, round: u32) -> f64 {
        match self.0 {
            Schedule::Constant(rate) => rate,
            Schedule::Decay { initial, factor, every } => {
                let decays = round.saturating_sub(1) / every;
                initial * factor.powf(f64::from(decays))
            }
            Schedule::InverseTime { mu, offset } => 2.0 / (mu * (f64::from(round) + offset)),
        }
    }
}

impl Default for Rate {
    /// 0.005, the paper's rate for clients with equal distributions.
    fn default() -> Self {
        Self(Schedule::Constant(0.005))
    }
}

impl TryFrom<Schedule> for Rate {
    type Error = LearnError;

    fn try_from(schedule: Schedule) -> Result<Self, LearnError> {
        let positive =
            |name, value: f64| require((1e-12..=1e6).contains(&value), name, "between 1e-12 and 1e6", value);
        match schedule {
            Schedule::Constant(rate) => positive("the learning rate", rate)?,
            Schedule::Decay { initial, factor, every } => {
                positive("the initial learning rate", initial)?;
                require(every > 0, "the rounds between two decays of the rate", "at least 1", every)?;
                require(factor > 0.0 && factor <= 1.0, "the decay factor", "above 0 and at most 1", factor)?;
            }
            Schedule::InverseTime { mu, offset } => {
                positive("mu (μ') of the learning rate", mu)?;
                let holds = (0.0..=1e12).contains(&offset);
                require(holds, "the offset r of the rate", "between 0 and 1e12", offset)?;
            }
        }
        Ok(Self(schedule))
    }
}

impl From<Rate> for Schedule {
    fn from(rate: Rate) -> Self {
        rate.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schedule_follows_its_formula() {
        let rate = |schedule: Schedule| Rate::try_from(schedule).unwrap();
        assert_eq!(rate(Schedule::Constant(0.3)).at(900), 0.3);
        let decay = rate(Schedule::Decay { initial: 0.15, factor: 0.99, every: 10 });
        assert_eq!([1, 10].map(|round| decay.at(round)), [0.15; 2]);
        assert!((decay.at(11) - 0.15 * 0.99).abs() < 1e-15);
        assert!((decay.at(31) - 0.15 * 0.99_f64.powi(3)).abs() < 1e-15);
        let paper = rate(Schedule::InverseTime { mu: 0.02, offset: 7.0 });
        assert!((paper.at(1) - 12.5).abs() < 1e-12);
        assert!((paper.at(93) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn rates_out_of_range_are_refused() {
        let wrong = [
            Schedule::Constant(0.0),
            Schedule::Constant(f64::NAN),
            Schedule::Decay { initial: 0.1, factor: 1.1, every: 1 },
            Schedule::Decay { initial: 0.1, factor: 0.9, every: 0 },
            Schedule::InverseTime { mu: 0.0, offset: 1.0 },
            Schedule::InverseTime { mu: 0.1, offset: -1.0 },
        ];
        for schedule in wrong {
            assert!(Rate::try_from(schedule).is_err(), "{schedule:?}");
        }
    }
}
