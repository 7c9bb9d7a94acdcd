//! A lower bound on `ε` from an adversary's scores.
//!
//! The canary is present in one world and absent in the other. If a mechanism is (ε, δ)-private, then for every set `S` of
//! outcomes, in either direction,
//!
//! ```text
//! P(S) ≤ e^ε·Q(S) + δ,     hence     ε ≥ ln((P(S) − δ)/Q(S))
//! ```
//!
//! The adversary assigns a score to every outcome, and `S` is "the score is at or beyond a threshold". A quarter of the games
//! choose the threshold; the remaining, independent games count the outcomes in `S`. With Clopper–Pearson bounds on both
//! probabilities the result is a lower bound at the stated confidence for any scores: a bad adversary makes it weak, never
//! wrong.
//!
//! # Citations
//! Clopper, Pearson, *The use of confidence or fiducial limits illustrated in the case of the binomial*, Biometrika 26, 1934.
//! Jagielski, Ullman, Oprea, *Auditing differentially private machine learning*, NeurIPS 2020.

use statrs::function::gamma::ln_gamma;

use super::report::Measured;

/// Share of the error probability for the rarer event, whose count is more uncertain.
const SHARE_OF_RARER: f64 = 0.75;

/// The scores of an adversary in both worlds. A higher score indicates the canary.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Scores of the games with the canary, one per game; any real number.
    pub with: Vec<f64>,
    /// Scores of the games without the canary, one per game; any real number.
    pub without: Vec<f64>,
}

/// The lower bound on `ε` that scores yield.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowerBound {
    /// Lower bound on the true `ε` at the requested confidence.
    pub epsilon: f64,
    /// The adversary's accuracy if both worlds are equally likely.
    pub accuracy: f64,
    /// The counts behind the bound.
    pub measured: Measured,
}

impl Scores {
    /// A lower bound on `ε` at `delta`, wrong with probability at most `error`.
    pub fn lower_bound(&self, delta: f64, error: f64) -> LowerBound {
        let (choosing, [with, without]) = self.split();
        let best = choosing.best(delta, error, with.len());
        let (right, wrong) = best.count(with, without);
        let games = with.len().min(without.len()) as u64;
        let measured = Measured {
            games,
            right,
            wrong,
            ceiling: bound(Counts { games, right: games, wrong: 0 }, delta, error),
        };
        let epsilon = bound(Counts { games, right, wrong }, delta, error);
        LowerBound { epsilon, accuracy: choosing.accuracy(with, without), measured }
    }

    /// The first quarter of the scores, sorted, and the rest.
    fn split(&self) -> (Choosing, [&[f64]; 2]) {
        let games = self.with.len().min(self.without.len());
        let (with, without) = (&self.with[..games], &self.without[..games]);
        let sorted = |scores: &[f64]| {
            let mut sorted = scores.to_vec();
            sorted.sort_by(f64::total_cmp);
            sorted
        };
        let first = games / 4;
        let choosing = Choosing { with: sorted(&with[..first]), without: sorted(&without[..first]) };
        (choosing, [&with[first..], &without[first..]])
    }
}

/// A set of outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Set {
    /// Scores at or above this threshold indicate the canary.
    AtLeast(f64),
    /// Scores at or below this threshold indicate its absence.
    AtMost(f64),
}

impl Set {
    /// Counts of outcomes in the set: in the world that it indicates, and in the other.
    fn count(self, with: &[f64], without: &[f64]) -> (u64, u64) {
        let count = |scores: &[f64], holds: &dyn Fn(f64) -> bool| {
            scores.iter().filter(|&&score| holds(score)).count() as u64
        };
        match self {
            Self::AtLeast(threshold) => {
                let holds = |score: f64| score >= threshold;
                (count(with, &holds), count(without, &holds))
            }
            Self::AtMost(threshold) => {
                let holds = |score: f64| score <= threshold;
                (count(without, &holds), count(with, &holds))
            }
        }
    }
}

/// The games that choose a set, sorted.
struct Choosing {
    with: Vec<f64>,
    without: Vec<f64>,
}

impl Choosing {
    /// The set with the largest expected bound for `games` counted games in each world.
    fn best(&self, delta: f64, error: f64, games: usize) -> Set {
        let scale = games as f64 / self.with.len().max(1) as f64;
        let promise = |set: &Set| {
            let (right, wrong) = self.count(*set);
            // One additional error, so that a rare event that did not occur does not look impossible.
            let more = |count: u64| ((count as f64 * scale) as u64).min(games as u64);
            bound(Counts { games: games as u64, right: more(right), wrong: more(wrong + 1) }, delta, error)
        };
        let sets = self.candidates();
        let best = sets.iter().copied().max_by(|a, b| promise(a).total_cmp(&promise(b)));
        best.unwrap_or(Set::AtLeast(0.0))
    }

    fn count(&self, set: Set) -> (u64, u64) {
        let above = |sorted: &[f64], t: f64| (sorted.len() - sorted.partition_point(|&s| s < t)) as u64;
        let below = |sorted: &[f64], t: f64| sorted.partition_point(|&s| s <= t) as u64;
        match set {
            Set::AtLeast(t) => (above(&self.with, t), above(&self.without, t)),
            Set::AtMost(t) => (below(&self.without, t), below(&self.with, t)),
        }
    }

    /// Thresholds with 1, 2, 3, 4, 5, 6, 7, 8, 10, … outcomes at or above them, or at or below them.
    fn candidates(&self) -> Vec<Set> {
        let games = self.with.len();
        let mut sets = Vec::new();
        let mut some = 1_usize;
        while some <= games {
            for index in [some - 1, games - some] {
                sets.push(Set::AtLeast(self.with[index]));
                sets.push(Set::AtMost(self.without[index]));
            }
            some = (some + 1).max(some * 5 / 4);
        }
        sets
    }

    /// The share of right answers in games that are independent of the threshold.
    fn accuracy(&self, with: &[f64], without: &[f64]) -> f64 {
        let rate = |(right, wrong): (u64, u64), games: usize| {
            0.5 + 0.5 * (right as f64 - wrong as f64) / games.max(1) as f64
        };
        let chosen = self.candidates().into_iter().max_by(|a, b| {
            let of = |set: Set| rate(self.count(set), self.with.len());
            of(*a).total_cmp(&of(*b))
        });
        chosen.map_or(0.5, |set| rate(set.count(with, without), with.len()))
    }
}

/// The observed counts.
#[derive(Clone, Copy)]
struct Counts {
    games: u64,
    right: u64,
    wrong: u64,
}

fn bound(counts: Counts, delta: f64, error: f64) -> f64 {
    let Counts { games, right, wrong } = counts;
    let often = at_least(right, games, (1.0 - SHARE_OF_RARER) * error);
    let rarely = at_most(wrong, games, SHARE_OF_RARER * error);
    if often <= delta { 0.0 } else { ((often - delta) / rarely).ln().max(0.0) }
}

/// Lower confidence bound on the probability of an event observed `count` times in `games`, at error probability `error`.
pub(crate) fn at_least(count: u64, games: u64, error: f64) -> f64 {
    if count == 0 {
        return 0.0;
    }
    // P(X ≥ count) grows with the probability; at the result it is at most `error`.
    outermost(0.0, count as f64 / games as f64, |p| upper_tail(count, games, p) <= error)
}

/// Upper confidence bound on the probability of an event observed `count` times in `games`, at error probability `error`.
pub(crate) fn at_most(count: u64, games: u64, error: f64) -> f64 {
    1.0 - at_least(games - count, games, error)
}

/// Bisection: the largest number between `from` and `to` that satisfies a predicate.
fn outermost(from: f64, to: f64, holds: impl Fn(f64) -> bool) -> f64 {
    let (mut inside, mut outside) = (from, to);
    for _ in 0..80 {
        let middle = 0.5 * (inside + outside);
        if holds(middle) { inside = middle } else { outside = middle }
    }
    inside
}

/// `P(X ≥ count)` for a binomial `X`, with `p` below `count/games`: the terms decrease from `count`.
fn upper_tail(count: u64, games: u64, p: f64) -> f64 {
    if p <= 0.0 {
        return 0.0;
    }
    let (k, n) = (count as f64, games as f64);
    let log_first = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
        + k * p.ln()
        + if count == games { 0.0 } else { (n - k) * (-p).ln_1p() };
    let (mut term, mut sum, mut k) = (1.0, 1.0, k);
    while k < n {
        term *= (n - k) / (k + 1.0) * p / (1.0 - p);
        k += 1.0;
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    (log_first + f64::ln(sum)).exp()
}

#[cfg(test)]
mod tests {
    use floras_privacy::gaussian;
    use proptest::prelude::*;
    use rand::rngs::Xoshiro256PlusPlus;
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;

    use super::*;

    /// From scipy 1.17.1, `beta.ppf`: count, games, error, lower, upper.
    #[test]
    fn the_bounds_are_those_of_clopper_and_pearson() {
        let table = [
            (0, 100, 0.05, 0.0, 0.029_513_049_607_039_925),
            (3, 100, 0.05, 0.008_225_829_107_652_688, 0.075_710_793_749_830_04),
            (97, 100, 0.00125, 0.878_304_327_626_598_7, 0.997_920_930_707_877_5),
            (100, 100, 0.05, 0.970_486_950_392_960_1, 1.0),
            (12, 750_000, 0.05, 9.232_308_437_482_581e-06, 2.592_329_714_861_459e-05),
            (323, 750_000, 0.00125, 0.000_361_833_883_505_024_93, 0.000_508_170_381_453_423_9),
            (500_000, 750_000, 0.05, 0.665_770_180_779_236_9, 0.667_562_201_869_695_4),
            (40, 4_000_000, 0.00125, 5.888_443_551_084_597e-06, 1.577_299_952_011_300_2e-05),
        ];
        for (count, games, error, lower, upper) in table {
            let found = (at_least(count, games, error), at_most(count, games, error));
            assert!((found.0 - lower).abs() <= 1e-7 * lower, "{count} of {games}: {found:?}");
            assert!((found.1 - upper).abs() <= 1e-7 * upper, "{count} of {games}: {found:?}");
        }
    }

    proptest! {
        /// Each bound is tight in its own half.
        #[test]
        fn bounds_enclose_the_share(games in 1_u64..10_000, share in 0.0..=1.0_f64, error in 1e-6..0.2_f64) {
            let count = (games as f64 * share) as u64;
            let share = count as f64 / games as f64;
            let (lower, upper) = (at_least(count, games, error), at_most(count, games, error));
            prop_assert!(lower <= share && share <= upper);
            prop_assert!((0.0..=1.0).contains(&lower) && (0.0..=1.0).contains(&upper));
        }
    }

    fn gaussian_scores(mu: f64, games: usize, seed: u64) -> Scores {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut draw = |mean: f64| -> Vec<f64> {
            (0..games).map(|_| mean + generator.sample::<f64, _>(StandardNormal)).collect()
        };
        Scores { with: draw(mu), without: draw(0.0) }
    }

    /// The exact ε of a Gaussian mechanism. With an error of 0.05 each, 200 audits exceed it 10 times on average; 25 or more
    /// have probability 2e-5. The mean bound is above half of the exact number, which shows power.
    #[test]
    fn gaussian_audits_keep_their_error_probability() {
        let (mu, delta, error) = (1.0, 1e-3, 0.05);
        let exact = gaussian::epsilon(delta, mu).unwrap();
        let bounds: Vec<f64> = (0..200)
            .map(|seed| gaussian_scores(mu, 20_000, seed).lower_bound(delta, error).epsilon)
            .collect();
        let wrong = bounds.iter().filter(|&&bound| bound > exact).count();
        assert!(wrong < 25, "{wrong} of 200");
        let mean = bounds.iter().sum::<f64>() / 200.0;
        assert!(mean > 0.5 * exact, "{mean} of {exact}");
    }

    #[test]
    fn uninformative_scores_yield_no_bound() {
        let scores = gaussian_scores(0.0, 50_000, 9);
        assert!(scores.lower_bound(1e-5, 0.01).epsilon < 0.05);
        let equal = Scores { with: vec![0.0; 1000], without: vec![0.0; 1000] };
        assert_eq!(equal.lower_bound(1e-5, 0.05).epsilon, 0.0);
        assert_eq!(Scores::default().lower_bound(1e-5, 0.05).epsilon, 0.0);
    }

    #[test]
    fn a_perfect_adversary_reaches_the_ceiling() {
        let scores = Scores { with: vec![f64::INFINITY; 4000], without: vec![f64::NEG_INFINITY; 4000] };
        let found = scores.lower_bound(1e-5, 0.05);
        assert_eq!((found.epsilon, found.accuracy), (found.measured.ceiling, 1.0));
        assert_eq!((found.measured.games, found.measured.right, found.measured.wrong), (3000, 3000, 0));
        // An event that occurs 0 times in 3000 has a probability of at most 1 − 0.0375^(1/3000) = 0.001094.
        assert!((found.epsilon - (1.0_f64 / 0.001_094).ln()).abs() < 0.01, "{}", found.epsilon);
    }

    /// An event in 4 of 100 games of one world and never in the other is permitted by `δ = 0.05` and not by `δ = 0.01`.
    #[test]
    fn events_within_delta_are_no_loss() {
        let some = |i: u32| f64::from(i.is_multiple_of(25));
        let scores = Scores { with: (0..40_000).map(some).collect(), without: vec![0.0; 40_000] };
        assert_eq!(scores.lower_bound(0.05, 0.05).epsilon, 0.0);
        assert!(scores.lower_bound(0.01, 0.05).epsilon > 5.0);
    }

    /// Only one of the two sets shows it: outcomes that the canary makes impossible.
    #[test]
    fn evidence_against_the_canary_counts() {
        let scores = Scores {
            with: vec![1.0; 40_000],
            without: (0..40_000).map(|i| f64::from(i % 10 != 0)).collect(),
        };
        let found = scores.lower_bound(1e-5, 0.05);
        assert!(found.epsilon > 6.0, "{}", found.epsilon);
    }
}
