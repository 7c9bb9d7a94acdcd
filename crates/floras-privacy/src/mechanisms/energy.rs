//! A vote by energy detection: each client sends on one of two tones, without any channel knowledge.
//!
//! In one coordinate client `k` sends with energy `E` on the tone of its sign. Over Rayleigh channels that are independent between
//! clients, tones and coordinates, the energies that the base station measures are exponential, with the means
//!
//! ```text
//! A = K₊·E + s,   B = K₋·E + s,   s the noise energy of a tone, K₊ + K₋ = K voters
//! ```
//!
//! and the vote is the tone with more energy: `P(+) = A/(A + B)`.
//!
//! **Decision.** A replaced client moves one voter from `−` to `+`, or back. With `Z = K·E + 2s` the probability of a vote moves
//! between `p = (jE + s)/Z` and `p' = p + E/Z`. The curve of such a pair is `(p' − e^ε·p)₊` or, in the other direction,
//! `((1 − p) − e^ε·(1 − p'))₊`. Both are largest at `j = 0` (for the second by symmetry, at `j = K − 1`):
//!
//! ```text
//! δ(ε) = (E + s − e^ε·s)₊/Z
//! ```
//!
//! so that a coordinate has pure `ε = ln(1 + E/s)`. The curve is that of a randomised response, and is larger for fewer voters.
//!
//! **Energies.** A base station that keeps both energies sees the pairs `(A + E, B)` and `(A, B + E)`, now with the `K − 1` other
//! voters in `A` and `B`. With `c = ln(A(B + E)/((A + E)B))` the privacy loss is `c + E/A·U − E/(B + E)·V` for exponential `U` and
//! `V` of mean 1, and
//!
//! ```text
//! δ(ε) = E·(B + E)/((A + B + E)(A + E))·e^{−(ε − c)·A/E}                 for ε ≥ c
//! δ(ε) = 1 − e^ε + A·E/(B·(A + B + E))·e^{(ε − c)(B + E)/E}              for ε < c
//! ```
//!
//! The curve of a coordinate is the largest over all `A`. Further voters are independent noise on both tones, so that fewer voters
//! leak more: a bound for few voters holds for many. A round has one such pair for every coordinate; their curves compose.
//!
//! # Citations
//! Şahin, *A demonstration of over-the-air computation for federated edge learning*, 2022, arXiv:2209.09954, for the vote. Zhu, Dong,
//! Wang, *Optimal accounting of differential privacy via characteristic function*, AISTATS 2022, for dominating pairs. The curves
//! are derived here.

use crate::engine::sampling::Curve;
use crate::error::{PrivacyError, require, require_positive};

/// Maximum number of voters for which all divisions into `+` and `−` are evaluated.
const MAX_VOTERS: u64 = 10_000;

/// The curve of one coordinate for an adversary who sees the votes.
///
/// ```
/// use floras_privacy::{Curve, EnergyVote};
///
/// // With one voter and E = s the vote is right with probability 2/3.
/// let vote = EnergyVote::new(1.0, 1.0, 1)?;
/// assert!((vote.upper(0.0) - 1.0 / 3.0).abs() < 1e-12);
/// assert_eq!(vote.upper(2_f64.ln() + 1e-9), 0.0);
/// # Ok::<(), floras_privacy::PrivacyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EnergyVote {
    /// `E/s`, the energy of a voter over that of the noise; dimensionless, above 0.
    ratio: f64,
    voters: f64,
}

impl EnergyVote {
    /// A vote of at least `voters` clients, each with the mean received energy `energy`, under noise of energy `noise` on each tone.
    /// Both energies are above 0.
    pub fn new(energy: f64, noise: f64, voters: u64) -> Result<Self, PrivacyError> {
        Ok(Self { ratio: checked_ratio(energy, noise, voters)?, voters: voters as f64 })
    }
}

impl Curve for EnergyVote {
    fn upper(&self, epsilon: f64) -> f64 {
        ((self.ratio - epsilon.exp_m1()) / (self.voters * self.ratio + 2.0)).max(0.0)
    }

    fn lower(&self, _: f64) -> f64 {
        0.0
    }

    /// No pair of neighbours attains the curve in both directions.
    fn has_lower(&self) -> bool {
        false
    }

    fn infinite(&self) -> f64 {
        0.0
    }

    fn tolerance(&self) -> f64 {
        1e-10
    }
}

/// The curve of one coordinate for an adversary who sees the energies of both tones.
#[derive(Clone, Debug, PartialEq)]
pub struct Energies {
    /// `E/s`, the energy of a voter over that of the noise; dimensionless, above 0.
    ratio: f64,
    others: u64,
}

impl Energies {
    /// A vote of at least `voters` clients, from 1 to 10,000, each with the mean received energy `energy`, under noise of energy `noise` on
    /// each tone. Both energies are above 0.
    pub fn new(energy: f64, noise: f64, voters: u64) -> Result<Self, PrivacyError> {
        let ratio = checked_ratio(energy, noise, voters)?;
        let holds = voters <= MAX_VOTERS;
        require(holds, "the number of voters whose energies are seen", "between 1 and 10000", voters as f64)?;
        Ok(Self { ratio, others: voters - 1 })
    }

    /// `δ(ε)` for `plus` of the other voters on the tone to which the client moves.
    fn of(&self, epsilon: f64, plus: u64) -> f64 {
        let e = self.ratio;
        let (a, b) = (plus as f64 * e + 1.0, (self.others - plus) as f64 * e + 1.0);
        let total = a + b + e;
        let c = (e / b).ln_1p() - (e / a).ln_1p();
        if epsilon >= c {
            e * (b + e) / (total * (a + e)) * (-(epsilon - c) * a / e).exp()
        } else {
            -epsilon.exp_m1() + a * e / (b * total) * ((epsilon - c) * (b + e) / e).exp()
        }
    }
}

impl Curve for Energies {
    fn upper(&self, epsilon: f64) -> f64 {
        (0..=self.others).map(|plus| self.of(epsilon, plus)).fold(0.0, f64::max)
    }

    fn lower(&self, _: f64) -> f64 {
        0.0
    }

    /// No pair of neighbours attains the curve in both directions.
    fn has_lower(&self) -> bool {
        false
    }

    fn infinite(&self) -> f64 {
        0.0
    }

    fn tolerance(&self) -> f64 {
        1e-9
    }
}

fn checked_ratio(energy: f64, noise: f64, voters: u64) -> Result<f64, PrivacyError> {
    require_positive("the energy of a voter", energy)?;
    require_positive("the noise energy of a tone", noise)?;
    require(voters >= 1, "the number of voters", "at least 1", voters as f64)?;
    require_positive("the ratio of a voter's energy to the noise", energy / noise)?;
    Ok(energy / noise)
}

#[cfg(test)]
mod tests {
    use floras_core::random::{Purpose, StreamName};
    use rand::RngExt;

    use super::*;
    use crate::account::{Account, Source};
    use crate::engine::compose::Composition;
    use crate::engine::sampling::Sampling;
    use floras_core::View;

    const DRAWS: usize = 400_000;

    /// The largest `E[(1 − e^{ε − L})₊]` over both directions and all divisions, from draws of both mechanisms. The standard error of a
    /// mean of values in [0, 1] is at most 0.0008; the test allows five of them, and 10% of the curve is 0.01 to 0.04.
    #[test]
    fn curves_are_those_of_drawn_energies() {
        let mut stream = StreamName::new(17, Purpose::BENCHMARK).stream();
        let mut exponential = || -(1.0 - stream.random::<f64>()).ln();
        let pairs: Vec<(f64, f64)> = (0..DRAWS).map(|_| (exponential(), exponential())).collect();
        for (e, voters) in [(0.5, 1_u64), (2.0, 3), (8.0, 4)] {
            let (votes, energies) =
                (EnergyVote::new(e, 1.0, voters).unwrap(), Energies::new(e, 1.0, voters).unwrap());
            for epsilon in [0.0, 0.3, 1.0] {
                let mut largest = [0.0_f64; 2];
                for plus in 0..voters {
                    let (a, b) = (plus as f64 * e + 1.0, (voters - 1 - plus) as f64 * e + 1.0);
                    let loss = |x: f64, y: f64| {
                        (a * (b + e) / ((a + e) * b)).ln() + x * (1.0 / a - 1.0 / (a + e))
                            - y * (1.0 / b - 1.0 / (b + e))
                    };
                    let counts = |loss: f64| (-(epsilon - loss).exp_m1()).max(0.0);
                    let mean = |of: &dyn Fn(f64, f64) -> f64| {
                        pairs.iter().map(|&(u, v)| of(u, v)).sum::<f64>() / DRAWS as f64
                    };
                    let seen = mean(&|u, v| counts(loss((a + e) * u, b * v)));
                    let is_plus = |a: f64, b: f64| mean(&|u, v| f64::from(a * u > b * v));
                    let decided = is_plus(a + e, b) - epsilon.exp() * is_plus(a, b + e);
                    largest = [largest[0].max(decided), largest[1].max(seen)];
                }
                for (found, expected) in largest.iter().zip([votes.upper(epsilon), energies.upper(epsilon)]) {
                    assert!(
                        (found - expected).abs() < 0.004 * epsilon.exp(),
                        "{e} {voters} {epsilon}: {found}, {expected}"
                    );
                }
                assert!(votes.upper(epsilon) <= energies.upper(epsilon) * (1.0 + 1e-12));
            }
        }
    }

    #[test]
    fn more_voters_hide_a_client_better() {
        for epsilon in [0.0, 0.5, 2.0] {
            let of = |voters| {
                let energies = Energies::new(3.0, 1.0, voters).unwrap().upper(epsilon);
                (EnergyVote::new(3.0, 1.0, voters).unwrap().upper(epsilon), energies)
            };
            let all: Vec<(f64, f64)> = (1..30).map(of).collect();
            assert!(all.is_sorted_by(|few, many| few.0 >= many.0 && few.1 >= many.1), "{all:?}");
        }
    }

    /// The sum of `d` losses that are `±ε₀` with probabilities `p'` and `p`, and otherwise 0, one after the other.
    fn exact_delta(ratio: f64, voters: u64, coordinates: usize, epsilon: f64) -> f64 {
        let total = voters as f64 * ratio + 2.0;
        let (up, down) = ((ratio + 1.0) / total, 1.0 / total);
        let mut masses = vec![0.0; 2 * coordinates + 1];
        masses[coordinates] = 1.0;
        for _ in 0..coordinates {
            let before = masses.clone();
            for (place, mass) in masses.iter_mut().enumerate() {
                let at = |place: usize| before.get(place).copied().unwrap_or(0.0);
                *mass = (1.0 - up - down) * at(place) + down * at(place + 1);
                *mass += if place > 0 { up * at(place - 1) } else { 0.0 };
            }
        }
        let loss = |place: usize| (place as f64 - coordinates as f64) * ratio.ln_1p();
        masses
            .iter()
            .enumerate()
            .map(|(place, mass)| mass * (-(epsilon - loss(place)).exp_m1()).max(0.0))
            .sum()
    }

    #[test]
    fn coordinates_compose_to_the_exact_sum() {
        for (ratio, voters, coordinates) in [(1.0, 20, 200), (0.1, 5, 400), (10.0, 100, 300)] {
            let mut account = Account::new(Sampling::Everyone, 1e-5).unwrap();
            let vote = EnergyVote::new(ratio, 1.0, voters).unwrap();
            account.set(View::Actual, Source::of(vote).in_parts(coordinates as u64));
            let epsilon = account.epsilon(View::Actual, 1).unwrap().unwrap();
            let at = exact_delta(ratio, voters, coordinates, epsilon);
            let below = exact_delta(ratio, voters, coordinates, 0.99 * epsilon);
            assert!(at <= 1e-5 && below > 1e-5, "{ratio} {voters}: {epsilon} has {at}, less has {below}");
            let twice = account.epsilon(View::Actual, 2).unwrap().unwrap();
            let expected = Composition::new(&vote, Sampling::Everyone, 2 * coordinates as u64).unwrap();
            assert_eq!(twice, expected.epsilon_upper(1e-5).unwrap());
        }
    }

    /// Against sampling nothing is claimed: the number is that of a client that takes part in every round.
    #[test]
    fn rounds_in_parts_are_not_amplified() {
        let of = |sampling| {
            let mut account = Account::new(sampling, 1e-5).unwrap();
            account.set(View::Actual, Source::of(Energies::new(1.0, 1.0, 10).unwrap()).in_parts(50));
            let statement = account.statement(View::Actual, 3).unwrap().unwrap();
            assert_eq!(statement.epsilon_lower, None);
            (statement.epsilon.unwrap(), statement.guarantee)
        };
        assert_eq!(of(Sampling::ReplaceOne(0.01)), of(Sampling::Everyone));
        assert_eq!(of(Sampling::Known(0.5)), of(Sampling::Everyone));
    }

    #[test]
    fn energies_out_of_range_are_refused() {
        assert!(EnergyVote::new(0.0, 1.0, 3).is_err());
        assert!(EnergyVote::new(1.0, f64::NAN, 3).is_err());
        assert!(EnergyVote::new(1.0, 1.0, 0).is_err());
        assert!(Energies::new(1.0, 1.0, 10_001).is_err());
    }
}
