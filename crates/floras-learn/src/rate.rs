//! Learning rates `η_t` over the rounds `t = 1, 2, …`.

use crate::error::{LearnError, require};

/// How the learning rate goes from round to round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// The same in every round.
    Constant(f64),
    /// `η_t = initial·factor^⌊(t−1)/every⌋`.
    Decay {
        /// The rate of the first round.
        initial: f64,
        /// What the rate is multiplied with.
        factor: f64,
        /// How many rounds pass between two multiplications.
        every: u32,
    },
    /// `η_t = 2/(μ'(t + r))`, the schedule of the paper's Theorem 4.
    InverseTime {
        /// `μ'`, what the noise leaves of the strong convexity.
        mu: f64,
        /// `r ≥ 0`.
        offset: f64,
    },
}

impl Rate {
    /// `Ok` if the rates are positive and not absurd.
    pub fn check(self) -> Result<(), LearnError> {
        let positive =
            |name, value: f64| require((1e-12..=1e6).contains(&value), name, "between 1e-12 and 1e6", value);
        match self {
            Self::Constant(rate) => positive("the learning rate", rate),
            Self::Decay { initial, factor, every } => {
                positive("the initial learning rate", initial)?;
                require(every > 0, "the rounds between two decays of the rate", "at least 1", every)?;
                require(factor > 0.0 && factor <= 1.0, "the decay factor", "above 0 and at most 1", factor)
            }
            Self::InverseTime { mu, offset } => {
                positive("mu (μ') of the learning rate", mu)?;
                require(
                    (0.0..=1e12).contains(&offset),
                    "the offset r of the rate",
                    "between 0 and 1e12",
                    offset,
                )
            }
        }
    }

    /// The rate of a round, counted from 1.
    pub fn at(self, round: u32) -> f64 {
        match self {
            Self::Constant(rate) => rate,
            Self::Decay { initial, factor, every } => {
                let decays = round.saturating_sub(1) / every.max(1);
                initial * factor.powf(f64::from(decays))
            }
            Self::InverseTime { mu, offset } => 2.0 / (mu * (f64::from(round) + offset)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_schedule_follows_its_formula() {
        assert_eq!(Rate::Constant(0.3).at(900), 0.3);
        let decay = Rate::Decay { initial: 0.15, factor: 0.99, every: 10 };
        assert_eq!([1, 10].map(|round| decay.at(round)), [0.15; 2]);
        assert!((decay.at(11) - 0.15 * 0.99).abs() < 1e-15);
        assert!((decay.at(31) - 0.15 * 0.99_f64.powi(3)).abs() < 1e-15);
        let paper = Rate::InverseTime { mu: 0.02, offset: 7.0 };
        assert!((paper.at(1) - 12.5).abs() < 1e-12);
        assert!((paper.at(93) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn rates_that_make_no_sense_are_refused() {
        let wrong = [
            Rate::Constant(0.0),
            Rate::Constant(f64::NAN),
            Rate::Decay { initial: 0.1, factor: 1.1, every: 1 },
            Rate::Decay { initial: 0.1, factor: 0.9, every: 0 },
            Rate::InverseTime { mu: 0.0, offset: 1.0 },
            Rate::InverseTime { mu: 0.1, offset: -1.0 },
        ];
        for rate in wrong {
            assert!(rate.check().is_err(), "{rate:?}");
        }
    }
}
